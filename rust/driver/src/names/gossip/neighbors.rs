//! [`Neighbors`]: the drivers that exchange names, and the number of bytes that may be sent to each of them.
//!
//! An attacker can announce a driver with the address of a third party. To prevent a flood to such an address, each
//! neighbor that was learned from datagrams has an allowance: [`MAX_BYTES_PER_BYTE`] bytes for each byte that arrived
//! from its address. A driver that is known only from a datagram of another driver has sent nothing yet. It gets one
//! announcement, and replies if it is alive.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::ops::Bound;

use super::name_key::NameKey;

/// Maximum number of neighbors. The number is limited because all names are sent to each neighbor.
pub const MAX_NEIGHBORS: usize = 1024;
/// Maximum number of bytes sent to an address for each byte that arrived from it. If a datagram of another driver names
/// the address, the bytes of the entry with the address also count as arrived.
pub const MAX_BYTES_PER_BYTE: usize = 10;

/// The known neighbors.
pub struct Neighbors {
    known: BTreeMap<SocketAddr, Neighbor>,
    /// Addresses of bootstrap neighbors, which come from the configuration and have no limit.
    configured: Vec<SocketAddr>,
    /// Length of the driver's own announcement in bytes.
    announcement_length: usize,
}

struct Neighbor {
    time_of_last_activity_ms: i64,
    /// Number of bytes that may still be sent to the neighbor.
    allowance: usize,
    /// The last name that was sent to the neighbor.
    last_sent_name: Option<NameKey>,
}

/// An entry of a datagram that names a driver.
pub struct DriverMention {
    /// Address of the named driver.
    pub address: SocketAddr,
    /// Source address of the datagram.
    pub source: SocketAddr,
    /// Whether the entry claims that the datagram comes from the named driver.
    pub is_self: bool,
    /// Length of the entry in bytes.
    pub length: usize,
    /// Time of the driver's last activity.
    pub time_ms: i64,
}

/// The reason why an entry was not added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal(pub &'static str);

impl Neighbors {
    /// Creates an empty collection. The driver's own announcement has `announcement_length` bytes.
    pub fn new(announcement_length: usize) -> Self {
        Self {
            known: BTreeMap::new(),
            configured: Vec::new(),
            announcement_length,
        }
    }

    /// Adds a driver, or updates it. Only an entry with `is_self` changes the time of a known driver's last activity.
    ///
    /// # Errors
    /// [`MAX_NEIGHBORS`] neighbors are known already.
    pub fn on_mention(&mut self, mention: &DriverMention) -> Result<(), Refusal> {
        let has_room = self.known.len() < MAX_NEIGHBORS;
        match self.known.get_mut(&mention.address) {
            Some(known) if mention.is_self => known.time_of_last_activity_ms = mention.time_ms,
            Some(_) => {}
            None if has_room => {
                let neighbor = Neighbor {
                    time_of_last_activity_ms: mention.time_ms,
                    allowance: self.introduction(mention),
                    last_sent_name: None,
                };
                self.known.insert(mention.address, neighbor);
            }
            None => return Err(Refusal("no room for more neighbors")),
        }
        Ok(())
    }

    /// Returns the initial allowance in bytes of a driver that another driver has named: one announcement.
    ///
    /// Returns 0 if an announcement is longer than [`MAX_BYTES_PER_BYTE`] times the entry. Also returns 0 if the driver
    /// itself has sent the datagram: [`Self::on_datagram`] adds its allowance after the whole datagram was read.
    fn introduction(&self, mention: &DriverMention) -> usize {
        let limit = MAX_BYTES_PER_BYTE * mention.length;
        if mention.source == mention.address || self.announcement_length > limit {
            return 0;
        }
        self.announcement_length
    }

    /// Increases the allowance of `source` for a datagram of `length` bytes.
    pub fn on_datagram(&mut self, source: SocketAddr, length: usize) {
        if let Some(neighbor) = self.known.get_mut(&source) {
            let earned = MAX_BYTES_PER_BYTE * length;
            neighbor.allowance = neighbor.allowance.saturating_add(earned);
        }
    }

    /// Sets the addresses of bootstrap neighbors.
    pub fn set_configured(&mut self, addresses: impl Iterator<Item = SocketAddr>) {
        self.configured.clear();
        self.configured.extend(addresses);
    }

    /// Returns the addresses of bootstrap neighbors.
    pub fn configured(&self) -> &[SocketAddr] {
        &self.configured
    }

    /// Subtracts the bytes of an announcement from the allowance of `address`.
    ///
    /// Returns `false` if the allowance is too small.
    pub fn take_announcement(&mut self, address: SocketAddr) -> bool {
        let may_send = self.allowance(address) >= self.announcement_length;
        if may_send {
            self.on_sent(address, self.announcement_length);
        }
        may_send
    }

    /// Returns the number of bytes of names that may be sent to `address`. The bytes of the next announcement are
    /// reserved.
    pub fn allowance_for_names(&self, address: SocketAddr) -> usize {
        self.allowance(address)
            .saturating_sub(self.announcement_length)
    }

    fn allowance(&self, address: SocketAddr) -> usize {
        if self.configured.contains(&address) {
            return usize::MAX;
        }
        self.known
            .get(&address)
            .map_or(0, |neighbor| neighbor.allowance)
    }

    fn on_sent(&mut self, address: SocketAddr, length: usize) {
        // Datagrams with forged source addresses must not make this driver send more than `MAX_BYTES_PER_BYTE` permits.
        debug_assert!(
            self.allowance(address) >= length,
            "{length} bytes were sent to {address}, but only {} were allowed",
            self.allowance(address)
        );
        if let Some(neighbor) = self.known.get_mut(&address) {
            neighbor.allowance = neighbor.allowance.saturating_sub(length);
        }
    }

    /// Returns the last name that was sent to a neighbor.
    pub fn last_sent_name(&self, address: SocketAddr) -> Option<&NameKey> {
        self.known.get(&address)?.last_sent_name.as_ref()
    }

    /// Records that `length` bytes of names were sent to a neighbor. `last` is the last of these names.
    pub fn on_names_sent(&mut self, address: SocketAddr, length: usize, last: NameKey) {
        self.on_sent(address, length);
        if let Some(neighbor) = self.known.get_mut(&address) {
            neighbor.last_sent_name = Some(last);
        }
    }

    /// Removes the drivers for which `is_alive` returns false. The argument of `is_alive` is the time of the driver's
    /// last activity in milliseconds.
    pub fn retain(&mut self, is_alive: impl Fn(i64) -> bool) {
        self.known
            .retain(|_, neighbor| is_alive(neighbor.time_of_last_activity_ms));
    }

    /// Returns whether a driver at this address is known.
    pub fn contains(&self, address: SocketAddr) -> bool {
        self.known.contains_key(&address)
    }

    /// Returns the neighbor that follows `last` in the order of addresses. If `last` is `None`, returns the first
    /// neighbor.
    pub fn next_after(&self, last: Option<SocketAddr>) -> Option<SocketAddr> {
        let begin = last.map_or(Bound::Unbounded, Bound::Excluded);
        let mut following = self.known.range((begin, Bound::Unbounded));
        following.next().map(|(address, _)| *address)
    }

    /// Returns the number of drivers that are known.
    pub fn len(&self) -> usize {
        self.known.len()
    }
}
