//! Tests of the loss report with the bytes of a real driver and with random bytes.

use aeron_memory::loss_report::{self, LossReport, LossSource};
use aeron_memory::{SharedBuffer, Words};
use proptest::prelude::*;

const CAPTURED: &[u8] = include_bytes!("vectors/loss-report-head.bin");
const EXPECTED: &str = include_str!("vectors/loss-report.json");

fn expected_entries() -> Vec<serde_json::Value> {
    let json: serde_json::Value = serde_json::from_str(EXPECTED).unwrap();
    json["entries"].as_array().unwrap().clone()
}

fn image(channel: &str, source: &str) -> LossSource {
    LossSource {
        session_id: -7,
        stream_id: 1001,
        channel: channel.into(),
        source: source.into(),
    }
}

#[test]
fn the_captured_report_of_a_real_driver_is_read() {
    let observations = loss_report::read(&SharedBuffer::copy_of(CAPTURED));
    let expected = expected_entries();
    assert_eq!(observations.len(), expected.len());
    for (observation, entry) in observations.iter().zip(&expected) {
        assert_eq!(observation.observation_count, entry["observation_count"]);
        assert_eq!(observation.total_bytes_lost, entry["total_bytes_lost"]);
        assert_eq!(
            observation.first_observation_ms,
            entry["first_observation_ms"]
        );
        assert_eq!(
            observation.last_observation_ms,
            entry["last_observation_ms"]
        );
        assert_eq!(observation.image.session_id, entry["session_id"]);
        assert_eq!(observation.image.stream_id, entry["stream_id"]);
        assert_eq!(observation.image.channel, entry["channel"]);
        assert_eq!(observation.image.source, entry["source"]);
    }
}

#[test]
fn written_entries_have_the_offsets_and_values_of_the_captured_entries() {
    let words = SharedBuffer::heap(CAPTURED.len());
    let mut report = LossReport::new(words.clone());
    for entry in loss_report::read(&SharedBuffer::copy_of(CAPTURED)) {
        let gaps = entry.observation_count;
        let first_gap = entry.total_bytes_lost - (gaps - 1);
        let written = report
            .create_entry(&entry.image, first_gap, entry.first_observation_ms)
            .unwrap();
        (1..gaps).for_each(|_| written.record(1, entry.last_observation_ms));
    }
    let mut written = vec![0; CAPTURED.len()];
    words.copy_out(0, &mut written);
    assert_eq!(written, CAPTURED);
}

/// 01-52
#[test]
fn a_full_report_refuses_new_entries_and_updates_existing_entries() {
    let words = SharedBuffer::heap(128);
    let mut report = LossReport::new(words.clone());
    let entry = report
        .create_entry(&image("aeron:udp?endpoint=a:1", "1.2.3.4:5"), 32, 1)
        .unwrap();
    report
        .create_entry(&image(&"x".repeat(40), "1.2.3.4:5"), 32, 1)
        .unwrap_err();
    entry.record(64, 2);
    let observations = loss_report::read(&words);
    assert_eq!(observations.len(), 1);
    assert_eq!(
        (
            observations[0].observation_count,
            observations[0].total_bytes_lost
        ),
        (2, 96)
    );
    assert_eq!(
        (
            observations[0].first_observation_ms,
            observations[0].last_observation_ms
        ),
        (1, 2)
    );
}

proptest! {
    /// 01-53: channels of every length, so that entries end before and after each 64-byte boundary.
    #[test]
    fn entries_of_any_channel_length_are_read_back(lengths in proptest::collection::vec((0..200usize, 0..40usize), 1..20)) {
        let words = SharedBuffer::heap(16_384);
        let mut report = LossReport::new(words.clone());
        let images: Vec<_> = lengths.iter().map(|&(c, s)| image(&"c".repeat(c), &"s".repeat(s))).collect();
        for image in &images {
            report.create_entry(image, 1, 1).unwrap();
        }
        let read: Vec<_> = loss_report::read(&words).into_iter().map(|o| o.image).collect();
        prop_assert_eq!(read, images);
    }

    #[test]
    fn reading_any_bytes_ends_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..512)) {
        loss_report::read(&SharedBuffer::copy_of(&bytes));
    }

    #[test]
    fn reading_texts_of_any_length_ends_without_a_panic(channel: i32, source: i32, count in 1..i64::MAX) {
        let words = SharedBuffer::heap(512);
        for offset in (0..512).step_by(64) {
            words.store_i64_relaxed(offset, count);
            words.store_i32_relaxed(offset + 40, channel);
            words.store_i32_relaxed(offset + 44, source);
        }
        loss_report::read(&words);
    }
}
