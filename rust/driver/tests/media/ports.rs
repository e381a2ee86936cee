//! Tests of the port manager, which leases ports from a configured range.

use std::net::SocketAddr;

use aeron_driver::media::PortManager;
use aeron_protocol::ErrorCode::GenericError;

use super::machine::assert_refused;

fn address(port: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], port))
}

fn lease(ports: &mut PortManager, port: u16) -> u16 {
    ports.lease(address(port)).unwrap().port()
}

/// 04-178
#[test]
fn ports_are_leased_in_turn_and_the_error_names_the_exhausted_range() {
    let mut ports = PortManager::new(Some(500..=502));
    assert_eq!([0; 3].map(|any| lease(&mut ports, any)), [500, 501, 502]);
    assert_refused(
        ports.lease(address(0)),
        GenericError,
        "no available ports in range 500 502",
    );
    ports.release(address(501));
    assert_eq!(lease(&mut ports, 0), 501);
}

#[test]
fn a_released_port_is_leased_again_after_the_other_ports() {
    let mut ports = PortManager::new(Some(500..=502));
    assert_eq!(lease(&mut ports, 0), 500);
    ports.release(address(500));
    assert_eq!([0; 3].map(|any| lease(&mut ports, any)), [501, 502, 500]);
}

/// A port that channels name explicitly is not leased to channels with port 0. It is free again after each channel that
/// names it has released it.
#[test]
fn ports_in_channels_are_skipped_until_the_last_channel_is_removed() {
    let mut ports = PortManager::new(Some(500..=501));
    assert_eq!(
        [500, 500, 700].map(|named| lease(&mut ports, named)),
        [500, 500, 700]
    );
    assert_eq!(lease(&mut ports, 0), 501);
    ports.release(address(501));
    ports.release(address(500));
    assert_eq!(lease(&mut ports, 0), 501);
    ports.release(address(500));
    ports.release(address(700));
    assert_eq!(lease(&mut ports, 0), 500);
}

#[test]
fn a_range_up_to_port_65535_wraps_to_its_first_port() {
    let mut ports = PortManager::new(Some(65534..=65535));
    assert_eq!([0; 2].map(|any| lease(&mut ports, any)), [65534, 65535]);
    ports.release(address(65534));
    assert_eq!(lease(&mut ports, 0), 65534);
}

#[test]
fn without_a_range_the_system_chooses_the_port() {
    let mut ports = PortManager::new(None);
    assert_eq!([0, 9].map(|any| lease(&mut ports, any)), [0, 9]);
    ports.release(address(9));
}
