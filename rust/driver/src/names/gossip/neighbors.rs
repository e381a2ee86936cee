//! The drivers that take part, and how many bytes each of them may be sent.
//!
//! Anybody can announce a driver under an address that is not their own. So that such an address is not flooded, a neighbor that
//! was learned from datagrams has an allowance: [`MAX_BYTES_PER_BYTE`] bytes for each byte that came from its address. A driver
//! that another one named has sent nothing yet. It gets one announcement: if it is alive, it replies.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::ops::Bound;

use super::name_key::NameKey;

/// Drivers that are remembered at most: each is sent all names.
pub const MAX_NEIGHBORS: usize = 1024;
/// Bytes that an address is sent at most for each byte that came from there, or that another driver needed to tell of it.
pub const MAX_BYTES_PER_BYTE: usize = 10;

/// Everyone who takes part.
pub struct Neighbors {
    known: BTreeMap<SocketAddr, Neighbor>,
    /// Addresses of bootstrap neighbors, which the user named: they have no limit.
    configured: Vec<SocketAddr>,
    /// Length of the driver's own announcement in bytes.
    announcement_length: usize,
}

struct Neighbor {
    time_of_last_activity_ms: i64,
    /// Bytes that may still be sent.
    allowance: usize,
    /// The last name that was sent to the neighbor.
    last_told: Option<NameKey>,
}

/// How a datagram named a driver.
pub struct Mention {
    /// Address of the named driver.
    pub address: SocketAddr,
    /// Source address of the datagram.
    pub source: SocketAddr,
    /// The datagram says that the driver itself sent it.
    pub is_self: bool,
    /// Bytes of the entry in the datagram.
    pub length: usize,
    /// When the driver was alive.
    pub time_ms: i64,
}

/// Why something is not remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal(pub &'static str);

impl Neighbors {
    /// Knows nobody; the driver's own announcement has `announcement_length` bytes.
    pub fn new(announcement_length: usize) -> Self {
        Self {
            known: BTreeMap::new(),
            configured: Vec::new(),
            announcement_length,
        }
    }

    /// Remembers a driver. Only its own word keeps it.
    ///
    /// # Errors
    /// There are [`MAX_NEIGHBORS`] already.
    pub fn on_mention(&mut self, mention: &Mention) -> Result<(), Refusal> {
        let has_room = self.known.len() < MAX_NEIGHBORS;
        match self.known.get_mut(&mention.address) {
            Some(known) if mention.is_self => known.time_of_last_activity_ms = mention.time_ms,
            Some(_) => {}
            None if has_room => {
                let neighbor = Neighbor {
                    time_of_last_activity_ms: mention.time_ms,
                    allowance: self.introduction(mention),
                    last_told: None,
                };
                self.known.insert(mention.address, neighbor);
            }
            None => return Err(Refusal("no room for more neighbors")),
        }
        Ok(())
    }

    /// Bytes for one announcement to a driver that another one told of. The bytes of the driver itself count when all of its
    /// datagram was read.
    fn introduction(&self, mention: &Mention) -> usize {
        let limit = MAX_BYTES_PER_BYTE * mention.length;
        if mention.source == mention.address || self.announcement_length > limit {
            return 0;
        }
        self.announcement_length
    }

    /// A datagram of `length` bytes came from `source`.
    pub fn on_datagram(&mut self, source: SocketAddr, length: usize) {
        if let Some(neighbor) = self.known.get_mut(&source) {
            let earned = MAX_BYTES_PER_BYTE * length;
            neighbor.allowance = neighbor.allowance.saturating_add(earned);
        }
    }

    /// Makes these the addresses that the user named.
    pub fn set_configured(&mut self, addresses: impl Iterator<Item = SocketAddr>) {
        self.configured.clear();
        self.configured.extend(addresses);
    }

    /// The addresses that the user named.
    pub fn configured(&self) -> &[SocketAddr] {
        &self.configured
    }

    /// Counts an announcement to `address`; returns false if the address may not be sent one.
    pub fn take_announcement(&mut self, address: SocketAddr) -> bool {
        let may_send = self.allowance(address) >= self.announcement_length;
        if may_send {
            self.on_sent(address, self.announcement_length);
        }
        may_send
    }

    /// Bytes of names that `address` may be sent now. The next announcement of the driver itself is kept free.
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
        if let Some(neighbor) = self.known.get_mut(&address) {
            neighbor.allowance = neighbor.allowance.saturating_sub(length);
        }
    }

    /// The last name that a neighbor was told of.
    pub fn last_told(&self, address: SocketAddr) -> Option<&NameKey> {
        self.known.get(&address)?.last_told.as_ref()
    }

    /// A neighbor was sent `length` bytes of names, of which this is the last.
    pub fn on_told(&mut self, address: SocketAddr, length: usize, last: NameKey) {
        self.on_sent(address, length);
        if let Some(neighbor) = self.known.get_mut(&address) {
            neighbor.last_told = Some(last);
        }
    }

    /// Keeps the drivers for which `is_alive` returns true; its argument is the time of their last activity in milliseconds.
    pub fn retain(&mut self, is_alive: impl Fn(i64) -> bool) {
        self.known
            .retain(|_, neighbor| is_alive(neighbor.time_of_last_activity_ms));
    }

    /// Whether a driver at this address is known.
    pub fn contains(&self, address: SocketAddr) -> bool {
        self.known.contains_key(&address)
    }

    /// The neighbor that follows `last` in the order of addresses, or the first.
    pub fn next_after(&self, last: Option<SocketAddr>) -> Option<SocketAddr> {
        let begin = last.map_or(Bound::Unbounded, Bound::Excluded);
        let mut following = self.known.range((begin, Bound::Unbounded));
        following.next().map(|(address, _)| *address)
    }

    /// Number of drivers that are known.
    pub fn len(&self) -> usize {
        self.known.len()
    }
}
