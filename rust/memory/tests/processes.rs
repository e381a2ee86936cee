//! Tests the ring between processes: the test starts its own program again as the producers.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use aeron_memory::mapped::{Allocation, MappedFile};
use aeron_memory::ring::{ClaimError, ManyToOneRing, RingConsumer, TRAILER_LENGTH};

const CAPACITY: usize = 4096;
const PRODUCERS: i32 = 3;
const MESSAGES: u64 = 20_000;
/// Time after which a producer assumes that the reader is dead.
const PATIENCE: Duration = Duration::from_secs(60);
const FILE: &str = "AERON_TEST_RING_FILE";
const PRODUCER: &str = "AERON_TEST_RING_PRODUCER";

/// Returns message n of a producer: n, then a number of bytes that depends on n. The value of these bytes depends on n
/// and the producer.
fn payload(producer: i32, n: u64) -> Vec<u8> {
    let mut payload = n.to_le_bytes().to_vec();
    payload.resize(8 + (n % 97) as usize, (n as u8) ^ producer as u8);
    payload
}

fn produce(path: &Path, producer: i32) {
    let ring = ManyToOneRing::new(MappedFile::open(path, false).unwrap().buffer().clone()).unwrap();
    let started = Instant::now();
    for n in 0..MESSAGES {
        while let Err(error) = ring.write(producer, &payload(producer, n)) {
            assert_eq!(error, ClaimError::Full);
            assert!(started.elapsed() < PATIENCE, "the consumer does not read");
            std::thread::yield_now();
        }
    }
}

/// 01-29
#[test]
fn messages_of_producers_in_several_processes_arrive_all_and_in_order() {
    if let Some(path) = std::env::var_os(FILE) {
        let producer = std::env::var(PRODUCER).unwrap();
        return produce(Path::new(&path), producer.parse().unwrap());
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ring");
    let file = MappedFile::create(&path, CAPACITY + TRAILER_LENGTH, Allocation::Allocated).unwrap();
    let mut consumer = RingConsumer::new(ManyToOneRing::new(file.buffer().clone()).unwrap());
    let mut producers: Vec<_> = (1..=PRODUCERS)
        .map(|producer| {
            let mut command = Command::new(std::env::current_exe().unwrap());
            command.env(FILE, &path).env(PRODUCER, producer.to_string());
            command.stdout(std::process::Stdio::null()).spawn().unwrap()
        })
        .collect();

    let mut next = [0; PRODUCERS as usize];
    let check = |next: &mut [u64], producer: i32, message: &[u8]| {
        let n = &mut next[producer as usize - 1];
        assert_eq!(message, payload(producer, *n));
        *n += 1;
    };
    let mut running = true;
    while running {
        running = producers
            .iter_mut()
            .any(|child| child.try_wait().unwrap().is_none());
        // Two reads: one up to the end of the data area, and one from its start. They also run after the last producer
        // ended.
        for _ in 0..2 {
            consumer
                .read(usize::MAX, |producer, message| {
                    check(&mut next, producer, message)
                })
                .unwrap();
        }
    }
    assert_eq!(next, [MESSAGES; PRODUCERS as usize]);
    for mut child in producers {
        assert!(child.wait().unwrap().success());
    }
}
