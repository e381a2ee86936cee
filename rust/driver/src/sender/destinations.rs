//! [`DestinationTracker`]: the destinations of a multi-destination-cast endpoint (reference 02, section 11.1).
//!
//! With dynamic control whoever sends a status message is a destination for as long as it keeps sending them; with manual
//! control clients say who is. Bytes from the network make at most [`MAX_DYNAMIC_DESTINATIONS`] of them, and a new one has to be
//! [validated](super::validation).

use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::SocketAddr;
use std::sync::Arc;

use aeron_memory::buffer::SharedBuffer;
use aeron_memory::counters::AtomicCounter;

use super::manual_destination::ManualDestination;
use super::validation::Unvalidated;

/// Receivers that one endpoint with dynamic control sends to.
pub const MAX_DYNAMIC_DESTINATIONS: usize = 1024;
/// A destination that is silent for longer is forgotten (dynamic) or looked up again (manual).
pub const DESTINATION_TIMEOUT_NS: i64 = 5_000_000_000;

/// Registration id of what no command made.
pub(super) const NO_REGISTRATION: i64 = -1;

/// Who may add destinations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DestinationControl {
    /// Receivers, by their status messages.
    Dynamic,
    /// Clients, by their commands.
    Manual,
}

/// There are [`MAX_DYNAMIC_DESTINATIONS`] already.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "status messages ignored: an endpoint has {MAX_DYNAMIC_DESTINATIONS} dynamic destinations, this would be one more"
)]
pub struct TooManyDestinations;

#[derive(Debug)]
struct Destination {
    address: Option<SocketAddr>,
    receiver_id: Option<i64>,
    registration_id: i64,
    /// Of a manual destination.
    name: Option<Arc<str>>,
    time_of_last_activity_ns: i64,
    /// Of a dynamic destination that is not validated.
    unvalidated: Option<Unvalidated>,
}

/// A receiver that sent a status message.
#[derive(Clone, Copy, Debug)]
pub(super) struct StatusSource {
    pub receiver_id: i64,
    pub address: SocketAddr,
    /// Bytes of the status message.
    pub length: usize,
}

/// Where a datagram goes, and what limits it.
pub(super) struct Recipient<'a> {
    pub address: SocketAddr,
    pub unvalidated: Option<&'a mut Unvalidated>,
}

/// The destinations of one endpoint; see the [module](self).
#[derive(Debug)]
pub struct DestinationTracker {
    control: DestinationControl,
    destinations: Vec<Destination>,
    /// Which destination is the first of the next datagrams.
    next: usize,
    /// Destinations that are not validated.
    unvalidated_count: usize,
    /// Dynamic destinations that came since the endpoint was opened.
    arrivals: u64,
    /// Makes numbers that nobody else can guess.
    challenge_key: u128,
    /// Follows the number of destinations.
    counter: AtomicCounter<SharedBuffer>,
}

impl DestinationTracker {
    /// No destinations yet. `counter` shows how many there are, and nobody else knows `challenge_key`.
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

    /// A receiver sent a status message.
    ///
    /// # Errors
    /// It is a new one and there are too many.
    pub(super) fn on_status_message(
        &mut self,
        source: StatusSource,
        now_ns: i64,
    ) -> Result<(), TooManyDestinations> {
        if let Some(known) = self.find(source.receiver_id, source.address) {
            let known = &mut self.destinations[known];
            known.receiver_id = Some(source.receiver_id);
            known.time_of_last_activity_ns = now_ns;
            // What came from elsewhere earns this address nothing.
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
        self.push(Destination {
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

    /// A receiver at `source` sent a message of `length` bytes that is not a status message.
    pub(super) fn on_received(&mut self, source: SocketAddr, length: usize) {
        for (_, address, unvalidated) in self.unvalidated() {
            if address == source {
                unvalidated.on_received(length);
            }
        }
    }

    /// A receiver at `source` proves that it receives if `is_proof` of its destination.
    ///
    /// What comes from elsewhere proves nothing about an address. A NAK does not name its receiver.
    pub(super) fn validate(
        &mut self,
        receiver_id: Option<i64>,
        source: SocketAddr,
        mut is_proof: impl FnMut(&mut Unvalidated) -> bool,
    ) {
        if self.unvalidated_count == 0 {
            return;
        }
        let is_meant = |it: &Destination| {
            it.address == Some(source) && (receiver_id.is_none() || it.receiver_id == receiver_id)
        };
        for destination in self.destinations.iter_mut().filter(|it| is_meant(it)) {
            if destination.unvalidated.as_mut().is_some_and(&mut is_proof) {
                destination.unvalidated = None;
                self.unvalidated_count -= 1;
            }
        }
    }

    /// Registration id of the manual destination that a receiver at `source` belongs to, -1 if there is none.
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

    /// Where to send now: every destination whose address is known, beginning with another one each time.
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

    /// The destinations that are not validated, with the ids of their receivers.
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

    /// Some destination whose address is known.
    pub fn first_address(&self) -> Option<SocketAddr> {
        self.destinations
            .iter()
            .find_map(|destination| destination.address)
    }

    /// A client added a destination; without effect where receivers do.
    pub fn add(&mut self, destination: ManualDestination, now_ns: i64) {
        if self.control == DestinationControl::Manual {
            self.push(Destination {
                address: destination.address,
                receiver_id: None,
                registration_id: destination.registration_id,
                name: Some(destination.name),
                time_of_last_activity_ns: now_ns,
                unvalidated: None,
            });
        }
    }

    /// Forgets the first destination at `address`.
    pub fn remove(&mut self, address: Option<SocketAddr>) {
        self.remove_first(|destination| destination.address == address);
    }

    /// Forgets the destination that the command with this id added.
    pub fn remove_by_id(&mut self, registration_id: i64) {
        self.remove_first(|destination| destination.registration_id == registration_id);
    }

    /// All destinations of this name are at `address` now.
    pub fn on_resolution_change(&mut self, name: &str, address: SocketAddr) {
        for destination in &mut self.destinations {
            if destination.name.as_deref() == Some(name) {
                destination.address = Some(address);
            }
        }
    }

    /// Calls `re_resolve` with every manual destination that was silent for too long, and gives it as long again.
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

    /// A receiver that is known keeps its port but may change its address, as behind a translator of addresses.
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

    fn push(&mut self, destination: Destination) {
        self.destinations.push(destination);
        self.on_change();
    }

    fn remove_first(&mut self, is_meant: impl Fn(&Destination) -> bool) {
        if let Some(index) = self.destinations.iter().position(is_meant) {
            self.destinations.remove(index);
            self.on_change();
        }
    }

    fn forget_silent(&mut self, now_ns: i64) {
        let before = self.destinations.len();
        self.destinations
            .retain(|destination| !is_silent(destination.time_of_last_activity_ns, now_ns));
        if self.destinations.len() != before {
            self.on_change();
        }
    }

    /// Destinations came or went.
    fn on_change(&mut self) {
        let unvalidated = self
            .destinations
            .iter()
            .filter(|it| it.unvalidated.is_some());
        self.unvalidated_count = unvalidated.count();
        self.counter.set(self.destinations.len() as i64);
    }
}

/// Whether the last sign of life is too long ago.
pub(super) fn is_silent(time_of_last_activity_ns: i64, now_ns: i64) -> bool {
    now_ns - time_of_last_activity_ns > DESTINATION_TIMEOUT_NS
}
