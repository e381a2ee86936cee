//! Tests of names with addresses that change while streams use the names.

use std::net::SocketAddr;

use aeron_memory::counters::system::SystemCounter;

use crate::conductor::harness::{STREAM, TICK, TestDriver};

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

/// 04-200: a request with a tag is compared with the current addresses of the endpoint.
#[test]
fn a_tagged_channel_is_shared_after_its_name_has_moved() {
    let tagged = format!("{CHANNEL}|tags=5");
    let mut driver = TestDriver::new();
    driver.names.set("moving.example", Some("127.0.0.1"));
    driver.add_publication(&tagged, STREAM);
    driver.names.set("moving.example", Some("127.0.0.2"));
    driver.advance(70 * TICK);
    assert_eq!(driver.system(SystemCounter::ResolutionChanges), 1);
    driver.add_publication(&tagged, STREAM + 1);
    driver.add_publication("aeron:udp?endpoint=127.0.0.2:20160|tags=5", STREAM + 2);
    let old = "aeron:udp?endpoint=127.0.0.1:20160|tags=5";
    let (_, text) = driver.publication_error(old, STREAM + 3);
    assert!(text.contains("mismatched endpoint or control"), "{text}");
}

/// 04-200
#[test]
fn a_tagged_subscription_is_shared_after_its_control_name_has_moved() {
    let tagged = "aeron:udp?endpoint=127.0.0.1:20161|control=moving.example:20162|control-mode=dynamic|tags=6";
    let mut driver = TestDriver::new();
    driver.names.set("moving.example", Some("127.0.0.1"));
    driver.add_subscription(tagged, STREAM);
    driver.names.set("moving.example", Some("127.0.0.2"));
    driver.advance(70 * TICK);
    assert_eq!(driver.system(SystemCounter::ResolutionChanges), 1);
    driver.add_subscription(tagged, STREAM + 1);
    let old = tagged.replace("moving.example", "127.0.0.1");
    let (_, text) = driver.subscription_error(&old, STREAM + 2);
    assert!(text.contains("mismatched endpoint or control"), "{text}");
}
