//! A machine without a network: it knows addresses, `localhost` and a loopback interface, and sends no requests.

use std::io;
use std::net::IpAddr;

use aeron_driver::DriverError;
use aeron_driver::media::address::Family;
use aeron_driver::media::interfaces::{InterfaceAddress, Interfaces};
use aeron_driver::names::NameResolver;
use aeron_protocol::ErrorCode;

/// Resolves addresses and `localhost`.
pub struct Literals;

/// Has a loopback interface only.
pub struct Loopback;

impl NameResolver for Literals {
    fn resolve(&mut self, host: &str, family: Family) -> Result<IpAddr, DriverError> {
        let host = match (host, family) {
            ("localhost", Family::V4) => "127.0.0.1",
            ("localhost", Family::V6) => "::1",
            _ => host,
        };
        host.parse()
            .ok()
            .filter(|address| Family::of(*address) == family)
            .ok_or_else(|| DriverError::coded(ErrorCode::UnknownHost, host))
    }
}

impl Interfaces for Loopback {
    fn addresses(&mut self) -> io::Result<Vec<InterfaceAddress>> {
        let addresses = [("127.0.0.1", 8), ("::1", 128)];
        Ok(addresses
            .map(|(address, prefix_length)| InterfaceAddress {
                name: "lo".into(),
                index: 1,
                address: address.parse().expect("an address"),
                prefix_length,
                is_up: true,
                is_loopback: true,
                is_multicast: false,
            })
            .to_vec())
    }
}
