//! A simulated machine with a loopback interface and a few known hosts.

use std::io;
use std::net::IpAddr;

use aeron_driver::DriverError;
use aeron_driver::media::address::Family;
use aeron_driver::media::interfaces::{InterfaceAddress, Interfaces};
use aeron_driver::media::{ChannelResolver, ChannelRole, UdpChannel};
use aeron_driver::names::NameResolver;
use aeron_protocol::ErrorCode;

/// Resolves `localhost`, a few invented names, and addresses.
pub struct FewNames;

pub struct Fixed(pub Vec<InterfaceAddress>);

impl NameResolver for FewNames {
    fn resolve(&mut self, host: &str, family: Family) -> Result<IpAddr, DriverError> {
        let known: &[&str] = match host.to_ascii_lowercase().as_str() {
            "localhost" => &["127.0.0.1", "::1"],
            "only-v6" => &["fd00::7"],
            "peer" => &["10.0.0.7"],
            "group" => &["224.10.9.7"],
            _ => &[host],
        };
        known
            .iter()
            .filter_map(|address| address.parse().ok())
            .find(|address| Family::of(*address) == family)
            .ok_or_else(|| {
                DriverError::coded(
                    ErrorCode::UnknownHost,
                    format_args!("Unable to resolve host=({host}): (-2) Name or service not known"),
                )
            })
    }
}

impl Interfaces for Fixed {
    fn addresses(&mut self) -> io::Result<Vec<InterfaceAddress>> {
        Ok(self.0.clone())
    }
}

/// Returns an address of the interface `index`. The interface is up and can send multicast.
pub fn address(index: u32, name: &str, address: &str, prefix_length: u8) -> InterfaceAddress {
    InterfaceAddress {
        name: name.to_owned(),
        index,
        address: address.parse().unwrap(),
        prefix_length,
        is_up: true,
        is_loopback: false,
        is_multicast: true,
    }
}

pub fn loopback() -> Vec<InterfaceAddress> {
    [("127.0.0.1", 8), ("::1", 128)]
        .map(|(text, prefix_length)| InterfaceAddress {
            is_loopback: true,
            is_multicast: false,
            ..address(1, "lo", text, prefix_length)
        })
        .to_vec()
}

pub fn resolver(interfaces: Vec<InterfaceAddress>) -> ChannelResolver {
    ChannelResolver::new(Box::new(FewNames), Box::new(Fixed(interfaces)))
}

/// Resolves a channel on a machine with only a loopback interface.
pub fn resolve(channel: &str, role: ChannelRole) -> Result<UdpChannel, DriverError> {
    resolver(loopback()).resolve(channel.as_bytes(), role)
}

pub fn publication(channel: &str) -> Result<UdpChannel, DriverError> {
    resolve(channel, ChannelRole::Publication)
}

pub fn subscription(channel: &str) -> Result<UdpChannel, DriverError> {
    resolve(channel, ChannelRole::Subscription)
}

/// Asserts that the error has this code and contains this text.
pub fn assert_refused<T: std::fmt::Debug>(
    result: Result<T, DriverError>,
    code: ErrorCode,
    words: &str,
) {
    let error = result.unwrap_err();
    assert_eq!(error.code(), code, "{error}");
    assert!(error.text().contains(words), "{words}: {error}");
}
