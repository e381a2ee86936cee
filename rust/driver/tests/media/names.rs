//! Tests of name resolvers.

use std::net::IpAddr;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use aeron_agent::CachedNanoClock;
use aeron_driver::DriverError;
use aeron_driver::duty_cycle::StallTracker;
use aeron_driver::media::address::Family;
use aeron_driver::names::{
    BackgroundNames, CsvTableNames, NameResolver, NameRow, SystemNames, TimedNames, parse_rows,
    resolve_host,
};
use aeron_memory::buffer::SharedBuffer;
use aeron_memory::counters::CountersManager;
use aeron_protocol::ErrorCode;
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
fn rows_without_exactly_three_fields_are_ignored() {
    let rows = parse_rows("one,localhost,127.0.0.2|two,rows|a,b,c,d||two,x,y|");
    assert_eq!(
        rows,
        [row("one", "localhost", "127.0.0.2"), row("two", "x", "y")]
    );
}

/// 04-174
#[test]
fn the_counter_of_a_row_selects_the_address_for_the_next_lookup() {
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
fn the_first_of_two_rows_with_the_same_name_is_used() {
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
fn the_system_resolves_localhost_and_addresses() {
    let find = |host: &str, is_bracketed| {
        resolve_host(&mut SystemNames, host, is_bracketed).map(|address| address.to_string())
    };
    assert_eq!(find("localhost", false).unwrap(), "127.0.0.1");
    assert_eq!(find("10.1.2.3", false).unwrap(), "10.1.2.3");
    assert_eq!(find("fd00::7", true).unwrap(), "fd00::7");
    // An empty name is refused without a lookup.
    let words = "Unable to resolve host=(): (-2) Name or service not known";
    assert_refused(find("", false), UnknownHost, words);
    assert_refused(
        find("127.0.0.1", true),
        UnknownHost,
        "Unable to resolve host=(127.0.0.1): (",
    );
}

/// A resolver that advances the clock by a number of nanoseconds in each call.
struct Slow(Arc<CachedNanoClock>, i64);

impl NameResolver for Slow {
    fn resolve(&mut self, _: &str, family: Family) -> Result<IpAddr, DriverError> {
        self.0.advance(self.1);
        Ok(family.wildcard())
    }
}

#[test]
fn the_longest_lookup_is_kept_and_lookups_over_the_threshold_are_counted() {
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

/// A resolver that blocks its callers until the test calls `open`. Clones share the state.
#[derive(Clone, Default)]
struct Blocking(Arc<(Mutex<Door>, Condvar)>);

#[derive(Default)]
struct Door {
    is_open: bool,
    lookups: Vec<(String, Family)>,
}

impl Blocking {
    fn open(&self) {
        self.0.0.lock().unwrap().is_open = true;
        self.0.1.notify_all();
    }

    fn lookups(&self) -> Vec<(String, Family)> {
        self.0.0.lock().unwrap().lookups.clone()
    }
}

impl NameResolver for Blocking {
    fn resolve(&mut self, host: &str, family: Family) -> Result<IpAddr, DriverError> {
        if let Ok(address) = host.parse() {
            return Ok(address);
        }
        let (door, opened) = &*self.0;
        let mut door = door.lock().unwrap();
        door.lookups.push((host.to_owned(), family));
        let _door = opened.wait_while(door, |door| !door.is_open).unwrap();
        match family {
            Family::V4 => Err(DriverError::coded(UnknownHost, "no such address")),
            Family::V6 => Ok("fd00::9".parse().unwrap()),
        }
    }
}

/// Repeats the lookup, once in each duty cycle, until there is a result.
fn ask_until_known<T>(
    names: &mut dyn NameResolver,
    ask: impl Fn(&mut dyn NameResolver) -> Result<T, DriverError>,
) -> Result<T, DriverError> {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        names.do_work();
        match ask(names) {
            Err(error) if error.is_temporary() => assert!(Instant::now() < deadline, "{error}"),
            result => return result,
        }
        thread::yield_now();
    }
}

/// A slow lookup returns a temporary error within milliseconds. A later call returns the result of the lookup.
#[test]
fn a_slow_lookup_returns_a_temporary_error_first_and_the_address_later() {
    let blocking = Blocking::default();
    let mut names = BackgroundNames::new(blocking.clone());
    let find = |names: &mut dyn NameResolver| resolve_host(names, "slow", false);
    for _ in 0..3 {
        names.do_work();
        assert!(find(&mut names).unwrap_err().is_temporary());
    }
    assert_eq!(
        resolve_host(&mut names, "10.0.0.9", false)
            .unwrap()
            .to_string(),
        "10.0.0.9"
    );
    blocking.open();
    assert_eq!(
        ask_until_known(&mut names, find).unwrap().to_string(),
        "fd00::9"
    );
    // The resolver looks up an IPv6 address after the lookup for IPv4 has failed. It repeats neither lookup.
    let asked = |family| ("slow".to_owned(), family);
    assert_eq!(blocking.lookups(), [asked(Family::V4), asked(Family::V6)]);
}

/// A result is discarded after two duty cycles in which no caller has asked for it.
#[test]
fn a_result_without_a_further_request_is_dropped() {
    let blocking = Blocking::default();
    blocking.open();
    let mut names = BackgroundNames::new(blocking.clone());
    let find = |names: &mut dyn NameResolver| names.resolve("slow", Family::V6);
    assert!(ask_until_known(&mut names, find).is_ok());
    assert!(find(&mut names).is_ok());
    assert_eq!(blocking.lookups().len(), 1);
    for _ in 0..2 {
        names.do_work();
    }
    assert!(ask_until_known(&mut names, find).is_ok());
    assert_eq!(blocking.lookups().len(), 2);
}

/// A resolver that returns a temporary error in its first two calls. Each call takes a microsecond.
struct Late(Arc<CachedNanoClock>, usize);

impl NameResolver for Late {
    fn resolve(&mut self, _: &str, family: Family) -> Result<IpAddr, DriverError> {
        self.0.advance(1_000);
        self.1 += 1;
        match self.1 {
            3 => Ok(family.wildcard()),
            _ => Err(DriverError::coded(
                ErrorCode::ResourceTemporarilyUnavailable,
                "not yet",
            )),
        }
    }
}

#[test]
fn the_time_of_a_lookup_begins_with_the_first_call_and_ends_with_the_result() {
    let mut manager = counters();
    let (longest, exceeded) = (new_counter(&mut manager), new_counter(&mut manager));
    let clock = Arc::new(CachedNanoClock::new(0));
    let stalls = StallTracker::new(2_500, longest.clone(), exceeded.clone(), 0);
    let mut names = TimedNames::new(Box::new(Late(clock.clone(), 0)), stalls, clock);
    for _ in 0..2 {
        assert!(names.resolve("any", Family::V4).is_err());
        assert_eq!((longest.get(), exceeded.get()), (0, 0));
    }
    names.resolve("any", Family::V4).unwrap();
    assert_eq!((longest.get(), exceeded.get()), (3_000, 1));
}
