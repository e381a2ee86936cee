//! Tests of the distinct error log with the bytes of a real driver and with random bytes.

use aeron_memory::error_log::{self, DistinctErrorLog, ENTRY_HEADER_LENGTH, ErrorLogFull};
use aeron_memory::{SharedBuffer, Words};
use proptest::prelude::*;

const CAPTURED: &[u8] = include_bytes!("vectors/cnc-error-log-head.bin");
const EXPECTED: &str = include_str!("vectors/cnc-error-log.json");

fn expected_entries() -> Vec<serde_json::Value> {
    let json: serde_json::Value = serde_json::from_str(EXPECTED).unwrap();
    json["entries"].as_array().unwrap().clone()
}

fn log(length: usize) -> (SharedBuffer, DistinctErrorLog<SharedBuffer>) {
    let words = SharedBuffer::heap(length);
    (words.clone(), DistinctErrorLog::new(words))
}

#[test]
fn the_captured_log_of_a_real_driver_is_read() {
    let words = SharedBuffer::copy_of(CAPTURED);
    let observations = error_log::read(&words, 0);
    let expected = expected_entries();
    assert!(error_log::has_errors(&words));
    assert_eq!(observations.len(), expected.len());
    for (observation, entry) in observations.iter().zip(&expected) {
        assert_eq!(observation.text, entry["text"]);
        assert_eq!(observation.observation_count, entry["observation_count"]);
        assert_eq!(
            observation.first_observation_ms,
            entry["first_observation_ms"]
        );
        assert_eq!(
            observation.last_observation_ms,
            entry["last_observation_ms"]
        );
    }
}

#[test]
fn recording_the_captured_errors_writes_the_captured_bytes() {
    let (words, log) = log(CAPTURED.len());
    for entry in expected_entries() {
        let text = entry["text"].as_str().unwrap();
        let first = entry["first_observation_ms"].as_i64().unwrap();
        let last = entry["last_observation_ms"].as_i64().unwrap();
        log.record(first, text).unwrap();
        for _ in 1..entry["observation_count"].as_i64().unwrap() {
            log.record(last, text).unwrap();
        }
    }
    let mut written = vec![0; CAPTURED.len()];
    words.copy_out(0, &mut written);
    assert_eq!(written, CAPTURED);
}

/// 01-48, 03-123: two texts are equal only if all of their characters are equal. For Aeron, a text that begins with a
/// recorded text is the same error (`docs/spec/01-memory-layouts.md`, 17.10).
#[test]
fn a_repeated_error_is_counted_and_a_new_error_is_appended_8_byte_aligned() {
    let (words, log) = log(4096);
    log.record(10, "bad channel").unwrap();
    log.record(30, "bad channel").unwrap();
    log.record(20, "bad channel: aeron:nonsense").unwrap();
    let observations = error_log::read(&words, 0);
    assert_eq!(observations.len(), 2);
    assert_eq!(observations[0].observation_count, 2);
    assert_eq!(
        (
            observations[0].first_observation_ms,
            observations[0].last_observation_ms
        ),
        (10, 30)
    );
    assert_eq!(observations[1].observation_count, 1);
    let second = (ENTRY_HEADER_LENGTH + "bad channel".len()).next_multiple_of(8);
    assert!(words.load_i32_relaxed(second) > 0);
}

/// 01-49, 03-123
#[test]
fn a_full_log_refuses_new_errors_and_still_counts_known_ones() {
    let (words, log) = log(64);
    log.record(1, "first").unwrap();
    assert_eq!(
        log.record(2, "this one is too long for what is left"),
        Err(ErrorLogFull {
            length: 64,
            needed: 61
        })
    );
    log.record(3, "first").unwrap();
    let observations = error_log::read(&words, 0);
    assert_eq!(observations.len(), 1);
    assert_eq!(observations[0].observation_count, 2);
}

/// 01-50
#[test]
fn a_reader_stops_at_length_0_and_skips_entries_without_a_recent_observation() {
    let (words, log) = log(4096);
    assert!(!error_log::has_errors(&words));
    assert!(error_log::read(&words, 0).is_empty());
    log.record(10, "old").unwrap();
    log.record(20, "new").unwrap();
    let texts = |since| {
        let observations = error_log::read(&words, since);
        observations.into_iter().map(|o| o.text).collect::<Vec<_>>()
    };
    assert_eq!(texts(0), ["old", "new"]);
    assert_eq!(texts(11), ["new"]);
    assert!(texts(21).is_empty());
}

#[test]
fn the_saved_report_has_a_block_per_error_and_a_count() {
    let (words, log) = log(4096);
    log.record(1, "one").unwrap();
    log.record(2, "one").unwrap();
    let mut report = String::new();
    error_log::write_report(&mut report, &error_log::read(&words, 0), |ms| {
        format!("<{ms}>")
    })
    .unwrap();
    assert_eq!(
        report,
        "***\n2 observations from <1> to <2> for:\n one\n\n1 distinct errors observed.\n"
    );
}

#[test]
fn threads_that_record_at_once_lose_no_observation() {
    let (words, log) = log(4096);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                (0..250).for_each(|i| log.record(i, ["a", "b"][i as usize % 2]).unwrap())
            });
        }
    });
    let counts = error_log::read(&words, 0)
        .iter()
        .map(|o| o.observation_count)
        .collect::<Vec<_>>();
    assert_eq!(counts, [500, 500]);
}

proptest! {
    /// 01-50
    #[test]
    fn reading_any_bytes_ends_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..512), since: i64) {
        error_log::read(&SharedBuffer::copy_of(&bytes), since);
    }

    /// Lengths near the length of a header test more cases of the reader than random lengths.
    #[test]
    fn reading_entries_of_any_length_ends_without_a_panic(lengths in proptest::collection::vec(-40..600i32, 1..20)) {
        let words = SharedBuffer::heap(512);
        for (index, length) in lengths.iter().enumerate() {
            words.store_i32_relaxed(index * 24, *length);
        }
        for observation in error_log::read(&words, i64::MIN) {
            prop_assert!(observation.text.chars().count() <= 512);
        }
    }
}
