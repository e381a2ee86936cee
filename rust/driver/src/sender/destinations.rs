//! [`DestinationTracker`]: the destinations of a multi-destination-cast endpoint (docs/spec/02, section 11.1).
//!
//! With dynamic control, a receiver is a destination as long as it sends status messages. With manual control, clients
//! add and remove destinations. Receivers can add at most [`MAX_DYNAMIC_DESTINATIONS`] destinations, and each new
//! destination has to be [validated](super::validation).

use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::SocketAddr;
use std::sync::Arc;

use aeron_memory::buffer::SharedBuffer;
use aeron_memory::counters::AtomicCounter;

use super::manual_destination::ManualDestination;
use super::validation::Unvalidated;

/// Maximum number of destinations of an endpoint with dynamic control.
pub const MAX_DYNAMIC_DESTINATIONS: usize = 1024;
/// Time without a status message after which a dynamic destination is removed, and the name of a manual destination
/// is resolved again.
pub const DESTINATION_TIMEOUT_NS: i64 = 5_000_000_000;

/// Registration id of a destination that no command added.
pub(super) const NO_REGISTRATION: i64 = -1;

/// The source of destinations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DestinationControl {
    /// Status messages of receivers.
    Dynamic,
    /// Commands of clients.
    Manual,
}

/// The endpoint has [`MAX_DYNAMIC_DESTINATIONS`] already.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "status message of a new destination ignored: the endpoint has the maximum of {MAX_DYNAMIC_DESTINATIONS} dynamic destinations"
)]
pub struct TooManyDestinations;

#[derive(Debug)]
struct SendDestination {
    address: Option<SocketAddr>,
    receiver_id: Option<i64>,
    registration_id: i64,
    /// The name of a manual destination.
    name: Option<Arc<str>>,
    time_of_last_activity_ns: i64,
    /// State of a dynamic destination until it is validated.
    unvalidated: Option<Unvalidated>,
}

/// The receiver that sent a status message.
#[derive(Clone, Copy, Debug)]
pub(super) struct StatusSource {
    pub receiver_id: i64,
    pub address: SocketAddr,
    /// Length of the status message in bytes.
    pub length: usize,
}

/// The address of a destination for a datagram, and the allowance of the destination if it is unvalidated.
pub(super) struct Recipient<'a> {
    pub address: SocketAddr,
    pub unvalidated: Option<&'a mut Unvalidated>,
}

/// The destinations of one endpoint; see the [module](self).
#[derive(Debug)]
pub struct DestinationTracker {
    control: DestinationControl,
    destinations: Vec<SendDestination>,
    /// Index of the destination to which the next datagrams are sent first.
    next: usize,
    /// Number of unvalidated destinations.
    unvalidated_count: usize,
    /// Number of dynamic destinations that were ever added.
    arrivals: u64,
    /// Secret key for the nonces of challenges.
    challenge_key: u128,
    /// Counter of the number of destinations.
    counter: AtomicCounter<SharedBuffer>,
}

impl DestinationTracker {
    /// Creates a tracker without destinations.
    ///
    /// `counter` shows the number of destinations. `challenge_key` must be secret.
    pub fn new(
        control: DestinationControl,
        counter: AtomicCounter<SharedBuffer>,
        challenge_key: u128,
    ) -> Self {
        counter.set(0);
        Self {
            control,
            destinations: Vec::new(),
            next: 0,
            unvalidated_count: 0,
            arrivals: 0,
            challenge_key,
            counter,
        }
    }

    /// Updates or adds the destination of a receiver that sent a status message.
    ///
    /// # Errors
    /// The receiver is new and there are too many destinations.
    pub(super) fn on_status_message(
        &mut self,
        source: StatusSource,
        now_ns: i64,
    ) -> Result<(), TooManyDestinations> {
        if let Some(known) = self.find(source.receiver_id, source.address) {
            let known = &mut self.destinations[known];
            known.receiver_id = Some(source.receiver_id);
            known.time_of_last_activity_ns = now_ns;
            // Bytes from a different address do not increase the allowance of this address.
            if known.address == Some(source.address)
                && let Some(unvalidated) = &mut known.unvalidated
            {
                unvalidated.on_received(source.length);
            }
            return Ok(());
        }
        if self.control == DestinationControl::Manual {
            return Ok(());
        }
        if self.destinations.len() >= MAX_DYNAMIC_DESTINATIONS {
            self.forget_silent(now_ns);
        }
        if self.destinations.len() >= MAX_DYNAMIC_DESTINATIONS {
            return Err(TooManyDestinations);
        }
        let mut unvalidated = Unvalidated::new(self.new_nonce(source.address));
        unvalidated.on_received(source.length);
        self.push(SendDestination {
            address: Some(source.address),
            receiver_id: Some(source.receiver_id),
            registration_id: NO_REGISTRATION,
            name: None,
            time_of_last_activity_ns: now_ns,
            unvalidated: Some(unvalidated),
        });
        self.arrivals += 1;
        Ok(())
    }

    /// Increases the allowance of the destination at `source` after a message of `length` bytes. Not for status
    /// messages: [`Self::on_status_message`] counts their bytes.
    pub(super) fn on_received(&mut self, source: SocketAddr, length: usize) {
        for (_, address, unvalidated) in self.unvalidated() {
            if address == source {
                unvalidated.on_received(length);
            }
        }
    }

    /// Validates the destination at `source` if `is_proof` returns true for the destination.
    ///
    /// A message proves only that its source address receives datagrams, so only destinations at `source` are checked.
    /// For a NAK, `receiver_id` is `None`, because a NAK does not contain the id.
    pub(super) fn validate(
        &mut self,
        receiver_id: Option<i64>,
        source: SocketAddr,
        mut is_proof: impl FnMut(&mut Unvalidated) -> bool,
    ) {
        if self.unvalidated_count == 0 {
            return;
        }
        let is_meant = |it: &SendDestination| {
            it.address == Some(source) && (receiver_id.is_none() || it.receiver_id == receiver_id)
        };
        for destination in self.destinations.iter_mut().filter(|it| is_meant(it)) {
            if destination.unvalidated.as_mut().is_some_and(&mut is_proof) {
                destination.unvalidated = None;
                self.unvalidated_count -= 1;
            }
        }
        debug_assert_eq!(
            self.unvalidated_count,
            self.count_unvalidated(),
            "the number of unvalidated destinations differs from the list"
        );
    }

    /// Returns the registration id of the manual destination of a receiver at `source`, else -1.
    pub fn registration_id(&self, receiver_id: i64, source: SocketAddr) -> i64 {
        self.find(receiver_id, source)
            .map_or(NO_REGISTRATION, |known| {
                self.destinations[known].registration_id
            })
    }

    fn new_nonce(&self, address: SocketAddr) -> i64 {
        let mut hasher = DefaultHasher::new();
        (self.challenge_key, address, self.arrivals).hash(&mut hasher);
        hasher.finish() as i64
    }

    /// Returns every destination with a known address. Each call begins with the next destination in turn.
    pub(super) fn recipients(&mut self, now_ns: i64) -> impl Iterator<Item = Recipient<'_>> {
        if self.control == DestinationControl::Dynamic {
            self.forget_silent(now_ns);
        }
        if self.next >= self.destinations.len() {
            self.next = 0;
        }
        let (last, first) = self.destinations.split_at_mut(self.next);
        self.next += 1;
        first.iter_mut().chain(last).filter_map(|destination| {
            Some(Recipient {
                address: destination.address?,
                unvalidated: destination.unvalidated.as_mut(),
            })
        })
    }

    /// Returns the unvalidated destinations, with the ids of their receivers.
    pub(super) fn unvalidated(
        &mut self,
    ) -> impl Iterator<Item = (i64, SocketAddr, &mut Unvalidated)> {
        let destinations = match self.unvalidated_count {
            0 => &mut [],
            _ => &mut self.destinations[..],
        };
        destinations
            .iter_mut()
            .filter_map(|it| Some((it.receiver_id?, it.address?, it.unvalidated.as_mut()?)))
    }

    /// Returns the first known address of a destination.
    pub fn first_address(&self) -> Option<SocketAddr> {
        self.destinations
            .iter()
            .find_map(|destination| destination.address)
    }

    /// Adds a client's destination. With dynamic control, does nothing.
    pub fn add(&mut self, destination: ManualDestination, now_ns: i64) {
        if self.control == DestinationControl::Manual {
            self.push(SendDestination {
                address: destination.address,
                receiver_id: None,
                registration_id: destination.registration_id,
                name: Some(destination.name),
                time_of_last_activity_ns: now_ns,
                unvalidated: None,
            });
        }
    }

    /// Removes the first destination at `address`.
    pub fn remove(&mut self, address: Option<SocketAddr>) {
        self.remove_first(|destination| destination.address == address);
    }

    /// Removes the destination that the command with this id added.
    pub fn remove_by_id(&mut self, registration_id: i64) {
        self.remove_first(|destination| destination.registration_id == registration_id);
    }

    /// Sets the address of all destinations with this name.
    pub fn on_resolution_change(&mut self, name: &str, address: SocketAddr) {
        for destination in &mut self.destinations {
            if destination.name.as_deref() == Some(name) {
                destination.address = Some(address);
            }
        }
    }

    /// Calls `re_resolve` for each manual destination without a recent status message, and restarts the destination's
    /// timeout.
    pub fn check_re_resolution(
        &mut self,
        now_ns: i64,
        mut re_resolve: impl FnMut(&Arc<str>, Option<SocketAddr>),
    ) {
        for destination in &mut self.destinations {
            if let Some(name) = &destination.name
                && is_silent(destination.time_of_last_activity_ns, now_ns)
            {
                destination.time_of_last_activity_ns = now_ns;
                re_resolve(name, destination.address);
            }
        }
    }

    /// Returns the index of the destination of a receiver.
    ///
    /// A known receiver is found by its id and port. Its IP address may change, for example after a change in an
    /// address translator.
    fn find(&self, receiver_id: i64, source: SocketAddr) -> Option<usize> {
        self.destinations.iter().position(|destination| {
            let Some(address) = destination.address else {
                return false;
            };
            match destination.receiver_id {
                Some(known) => known == receiver_id && address.port() == source.port(),
                None => address.port() == source.port() && address.ip() == source.ip(),
            }
        })
    }

    fn push(&mut self, destination: SendDestination) {
        // Anyone can forge a status message. Without the limit for unvalidated ones, the driver would amplify it.
        debug_assert!(
            self.control == DestinationControl::Manual || destination.unvalidated.is_some(),
            "a destination that a status message adds must begin unvalidated"
        );
        self.destinations.push(destination);
        self.on_change();
    }

    fn remove_first(&mut self, is_meant: impl Fn(&SendDestination) -> bool) {
        if let Some(index) = self.destinations.iter().position(is_meant) {
            self.destinations.remove(index);
            self.on_change();
        }
    }

    fn forget_silent(&mut self, now_ns: i64) {
        debug_assert_eq!(
            self.control,
            DestinationControl::Dynamic,
            "only clients may remove the destinations that clients have added"
        );
        let before = self.destinations.len();
        self.destinations
            .retain(|destination| !is_silent(destination.time_of_last_activity_ns, now_ns));
        if self.destinations.len() != before {
            self.on_change();
        }
    }

    /// Updates the counter and the number of unvalidated destinations.
    fn on_change(&mut self) {
        self.unvalidated_count = self.count_unvalidated();
        self.counter.set(self.destinations.len() as i64);
    }

    fn count_unvalidated(&self) -> usize {
        let unvalidated = self
            .destinations
            .iter()
            .filter(|it| it.unvalidated.is_some());
        unvalidated.count()
    }
}

/// Returns whether the time since the last activity exceeds [`DESTINATION_TIMEOUT_NS`].
pub(super) fn is_silent(time_of_last_activity_ns: i64, now_ns: i64) -> bool {
    debug_assert!(
        now_ns >= time_of_last_activity_ns,
        "an activity at {time_of_last_activity_ns} is later than now, {now_ns}"
    );
    now_ns - time_of_last_activity_ns > DESTINATION_TIMEOUT_NS
}
