//! [`PublicationImage`]: the conductor's half of an image. It tracks subscribers and gaps, schedules status messages,
//! and controls the life cycle.

use std::sync::Arc;

use aeron_memory::buffer::SharedBuffer;
use aeron_memory::counters::AtomicCounter;
use aeron_memory::log::LogBuffers;
use aeron_memory::loss_report::{LossReport, LossSource};

use super::ImageStatus;
use crate::congestion::{CongestionControl, TrackRebuild};
use crate::image_loss::ImageLoss;
use crate::loss_detector::{LossDetector, TermGap};
use crate::receiver::ReceiveEndpointId;
use crate::rules::{Rule, reach};
use crate::stream::{
    LinkedStream, ManagedLog, PageRequest, Pages, StreamIdentity, Subscribers, TetherAction,
    TetherPositions, TetherTimeouts,
};

/// Number of bytes after the window for which pages are allocated in advance, so that a stream does not wait for pages.
const PAGES_AHEAD_LENGTH: i64 = 2 * 1024 * 1024;
/// Minimum time for which an image drains, in status message timeouts. In this time, status messages announce the end
/// to the sender.
const DRAIN_STATUS_MESSAGES: i64 = 5;

/// Life cycle of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageState {
    /// Data arrives, and subscribers read it.
    Active,
    /// No more data is expected. Subscribers read the remaining data, and status messages announce the end to the
    /// sender.
    Draining,
    /// The end of the image was announced to subscribers, but they may still be reading.
    Linger,
    /// The image has ended, and the receiver is about to release it.
    Done,
}

/// Parameters of an image, apart from its memory.
#[derive(Clone, Debug)]
pub struct ImageConfig {
    pub correlation_id: i64,
    pub endpoint: ReceiveEndpointId,
    pub session_id: i32,
    pub stream_id: i32,
    /// Position of the stream when the image was created.
    pub join_position: i64,
    pub is_sparse: bool,
    /// Whether the stream carries requests, and its sender wants to receive responses on a response channel.
    pub wants_response: bool,
    pub log_file_name: String,
    /// Address of the sender.
    pub source_identity: String,
    /// Channel of the endpoint, for the loss report.
    pub channel: String,
    pub tether_timeouts: TetherTimeouts,
    pub liveness_timeout_ns: i64,
    pub status_message_timeout_ns: i64,
    /// Ids of the counters of the congestion control.
    pub congestion_counter_ids: Vec<i32>,
}

/// The position counters of an image.
#[derive(Debug)]
pub struct ImageCounters {
    /// End of the highest datagram received. The receiver updates it.
    pub high_water_mark: AtomicCounter<SharedBuffer>,
    /// Position up to which the stream is complete.
    pub receiver_position: AtomicCounter<SharedBuffer>,
    pub naks_sent: AtomicCounter<SharedBuffer>,
}

/// The action that a timer tick of an image requires from the conductor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageTick {
    Nothing,
    /// Announce the end of the image to the subscribers, and ask the receiver to release the image.
    Unavailable,
    /// Delete the image.
    EndOfLife,
}

/// An image. The conductor owns it.
pub struct PublicationImage {
    config: ImageConfig,
    managed: ManagedLog,
    counters: ImageCounters,
    status: Arc<ImageStatus>,
    subscribers: Subscribers,
    congestion_control: Box<dyn CongestionControl>,
    loss_detector: LossDetector,
    loss: ImageLoss<SharedBuffer>,
    rejoins: bool,
    state: ImageState,
    time_of_last_state_change_ns: i64,
    /// Position in the status message that was scheduled last.
    next_status_position: i64,
    next_window: i64,
    is_released_by_receiver: bool,
}

/// The loss detector and the congestion control of an image.
pub struct ImageStrategies {
    pub congestion_control: Box<dyn CongestionControl>,
    pub loss_detector: LossDetector,
}

impl PublicationImage {
    /// Creates an active image at its join position. `first_pages` are the pages of its log that are already allocated.
    pub fn new(
        config: ImageConfig,
        log: LogBuffers<SharedBuffer>,
        first_pages: PageRequest,
        counters: ImageCounters,
        strategies: ImageStrategies,
        now_ns: i64,
    ) -> Self {
        let position = config.join_position;
        let term_length = log.term_length() as i64;
        let pages = Pages::for_image(config.is_sparse, position, term_length, first_pages);
        counters.high_water_mark.set(position);
        counters.receiver_position.set(position);
        let window = i64::from(strategies.congestion_control.initial_window_length());
        let window = (pages.allowed_limit(position + window) - position).max(0);
        let status = ImageStatus::new(position, window, writable_end(&pages), now_ns);
        Self {
            managed: ManagedLog::new(log, pages, position),
            config,
            counters,
            status: Arc::new(status),
            subscribers: Subscribers::default(),
            congestion_control: strategies.congestion_control,
            loss_detector: strategies.loss_detector,
            loss: ImageLoss::default(),
            rejoins: true,
            state: ImageState::Active,
            time_of_last_state_change_ns: now_ns,
            next_status_position: position,
            next_window: window,
            is_released_by_receiver: false,
        }
    }

    pub fn config(&self) -> &ImageConfig {
        &self.config
    }

    pub fn status(&self) -> &Arc<ImageStatus> {
        &self.status
    }

    pub fn log(&self) -> &LogBuffers<SharedBuffer> {
        self.managed.log()
    }

    pub fn counters(&self) -> &ImageCounters {
        &self.counters
    }

    /// Returns whether the same session may have another image after this one.
    ///
    /// The subscription that was linked last decides.
    pub fn rejoins(&self) -> bool {
        self.rejoins
    }

    /// Records that the receiver has dropped its half.
    pub fn on_released_by_receiver(&mut self) {
        debug_assert!(
            matches!(self.state, ImageState::Linger | ImageState::Done),
            "the receiver was not asked to release an image in the state {:?}",
            self.state
        );
        self.is_released_by_receiver = true;
    }

    /// Runs one timer tick, with at most one change of state.
    pub fn on_tick(
        &mut self,
        now_ns: i64,
        on_tether_action: impl FnMut(TetherAction),
    ) -> ImageTick {
        self.managed.pages.retry();
        match self.state {
            ImageState::Active => {
                if !self.status.is_revoked() {
                    self.check_untethered(now_ns, on_tether_action);
                }
                self.drain_if_over(now_ns);
                ImageTick::Nothing
            }
            ImageState::Draining if self.status.is_revoked() || self.is_told_and_read(now_ns) => {
                reach(match self.status.is_revoked() {
                    true => Rule::ImageDrainedRevoked,
                    false => Rule::ImageDrained,
                });
                if self.status.is_revoked() {
                    self.status.begin_ending();
                    self.status.request_status_message();
                }
                self.enter(ImageState::Linger, now_ns);
                ImageTick::Unavailable
            }
            ImageState::Linger
                if !self.subscribers.has_working() || self.is_silent_state(now_ns) =>
            {
                reach(match self.subscribers.has_working() {
                    true => Rule::ImageLingered,
                    false => Rule::ImageForgotten,
                });
                self.enter(ImageState::Done, now_ns);
                ImageTick::Nothing
            }
            ImageState::Done if self.is_released_by_receiver => {
                reach(Rule::ImageDeleted);
                ImageTick::EndOfLife
            }
            ImageState::Draining | ImageState::Linger | ImageState::Done => ImageTick::Nothing,
        }
    }

    /// Announces to the sender at once that this receiver leaves the stream, because the driver is about to close.
    ///
    /// If the image still has subscribers, announces this only if `is_last_call` is set. Returns `true` if nothing is
    /// left to announce.
    pub fn leave(&self, is_last_call: bool) -> bool {
        let is_live = matches!(self.state, ImageState::Active | ImageState::Draining);
        if !is_live || self.subscribers.has_working() && !is_last_call {
            return true;
        }
        if self.status.is_ending_reported() {
            return true;
        }
        self.status.begin_ending();
        self.status.request_status_message();
        false
    }

    /// Scans for gaps and updates the window. Returns whether a status message was scheduled.
    pub fn track_rebuild(
        &mut self,
        now_ns: i64,
        report: &mut LossReport<SharedBuffer>,
        epoch_ms: i64,
    ) -> bool {
        let Some((min, max)) = self.subscribers.position_range() else {
            return false;
        };
        if self.status.is_revoked() {
            return false;
        }
        let receiver_position = self.counters.receiver_position.get();
        let high_water_mark = self.status.high_water_mark();
        let end = high_water_mark.max(receiver_position);
        let (min, max) = (
            self.managed.sanitize(min, end),
            self.managed.sanitize(max, end),
        );
        let rebuild_position = max.max(self.managed.sanitize(receiver_position, end));
        let log = self.managed.log();
        let scanned = self
            .loss_detector
            .scan(log, rebuild_position, high_water_mark, now_ns);
        // An invalid frame can only come from another process. Subscribers that read it report the error.
        let Ok(scan) = scanned else { return false };
        self.counters
            .receiver_position
            .propose_max(scan.rebuild_position);
        if let Some(gap) = scan.due {
            self.on_gap(gap, report, epoch_ms);
        }
        let update = self.congestion_control.on_track_rebuild(&TrackRebuild {
            now_ns,
            consumption_position: min,
            next_sm_position: self.next_status_position,
            is_loss_found: scan.is_loss_found,
        });
        debug_assert!(
            (0..=self.congestion_control.max_window_length()).contains(&update.window_length),
            "the window of {} bytes is longer than the maximum of {} bytes, for which pages are requested",
            update.window_length,
            self.congestion_control.max_window_length()
        );
        self.schedule_status_message(min, update.window_length.into(), update.is_forced)
    }

    /// Returns the pages to allocate next, so that the window can advance.
    pub fn page_request(&mut self) -> Option<PageRequest> {
        let is_needed = matches!(self.state, ImageState::Active | ImageState::Draining);
        if !is_needed || self.managed.pages.is_complete() {
            return None;
        }
        let is_flowing = self.status.high_water_mark() > self.config.join_position;
        let ahead = if is_flowing { PAGES_AHEAD_LENGTH } else { 0 };
        let window = i64::from(self.congestion_control.max_window_length());
        self.managed
            .pages
            .request(self.next_status_position + window + ahead)
    }

    /// Records that the next `length` bytes of the page request are allocated.
    pub fn on_pages_allocated(&mut self, length: usize) {
        self.managed.pages.on_allocated(length);
        self.status
            .set_allocated_end(writable_end(&self.managed.pages));
    }

    /// Records that the page request failed for now. Returns `true` for the first failure since the last success.
    pub fn on_pages_missing(&mut self) -> bool {
        self.managed.pages.on_failure()
    }

    fn check_untethered(&mut self, now_ns: i64, on_tether_action: impl FnMut(TetherAction)) {
        let Some((_, max)) = self.subscribers.position_range() else {
            return;
        };
        let window = self.next_window;
        let positions = TetherPositions {
            limit: max - window + window / 4,
            rejoin: self.join_position(),
        };
        let timeouts = self.config.tether_timeouts;
        self.subscribers
            .check_untethered(now_ns, positions, timeouts, on_tether_action);
    }

    fn drain_if_over(&mut self, now_ns: i64) {
        let is_revoked = self.status.is_revoked();
        let silent_ns = now_ns - self.status.time_of_last_packet_ns();
        let has_all = || self.counters.receiver_position.get() >= self.status.high_water_mark();
        let reason = if is_revoked {
            Rule::ImageRevoked
        } else if !self.subscribers.has_working() {
            Rule::ImageUnread
        } else if silent_ns > self.config.liveness_timeout_ns {
            Rule::ImageSilent
        } else if self.status.is_end_of_stream() && has_all() {
            Rule::ImageEnded
        } else {
            return;
        };
        reach(reason);
        if !is_revoked {
            self.status.begin_ending();
        }
        self.enter(ImageState::Draining, now_ns);
    }

    fn is_told_and_read(&self, now_ns: i64) -> bool {
        let drained_ns = now_ns - self.time_of_last_state_change_ns;
        self.is_drained()
            && drained_ns > DRAIN_STATUS_MESSAGES * self.config.status_message_timeout_ns
    }

    fn is_silent_state(&self, now_ns: i64) -> bool {
        now_ns - self.time_of_last_state_change_ns > self.config.liveness_timeout_ns
    }

    fn is_drained(&self) -> bool {
        let receiver_position = self.counters.receiver_position.get();
        self.subscribers
            .position_range()
            .is_none_or(|(min, _)| min >= receiver_position)
    }

    fn on_gap(&mut self, gap: TermGap, report: &mut LossReport<SharedBuffer>, epoch_ms: i64) {
        self.status
            .report_missing(gap.term_id, gap.gap.offset, gap.gap.length);
        let config = &self.config;
        self.loss.on_gap(gap, epoch_ms, report, || LossSource {
            session_id: config.session_id,
            stream_id: config.stream_id,
            channel: config.channel.clone(),
            source: config.source_identity.clone(),
        });
    }

    /// Schedules a status message that offers up to `window` bytes from `min`, as far as their pages are allocated.
    fn schedule_status_message(&mut self, min: i64, window: i64, is_forced: bool) -> bool {
        debug_assert!(
            min >= self.config.join_position,
            "the consumed position {min} is before the join position {}",
            self.config.join_position
        );
        let limit = self.managed.pages.allowed_limit(min + window);
        let window = (limit - min).clamp(0, window);
        let is_due =
            is_forced || min > self.next_status_position + window / 4 || window != self.next_window;
        if is_due {
            // Consumed data is kept for one term length.
            self.managed.clean_to(min - self.managed.term_length());
            self.status.schedule_status_message(min, window);
            self.next_status_position = min;
            self.next_window = window;
        }
        is_due
    }

    fn enter(&mut self, state: ImageState, now_ns: i64) {
        debug_assert!(
            matches!(
                (self.state, state),
                (ImageState::Active, ImageState::Draining)
                    | (ImageState::Draining, ImageState::Linger)
                    | (ImageState::Linger, ImageState::Done)
            ),
            "an image in the state {:?} cannot enter the state {state:?}",
            self.state
        );
        debug_assert!(
            now_ns >= self.time_of_last_state_change_ns,
            "the state changes at {now_ns}, before its last change at {}",
            self.time_of_last_state_change_ns
        );
        self.state = state;
        self.time_of_last_state_change_ns = now_ns;
    }
}

/// Returns the position up to which the receiver may write.
///
/// The allocated pages end after this position, because subscribers poll the header of the next frame.
fn writable_end(pages: &Pages) -> i64 {
    pages.allowed_limit(i64::MAX)
}

impl LinkedStream for PublicationImage {
    fn identity(&self) -> StreamIdentity<'_> {
        StreamIdentity {
            correlation_id: self.config.correlation_id,
            session_id: self.config.session_id,
            stream_id: self.config.stream_id,
            log_file_name: &self.config.log_file_name,
            source_identity: &self.config.source_identity,
        }
    }

    fn subscribers(&self) -> &Subscribers {
        &self.subscribers
    }

    fn subscribers_mut(&mut self) -> &mut Subscribers {
        &mut self.subscribers
    }

    fn is_accepting_subscribers(&self) -> bool {
        self.subscribers.has_working()
            && match self.state {
                ImageState::Active => true,
                ImageState::Draining => !self.is_drained(),
                ImageState::Linger | ImageState::Done => false,
            }
    }

    fn join_position(&self) -> i64 {
        let receiver_position = self.counters.receiver_position.get();
        let joined = match self.subscribers.position_range() {
            Some((min, _)) => receiver_position.min(min),
            None => receiver_position,
        };
        let end = receiver_position.max(self.status.high_water_mark());
        self.managed.sanitize(joined, end)
    }

    fn on_subscriber_added(&mut self) {
        self.rejoins = self.subscribers.last_rejoins();
    }
}
