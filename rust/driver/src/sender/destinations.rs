//! [`DestinationTracker`]: the destinations of a multi-destination-cast endpoint (reference 02, section 11.1).
//!
//! With dynamic control whoever sends a status message is a destination for as long as it keeps sending them; with manual
//! control clients say who is. Bytes from the network make at most [`MAX_DYNAMIC_DESTINATIONS`] of them.

use std::net::SocketAddr;
use std::sync::Arc;

use aeron_memory::buffer::SharedBuffer;
use aeron_memory::counters::AtomicCounter;

use super::manual_destination::ManualDestination;

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
}

/// The destinations of one endpoint; see the [module](self).
#[derive(Debug)]
pub struct DestinationTracker {
    control: DestinationControl,
    destinations: Vec<Destination>,
    /// Which destination is the first of the next datagrams.
    next: usize,
    /// Follows the number of destinations.
    counter: AtomicCounter<SharedBuffer>,
}

impl DestinationTracker {
    /// No destinations yet; `counter` shows how many there are.
    pub fn new(control: DestinationControl, counter: AtomicCounter<SharedBuffer>) -> Self {
        counter.set(0);
        Self {
            control,
            destinations: Vec::new(),
            next: 0,
            counter,
        }
    }

    /// A receiver at `source` sent a status message.
    ///
    /// # Errors
    /// It is a new one and there are too many.
    pub fn on_status_message(
        &mut self,
        receiver_id: i64,
        source: SocketAddr,
        now_ns: i64,
    ) -> Result<(), TooManyDestinations> {
        if let Some(known) = self.find(receiver_id, source) {
            let known = &mut self.destinations[known];
            known.receiver_id = Some(receiver_id);
            known.time_of_last_activity_ns = now_ns;
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
        self.push(Destination {
            address: Some(source),
            receiver_id: Some(receiver_id),
            registration_id: NO_REGISTRATION,
            name: None,
            time_of_last_activity_ns: now_ns,
        });
        Ok(())
    }

    /// Registration id of the manual destination that a receiver at `source` belongs to, -1 if there is none.
    pub fn registration_id(&self, receiver_id: i64, source: SocketAddr) -> i64 {
        self.find(receiver_id, source)
            .map_or(NO_REGISTRATION, |known| {
                self.destinations[known].registration_id
            })
    }

    /// Where to send now: every destination whose address is known, beginning with another one each time.
    pub fn addresses(&mut self, now_ns: i64) -> impl Iterator<Item = SocketAddr> {
        if self.control == DestinationControl::Dynamic {
            self.forget_silent(now_ns);
        }
        if self.next >= self.destinations.len() {
            self.next = 0;
        }
        let (last, first) = self.destinations.split_at(self.next);
        self.next += 1;
        first
            .iter()
            .chain(last)
            .filter_map(|destination| destination.address)
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
        self.update_counter();
    }

    fn remove_first(&mut self, is_meant: impl Fn(&Destination) -> bool) {
        if let Some(index) = self.destinations.iter().position(is_meant) {
            self.destinations.remove(index);
            self.update_counter();
        }
    }

    fn forget_silent(&mut self, now_ns: i64) {
        let before = self.destinations.len();
        self.destinations
            .retain(|destination| !is_silent(destination.time_of_last_activity_ns, now_ns));
        if self.destinations.len() != before {
            self.update_counter();
        }
    }

    fn update_counter(&self) {
        self.counter.set(self.destinations.len() as i64);
    }
}

/// Whether the last sign of life is too long ago.
pub(super) fn is_silent(time_of_last_activity_ns: i64, now_ns: i64) -> bool {
    now_ns - time_of_last_activity_ns > DESTINATION_TIMEOUT_NS
}
