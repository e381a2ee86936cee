//! Tests of the selection of a network interface by the channel's parameter `interface`.

use aeron_driver::DriverError;
use aeron_driver::media::interfaces::{
    InterfaceAddress, Interfaces, SystemInterfaces, find_matching,
};
use aeron_driver::media::{ChannelRole, Interface};
use aeron_protocol::ErrorCode::{GenericError, UnknownHost};

use super::machine::{address, assert_refused, loopback, resolver};

fn machine() -> Vec<InterfaceAddress> {
    let mut addresses = loopback();
    addresses.extend([
        InterfaceAddress {
            is_up: false,
            ..address(2, "down0", "10.9.0.1", 16)
        },
        address(3, "eth0", "10.1.0.5", 16),
        address(3, "eth0", "fd00::5", 64),
        address(4, "eth1", "10.1.2.5", 24),
        address(4, "eth1", "10.1.2.6", 24),
        InterfaceAddress {
            is_multicast: false,
            ..address(5, "tun0", "10.7.0.1", 32)
        },
        address(6, "v4only", "10.8.0.1", 24),
    ]);
    addresses
}

/// Returns the interface and the local port of a unicast channel with this parameter `interface`.
fn pick(interface: &str) -> Result<(Interface, u16), DriverError> {
    let channel = format!("aeron:udp?endpoint=localhost:1|interface={interface}");
    resolver(machine())
        .resolve(channel.as_bytes(), ChannelRole::Publication)
        .map(|channel| (channel.interface, channel.local_data.port()))
}

fn picked(interface: &str) -> (u32, String, u16) {
    let (interface, port) = pick(interface).unwrap();
    (interface.index, interface.address.to_string(), port)
}

fn found(index: u32, address: &str, port: u16) -> (u32, String, u16) {
    (index, address.to_owned(), port)
}

/// 05-11
#[test]
fn an_interface_is_selected_by_an_address_a_host_a_subnet_or_its_name() {
    assert_eq!(picked("10.1.0.5"), found(3, "10.1.0.5", 0));
    assert_eq!(picked("localhost:40777"), found(1, "127.0.0.1", 40777));
    assert_eq!(picked("127.0.0.0/8"), found(1, "127.0.0.1", 0));
    assert_eq!(picked("10.8.3.4:5/16"), found(6, "10.8.0.1", 5));
    assert_eq!(picked("[fd00::]:7/64"), found(3, "fd00::5", 7));
    assert_eq!(picked("[fd00::5]"), found(3, "fd00::5", 0));
    assert_eq!(picked("{eth1}:6"), found(4, "10.1.2.5", 6));
    assert_eq!(picked("0.0.0.0:9"), found(0, "0.0.0.0", 9));
    let unknown = "could not find matching interface='198.51.100.1'";
    assert_refused(pick("198.51.100.1"), GenericError, unknown);
    assert_refused(
        pick("10.1.0.5/33"),
        GenericError,
        "prefixlen out of range: 33",
    );
    assert_refused(
        pick("[::1]/129"),
        GenericError,
        "prefixlen out of range: 129",
    );
    assert_refused(pick("10.1.0.5/x"), GenericError, "prefixlen invalid: x");
    assert_refused(pick("nobody"), UnknownHost, "host=(nobody)");
}

#[test]
fn of_several_interfaces_the_first_with_the_longest_network_prefix_is_selected() {
    assert_eq!(picked("10.1.0.0/16"), found(4, "10.1.2.5", 0));
    assert_eq!(picked("10.0.0.0/8"), found(4, "10.1.2.5", 0));
}

#[test]
fn an_interface_that_is_down_or_neither_multicast_nor_loopback_is_not_selected() {
    for address in ["10.9.0.1", "10.7.0.1"] {
        let words = format!("could not find matching interface='{address}'");
        assert_refused(pick(address), GenericError, &words);
    }
}

#[test]
fn the_loopback_is_selected_only_if_no_multicast_interface_matches() {
    let any = "0.0.0.0".parse().unwrap();
    assert_eq!(find_matching(&machine(), any, 0).unwrap().index, 4);
    assert_eq!(find_matching(&loopback(), any, 0).unwrap().index, 1);
    assert_eq!(find_matching(&[], any, 0), None);
}

#[test]
fn an_interface_selected_by_name_needs_an_address_of_the_family() {
    let channel = |interface: &str| {
        let channel = format!("aeron:udp?endpoint=[fd00::9]:1|interface={interface}");
        resolver(machine()).resolve(channel.as_bytes(), ChannelRole::Publication)
    };
    assert_eq!(
        channel("{eth0}").unwrap().local_data.to_string(),
        "[fd00::5]:0"
    );
    let words = "no INET6 addresses found on interface v4only";
    assert_refused(channel("{v4only}"), GenericError, words);
}

#[test]
fn the_syntax_of_an_interface_is_checked_before_the_search() {
    for (interface, words) in [
        ("{}", "name length 0 out of bounds"),
        ("{lo", "name length -1 out of bounds"),
        ("{sixteen-letters0}", "name length 16 out of bounds"),
        ("{lo}x", "unexpected character after name closing brace"),
        ("{lo}:", "port length 0 out of bounds"),
        ("{lo}:x", "port invalid: 'x'"),
        ("{nothing}", "unknown interface nothing"),
        ("[::1]x", "unexpected character after closing bracket"),
        ("[::1:80", "closing bracket is missing"),
        ("localhost:70000", "port out of range: '70000'"),
    ] {
        assert_refused(pick(interface), GenericError, words);
    }
}

#[test]
fn an_interface_may_be_selected_by_an_address_of_another_family() {
    let resolve = |endpoint: &str, interface: &str| {
        let channel = format!("aeron:udp?endpoint={endpoint}:1|interface={interface}");
        resolver(machine())
            .resolve(channel.as_bytes(), ChannelRole::Subscription)
            .map(|channel| {
                (
                    channel.interface.index,
                    channel.interface.address.to_string(),
                )
            })
    };
    let found = |index, address: &str| Ok((index, address.to_owned()));
    assert_eq!(resolve("[ff02::1]", "10.1.0.5"), found(3, "10.1.0.5"));
    assert_eq!(resolve("224.0.1.1", "[fd00::5]"), found(3, "fd00::5"));
    assert_eq!(resolve("[ff02::1]", "localhost"), found(1, "127.0.0.1"));
    let words = "could not find matching interface='0.0.0.0'";
    assert_refused(resolve("224.0.1.1", "0.0.0.0"), GenericError, words);
}

#[test]
fn this_machine_has_a_loopback_interface() {
    let addresses = SystemInterfaces.addresses().unwrap();
    let loopback = addresses.iter().find(|found| found.is_loopback).unwrap();
    assert!(loopback.is_up && loopback.index > 0);
    assert!(loopback.address.is_loopback());
    assert_eq!(loopback.prefix_length, 8);
}
