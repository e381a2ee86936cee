//! Tests of the name resolver with malformed datagrams. The reactions of real drivers to these datagrams were captured.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use aeron_agent::{CachedEpochClock, CachedNanoClock};
use aeron_driver::Context;
use aeron_driver::diagnostics::ErrorRecorder;
use aeron_driver::media::transport::{Datagram, GsoBatch, Socket};
use aeron_driver::names::{GossipConfig, GossipCounters, GossipNames, NameResolver};
use aeron_driver::socket_buffers::SocketBufferLengths;
use aeron_memory::buffer::SharedBuffer;
use aeron_memory::counters::{AtomicCounter, CountersManager, NewCounter};
use aeron_memory::error_log::{self, DistinctErrorLog};
use serde_json::Value;

use super::machine::FewNames;

const MALFORMED: &str = include_str!("../../../protocol/tests/vectors/malformed.json");

/// A socket that receives prepared datagrams from `127.0.0.1:24440` and discards sent datagrams.
struct Filled(VecDeque<Vec<u8>>);

impl Socket for Filled {
    fn local_address(&self) -> SocketAddr {
        "127.0.0.1:24420".parse().unwrap()
    }

    fn buffer_lengths(&self) -> SocketBufferLengths {
        SocketBufferLengths::default()
    }

    fn max_gso_batch_datagrams(&self, _: Option<SocketAddr>) -> usize {
        1
    }

    fn send_gso_batches(
        &mut self,
        _: Option<SocketAddr>,
        batches: &[GsoBatch<'_>],
    ) -> io::Result<usize> {
        Ok(batches.len())
    }

    fn send(&mut self, _: Option<SocketAddr>, _: &[u8]) -> io::Result<bool> {
        Ok(true)
    }

    fn receive(
        &mut self,
        limit: usize,
        on_datagram: &mut dyn FnMut(Datagram<'_>),
    ) -> io::Result<usize> {
        let count = limit.min(self.0.len());
        for mut bytes in self.0.drain(..count) {
            on_datagram(Datagram {
                bytes: &mut bytes,
                source: "127.0.0.1:24440".parse().unwrap(),
                media_timestamp_ns: None,
            });
        }
        Ok(count)
    }

    fn connect(&mut self, _: SocketAddr) -> io::Result<()> {
        Ok(())
    }
}

/// The counters and logged errors of a driver named `alpha` after it has received a datagram.
struct Outcome {
    invalid_packets: i64,
    errors: Vec<String>,
    names: i64,
    neighbors: i64,
}

fn receive(datagram: Vec<u8>) -> Outcome {
    let mut manager =
        CountersManager::new(SharedBuffer::heap(512 * 8), SharedBuffer::heap(128 * 8), 0).unwrap();
    let mut counter = || new_counter(&mut manager);
    let counters = GossipCounters {
        neighbors: counter(),
        cache_entries: counter(),
        invalid_packets: counter(),
        short_sends: counter(),
    };
    let error_log = SharedBuffer::heap(64 * 1024);
    let errors = ErrorRecorder::new(
        Arc::new(DistinctErrorLog::new(error_log.clone())),
        counter(),
        Arc::new(CachedEpochClock::new(0)),
    );
    let context = Context {
        resolver_name: "alpha".into(),
        ..Context::default()
    };
    let mut names = GossipNames::new(
        GossipConfig::new(&context),
        Vec::new(),
        Box::new(Filled(VecDeque::from([datagram]))),
        Box::new(FewNames),
        Arc::new(CachedNanoClock::new(0)),
        counters.clone(),
        errors,
    );
    names.do_work();
    Outcome {
        invalid_packets: counters.invalid_packets.get(),
        errors: error_log::read(&error_log, 0)
            .into_iter()
            .map(|observation| observation.text)
            .collect(),
        names: counters.cache_entries.get(),
        neighbors: counters.neighbors.get(),
    }
}

pub fn new_counter(manager: &mut CountersManager<SharedBuffer>) -> AtomicCounter<SharedBuffer> {
    let new = NewCounter {
        type_id: 0,
        key: b"",
        label: b"",
        registration_id: 0,
        owner_id: 0,
        reference_id: 0,
        value: 0,
    };
    manager.allocate(&new, 0).unwrap()
}

fn from_hex(hex: &str) -> Vec<u8> {
    (0..hex.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap())
        .collect()
}

/// Returns the increase of a counter of the real driver's resolver.
fn added(observed: &Value, counter: &str) -> i64 {
    let counts = &observed["resolver_counters"][counter];
    match (counts[0].as_i64(), counts[1].as_i64()) {
        (Some(before), Some(after)) => after - before,
        _ => 0,
    }
}

/// 02-112, 04-177
#[test]
fn malformed_datagrams_are_counted_or_recorded_and_their_valid_first_entries_are_kept() {
    let cases: Value = serde_json::from_str(MALFORMED).unwrap();
    let mut judged = 0;
    for case in cases.as_array().unwrap() {
        if case["target"] != "name resolver socket" {
            continue;
        }
        let outcome = receive(from_hex(case["hex"].as_str().unwrap()));
        let recommended = case["recommended"].as_str().unwrap();
        if recommended == "as observed" {
            let observed = &case["observed_1_52_2"];
            let moved = |counter: &str| observed["counter_deltas"][counter].as_i64().unwrap_or(0);
            assert_eq!(outcome.invalid_packets, moved("Invalid packets"), "{case}");
            assert_eq!(outcome.errors.len() as i64, moved("Errors"), "{case}");
            assert_eq!(outcome.names, added(observed, "cache entries"), "{case}");
            assert_eq!(outcome.neighbors, added(observed, "neighbors"), "{case}");
        } else {
            let kept = i64::from(recommended.starts_with("keep the first entry"));
            assert!(recommended.contains("Invalid packets +1"), "{case}");
            assert_eq!(outcome.invalid_packets, 1, "{case}");
            assert_eq!((outcome.names, outcome.neighbors), (kept, kept), "{case}");
        }
        if case["name"] == "n-unknown-res-type" {
            assert!(outcome.errors[0].contains("Invalid res type on entry: 3"));
        }
        judged += 1;
    }
    assert_eq!(judged, 25);
}
