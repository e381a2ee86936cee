//! The virtual network: hosts with sockets, and datagrams between them. [`Weather`] describes its faults.
//!
//! One [`Wire`] connects all hosts. It delivers datagrams only when the simulation advances its time. All its decisions
//! come from one random generator, so the same seed gives the same datagrams.

mod socket;
mod trace;
mod weather;
mod wire;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aeron_driver::media::interfaces::{InterfaceAddress, Interfaces};
use std::io;

pub use socket::HostNetwork;
pub use trace::describe;
pub use weather::{LossPattern, Weather};
pub use wire::{SentDatagram, Wire, WireCounts};

/// Number of a host.
pub type HostId = usize;

/// The wire, shared by all hosts of a simulation.
#[derive(Clone)]
pub struct SharedWire(Arc<Mutex<Wire>>);

impl SharedWire {
    /// Shares `wire`.
    pub fn new(wire: Wire) -> Self {
        Self(Arc::new(Mutex::new(wire)))
    }

    /// Locks the wire.
    pub fn lock(&self) -> MutexGuard<'_, Wire> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the IPv4 address of a host.
pub fn ipv4(host: HostId) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, host as u8 + 1)
}

/// Returns the IPv6 address of a host.
pub fn ipv6(host: HostId) -> Ipv6Addr {
    Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, host as u16 + 1)
}

/// The network interfaces of a host: loopback and one to the wire.
pub struct HostInterfaces(pub HostId);

impl Interfaces for HostInterfaces {
    fn addresses(&mut self) -> io::Result<Vec<InterfaceAddress>> {
        let interface = |name: &str, index, address: IpAddr, prefix_length| InterfaceAddress {
            name: name.to_owned(),
            index,
            address,
            prefix_length,
            is_up: true,
            is_loopback: address.is_loopback(),
            is_multicast: !address.is_loopback(),
        };
        Ok(vec![
            interface("lo", 1, Ipv4Addr::LOCALHOST.into(), 8),
            interface("lo", 1, Ipv6Addr::LOCALHOST.into(), 128),
            interface("eth0", 2, ipv4(self.0).into(), 24),
            interface("eth0", 2, ipv6(self.0).into(), 64),
        ])
    }
}
