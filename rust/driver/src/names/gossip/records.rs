//! What a driver knows of others: names with their addresses, and who takes part.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::ops::Bound;

use aeron_protocol::frame::resolution::Entry;

use super::name_key::NameKey;
use super::neighbors::{Mention, Neighbors, Refusal};
use crate::media::address::Family;

/// Names that are remembered at most: datagrams from anywhere add to them.
pub const MAX_NAMES: usize = 4096;

/// Everything known, each with the time of the last sign of life, in milliseconds.
pub struct Records {
    names: BTreeMap<NameKey, Record>,
    /// The drivers that take part.
    pub neighbors: Neighbors,
    timeout_ms: i64,
}

struct Record {
    address: SocketAddr,
    time_of_last_activity_ms: i64,
}

impl Records {
    /// Knows no names; forgets what is older than the timeout.
    pub fn new(timeout_ms: i64, neighbors: Neighbors) -> Self {
        Self {
            names: BTreeMap::new(),
            neighbors,
            timeout_ms,
        }
    }

    /// Remembers that a driver with this name was alive when it was mentioned. Only a driver's own word refreshes it as a neighbor.
    ///
    /// # Errors
    /// There is no room for it.
    pub fn on_mention(&mut self, name: &[u8], mention: &Mention) -> Result<(), Refusal> {
        let has_room = self.names.len() < MAX_NAMES;
        let key = (Family::of(mention.address.ip()), name.into());
        let record = Record {
            address: mention.address,
            time_of_last_activity_ms: mention.time_ms,
        };
        match self.names.get_mut(&key) {
            Some(known) => *known = record,
            None if has_room => drop(self.names.insert(key, record)),
            None => return Err(Refusal("no room for more names")),
        }
        self.neighbors.on_mention(mention)
    }

    /// Forgets what was silent for the timeout; answers how much.
    pub fn expire(&mut self, now_ms: i64) -> usize {
        let before = self.names.len() + self.neighbors.len();
        let is_alive = |time_ms: i64| time_ms.saturating_add(self.timeout_ms) > now_ms;
        self.names
            .retain(|_, record| is_alive(record.time_of_last_activity_ms));
        self.neighbors.retain(is_alive);
        before - self.names.len() - self.neighbors.len()
    }

    /// The address of a name.
    pub fn find(&self, name: &[u8], family: Family) -> Option<IpAddr> {
        self.names
            .get(&(family, name.into()))
            .map(|record| record.address.ip())
    }

    /// All names from the one after `last` on and round to it, as entries of a datagram that is sent at `now_ms`.
    pub fn entries_from(
        &self,
        last: Option<&NameKey>,
        now_ms: i64,
    ) -> impl Iterator<Item = (&NameKey, Entry<'_>)> {
        let begin = last.map_or(Bound::Unbounded, Bound::Excluded);
        let following = self.names.range((begin, Bound::Unbounded));
        following
            .chain(&self.names)
            .take(self.names.len())
            .map(move |(name, record)| {
                let entry = Entry {
                    is_self: false,
                    address: record.address,
                    age_ms: u32::try_from(now_ms - record.time_of_last_activity_ms).unwrap_or(0),
                    name: &name.1,
                };
                (name, entry)
            })
    }

    /// Number of names that are known.
    pub fn name_count(&self) -> usize {
        self.names.len()
    }
}
