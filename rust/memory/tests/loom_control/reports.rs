//! Error log and loss report: a reader sees a new entry completely or not at all.

use aeron_memory::error_log::{self, DistinctErrorLog};
use aeron_memory::loom_words::{LoomWords, ModelLayout, Weakness};
use aeron_memory::loss_report::{self, LossReport, LossSource};
use loom::thread;

use crate::{check, check_fails};

const ERROR_LENGTH: std::ops::Range<usize> = 0..4;
const LOSS_COUNT: std::ops::Range<usize> = 0..8;

fn weakened(words: &LoomWords, weakness: Option<Weakness>) -> LoomWords {
    match weakness {
        Some(weakness) => words.weakened(weakness),
        None => words.clone(),
    }
}

/// Records an error while another thread reads the log.
fn record(writing: Option<Weakness>, reading: Option<Weakness>) {
    let words = ModelLayout::new(48)
        .narrow(0..8)
        .wide(8)
        .wide(16)
        .narrow(24..28)
        .narrow(32..36)
        .build();
    let reader = weakened(&words, reading);
    let reads = thread::spawn(move || {
        for entry in error_log::read(&reader, 0) {
            let seen = (entry.text.as_str(), entry.first_observation_ms);
            assert_eq!(seen, ("full", 7), "an entry is not whole");
        }
    });
    let log = DistinctErrorLog::new(weakened(&words, writing));
    log.record(7, "full").unwrap();
    reads.join().unwrap();
    assert_eq!(error_log::read(&words, 0)[0].observation_count, 1);
}

/// 01-48, 01-50
#[test]
fn a_new_error_is_visible_completely_or_not_at_all() {
    check(|| record(None, None));
}

#[test]
fn without_releasing_its_length_an_error_is_not_whole() {
    check_fails("not whole", || {
        record(Some(Weakness::Release(ERROR_LENGTH)), None);
    });
}

#[test]
fn without_acquiring_its_length_an_error_is_not_whole() {
    check_fails("not whole", || {
        record(None, Some(Weakness::Acquire(ERROR_LENGTH)));
    });
}

/// Reports a lost image while another thread reads the report.
fn lose(writing: Option<Weakness>, reading: Option<Weakness>) {
    let words = ModelLayout::new(64)
        .wide(0)
        .wide(8)
        .wide(16)
        .wide(24)
        .narrow(32..56)
        .build();
    let source = || LossSource {
        session_id: 1,
        stream_id: 2,
        channel: "ipc?".to_owned(),
        source: "host".to_owned(),
    };
    let reader = weakened(&words, reading);
    let reads = thread::spawn(move || {
        for entry in loss_report::read(&reader) {
            let seen = (
                entry.image,
                entry.total_bytes_lost,
                entry.first_observation_ms,
            );
            assert_eq!(seen, (source(), 96, 7), "an entry is not whole");
        }
    });
    let mut report = LossReport::new(weakened(&words, writing));
    report.create_entry(&source(), 96, 7).unwrap();
    reads.join().unwrap();
    assert_eq!(loss_report::read(&words).len(), 1);
}

/// 01-51
#[test]
fn a_new_loss_is_visible_completely_or_not_at_all() {
    check(|| lose(None, None));
}

#[test]
fn without_releasing_its_count_a_loss_is_not_whole() {
    check_fails("not whole", || {
        lose(Some(Weakness::Release(LOSS_COUNT)), None);
    });
}

#[test]
fn without_acquiring_its_count_a_loss_is_not_whole() {
    check_fails("not whole", || {
        lose(None, Some(Weakness::Acquire(LOSS_COUNT)));
    });
}
