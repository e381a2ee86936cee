//! [`PortManager`]: allocates local ports for channels without a fixed port. The conductor leases a port before it
//! opens a socket.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::ops::RangeInclusive;

use crate::error::DriverError;

/// Allocates the ports of a range in turn.
///
/// Without a range, [`lease`](Self::lease) returns each address unchanged: the operating system chooses the ports.
///
/// If a channel names a port of the range explicitly, the port counts as used. Every leased address must be released.
#[derive(Debug, Default)]
pub struct PortManager {
    range: Option<PortRange>,
}

#[derive(Debug)]
struct PortRange {
    ports: RangeInclusive<u16>,
    next: u16,
    /// Number of channels that use each port. Channels of several multicast groups can share a port.
    used: HashMap<u16, usize>,
}

impl PortManager {
    /// Creates a manager of `ports`. If `ports` is `None`, the operating system chooses.
    pub fn new(ports: Option<RangeInclusive<u16>>) -> Self {
        let range = ports.map(|ports| PortRange {
            next: *ports.start(),
            ports,
            used: HashMap::new(),
        });
        Self { range }
    }

    /// Returns the address to bind instead of `address`, and counts a use of the returned port.
    ///
    /// # Errors
    /// Error code 11 if `address` has port 0 and all ports of the range are in use.
    pub fn lease(&mut self, address: SocketAddr) -> Result<SocketAddr, DriverError> {
        let Some(range) = &mut self.range else {
            return Ok(address);
        };
        let port = match address.port() {
            0 => range.take_next()?,
            port => port,
        };
        if range.ports.contains(&port) {
            *range.used.entry(port).or_default() += 1;
        }
        Ok(SocketAddr::new(address.ip(), port))
    }

    /// Releases the port of an address that [`lease`](Self::lease) has returned.
    pub fn release(&mut self, address: SocketAddr) {
        let Some(range) = &mut self.range else { return };
        debug_assert!(
            !range.ports.contains(&address.port()) || range.used.contains_key(&address.port()),
            "port {} is released, but no channel has leased it",
            address.port()
        );
        if let Some(users) = range.used.get_mut(&address.port()) {
            *users -= 1;
            if *users == 0 {
                range.used.remove(&address.port());
            }
        }
    }
}

impl PortRange {
    fn take_next(&mut self) -> Result<u16, DriverError> {
        let (low, high) = (*self.ports.start(), *self.ports.end());
        for _ in low..=high {
            debug_assert!(
                self.ports.contains(&self.next),
                "the next port {} is outside of the range {:?}",
                self.next,
                self.ports
            );
            let port = self.next;
            self.next = if port == high { low } else { port + 1 };
            if !self.used.contains_key(&port) {
                return Ok(port);
            }
        }
        Err(DriverError::invalid_argument(format_args!(
            "no available ports in range {low} {high}"
        )))
    }
}
