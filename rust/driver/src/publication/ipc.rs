//! A publication whose subscribers read its log directly.

use aeron_memory::buffer::SharedBuffer;
use aeron_memory::counters::AtomicCounter;
use aeron_memory::log::LogBuffers;
use aeron_memory::log::clean::clean;
use aeron_memory::log::frame::FRAME_ALIGNMENT;
use aeron_memory::log::unblock::unblock;
use aeron_protocol::uri::InitialPosition;

use super::pages::{PageRequest, Pages};
use super::subscribers::{Subscribers, TetherAction, TetherTimeouts};

/// Where a publication is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Publishers append.
    Active,
    /// The last publisher is gone, subscribers still read.
    Draining,
    /// Over: waits for the last reference.
    Linger,
}

/// What makes a publication, apart from its memory.
#[derive(Clone, Debug)]
pub struct IpcPublicationConfig {
    /// Correlation id of the command that created it.
    pub registration_id: i64,
    pub session_id: i32,
    pub stream_id: i32,
    pub is_exclusive: bool,
    /// The publication that this one answers, -1 if none.
    pub response_correlation_id: i64,
    /// Where the stream was told to start.
    pub initial_position: InitialPosition,
    /// Where the first frame goes.
    pub start_position: i64,
    /// How far publishers may run ahead of the slowest subscriber, in bytes.
    pub window_length: i64,
    /// The log's pages are allocated as publishers get to them.
    pub is_sparse: bool,
    pub log_file_name: String,
    pub tether_timeouts: TetherTimeouts,
    pub unblock_timeout_ns: i64,
    /// How long a rejected publication stays away from its subscribers.
    pub image_liveness_timeout_ns: i64,
}

/// What a timer tick asks the conductor to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tick {
    /// Nothing.
    Nothing,
    /// The stream ended: its subscribers are told.
    Unavailable { is_revoked: bool },
    /// The rejection is over: matching subscriptions are linked again.
    Available,
    /// A frame that a dead publisher left unfinished was padded.
    Unblocked,
    /// Delete it.
    EndOfLife,
}

/// An IPC publication; owned by the conductor.
#[derive(Debug)]
pub struct IpcPublication {
    config: IpcPublicationConfig,
    log: LogBuffers<SharedBuffer>,
    publisher_position: AtomicCounter<SharedBuffer>,
    publisher_limit: AtomicCounter<SharedBuffer>,
    pub subscribers: Subscribers,
    pages: Pages,
    state: State,
    reference_count: usize,
    /// The value of the limit counter.
    limit: i64,
    /// The limit moves when it would pass this.
    trip_limit: i64,
    clean_position: i64,
    consumer_position: i64,
    last_consumer_position: i64,
    time_of_last_consumer_position_change_ns: i64,
    cool_down_expiry_ns: Option<i64>,
}

impl IpcPublication {
    /// An active publication without references. Both counters start at the start position.
    pub fn new(
        config: IpcPublicationConfig,
        log: LogBuffers<SharedBuffer>,
        (publisher_position, publisher_limit): (
            AtomicCounter<SharedBuffer>,
            AtomicCounter<SharedBuffer>,
        ),
        now_ns: i64,
    ) -> Self {
        let position = config.start_position;
        publisher_position.set(position);
        publisher_limit.set(position);
        Self {
            pages: Pages::new(
                config.is_sparse,
                position,
                log.term_length() as i64,
                log.framing().max_framed_length() as i64,
            ),
            config,
            log,
            publisher_position,
            publisher_limit,
            subscribers: Subscribers::default(),
            state: State::Active,
            reference_count: 0,
            limit: position,
            trip_limit: 0,
            clean_position: position,
            consumer_position: position,
            last_consumer_position: position,
            time_of_last_consumer_position_change_ns: now_ns,
            cool_down_expiry_ns: None,
        }
    }

    pub fn config(&self) -> &IpcPublicationConfig {
        &self.config
    }

    pub fn log(&self) -> &LogBuffers<SharedBuffer> {
        &self.log
    }

    pub fn state(&self) -> State {
        self.state
    }

    pub fn limit_counter_id(&self) -> i32 {
        self.publisher_limit.id()
    }

    /// The counters to free with the publication, those of its subscribers aside.
    pub fn counter_ids(&self) -> [i32; 2] {
        [self.publisher_position.id(), self.publisher_limit.id()]
    }

    /// Whether its session id is taken.
    pub fn is_live(&self) -> bool {
        self.state != State::Linger
    }

    /// Whether a new subscriber may join.
    pub fn is_accepting_subscribers(&self) -> bool {
        self.cool_down_expiry_ns.is_none()
            && match self.state {
                State::Active => true,
                State::Draining => !self.is_drained(),
                State::Linger => false,
            }
    }

    /// Where a new subscriber begins.
    pub fn join_position(&self) -> i64 {
        match self.subscribers.position_range() {
            Some((min, _)) => self.consumer_position.min(self.sanitize(min)),
            None => self.consumer_position,
        }
    }

    /// A subscriber was added.
    pub fn on_subscriber_added(&self) {
        self.log.metadata().set_is_connected(true);
    }

    /// A subscriber was removed.
    pub fn on_subscriber_removed(&self) {
        if !self.subscribers.has_working() {
            self.log.metadata().set_is_connected(false);
        }
    }

    /// A client refers to the publication.
    pub fn add_reference(&mut self) {
        self.reference_count += 1;
    }

    /// A client does not refer to the publication any more. After the last one the stream ends where it is.
    pub fn remove_reference(&mut self) {
        self.reference_count = self.reference_count.saturating_sub(1);
        if self.reference_count > 0 || self.state != State::Active {
            return;
        }
        let producer_position = self.log.producer_position();
        if self.limit > producer_position {
            self.set_limit(producer_position);
        }
        self.log
            .metadata()
            .set_end_of_stream_position(producer_position);
        if !self.log.metadata().is_publication_revoked() {
            self.state = State::Draining;
        }
    }

    /// Ends the stream for everybody; the rest happens at the next tick.
    pub fn revoke(&self) {
        self.log.metadata().set_publication_revoked();
    }

    /// Takes the publication away from its subscribers for a while; answers whether it was not away already.
    pub fn reject(&mut self, now_ns: i64) -> bool {
        let begins = self.cool_down_expiry_ns.is_none();
        if begins {
            self.log.metadata().set_is_connected(false);
        }
        self.cool_down_expiry_ns =
            Some(now_ns.saturating_add(self.config.image_liveness_timeout_ns));
        begins
    }

    /// One timer tick; at most one change of state.
    pub fn on_tick(&mut self, now_ns: i64, on_tether_action: impl FnMut(TetherAction)) -> Tick {
        self.pages.retry();
        match self.state {
            State::Active if self.log.metadata().is_publication_revoked() => self.on_revoked(),
            State::Active => self.on_tick_active(now_ns, on_tether_action),
            State::Draining => self.on_tick_draining(),
            State::Linger if self.reference_count == 0 => Tick::EndOfLife,
            State::Linger => Tick::Nothing,
        }
    }

    /// Publishes position and limit to clients, and cleans behind the slowest subscriber; answers whether the limit moved.
    pub fn update_limit(&mut self) -> bool {
        if self.state != State::Active || self.log.metadata().is_publication_revoked() {
            return false;
        }
        // Subscribers before the producer: an honest one is never ahead of a producer position that is read later.
        let range = self.subscribers.position_range();
        let producer_position = self.update_publisher_position();
        match range {
            Some((min, max)) => {
                let (min, max) = (self.sanitize(min), self.sanitize(max));
                self.consumer_position = max.max(self.consumer_position);
                self.raise_limit(min, producer_position)
            }
            None if self.limit > self.consumer_position => {
                self.trip_limit = self.consumer_position;
                self.set_limit(self.consumer_position);
                self.clean_to(self.consumer_position);
                true
            }
            None => false,
        }
    }

    /// What to allocate next so that the limit can move on.
    pub fn page_request(&mut self) -> Option<PageRequest> {
        if self.pages.is_complete() || self.state != State::Active {
            return None;
        }
        let (min, _) = self.subscribers.position_range()?;
        let window = self.config.window_length;
        // Some way ahead of the limit, so that publishers do not wait for pages.
        self.pages.request(self.sanitize(min) + window + window / 4)
    }

    /// The next `length` bytes of what was asked for are allocated.
    pub fn on_pages_allocated(&mut self, length: usize) {
        self.pages.on_allocated(length);
    }

    /// There are no more pages for now; true for the first failure since something was allocated.
    pub fn on_pages_missing(&mut self) -> bool {
        self.pages.on_failure()
    }

    fn on_revoked(&mut self) -> Tick {
        let producer_position = self.log.producer_position();
        self.set_limit(producer_position);
        self.log
            .metadata()
            .set_end_of_stream_position(producer_position);
        self.log.metadata().set_is_connected(false);
        self.state = State::Linger;
        Tick::Unavailable { is_revoked: true }
    }

    fn on_tick_active(&mut self, now_ns: i64, on_tether_action: impl FnMut(TetherAction)) -> Tick {
        let window = self.config.window_length;
        let untethered_limit = self.consumer_position - window + window / 4;
        let join_position = self.join_position();
        let timeouts = self.config.tether_timeouts;
        self.subscribers.check_untethered(
            now_ns,
            (untethered_limit, join_position),
            timeouts,
            on_tether_action,
        );
        self.log
            .metadata()
            .set_is_connected(self.subscribers.has_working());
        let producer_position = self.update_publisher_position();
        if self
            .cool_down_expiry_ns
            .is_some_and(|expiry_ns| now_ns > expiry_ns)
        {
            self.cool_down_expiry_ns = None;
            return Tick::Available;
        }
        if !self.config.is_exclusive && self.unblock_if_stuck(producer_position, now_ns) {
            return Tick::Unblocked;
        }
        Tick::Nothing
    }

    fn on_tick_draining(&mut self) -> Tick {
        self.update_publisher_position();
        if self.is_drained() {
            self.state = State::Linger;
            return Tick::Unavailable { is_revoked: false };
        }
        if let Some((_, max)) = self.subscribers.position_range() {
            self.consumer_position = self.consumer_position.max(self.sanitize(max));
        }
        if unblock(&self.log, self.consumer_position) {
            Tick::Unblocked
        } else {
            Tick::Nothing
        }
    }

    /// Unblocks when consumers stand still although there is something to read.
    fn unblock_if_stuck(&mut self, producer_position: i64, now_ns: i64) -> bool {
        let consumer_position = self.consumer_position;
        let consumer_term_count = consumer_position >> self.log.positions().bits_to_shift();
        let is_behind = i64::from(self.log.metadata().active_term_count()) != consumer_term_count
            || producer_position > consumer_position;
        if consumer_position != self.last_consumer_position || !is_behind {
            self.last_consumer_position = consumer_position;
            self.time_of_last_consumer_position_change_ns = now_ns;
            return false;
        }
        let stuck_ns = now_ns - self.time_of_last_consumer_position_change_ns;
        stuck_ns > self.config.unblock_timeout_ns && unblock(&self.log, consumer_position)
    }

    fn is_drained(&self) -> bool {
        match self.subscribers.position_range() {
            Some((min, _)) => min >= self.log.producer_position(),
            None => true,
        }
    }

    fn raise_limit(&mut self, min: i64, producer_position: i64) -> bool {
        let limit = min + self.config.window_length;
        if limit <= self.trip_limit {
            return false;
        }
        self.clean_to(min.min(producer_position));
        let allowed = self.pages.allowed_limit(limit).min(self.clean_limit());
        if allowed == limit {
            self.trip_limit = limit + self.config.window_length / 8;
        }
        if allowed <= self.limit {
            return false;
        }
        self.set_limit(allowed);
        true
    }

    /// Publishers must not enter a term that still holds what consumers have passed, three terms ago.
    fn clean_limit(&self) -> i64 {
        let positions = self.log.positions();
        positions.term_begin(self.clean_position) + 3 * self.log.term_length() as i64
    }

    /// Cleans at most the rest of one term and a part of the next.
    fn clean_to(&mut self, target: i64) {
        let target = target.min(self.pages.end());
        // Only a subscriber that writes nonsense jumps over a whole lap; one lap cleans everything.
        let lap = 3 * self.log.term_length() as i64;
        self.clean_position = self.clean_position.max(target.saturating_sub(lap));
        for _ in 0..2 {
            self.clean_position = clean(&self.log, self.clean_position, target);
        }
    }

    fn update_publisher_position(&self) -> i64 {
        let producer_position = self.log.producer_position();
        if self.publisher_position.get() != producer_position {
            self.publisher_position.set(producer_position);
        }
        producer_position
    }

    fn set_limit(&mut self, limit: i64) {
        self.limit = limit;
        self.publisher_limit.set(limit);
    }

    /// A position that a subscriber wrote, held to what a position of this stream can be.
    fn sanitize(&self, position: i64) -> i64 {
        let bounded = position.clamp(
            self.config.start_position,
            self.log.producer_position().max(self.config.start_position),
        );
        bounded & !(FRAME_ALIGNMENT as i64 - 1)
    }
}
