//! The files that a dead driver leaves: tools read counters, errors and losses, and clients find no half CnC file.

use aeron_memory::cnc::{Cnc, CncError, CncLengths, DriverIdentity, Reader};
use aeron_memory::counters::{CountersManager, CountersReader, NewCounter};
use aeron_memory::error_log::{self, DistinctErrorLog};
use aeron_memory::loss_report::{self, LossReport, LossSource};
use aeron_memory::{SharedBuffer, Words};

use crate::mortal::{die_after, every_death};

const COUNTER: NewCounter<'_> = NewCounter {
    type_id: 1001,
    key: b"key!",
    label: b"text",
    registration_id: 7,
    owner_id: 1,
    reference_id: 2,
    value: 5,
};

/// 01-38, 01-39
#[test]
fn a_counter_of_a_dead_driver_is_whole_or_absent() {
    let parts = |words: &SharedBuffer| (words.slice(0, 1024), words.slice(1024, 256));
    let deaths = every_death(|stores| {
        let words = SharedBuffer::heap(1024 + 256);
        let survived = die_after(&words, stores, |words| {
            let (metadata, values) = (words.slice(0, 1024), words.slice(1024, 256));
            let mut manager = CountersManager::new(metadata, values, 0).unwrap();
            for _ in 0..2 {
                manager.allocate(&COUNTER, 0).unwrap();
            }
            manager.free(0, 0).unwrap();
        });
        let (metadata, values) = parts(&words);
        let reader = CountersReader::new(metadata, values).unwrap();
        for record in reader.records() {
            let seen = (record.type_id, &record.key[..4], record.label.as_str());
            assert_eq!(seen, (1001, &b"key!"[..], "text"), "{stores} stores");
            assert_eq!((record.registration_id, record.value), (7, 5));
        }
        survived.is_some()
    });
    assert!(deaths >= 6, "{deaths}");
}

/// 01-48, 01-50
#[test]
fn an_error_of_a_dead_driver_is_whole_or_absent() {
    let deaths = every_death(|stores| {
        let words = SharedBuffer::heap(256);
        let survived = die_after(&words, stores, |words| {
            let log = DistinctErrorLog::new(words);
            for text in ["disk full", "no such name", "disk full"] {
                log.record(7, text).unwrap();
            }
        });
        for (index, entry) in error_log::read(&words, 0).into_iter().enumerate() {
            let text = ["disk full", "no such name"][index];
            assert_eq!((entry.text.as_str(), entry.first_observation_ms), (text, 7));
        }
        survived.is_some()
    });
    assert!(deaths >= 10, "{deaths}");
}

/// 01-51
#[test]
fn a_loss_of_a_dead_driver_is_whole_or_absent() {
    let source = LossSource {
        session_id: 1,
        stream_id: 2,
        channel: "aeron:udp?endpoint=localhost:1".to_owned(),
        source: "127.0.0.1:2".to_owned(),
    };
    let deaths = every_death(|stores| {
        let words = SharedBuffer::heap(256);
        let survived = die_after(&words, stores, |words| {
            let mut report = LossReport::new(words);
            for _ in 0..2 {
                report.create_entry(&source, 96, 7).unwrap();
            }
        });
        for entry in loss_report::read(&words) {
            assert_eq!(entry.image, source);
            assert_eq!(
                (entry.total_bytes_lost, entry.first_observation_ms),
                (96, 7)
            );
        }
        survived.is_some()
    });
    assert!(deaths >= 10, "{deaths}");
}

/// 01-11
#[test]
fn a_client_never_opens_the_cnc_file_of_a_driver_that_died_at_its_start() {
    let lengths = CncLengths::default();
    let identity = DriverIdentity {
        client_liveness_timeout_ns: 10_000_000_000,
        start_timestamp_ms: 77,
        pid: 4711,
    };
    let deaths = every_death(|stores| {
        let words = SharedBuffer::heap(lengths.file_length().unwrap());
        let survived = die_after(&words, stores, |words| {
            Cnc::format(words, &lengths, &identity).unwrap().publish();
        });
        match Cnc::open(words, Reader::Client) {
            Ok(cnc) => assert_eq!((cnc.identity(), survived), (identity, Some(()))),
            Err(error) => {
                assert!(matches!(error, CncError::NotInitialised), "{error}");
                assert_eq!(survived, None);
            }
        }
        survived.is_some()
    });
    assert!(deaths >= 8, "{deaths}");
}
