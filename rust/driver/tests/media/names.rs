//! Where addresses of hosts come from.

use std::net::IpAddr;
use std::sync::Arc;

use aeron_agent::CachedNanoClock;
use aeron_driver::DriverError;
use aeron_driver::duty_cycle::StallTracker;
use aeron_driver::media::address::Family;
use aeron_driver::names::{
    CsvTableNames, NameResolver, NameRow, SystemNames, TimedNames, parse_rows, resolve_host,
};
use aeron_memory::buffer::SharedBuffer;
use aeron_memory::counters::CountersManager;
use aeron_protocol::ErrorCode::UnknownHost;

use super::gossip::new_counter;
use super::machine::{FewNames, assert_refused};

fn counters() -> CountersManager<SharedBuffer> {
    CountersManager::new(SharedBuffer::heap(512 * 8), SharedBuffer::heap(128 * 8), 0).unwrap()
}

fn row(name: &str, initial_host: &str, re_resolution_host: &str) -> NameRow {
    NameRow {
        name: name.into(),
        initial_host: initial_host.into(),
        re_resolution_host: re_resolution_host.into(),
    }
}

#[test]
fn rows_with_other_than_three_fields_are_left_out() {
    let rows = parse_rows("one,localhost,127.0.0.2|two,rows|a,b,c,d||two,x,y|");
    assert_eq!(
        rows,
        [row("one", "localhost", "127.0.0.2"), row("two", "x", "y")]
    );
}

/// 04-174
#[test]
fn the_counter_of_a_row_chooses_its_address_at_the_next_lookup() {
    let counter = new_counter(&mut counters());
    let rows = vec![(row("moving", "localhost", "peer"), counter.clone())];
    let mut names = CsvTableNames::new(rows, Box::new(FewNames));
    let mut find = |value, name: &str| {
        counter.set(value);
        names
            .resolve(name, Family::V4)
            .map(|address| address.to_string())
    };
    assert_eq!(find(0, "moving").unwrap(), "127.0.0.1");
    assert_eq!(find(1, "moving").unwrap(), "10.0.0.7");
    assert_refused(
        find(-1, "moving"),
        UnknownHost,
        "Unable to resolve host=(moving): (forced)",
    );
    assert_eq!(find(0, "moving").unwrap(), "127.0.0.1");
    assert_eq!(find(-1, "peer").unwrap(), "10.0.0.7");
    assert_refused(find(0, "unheard"), UnknownHost, "host=(unheard)");
}

#[test]
fn the_first_of_two_rows_with_one_name_counts() {
    let mut manager = counters();
    let rows = vec![
        (row("twice", "localhost", "peer"), new_counter(&mut manager)),
        (row("twice", "peer", "localhost"), new_counter(&mut manager)),
    ];
    let mut names = CsvTableNames::new(rows, Box::new(FewNames));
    let address = names.resolve("twice", Family::V4).unwrap();
    assert_eq!(address.to_string(), "127.0.0.1");
}

#[test]
fn the_system_knows_its_own_name_and_addresses() {
    let find = |host: &str, is_bracketed| {
        resolve_host(&mut SystemNames, host, is_bracketed).map(|address| address.to_string())
    };
    assert_eq!(find("localhost", false).unwrap(), "127.0.0.1");
    assert_eq!(find("10.1.2.3", false).unwrap(), "10.1.2.3");
    assert_eq!(find("fd00::7", true).unwrap(), "fd00::7");
    // What is no name at all is not even asked for.
    let words = "Unable to resolve host=(): (-2) Name or service not known";
    assert_refused(find("", false), UnknownHost, words);
    assert_refused(
        find("127.0.0.1", true),
        UnknownHost,
        "Unable to resolve host=(127.0.0.1): (",
    );
}

/// Takes as long as the test says.
struct Slow(Arc<CachedNanoClock>, i64);

impl NameResolver for Slow {
    fn resolve(&mut self, _: &str, family: Family) -> Result<IpAddr, DriverError> {
        self.0.advance(self.1);
        Ok(family.wildcard())
    }
}

#[test]
fn the_longest_call_is_kept_and_those_over_the_threshold_are_counted() {
    let mut manager = counters();
    let (longest, exceeded) = (new_counter(&mut manager), new_counter(&mut manager));
    let clock = Arc::new(CachedNanoClock::new(0));
    for (duration_ns, expected) in [(40, (40, 0)), (51, (51, 1)), (50, (51, 1)), (70, (70, 2))] {
        let stalls = StallTracker::new(50, longest.clone(), exceeded.clone(), 0);
        let slow = Box::new(Slow(clock.clone(), duration_ns));
        let mut names = TimedNames::new(slow, stalls, clock.clone());
        clock.advance(1_000_000);
        names.resolve("any", Family::V4).unwrap();
        assert_eq!((longest.get(), exceeded.get()), expected);
    }
}
