//! The ports that a driver may give to channels that ask for any.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::ops::RangeInclusive;

use crate::error::DriverError;

/// Hands out the ports of a range in turn. Without a range it changes nothing: the operating system picks ports.
///
/// Ports in the range that channels name themselves are marked as used too. What was leased must be released.
#[derive(Debug, Default)]
pub struct PortManager {
    range: Option<PortRange>,
}

#[derive(Debug)]
struct PortRange {
    ports: RangeInclusive<u16>,
    next: u16,
    /// How many channels use a port: those of several multicast groups can share one.
    used: HashMap<u16, usize>,
}

impl PortManager {
    /// A manager of `ports`; without them it leaves the choice to the system.
    pub fn new(ports: Option<RangeInclusive<u16>>) -> Self {
        let range = ports.map(|ports| PortRange {
            next: *ports.start(),
            ports,
            used: HashMap::new(),
        });
        Self { range }
    }

    /// The address to bind instead of `address`, whose port is in use from now on.
    ///
    /// # Errors
    /// Code 11 when `address` has port 0 and all ports of the range are in use.
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

    /// Gives the port of an address that [`lease`](Self::lease) answered back.
    pub fn release(&mut self, address: SocketAddr) {
        let Some(range) = &mut self.range else { return };
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
