//! The names, interfaces and sockets of a machine that is not there.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use aeron_driver::DriverError;
use aeron_driver::media::address::Family;
use aeron_driver::media::interfaces::{InterfaceAddress, Interfaces};
use aeron_driver::media::transport::{Network, Poller, Socket, SocketSpec};
use aeron_driver::names::NameResolver;
use aeron_protocol::ErrorCode;

use crate::media::testing::MemoryNetwork;

/// Knows `localhost` and addresses.
pub struct TestNames;

impl NameResolver for TestNames {
    fn resolve(&mut self, host: &str, family: Family) -> Result<IpAddr, DriverError> {
        let address = match (host, family) {
            ("localhost", Family::V4) => Some(Ipv4Addr::LOCALHOST.into()),
            ("localhost", Family::V6) => Some(Ipv6Addr::LOCALHOST.into()),
            (host, _) => host.parse().ok(),
        };
        address
            .filter(|address| Family::of(*address) == family)
            .ok_or_else(|| {
                let text = format!("Unable to resolve host=({host})");
                DriverError::coded(ErrorCode::UnknownHost, text)
            })
    }
}

/// The loopback interface.
pub struct TestInterfaces;

impl Interfaces for TestInterfaces {
    fn addresses(&mut self) -> io::Result<Vec<InterfaceAddress>> {
        let loopback = |address: IpAddr, prefix_length| InterfaceAddress {
            name: "lo".into(),
            index: 1,
            address,
            prefix_length,
            is_up: true,
            is_loopback: true,
            is_multicast: false,
        };
        Ok(vec![
            loopback(Ipv4Addr::LOCALHOST.into(), 8),
            loopback(Ipv6Addr::LOCALHOST.into(), 128),
        ])
    }
}

/// Sockets of the loopback interface.
pub struct TestNetwork(MemoryNetwork);

impl TestNetwork {
    pub fn new() -> Self {
        Self(MemoryNetwork::new())
    }
}

impl Network for TestNetwork {
    fn open(&mut self, spec: &SocketSpec) -> io::Result<Box<dyn Socket>> {
        const ADDRESS_NOT_AVAILABLE: i32 = 99;
        let ip = spec.bind.ip();
        if ip.is_loopback() || ip.is_unspecified() || spec.multicast.is_some() {
            self.0.open(spec)
        } else {
            Err(io::Error::from_raw_os_error(ADDRESS_NOT_AVAILABLE))
        }
    }

    fn poller(&mut self) -> Box<dyn Poller> {
        self.0.poller()
    }
}
