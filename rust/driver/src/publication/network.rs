//! [`NetworkPublication`]: the conductor's half of a network publication. The sender has the other half; they share
//! counters and a [`PublicationStatus`].

use std::sync::Arc;

use aeron_memory::buffer::SharedBuffer;
use aeron_memory::counters::AtomicCounter;
use aeron_memory::log::LogBuffers;
use aeron_memory::log::unblock::{unblock, unblock_abandoned};

use super::published_log::{
    Backlog, BlockedPublisher, PublishedLog, PublisherCounters, PublisherPages,
};
use super::{PublicationConfig, PublicationStatus, Tick};
use crate::rules::{Rule, reach};
use crate::sender::SendEndpointId;
use crate::stream::{LinkedStream, StreamIdentity, Subscribers, TetherAction, TetherPositions};

/// Time in ns for publishers to complete a message after a closing driver has ended their publication. The publishers
/// did not close the publication, so one of them may be appending.
const APPEND_TIME_NS: i64 = 100_000_000;

/// Life cycle of a publication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetworkPublicationState {
    /// Publishers append messages.
    Active,
    /// The last publisher has left. Some data is unsent, or spies still read.
    Draining,
    /// All data is sent; receivers have time to request lost data.
    Linger,
    /// The stream has ended, and the sender is about to release the publication.
    Done,
}

/// Parameters that only network publications have.
#[derive(Clone, Debug)]
pub struct NetworkPublicationOptions {
    /// The endpoint that sends the publication.
    pub endpoint: SendEndpointId,
    /// Tag by which other channels refer to the publication.
    pub entity_tag: Option<i64>,
    /// Time that the publication lingers after all data was sent.
    pub linger_timeout_ns: i64,
    pub spies_simulate_connection: bool,
    /// Whether the publication carries responses.
    pub is_response: bool,
}

/// The counters of a network publication, in the order of their allocation.
#[derive(Debug)]
pub struct NetworkCounters {
    /// Number of receivers in the flow control; `None` for strategies that do not count receivers.
    pub flow_control_receivers: Option<AtomicCounter<SharedBuffer>>,
    pub publisher: PublisherCounters,
    pub sender_position: AtomicCounter<SharedBuffer>,
    pub sender_limit: AtomicCounter<SharedBuffer>,
    pub back_pressure_events: AtomicCounter<SharedBuffer>,
    pub naks_received: AtomicCounter<SharedBuffer>,
}

impl NetworkCounters {
    /// Returns the ids of all counters.
    pub fn ids(&self) -> impl Iterator<Item = i32> {
        let own = [
            self.sender_position.id(),
            self.sender_limit.id(),
            self.back_pressure_events.id(),
            self.naks_received.id(),
        ];
        let receivers = self.flow_control_receivers.as_ref().map(AtomicCounter::id);
        self.publisher.ids().into_iter().chain(own).chain(receivers)
    }
}

/// A network publication. The conductor owns it.
#[derive(Debug)]
pub struct NetworkPublication {
    config: PublicationConfig,
    options: NetworkPublicationOptions,
    published: PublishedLog,
    sender_position: AtomicCounter<SharedBuffer>,
    counter_ids: Vec<i32>,
    status: Arc<PublicationStatus>,
    spies: Subscribers,
    state: NetworkPublicationState,
    reference_count: usize,
    blocked: BlockedPublisher,
    time_of_last_activity_ns: i64,
    is_released_by_sender: bool,
    /// Whether a client's command waits for the first pages.
    is_awaited: bool,
    /// Whether the driver is about to close. The driver then decides how long the publication lingers.
    is_closing: bool,
}

impl NetworkPublication {
    /// Creates an active publication without references. The counters of the publication start at the start position.
    pub fn new(
        config: PublicationConfig,
        options: NetworkPublicationOptions,
        log: LogBuffers<SharedBuffer>,
        counters: NetworkCounters,
        status: Arc<PublicationStatus>,
        now_ns: i64,
    ) -> Self {
        let position = config.start_position;
        let counter_ids = counters.ids().collect();
        counters.sender_position.set(position);
        counters.sender_limit.set(position);
        Self {
            published: PublishedLog::new(log, counters.publisher, &config),
            config,
            options,
            sender_position: counters.sender_position,
            counter_ids,
            status,
            spies: Subscribers::default(),
            state: NetworkPublicationState::Active,
            reference_count: 0,
            blocked: BlockedPublisher::new(position, now_ns),
            time_of_last_activity_ns: now_ns,
            is_released_by_sender: false,
            is_awaited: false,
            is_closing: false,
        }
    }

    pub fn config(&self) -> &PublicationConfig {
        &self.config
    }

    pub fn options(&self) -> &NetworkPublicationOptions {
        &self.options
    }

    pub fn state(&self) -> NetworkPublicationState {
        self.state
    }

    pub fn publisher_counters(&self) -> &PublisherCounters {
        self.published.counters()
    }

    /// Returns the counters that are freed with the publication, without the counters of its spies.
    pub fn counter_ids(&self) -> &[i32] {
        &self.counter_ids
    }

    /// Returns whether the publication still occupies its session id.
    pub fn is_live(&self) -> bool {
        self.state != NetworkPublicationState::Done
    }

    /// Adds the reference of a client.
    pub fn add_reference(&mut self) {
        debug_assert_eq!(
            self.state,
            NetworkPublicationState::Active,
            "no client may join a stream that has ended"
        );
        self.reference_count += 1;
    }

    /// Removes the reference of a client. If it was the last reference, the stream ends at the producer position.
    pub fn remove_reference(&mut self, now_ns: i64) {
        // A closing driver removes all references. After that, clients still remove theirs.
        debug_assert!(
            self.reference_count > 0 || self.is_closing,
            "a reference is removed that no client has"
        );
        self.reference_count = self.reference_count.saturating_sub(1);
        if self.reference_count > 0 || self.state != NetworkPublicationState::Active {
            return;
        }
        self.time_of_last_activity_ns = now_ns;
        let producer_position = self.published.end_stream();
        if self.published.is_revoked() {
            return;
        }
        if self.sender_position() >= producer_position {
            self.status.set_end_of_stream();
        }
        reach(Rule::PublicationReleased);
        self.enter(NetworkPublicationState::Draining);
    }

    /// Removes all references, because the driver is about to close.
    ///
    /// The publication then lingers until its receivers have reported the end of the stream, or until the driver
    /// closes.
    pub fn remove_all_references(&mut self, now_ns: i64) {
        self.is_closing = true;
        while self.reference_count > 0 {
            self.remove_reference(now_ns);
        }
    }

    /// Returns the number of unsent bytes, and the number of bytes that the slowest live receiver has not reported as
    /// consumed.
    ///
    /// Returns `None` if there is no live receiver, or if all bytes are consumed.
    pub fn unconsumed_bytes(&self) -> Option<(i64, i64)> {
        let is_over = self.state == NetworkPublicationState::Done || self.published.is_revoked();
        if is_over || !self.status.has_receivers() {
            return None;
        }
        let end = self.published.producer_position();
        let unconsumed = end - self.status.slowest_receiver_position();
        (unconsumed > 0).then(|| ((end - self.sender_position()).max(0), unconsumed))
    }

    /// Sets the revoked flag of the log. The next tick ends the stream for all subscribers.
    pub fn revoke(&self) {
        self.published.metadata().set_publication_revoked();
    }

    /// Records that the sender has dropped its half.
    pub fn on_released_by_sender(&mut self) {
        debug_assert_eq!(
            self.state,
            NetworkPublicationState::Done,
            "the sender was not asked to release the publication"
        );
        self.is_released_by_sender = true;
    }

    /// Runs one timer tick, with at most one change of state.
    pub fn on_tick(&mut self, now_ns: i64, on_tether_action: impl FnMut(TetherAction)) -> Tick {
        self.published.retry_pages();
        match self.state {
            NetworkPublicationState::Active if self.published.is_revoked() => {
                self.on_revoked(now_ns)
            }
            NetworkPublicationState::Active => self.on_tick_active(now_ns, on_tether_action),
            NetworkPublicationState::Draining => self.on_tick_draining(now_ns),
            NetworkPublicationState::Linger
                if self.reference_count == 0 && self.has_lingered(now_ns) =>
            {
                reach(match self.status.has_received_unicast_eos() {
                    true => Rule::PublicationLingeredForEos,
                    false => Rule::PublicationLingered,
                });
                self.enter(NetworkPublicationState::Done);
                Tick::Release
            }
            NetworkPublicationState::Done if self.is_released_by_sender => {
                reach(Rule::PublicationDeleted);
                Tick::EndOfLife
            }
            NetworkPublicationState::Linger | NetworkPublicationState::Done => Tick::Nothing,
        }
    }

    /// Updates the position and limit counters, and cleans a part of the log that all consumers have consumed.
    ///
    /// Returns whether the limit moved.
    pub fn update_limit(&mut self) -> bool {
        if self.state != NetworkPublicationState::Active || self.published.is_revoked() {
            return false;
        }
        // The consumer positions are read before the producer position, so a correct consumer's position is never
        // greater than the producer position.
        let spies = self.spies.position_range();
        let sender_position = self.sender_position.get();
        self.published.update_publisher_position();
        let sender_position = self.published.sanitize(sender_position);
        if self.status.has_subscribers() {
            self.raise_limit(sender_position, spies)
        } else {
            self.lower_limit(sender_position)
        }
    }

    /// Returns the pages to allocate next, for the next limit or for a new spy.
    pub fn page_request(&mut self) -> Option<PublisherPages> {
        let is_awaited = std::mem::take(&mut self.is_awaited);
        if self.state != NetworkPublicationState::Active || self.published.has_all_pages() {
            return None;
        }
        let min = self.min_consumer_position(self.sender_position(), self.spies.position_range());
        match self.status.has_subscribers() {
            true => self.published.page_request(min),
            false if is_awaited => self.published.first_page_request(min),
            false => None,
        }
    }

    /// Returns whether a command that adds a spy must wait for pages. If so, they are requested.
    ///
    /// A spy that does not simulate a connection never waits.
    pub fn awaits_pages(&mut self) -> bool {
        self.is_awaited = self.state == NetworkPublicationState::Active
            && self.options.spies_simulate_connection
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

    fn on_revoked(&mut self, now_ns: i64) -> Tick {
        reach(Rule::PublicationRevoked);
        self.published.end_stream();
        self.published.close();
        self.update_connection();
        self.status.set_end_of_stream();
        self.time_of_last_activity_ns = now_ns;
        self.enter(NetworkPublicationState::Linger);
        Tick::Unavailable { is_revoked: true }
    }

    fn on_tick_active(&mut self, now_ns: i64, on_tether_action: impl FnMut(TetherAction)) -> Tick {
        reach(Rule::PublicationActive);
        let window = self.config.window_length;
        let sender_position = self.sender_position();
        self.spies.check_untethered(
            now_ns,
            TetherPositions {
                limit: sender_position - window + window / 4,
                rejoin: sender_position,
            },
            self.config.tether_timeouts,
            on_tether_action,
        );
        self.status.set_has_spies(self.spies.has_working());
        self.update_connection();
        let producer_position = self.published.update_publisher_position();
        let backlog = Backlog {
            consumer_position: sender_position,
            producer_position,
        };
        let may_unblock = self.is_stuck(backlog, now_ns) && !self.config.is_exclusive;
        if may_unblock && unblock(self.published.log(), sender_position) {
            Tick::Unblocked
        } else {
            Tick::Nothing
        }
    }

    fn is_stuck(&mut self, backlog: Backlog, now_ns: i64) -> bool {
        let timeout_ns = self.config.unblock_timeout_ns;
        self.blocked
            .is_stuck(&self.published, backlog, now_ns, timeout_ns)
    }

    fn on_tick_draining(&mut self, now_ns: i64) -> Tick {
        let sender_position = self.sender_position();
        let producer_position = self.published.update_publisher_position();
        if producer_position > sender_position {
            let elapsed_ns = now_ns - self.time_of_last_activity_ns;
            let may_append = self.is_closing && elapsed_ns < APPEND_TIME_NS;
            let backlog = Backlog {
                consumer_position: sender_position,
                producer_position,
            };
            let is_stuck = self.is_stuck(backlog, now_ns);
            let log = self.published.log();
            let is_unblocked = !may_append
                && (unblock(log, sender_position)
                    || (is_stuck && unblock_abandoned(log, sender_position)));
            if is_unblocked {
                reach(Rule::PublicationUnblocked);
                return Tick::Unblocked;
            }
            if self.status.has_receivers() {
                reach(Rule::PublicationSending);
                return Tick::Nothing;
            }
        } else {
            reach(Rule::PublicationAllSent);
            self.status.set_end_of_stream();
        }
        let have_spies_drained = self
            .spies
            .position_range()
            .is_none_or(|(min, _)| min >= producer_position);
        if !have_spies_drained {
            return Tick::Nothing;
        }
        reach(Rule::PublicationDrained);
        self.time_of_last_activity_ns = now_ns;
        self.enter(NetworkPublicationState::Linger);
        Tick::Unavailable { is_revoked: false }
    }

    fn has_lingered(&self, now_ns: i64) -> bool {
        let lingered_ns = now_ns - self.time_of_last_activity_ns;
        debug_assert!(
            lingered_ns >= 0,
            "the publication lingers from a time that is {} ns in the future",
            -lingered_ns
        );
        let is_late = lingered_ns > self.options.linger_timeout_ns && !self.is_closing;
        self.status.has_received_unicast_eos() || is_late
    }

    fn enter(&mut self, state: NetworkPublicationState) {
        debug_assert!(
            matches!(
                (self.state, state),
                (
                    NetworkPublicationState::Active,
                    NetworkPublicationState::Draining | NetworkPublicationState::Linger
                ) | (
                    NetworkPublicationState::Draining,
                    NetworkPublicationState::Linger
                ) | (
                    NetworkPublicationState::Linger,
                    NetworkPublicationState::Done
                )
            ),
            "a publication in the state {:?} cannot enter the state {state:?}",
            self.state
        );
        self.state = state;
    }

    fn raise_limit(&mut self, sender_position: i64, spies: Option<(i64, i64)>) -> bool {
        if let Some((_, max)) = spies {
            let max = self.published.sanitize(max).max(sender_position);
            if max > self.status.max_spy_position() {
                self.status.set_max_spy_position(max);
            }
        }
        let min = self.min_consumer_position(sender_position, spies);
        let limit = min + self.published.window();
        if limit <= self.published.limit() {
            self.open_with(min, limit);
            return false;
        }
        // Consumed data is kept for one term length, for retransmits.
        self.published.clean_to(min - self.published.term_length());
        let allowed = self.published.allowed_limit(limit);
        let is_raised = allowed > self.published.limit();
        if is_raised {
            self.published.set_limit(allowed);
        }
        self.open_with(min, allowed);
        is_raised
    }

    /// Connects the publication if `limit` gives publishers room, with the slowest consumer at `position`.
    fn open_with(&mut self, position: i64, limit: i64) {
        if self.published.opens(position, limit) {
            self.update_connection();
        }
    }

    fn update_connection(&self) {
        self.status.set_open(self.published.is_open());
        self.status.update_connection(self.published.metadata());
    }

    /// Lowers the limit to the sent position, because there are no subscribers.
    fn lower_limit(&mut self, sender_position: i64) -> bool {
        if self.published.is_open() {
            self.published.close();
            self.update_connection();
        }
        if self.published.limit() <= sender_position {
            return false;
        }
        self.published.set_limit(sender_position);
        self.published
            .clean_to(sender_position - self.published.term_length());
        true
    }

    fn min_consumer_position(&self, sender_position: i64, spies: Option<(i64, i64)>) -> i64 {
        match spies {
            Some((min, _)) => sender_position.min(self.published.sanitize(min)),
            None => sender_position,
        }
    }

    fn sender_position(&self) -> i64 {
        self.published.sanitize(self.sender_position.get())
    }
}

/// The subscribers of a network publication are spies, which read its log directly.
impl LinkedStream for NetworkPublication {
    fn identity(&self) -> StreamIdentity<'_> {
        self.config.identity()
    }

    fn subscribers(&self) -> &Subscribers {
        &self.spies
    }

    fn subscribers_mut(&mut self) -> &mut Subscribers {
        &mut self.spies
    }

    fn is_accepting_subscribers(&self) -> bool {
        match self.state {
            NetworkPublicationState::Active => true,
            NetworkPublicationState::Draining => {
                self.spies.has_working()
                    && self.published.producer_position() > self.sender_position()
            }
            NetworkPublicationState::Linger | NetworkPublicationState::Done => false,
        }
    }

    fn join_position(&self) -> i64 {
        self.sender_position()
    }

    /// If spies simulate a connection, marks the publication as connected before the spy's client gets the event for
    /// the image.
    fn on_subscriber_added(&mut self) {
        self.status.set_has_spies(true);
        self.update_connection();
        self.update_limit();
    }

    fn on_subscriber_removed(&mut self) {
        self.status.set_has_spies(self.spies.has_working());
        self.update_connection();
    }
}
