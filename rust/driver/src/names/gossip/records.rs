//! What a driver knows of others: names with their addresses, and who takes part.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::ops::Bound;

use aeron_protocol::frame::resolution::Entry;

use crate::media::address::Family;

/// Names that are remembered at most: datagrams from anywhere add to them.
pub const MAX_NAMES: usize = 4096;
/// Drivers that are remembered at most: each is sent all names.
pub const MAX_NEIGHBORS: usize = 1024;

/// What names are told apart by.
pub type NameKey = (Family, Box<[u8]>);

/// Everything known, each with the time of the last sign of life, in milliseconds.
pub struct Records {
    names: BTreeMap<NameKey, Record>,
    neighbors: BTreeMap<SocketAddr, i64>,
    timeout_ms: i64,
}

struct Record {
    address: SocketAddr,
    time_of_last_activity_ms: i64,
}

/// Why something is not remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal(pub &'static str);

impl Records {
    /// Knows nothing; forgets what is older than the timeout.
    pub fn new(timeout_ms: i64) -> Self {
        Self {
            names: BTreeMap::new(),
            neighbors: BTreeMap::new(),
            timeout_ms,
        }
    }

    /// Remembers that a driver with this name was alive at `time_ms`. Only a driver's own word refreshes it as a neighbour.
    /// Refuses what there is no room for.
    pub fn on_entry(
        &mut self,
        name: &[u8],
        address: SocketAddr,
        is_self: bool,
        time_ms: i64,
    ) -> Result<(), Refusal> {
        let has_room = self.names.len() < MAX_NAMES;
        let key = (Family::of(address.ip()), name.into());
        let record = Record {
            address,
            time_of_last_activity_ms: time_ms,
        };
        match self.names.get_mut(&key) {
            Some(known) => *known = record,
            None if has_room => drop(self.names.insert(key, record)),
            None => return Err(Refusal("no room for more names")),
        }
        let has_room = self.neighbors.len() < MAX_NEIGHBORS;
        match self.neighbors.get_mut(&address) {
            Some(known) if is_self => *known = time_ms,
            Some(_) => {}
            None if has_room => drop(self.neighbors.insert(address, time_ms)),
            None => return Err(Refusal("no room for more neighbors")),
        }
        Ok(())
    }

    /// Forgets what was silent for the timeout; answers how much.
    pub fn expire(&mut self, now_ms: i64) -> usize {
        let before = self.names.len() + self.neighbors.len();
        let is_alive = |time_ms: i64| time_ms.saturating_add(self.timeout_ms) > now_ms;
        self.names
            .retain(|_, record| is_alive(record.time_of_last_activity_ms));
        self.neighbors.retain(|_, time_ms| is_alive(*time_ms));
        before - self.names.len() - self.neighbors.len()
    }

    /// The address of a name.
    pub fn find(&self, name: &[u8], family: Family) -> Option<IpAddr> {
        self.names
            .get(&(family, name.into()))
            .map(|record| record.address.ip())
    }

    /// The names behind `last`, as entries of a datagram that is sent at `now_ms`.
    pub fn entries_after(
        &self,
        last: Option<&NameKey>,
        now_ms: i64,
    ) -> impl Iterator<Item = (&NameKey, Entry<'_>)> {
        let begin = last.map_or(Bound::Unbounded, Bound::Excluded);
        let names = self.names.range((begin, Bound::Unbounded));
        names.map(move |(name, record)| {
            let entry = Entry {
                is_self: false,
                address: record.address,
                age_ms: u32::try_from(now_ms - record.time_of_last_activity_ms).unwrap_or(0),
                name: &name.1,
            };
            (name, entry)
        })
    }

    /// Whether a driver at this address is known.
    pub fn is_neighbor(&self, address: SocketAddr) -> bool {
        self.neighbors.contains_key(&address)
    }

    /// The addresses of the drivers that are known.
    pub fn neighbors(&self) -> impl Iterator<Item = SocketAddr> {
        self.neighbors.keys().copied()
    }

    pub fn neighbor_count(&self) -> usize {
        self.neighbors.len()
    }

    pub fn name_count(&self) -> usize {
        self.names.len()
    }
}
