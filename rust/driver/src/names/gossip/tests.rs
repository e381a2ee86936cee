//! Tests of drivers that exchange names, in virtual time and with a network in memory.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;

use aeron_agent::{CachedEpochClock, CachedNanoClock, NanoClock};
use aeron_memory::buffer::SharedBuffer;
use aeron_memory::counters::{AtomicCounter, CountersManager};
use aeron_memory::error_log::{self, DistinctErrorLog};
use aeron_protocol::ErrorCode;
use aeron_protocol::frame::resolution::{ResolutionEncoder, ResolutionEntry, entries};

use super::{
    BootstrapNeighbor, GossipConfig, GossipCounters, GossipNames, MAX_BYTES_PER_BYTE,
    MAX_DATAGRAMS_PER_RUN, MAX_NAMES, MAX_NEIGHBORS,
};
use crate::diagnostics::ErrorRecorder;
use crate::error::DriverError;
use crate::media::address::Family;
use crate::media::testing::{MemoryNetwork, Sent};
use crate::media::transport::{Network, SocketSide, SocketSpec};
use crate::names::NameResolver;
use crate::testing::PLAIN_COUNTER;

const MILLI: i64 = 1_000_000;
/// Interval between two duty cycles of a driver, in milliseconds.
const STEP_MS: i64 = 10;

/// Resolves only the name `late`, to the address that the test has set.
#[derive(Clone, Default)]
struct LateName(Arc<std::sync::Mutex<Option<SocketAddr>>>);

impl NameResolver for LateName {
    fn resolve(&mut self, host: &str, family: Family) -> Result<std::net::IpAddr, DriverError> {
        let known = *self.0.lock().unwrap();
        known
            .map(|address| address.ip())
            .filter(|address| host == "late" && Family::of(*address) == family)
            .ok_or_else(|| DriverError::coded(ErrorCode::UnknownHost, format_args!("({host})")))
    }
}

struct Driver {
    names: GossipNames,
    late: LateName,
    clock: Arc<CachedNanoClock>,
    counters: GossipCounters,
    bootstrap: Vec<AtomicCounter<SharedBuffer>>,
    error_log: SharedBuffer,
}

impl Driver {
    fn new(network: &mut MemoryNetwork, name: &str, bind: &str, bootstrap: &[&str]) -> Self {
        let mut manager = CountersManager::new(
            SharedBuffer::heap(512 * 64),
            SharedBuffer::heap(128 * 64),
            0,
        )
        .unwrap();
        let mut counter = || manager.allocate(&PLAIN_COUNTER, 0).unwrap();
        let counters = GossipCounters {
            neighbors: counter(),
            cache_entries: counter(),
            invalid_packets: counter(),
            short_sends: counter(),
        };
        let bootstrap: Vec<_> = bootstrap
            .iter()
            .map(|neighbor| BootstrapNeighbor {
                name: (*neighbor).to_owned(),
                address: neighbor.parse().ok(),
                counter: counter(),
            })
            .collect();
        let error_log = SharedBuffer::heap(64 * 1024);
        let errors = ErrorRecorder::new(
            Arc::new(DistinctErrorLog::new(error_log.clone())),
            counter(),
            Arc::new(CachedEpochClock::new(0)),
        );
        let socket = network.open(&spec(bind)).unwrap();
        let (clock, late) = (Arc::new(CachedNanoClock::new(0)), LateName::default());
        Driver {
            bootstrap: bootstrap
                .iter()
                .map(|neighbor| neighbor.counter.clone())
                .collect(),
            names: GossipNames::new(
                config(name),
                bootstrap,
                socket,
                Box::new(late.clone()),
                clock.clone(),
                counters.clone(),
                errors,
            ),
            late,
            clock,
            counters,
            error_log,
        }
    }

    /// Runs the driver's duty cycle for some time.
    fn run(&mut self, milliseconds: i64) {
        for _ in 0..milliseconds / STEP_MS {
            self.names.do_work();
            self.clock.advance(STEP_MS * MILLI);
        }
    }

    fn knows(&self) -> (i64, i64) {
        (
            self.counters.neighbors.get(),
            self.counters.cache_entries.get(),
        )
    }

    fn find(&mut self, name: &str) -> Option<String> {
        let address = self.names.resolve(name, Family::V4).ok()?;
        Some(address.to_string())
    }

    fn errors(&self) -> Vec<String> {
        error_log::read(&self.error_log, 0)
            .into_iter()
            .map(|observation| observation.text)
            .collect()
    }
}

fn config(name: &str) -> GossipConfig {
    GossipConfig {
        name: name.to_owned(),
        timeout_ms: 10_000,
        self_interval_ms: 1_000,
        neighbor_interval_ms: 2_000,
        bootstrap_interval_ms: 10_000,
        mtu_length: 1408,
    }
}

fn spec(bind: &str) -> SocketSpec {
    SocketSpec {
        bind: bind.parse().unwrap(),
        connect: None,
        multicast: None,
        send_buffer_length: 0,
        receive_buffer_length: 0,
        receive_timestamps: false,
        side: SocketSide::Receiver,
    }
}

fn address(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

/// Returns a datagram with one entry.
fn record(name: &str, at: &str, is_self: bool, age_ms: u32) -> Vec<u8> {
    let mut bytes = [0; 256];
    let mut encoder = ResolutionEncoder::new(&mut bytes);
    assert!(encoder.push(&ResolutionEntry {
        is_self,
        address: address(at),
        age_ms,
        name: name.as_bytes(),
    }));
    encoder.finish().to_vec()
}

/// Returns the content of a datagram: each name, whether it is the sender's own, and its age.
fn said(sent: &Sent) -> Vec<(String, bool, u32)> {
    entries(&sent.bytes)
        .unwrap()
        .map(|entry| {
            let entry = entry.unwrap();
            let name = String::from_utf8(entry.name.to_vec()).unwrap();
            (name, entry.is_self, entry.age_ms)
        })
        .collect()
}

const ALPHA: &str = "10.0.0.1:8050";
const BRAVO: &str = "10.0.0.2:8050";
const CHARLIE: &str = "10.0.0.3:8050";
const STRANGER: &str = "10.0.0.9:9";

/// 04-175
#[test]
fn drivers_receive_each_others_names_from_a_common_neighbour() {
    let mut network = MemoryNetwork::new();
    let mut drivers =
        [("alpha", ALPHA), ("bravo", BRAVO), ("charlie", CHARLIE)].map(|(name, bind)| {
            let first_contact: &[&str] = if name == "alpha" { &[] } else { &[ALPHA] };
            Driver::new(&mut network, name, bind, first_contact)
        });
    for _ in 0..500 {
        drivers.iter_mut().for_each(|driver| driver.run(STEP_MS));
    }
    for driver in &mut drivers {
        let addresses = ["alpha", "bravo", "charlie"].map(|name| driver.find(name).unwrap());
        assert_eq!(addresses, ["10.0.0.1", "10.0.0.2", "10.0.0.3"]);
        assert_eq!(driver.knows(), (2, 2));
        assert!(driver.bootstrap.iter().all(|counter| counter.get() == 1));
        assert_eq!(driver.errors(), [""; 0]);
    }
    let [alpha, bravo, _] = &mut drivers;
    bravo.run(9_000);
    alpha.run(11_000);
    assert_eq!((alpha.knows(), alpha.find("bravo")), ((0, 0), None));
}

/// 02-93
#[test]
fn a_driver_announces_itself_every_second_and_known_names_every_two_seconds() {
    let mut network = MemoryNetwork::new();
    let mut driver = Driver::new(&mut network, "alpha", ALPHA, &[BRAVO]);
    for (name, at) in [("bravo", BRAVO), ("charlie", CHARLIE)] {
        network.deliver(address(at), address(ALPHA), &record(name, at, true, 0));
    }
    let mut heard = Vec::new();
    for tick in 0..400 {
        driver.run(STEP_MS);
        let sent = network.take_sent();
        heard.extend(
            sent.into_iter()
                .map(|sent| (tick * STEP_MS, sent.to.to_string(), said(&sent))),
        );
    }
    let own = |at, to: &str| (at, to.to_owned(), vec![("alpha".to_owned(), true, 0)]);
    let known = ["bravo", "charlie"].map(|name| (name.to_owned(), false, 2_000));
    let known = |at, to: &str| (at, to.to_owned(), known.to_vec());
    let expected = [
        own(0, BRAVO),
        own(0, CHARLIE),
        own(1_000, BRAVO),
        own(1_000, CHARLIE),
        own(2_000, BRAVO),
        own(2_000, CHARLIE),
        known(2_000, BRAVO),
        known(2_000, CHARLIE),
        own(3_000, BRAVO),
        own(3_000, CHARLIE),
    ];
    assert_eq!(heard, expected);
}

#[test]
fn entries_that_do_not_fit_into_one_datagram_are_sent_in_several() {
    let mut network = MemoryNetwork::new();
    let mut driver = Driver::new(&mut network, "alpha", ALPHA, &[BRAVO]);
    let names: Vec<_> = (0..200)
        .map(|index| format!("a-name-with-number-{index:03}"))
        .collect();
    for name in &names {
        network.deliver(
            address(STRANGER),
            address(ALPHA),
            &record(name, BRAVO, false, 0),
        );
        driver.run(STEP_MS);
    }
    network.take_sent();
    driver.run(100);
    let sent = network.take_sent();
    let relayed: Vec<_> = sent.iter().filter(|sent| is_relayed(sent)).collect();
    assert_eq!(relayed.len(), 6);
    assert!(relayed.iter().all(|sent| sent.bytes.len() <= 1408));
    let mut heard: Vec<_> = relayed
        .iter()
        .flat_map(|sent| said(sent))
        .map(|(name, ..)| name)
        .collect();
    heard.sort();
    assert_eq!(heard, names);
}

/// Returns whether a datagram contains names of other drivers.
fn is_relayed(sent: &Sent) -> bool {
    !said(sent)[0].1
}

#[test]
fn many_names_are_sent_in_several_duty_cycles_and_every_driver_gets_every_name_once() {
    const NAMES: usize = 300;
    const NEIGHBORS: usize = 100;
    let mut network = MemoryNetwork::new();
    let mut driver = Driver::new(&mut network, "alpha", ALPHA, &[]);
    // Each name arrives nine times, so that the allowance of the neighbors is sufficient for all names.
    for index in (0..9).flat_map(|_| 0..NAMES) {
        let at = format!("10.1.0.{}:1", index % NEIGHBORS);
        let datagram = record(&format!("n{index}"), &at, true, 0);
        network.deliver(address(&at), address(ALPHA), &datagram);
        // A duty cycle reads 16 datagrams.
        if index % 16 == 15 {
            driver.run(STEP_MS);
        }
    }
    let mut told: HashMap<SocketAddr, Vec<String>> = HashMap::new();
    let mut runs = 0;
    while driver.clock.nano_time() < 3_900 * MILLI {
        driver.run(STEP_MS);
        let sent = network.take_sent();
        let relayed: Vec<_> = sent.iter().filter(|sent| is_relayed(sent)).collect();
        assert!(relayed.len() <= MAX_DATAGRAMS_PER_RUN, "{}", relayed.len());
        runs += usize::from(!relayed.is_empty());
        for sent in relayed {
            let names = said(sent).into_iter().map(|(name, ..)| name);
            told.entry(sent.to).or_default().extend(names);
        }
    }
    assert!(runs > 1, "all names were sent in one duty cycle");
    let mut all: Vec<_> = (0..NAMES).map(|index| format!("n{index}")).collect();
    all.sort();
    assert_eq!(told.len(), NEIGHBORS);
    for mut names in told.into_values() {
        names.sort();
        assert_eq!(names, all);
    }
}

/// 02-94
#[test]
fn a_driver_does_not_add_itself_as_a_neighbour() {
    let mut network = MemoryNetwork::new();
    let mut driver = Driver::new(&mut network, "alpha", ALPHA, &[]);
    for datagram in [
        record("alpha", ALPHA, true, 0),
        record("alpha", "10.0.0.77:8050", false, 0),
        record("alpha", "0.0.0.0:1", true, 0),
    ] {
        network.deliver(address(ALPHA), address(ALPHA), &datagram);
    }
    driver.run(STEP_MS);
    assert_eq!(driver.knows(), (0, 0));
    network.deliver(
        address(BRAVO),
        address(ALPHA),
        &record("alpha", "10.0.0.2:1", true, 0),
    );
    driver.run(STEP_MS);
    assert_eq!(driver.knows(), (1, 1));
}

/// 02-95
#[test]
fn a_driver_stays_a_neighbour_only_if_it_announces_itself() {
    let mut network = MemoryNetwork::new();
    let mut driver = Driver::new(&mut network, "alpha", ALPHA, &[]);
    let relay = |network: &MemoryNetwork, is_self| {
        let datagram = record("bravo", BRAVO, is_self, 0);
        network.deliver(address(CHARLIE), address(ALPHA), &datagram);
    };
    relay(&network, false);
    driver.run(9_000);
    assert_eq!(driver.knows(), (1, 1));
    relay(&network, false);
    driver.run(2_000);
    assert_eq!(driver.knows(), (0, 1));
    relay(&network, true);
    driver.run(9_000);
    relay(&network, true);
    driver.run(2_000);
    assert_eq!(driver.knows(), (1, 1));
}

/// 02-96, 04-176
#[test]
fn a_driver_that_announces_no_address_has_the_source_address_of_its_datagram() {
    let mut network = MemoryNetwork::new();
    let mut driver = Driver::new(&mut network, "alpha", ALPHA, &[]);
    network.deliver(
        address(BRAVO),
        address(ALPHA),
        &record("bravo", "0.0.0.0:1", true, 0),
    );
    network.deliver(
        address(BRAVO),
        address(ALPHA),
        &record("relayed", "0.0.0.0:1", false, 0),
    );
    driver.run(STEP_MS);
    assert_eq!(driver.find("bravo").unwrap(), "10.0.0.2");
    assert_eq!(driver.find("relayed").unwrap(), "0.0.0.0");
    network.take_sent();
    driver.run(1_000);
    assert!(
        network
            .take_sent()
            .iter()
            .any(|sent| sent.to == address(BRAVO))
    );
    // An address that begins with zeros is valid, unless all its bytes are zero.
    network.deliver(
        address(BRAVO),
        address(ALPHA),
        &record("six", "[::1]:8051", true, 0),
    );
    driver.run(STEP_MS);
    let six = driver.names.resolve("six", Family::V6).unwrap();
    assert_eq!(six.to_string(), "::1");
    assert_eq!(driver.find("six"), None);
}

/// 02-97
#[test]
fn a_record_is_forgotten_ten_seconds_after_the_last_activity_of_its_driver() {
    let mut network = MemoryNetwork::new();
    let mut driver = Driver::new(&mut network, "alpha", ALPHA, &[]);
    network.deliver(
        address(BRAVO),
        address(ALPHA),
        &record("bravo", BRAVO, true, 7_000),
    );
    network.deliver(
        address(BRAVO),
        address(ALPHA),
        &record("old", CHARLIE, true, 60_000),
    );
    driver.run(2_990);
    assert_eq!(driver.knows(), (1, 1));
    driver.run(20);
    assert_eq!(driver.knows(), (0, 0));
}

/// 02-98
#[test]
fn silent_bootstrap_neighbours_are_looked_up_again_every_ten_seconds() {
    let mut network = MemoryNetwork::new();
    let mut driver = Driver::new(&mut network, "alpha", ALPHA, &["late:8050"]);
    driver.run(5_000);
    assert_eq!(network.take_sent(), []);
    *driver.late.0.lock().unwrap() = Some(address(BRAVO));
    driver.run(4_990);
    assert_eq!(network.take_sent(), []);
    driver.run(1_100);
    assert_eq!(network.take_sent()[0].to, address(BRAVO));
    let keep_alive = |driver: &mut Driver, network: &mut MemoryNetwork| {
        network.deliver(
            address(BRAVO),
            address(ALPHA),
            &record("bravo", BRAVO, true, 0),
        );
        driver.run(9_000);
    };
    keep_alive(&mut driver, &mut network);
    *driver.late.0.lock().unwrap() = Some(address(CHARLIE));
    keep_alive(&mut driver, &mut network);
    keep_alive(&mut driver, &mut network);
    assert_eq!(driver.bootstrap[0].get(), 1);
    network.take_sent();
    driver.run(12_000);
    assert_eq!(driver.bootstrap[0].get(), 0);
    driver.run(1_000);
    assert_eq!(network.take_sent().last().unwrap().to, address(CHARLIE));
}

#[test]
fn a_flood_of_names_uses_bounded_memory_and_one_entry_of_the_error_log_for_each_limit() {
    let mut network = MemoryNetwork::new();
    let mut driver = Driver::new(&mut network, "alpha", ALPHA, &[]);
    for index in 0..MAX_NAMES + 100 {
        let at = format!("10.1.{}.{}:1", index / 256, index % 256);
        let datagram = record(&format!("n{index}"), &at, true, 0);
        network.deliver(address(STRANGER), address(ALPHA), &datagram);
        if index % 16 == 15 {
            driver.clock.advance(STEP_MS * MILLI);
            driver.names.do_work();
        }
    }
    assert_eq!(driver.knows(), (MAX_NEIGHBORS as i64, MAX_NAMES as i64));
    assert_eq!(driver.errors().len(), 2);
    for _ in 0..500 {
        network.take_sent();
        driver.run(STEP_MS);
        let relayed = network
            .take_sent()
            .iter()
            .filter(|sent| is_relayed(sent))
            .count();
        assert!(relayed <= MAX_DATAGRAMS_PER_RUN, "{relayed}");
    }
}

#[test]
fn a_full_socket_counts_as_a_short_send_and_a_failed_send_is_an_error() {
    let mut network = MemoryNetwork::new();
    let mut driver = Driver::new(&mut network, "alpha", ALPHA, &[BRAVO]);
    network.set_room(Some(0));
    driver.run(STEP_MS);
    assert_eq!(driver.counters.short_sends.get(), 1);
    network.fail_sends(Some(std::io::ErrorKind::PermissionDenied));
    driver.run(1_000);
    assert_eq!(driver.errors().len(), 1);
    assert!(driver.errors()[0].contains("failed to send to a neighbor"));
}

/// Returns the number of bytes that were sent to an address.
fn bytes_to(sent: &[Sent], to: &str) -> usize {
    let to_there = sent.iter().filter(|sent| sent.to == address(to));
    to_there.map(|sent| sent.bytes.len()).sum()
}

/// Sends the names of many other drivers to `driver`. All names have the same address.
fn tell_many(network: &MemoryNetwork, driver: &mut Driver, count: usize) {
    for index in 0..count {
        let name = format!("a-name-with-number-{index:04}");
        let datagram = record(&name, STRANGER, false, 0);
        network.deliver(address(STRANGER), address(ALPHA), &datagram);
        if index % 16 == 15 {
            driver.names.do_work();
            driver.clock.advance(STEP_MS * MILLI);
        }
    }
}

#[test]
fn at_most_ten_bytes_are_sent_to_an_address_for_each_byte_that_arrived_from_it() {
    let mut network = MemoryNetwork::new();
    let mut driver = Driver::new(&mut network, "alpha", ALPHA, &[]);
    tell_many(&network, &mut driver, 200);
    network.take_sent();
    let forged = record("victim", CHARLIE, true, 0);
    let (mut received, mut sent) = (0, 0);
    for _ in 0..5 {
        network.deliver(address(CHARLIE), address(ALPHA), &forged);
        received += forged.len();
        driver.run(7_000);
        sent += bytes_to(&network.take_sent(), CHARLIE);
        assert!(sent <= MAX_BYTES_PER_BYTE * received, "{sent} {received}");
    }
    assert!(sent > 5 * received, "{sent} of {received}: no names");
    assert_eq!(MAX_BYTES_PER_BYTE, 10);
}

#[test]
fn a_driver_that_another_driver_has_named_is_sent_one_announcement_until_it_replies() {
    let mut network = MemoryNetwork::new();
    let mut driver = Driver::new(&mut network, "alpha", ALPHA, &[]);
    // The second entry claims to come from the driver that it names, but the datagram has another source address.
    for (to, is_self) in [(BRAVO, false), (CHARLIE, true)] {
        for _ in 0..9 {
            let datagram = record(to, to, is_self, 0);
            network.deliver(address(STRANGER), address(ALPHA), &datagram);
            driver.run(1_000);
        }
        let sent = network.take_sent();
        let announcement = record("alpha", ALPHA, true, 0);
        assert_eq!(bytes_to(&sent, to), announcement.len(), "{to}");
        network.deliver(address(to), address(ALPHA), &record(to, to, true, 0));
        driver.run(3_000);
        assert!(bytes_to(&network.take_sent(), to) > 3 * announcement.len());
    }
}

#[test]
fn an_announcement_longer_than_ten_times_the_entry_that_names_a_driver_is_not_sent() {
    for (length, is_sent) in [(138, true), (139, false)] {
        let mut network = MemoryNetwork::new();
        let mut driver = Driver::new(&mut network, &"a".repeat(length), ALPHA, &[]);
        let mention = record("", BRAVO, false, 0);
        assert_eq!(mention.len(), 24);
        network.deliver(address(STRANGER), address(ALPHA), &mention);
        driver.run(9_000);
        let sent = bytes_to(&network.take_sent(), BRAVO);
        assert_eq!(sent, if is_sent { 160 } else { 0 });
    }
}

#[test]
fn a_driver_that_replies_is_sent_all_names_even_in_several_datagrams() {
    const NAMES: usize = 1_000;
    let mut network = MemoryNetwork::new();
    let mut alpha = Driver::new(&mut network, "alpha", ALPHA, &[]);
    let mut bravo = Driver::new(&mut network, "bravo", BRAVO, &[ALPHA]);
    let mut complete_at_ms = None;
    let now_ms = |driver: &Driver| driver.clock.nano_time() / MILLI;
    while now_ms(&alpha) < 40_000 {
        tell_many(&network, &mut alpha, NAMES);
        let step_ms = now_ms(&alpha) - now_ms(&bravo);
        bravo.run(step_ms);
        let (_, names) = bravo.knows();
        // Bravo must learn the names that were sent to alpha, and alpha's own name.
        match complete_at_ms {
            None if names == NAMES as i64 + 1 => complete_at_ms = Some(now_ms(&alpha)),
            None => {}
            Some(_) => assert_eq!(names, NAMES as i64 + 1, "names were lost"),
        }
    }
    let complete_at_ms = complete_at_ms.expect("all names");
    assert!(
        (3_000..10_000).contains(&complete_at_ms),
        "{complete_at_ms}"
    );
}

#[test]
fn drivers_that_met_through_a_third_driver_stay_neighbours_without_the_third_driver() {
    let mut network = MemoryNetwork::new();
    let [mut alpha, mut bravo, mut charlie] =
        [("alpha", ALPHA), ("bravo", BRAVO), ("charlie", CHARLIE)].map(|(name, bind)| {
            let first_contact: &[&str] = if name == "alpha" { &[] } else { &[ALPHA] };
            Driver::new(&mut network, name, bind, first_contact)
        });
    for tick in 0..3_000 {
        if tick < 500 {
            alpha.run(STEP_MS);
        }
        bravo.run(STEP_MS);
        charlie.run(STEP_MS);
    }
    assert_eq!((bravo.knows(), charlie.knows()), ((1, 1), (1, 1)));
    assert_eq!(bravo.find("charlie").unwrap(), "10.0.0.3");
    assert_eq!(charlie.find("bravo").unwrap(), "10.0.0.2");
    assert_eq!(bravo.find("alpha"), None);
}
