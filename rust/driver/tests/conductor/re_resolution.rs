//! Tests of names with addresses that change while streams use the names.

use std::net::SocketAddr;

use aeron_memory::counters::system::SystemCounter;

use crate::harness::{STREAM, TICK, TestDriver};

const CHANNEL: &str = "aeron:udp?endpoint=moving.example:20160";

fn destinations(driver: &TestDriver) -> Vec<SocketAddr> {
    let mut to: Vec<_> = driver
        .network
        .memory
        .take_sent()
        .iter()
        .map(|sent| sent.to)
        .collect();
    to.dedup();
    to
}

/// 04-172
#[test]
fn a_stream_is_sent_to_the_new_address_if_no_receiver_responds_at_the_old_address() {
    let mut driver = TestDriver::new();
    driver.names.set("moving.example", Some("127.0.0.1"));
    driver.add_publication(CHANNEL, STREAM);
    driver.names.set("moving.example", Some("127.0.0.2"));
    driver.advance(45 * TICK);
    let old: SocketAddr = "127.0.0.1:20160".parse().unwrap();
    assert_eq!(destinations(&driver), [old]);
    driver.advance(25 * TICK);
    let new: SocketAddr = "127.0.0.2:20160".parse().unwrap();
    assert_eq!(destinations(&driver), [old, new]);
    assert_eq!(driver.system(SystemCounter::ResolutionChanges), 1);
}

/// 04-173
#[test]
fn a_lookup_with_the_same_address_is_not_counted_and_an_unknown_name_is_recorded() {
    let mut driver = TestDriver::new();
    driver.names.set("moving.example", Some("127.0.0.1"));
    driver.add_publication(CHANNEL, STREAM);
    driver.advance(70 * TICK);
    assert!(driver.errors().is_empty());
    driver.names.set("moving.example", None);
    driver.advance(20 * TICK);
    let [error] = &driver.errors()[..] else {
        panic!("{:?}", driver.errors());
    };
    assert!(error.contains("moving.example"), "{error}");
    assert_eq!(driver.system(SystemCounter::ResolutionChanges), 0);
    let old: SocketAddr = "127.0.0.1:20160".parse().unwrap();
    assert_eq!(destinations(&driver), [old]);
}

#[test]
fn a_slow_lookup_is_not_requested_again_before_its_result() {
    let mut driver = TestDriver::new();
    driver.names.set("moving.example", Some("127.0.0.1"));
    driver.add_publication(CHANNEL, STREAM);
    let lookups = driver.names.lookups();
    driver.advance_without_resources(90 * TICK);
    driver.work();
    assert_eq!(driver.names.lookups(), lookups + 1);
}
