//! [`IpcPublication`]: a publication with subscribers that read its log directly.

use aeron_memory::buffer::SharedBuffer;
use aeron_memory::log::LogBuffers;
use aeron_memory::log::unblock::{unblock, unblock_abandoned};

use super::published_log::{
    Backlog, BlockedPublisher, PublishedLog, PublisherCounters, PublisherPages,
};
use super::{PublicationConfig, Tick};
use crate::stream::{LinkedStream, StreamIdentity, Subscribers, TetherAction, TetherPositions};

/// Life cycle of a publication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IpcPublicationState {
    /// Publishers append messages.
    Active,
    /// The last publisher has left; subscribers still read.
    Draining,
    /// The stream has ended. The publication waits until the last reference is removed.
    Linger,
}

/// An IPC publication. The conductor owns it.
#[derive(Debug)]
pub struct IpcPublication {
    config: PublicationConfig,
    /// Time for which a rejected publication has no subscribers.
    image_liveness_timeout_ns: i64,
    published: PublishedLog,
    subscribers: Subscribers,
    state: IpcPublicationState,
    reference_count: usize,
    /// The limit counter is raised only if the new limit is greater than this position.
    trip_limit: i64,
    consumer_position: i64,
    blocked: BlockedPublisher,
    cool_down_expiry_ns: Option<i64>,
    /// Whether a client's command waits for the first pages.
    is_awaited: bool,
}

impl IpcPublication {
    /// Creates an active publication without references. Both counters start at the start position.
    ///
    /// After a rejection, subscribers are linked again after `image_liveness_timeout_ns`.
    pub fn new(
        config: PublicationConfig,
        image_liveness_timeout_ns: i64,
        log: LogBuffers<SharedBuffer>,
        counters: PublisherCounters,
        now_ns: i64,
    ) -> Self {
        let position = config.start_position;
        Self {
            published: PublishedLog::new(log, counters, &config),
            config,
            image_liveness_timeout_ns,
            subscribers: Subscribers::default(),
            state: IpcPublicationState::Active,
            reference_count: 0,
            trip_limit: 0,
            consumer_position: position,
            blocked: BlockedPublisher::new(position, now_ns),
            cool_down_expiry_ns: None,
            is_awaited: false,
        }
    }

    pub fn config(&self) -> &PublicationConfig {
        &self.config
    }

    pub fn state(&self) -> IpcPublicationState {
        self.state
    }

    /// Returns the counters that are freed with the publication, without the counters of its subscribers.
    pub fn counters(&self) -> &PublisherCounters {
        self.published.counters()
    }

    /// Returns whether the publication still occupies its session id.
    pub fn is_live(&self) -> bool {
        self.state != IpcPublicationState::Linger
    }

    /// Adds the reference of a client.
    pub fn add_reference(&mut self) {
        debug_assert_eq!(
            self.state,
            IpcPublicationState::Active,
            "no client may join a stream that has ended"
        );
        self.reference_count += 1;
    }

    /// Removes the reference of a client. If it was the last reference, the stream ends at the producer position.
    pub fn remove_reference(&mut self) {
        debug_assert!(
            self.reference_count > 0,
            "a reference is removed that no client has"
        );
        self.reference_count = self.reference_count.saturating_sub(1);
        if self.reference_count > 0 || self.state != IpcPublicationState::Active {
            return;
        }
        let producer_position = self.published.producer_position();
        if self.published.limit() > producer_position {
            self.published.set_limit(producer_position);
        }
        self.published
            .metadata()
            .set_end_of_stream_position(producer_position);
        if !self.published.is_revoked() {
            self.enter(IpcPublicationState::Draining);
        }
    }

    /// Sets the revoked flag of the log. The next tick ends the stream for all subscribers.
    pub fn revoke(&self) {
        self.published.metadata().set_publication_revoked();
    }

    /// Begins or restarts the image liveness timeout. Until it ends, a rejected publication has no subscribers.
    ///
    /// Returns `true` if the timeout has just begun. The caller must then unlink the subscribers.
    pub fn reject(&mut self, now_ns: i64) -> bool {
        let begins = self.cool_down_expiry_ns.is_none();
        if begins {
            self.disconnect();
        }
        self.cool_down_expiry_ns = Some(now_ns.saturating_add(self.image_liveness_timeout_ns));
        begins
    }

    /// Runs one timer tick, with at most one change of state.
    pub fn on_tick(&mut self, now_ns: i64, on_tether_action: impl FnMut(TetherAction)) -> Tick {
        self.published.retry_pages();
        match self.state {
            IpcPublicationState::Active if self.published.is_revoked() => self.on_revoked(),
            IpcPublicationState::Active => self.on_tick_active(now_ns, on_tether_action),
            IpcPublicationState::Draining => self.on_tick_draining(now_ns),
            IpcPublicationState::Linger if self.reference_count == 0 => Tick::EndOfLife,
            IpcPublicationState::Linger => Tick::Nothing,
        }
    }

    /// Updates the position and limit counters, and cleans the part of the log that all subscribers have consumed.
    ///
    /// Returns whether the limit moved.
    pub fn update_limit(&mut self) -> bool {
        if self.state != IpcPublicationState::Active || self.published.is_revoked() {
            return false;
        }
        // The subscriber positions are read before the producer position, so a correct subscriber's position is never
        // greater than the producer position.
        let range = self.subscribers.position_range();
        let producer_position = self.published.update_publisher_position();
        match range {
            Some((min, max)) => {
                let (min, max) = (self.published.sanitize(min), self.published.sanitize(max));
                self.consumer_position = max.max(self.consumer_position);
                self.raise_limit(min, producer_position)
            }
            None => self.lower_limit(),
        }
    }

    /// Returns the pages to allocate next, for the next limit or for a new subscriber.
    pub fn page_request(&mut self) -> Option<PublisherPages> {
        let is_awaited = std::mem::take(&mut self.is_awaited);
        if self.published.has_all_pages() || self.state != IpcPublicationState::Active {
            return None;
        }
        match self.subscribers.position_range() {
            Some((min, _)) => self.published.page_request(self.published.sanitize(min)),
            None if is_awaited => self.published.first_page_request(self.consumer_position),
            None => None,
        }
    }

    /// Returns whether a command that adds a subscriber must wait for pages. If so, they are requested.
    ///
    /// Without the wait, the first offer after the response would fail with back pressure.
    pub fn awaits_pages(&mut self) -> bool {
        self.is_awaited = self.state == IpcPublicationState::Active
            && self.is_accepting_subscribers()
            && !self.published.is_ready(self.join_position());
        self.is_awaited
    }

    /// Records whether the first pages were allocated when the log was created. Returns `true` if they were not.
    pub fn on_first_pages(&mut self, are_allocated: bool) -> bool {
        self.published.on_first_pages(are_allocated)
    }

    /// Records that the next `length` bytes of the page request are allocated.
    pub fn on_pages_allocated(&mut self, length: usize) {
        self.published.on_pages_allocated(length);
    }

    /// Records that the page request failed for now. Returns `true` for the first failure since the last success.
    pub fn on_pages_missing(&mut self) -> bool {
        self.published.on_pages_missing()
    }

    fn on_revoked(&mut self) -> Tick {
        self.published.end_stream();
        self.disconnect();
        self.enter(IpcPublicationState::Linger);
        Tick::Unavailable { is_revoked: true }
    }

    fn on_tick_active(&mut self, now_ns: i64, on_tether_action: impl FnMut(TetherAction)) -> Tick {
        let window = self.config.window_length;
        let positions = TetherPositions {
            limit: self.consumer_position - window + window / 4,
            rejoin: self.join_position(),
        };
        let timeouts = self.config.tether_timeouts;
        self.subscribers
            .check_untethered(now_ns, positions, timeouts, on_tether_action);
        self.update_connection();
        let producer_position = self.published.update_publisher_position();
        if self
            .cool_down_expiry_ns
            .is_some_and(|expiry_ns| now_ns > expiry_ns)
        {
            self.cool_down_expiry_ns = None;
            return Tick::Available;
        }
        let may_unblock = self.is_stuck(producer_position, now_ns) && !self.config.is_exclusive;
        if may_unblock && unblock(self.published.log(), self.consumer_position) {
            Tick::Unblocked
        } else {
            Tick::Nothing
        }
    }

    fn is_stuck(&mut self, producer_position: i64, now_ns: i64) -> bool {
        let backlog = Backlog {
            consumer_position: self.consumer_position,
            producer_position,
        };
        let timeout_ns = self.config.unblock_timeout_ns;
        self.blocked
            .is_stuck(&self.published, backlog, now_ns, timeout_ns)
    }

    fn on_tick_draining(&mut self, now_ns: i64) -> Tick {
        let producer_position = self.published.update_publisher_position();
        if self.is_drained() {
            self.enter(IpcPublicationState::Linger);
            return Tick::Unavailable { is_revoked: false };
        }
        if let Some((_, max)) = self.subscribers.position_range() {
            self.consumer_position = self.consumer_position.max(self.published.sanitize(max));
        }
        let is_stuck = self.is_stuck(producer_position, now_ns);
        let (log, position) = (self.published.log(), self.consumer_position);
        if unblock(log, position) || (is_stuck && unblock_abandoned(log, position)) {
            Tick::Unblocked
        } else {
            Tick::Nothing
        }
    }

    fn is_drained(&self) -> bool {
        match self.subscribers.position_range() {
            Some((min, _)) => min >= self.published.producer_position(),
            None => true,
        }
    }

    fn raise_limit(&mut self, min: i64, producer_position: i64) -> bool {
        let window = self.published.window();
        let limit = min + window;
        if limit <= self.trip_limit {
            return false;
        }
        self.published.clean_to(min.min(producer_position));
        let allowed = self.published.allowed_limit(limit);
        let is_raised = allowed > self.published.limit();
        if is_raised {
            self.published.set_limit(allowed);
        }
        if allowed == limit {
            self.trip_limit = limit + window / 8;
        }
        if self.published.opens(min, allowed) {
            self.update_connection();
        }
        is_raised
    }

    /// Lowers the limit to the consumed position, because there are no subscribers.
    fn lower_limit(&mut self) -> bool {
        self.published.close();
        if self.published.limit() <= self.consumer_position {
            return false;
        }
        debug_assert!(
            !self.subscribers.has_working(),
            "the limit is lowered, although the stream has subscribers"
        );
        self.trip_limit = self.consumer_position;
        self.published.set_limit(self.consumer_position);
        self.published.clean_to(self.consumer_position);
        true
    }

    fn enter(&mut self, state: IpcPublicationState) {
        debug_assert!(
            matches!(
                (self.state, state),
                (
                    IpcPublicationState::Active,
                    IpcPublicationState::Draining | IpcPublicationState::Linger
                ) | (IpcPublicationState::Draining, IpcPublicationState::Linger)
            ),
            "a publication in the state {:?} cannot enter the state {state:?}",
            self.state
        );
        self.state = state;
    }

    fn disconnect(&mut self) {
        self.published.close();
        self.update_connection();
    }

    /// Shows publishers whether they are connected: there must be subscribers, and room if there is memory for it.
    fn update_connection(&self) {
        self.published
            .metadata()
            .set_is_connected(self.published.is_open() && self.subscribers.has_working());
    }
}

impl LinkedStream for IpcPublication {
    fn identity(&self) -> StreamIdentity<'_> {
        self.config.identity()
    }

    fn subscribers(&self) -> &Subscribers {
        &self.subscribers
    }

    fn subscribers_mut(&mut self) -> &mut Subscribers {
        &mut self.subscribers
    }

    fn is_accepting_subscribers(&self) -> bool {
        self.cool_down_expiry_ns.is_none()
            && match self.state {
                IpcPublicationState::Active => true,
                IpcPublicationState::Draining => !self.is_drained(),
                IpcPublicationState::Linger => false,
            }
    }

    fn join_position(&self) -> i64 {
        match self.subscribers.position_range() {
            Some((min, _)) => self.consumer_position.min(self.published.sanitize(min)),
            None => self.consumer_position,
        }
    }

    /// Marks the publication as connected before the subscriber's client gets the event for the image.
    fn on_subscriber_added(&mut self) {
        self.update_connection();
        self.update_limit();
    }

    fn on_subscriber_removed(&mut self) {
        self.update_connection();
    }
}
