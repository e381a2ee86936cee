//! [`NameRecords`]: the known names with their addresses, and the known neighbors.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::ops::Bound;

use aeron_protocol::frame::resolution::ResolutionEntry;

use super::name_key::NameKey;
use super::neighbors::{DriverMention, Neighbors, Refusal};
use crate::media::address::Family;

/// Maximum number of names. The number is limited because any datagram can add a name.
pub const MAX_NAMES: usize = 4096;

/// Names and neighbors, each with the time of the last activity in milliseconds.
pub struct NameRecords {
    names: BTreeMap<NameKey, Record>,
    /// The drivers that exchange names.
    pub neighbors: Neighbors,
    timeout_ms: i64,
}

struct Record {
    address: SocketAddr,
    time_of_last_activity_ms: i64,
}

impl NameRecords {
    /// Creates records without names. Entries expire after the timeout.
    pub fn new(timeout_ms: i64, neighbors: Neighbors) -> Self {
        Self {
            names: BTreeMap::new(),
            neighbors,
            timeout_ms,
        }
    }

    /// Adds or updates the name of a driver, and the driver as a neighbor.
    ///
    /// Only an entry with `is_self` changes the time of a known neighbor's last activity.
    ///
    /// # Errors
    /// There is no room for another name or neighbor.
    pub fn on_mention(&mut self, name: &[u8], mention: &DriverMention) -> Result<(), Refusal> {
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

    /// Removes the names and neighbors that were inactive for the timeout. Returns the number of removed entries.
    pub fn expire(&mut self, now_ms: i64) -> usize {
        let before = self.names.len() + self.neighbors.len();
        let is_alive = |time_ms: i64| time_ms.saturating_add(self.timeout_ms) > now_ms;
        self.names
            .retain(|_, record| is_alive(record.time_of_last_activity_ms));
        self.neighbors.retain(is_alive);
        debug_assert!(
            self.names.len() <= MAX_NAMES,
            "{} names are known, which any datagram can add",
            self.names.len()
        );
        before - self.names.len() - self.neighbors.len()
    }

    /// Returns the address of a name.
    pub fn find(&self, name: &[u8], family: Family) -> Option<IpAddr> {
        self.names
            .get(&(family, name.into()))
            .map(|record| record.address.ip())
    }

    /// Returns all names as entries of a datagram that is sent at `now_ms`. The entries begin with the name after
    /// `last`. After the last name, they continue with the first name.
    pub fn entries_from(
        &self,
        last: Option<&NameKey>,
        now_ms: i64,
    ) -> impl Iterator<Item = (&NameKey, ResolutionEntry<'_>)> {
        let begin = last.map_or(Bound::Unbounded, Bound::Excluded);
        let following = self.names.range((begin, Bound::Unbounded));
        following
            .chain(&self.names)
            .take(self.names.len())
            .map(move |(name, record)| {
                let entry = ResolutionEntry {
                    is_self: false,
                    address: record.address,
                    age_ms: u32::try_from(now_ms - record.time_of_last_activity_ms).unwrap_or(0),
                    name: &name.1,
                };
                (name, entry)
            })
    }

    /// Returns the number of names that are known.
    pub fn name_count(&self) -> usize {
        self.names.len()
    }
}
