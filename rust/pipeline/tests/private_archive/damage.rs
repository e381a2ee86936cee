//! Tests with damage that other programs caused: index files, segments and catalogs that are missing, are too short, or
//! have changed bytes.

use aeron_archive::catalog::Catalog;
use aeron_archive::memory_storage::MemoryStorage;
use aeron_archive::storage::{Access, Storage, StorageFile};
use aeron_archive::store::StoreError;
use aeron_pipeline::private::{
    KnownRecording, LostRange, OpenReport, PrivateArchive, PrivateError, end_of_recording,
};
use proptest::prelude::*;

use super::stream::{
    ONE_GIB, Row, SEGMENT_LENGTH, Stream, TERM_LENGTH, all_rows, create, image, record, same,
};

const NOW_US: i64 = 1_700_000_000_000_000;
const NOW_MS: i64 = NOW_US / 1000;
const CATALOG: &str = "archive.catalog";

/// A recording over several segments. Its writer was stopped or killed.
struct Dead {
    disk: MemoryStorage,
    stream: Stream,
    rows: Vec<Row>,
}

impl Dead {
    fn new(is_stopped: bool) -> Self {
        let mut stream = Stream::new(SEGMENT_LENGTH - 192);
        while stream.end() < 3 * SEGMENT_LENGTH + 70_000 {
            stream.publish(6000);
        }
        let disk = MemoryStorage::new();
        let mut archive = create(disk.clone(), ONE_GIB);
        let mut writer = archive
            .start_recording(&image(stream.base), NOW_US)
            .unwrap();
        let mut now_us = NOW_US;
        let mut position = stream.base;
        while position < stream.end() {
            let to = stream.block(position, 20_000).1;
            position = record(&mut writer, &stream, position, to, 20_000, now_us).unwrap();
            now_us += 100;
        }
        let rows = all_rows(&archive, 0);
        assert!(same(&rows, &stream.messages));
        if is_stopped {
            archive.end_recording(writer, false, NOW_MS).unwrap();
        }
        disk.restart();
        Self { disk, stream, rows }
    }

    fn known(&self, committed: i64, told: i64) -> Vec<KnownRecording> {
        vec![KnownRecording {
            recording_id: 0,
            committed,
            told,
        }]
    }

    fn open(&self, known: &[KnownRecording]) -> (PrivateArchive<MemoryStorage>, OpenReport) {
        PrivateArchive::open(self.disk.clone(), known, ONE_GIB, NOW_MS).unwrap()
    }

    /// Returns the names of the files with this suffix, sorted by position.
    fn names(&self, ending: &str) -> Vec<String> {
        let names = self.disk.names().unwrap();
        let mut names: Vec<_> = names
            .into_iter()
            .filter(|name| name.ends_with(ending))
            .collect();
        names.sort_by_key(|name| (name.len(), name.clone()));
        names
    }

    /// Opens the archive twice. Checks that only arrival times are missing from the rows, and that the first open
    /// reports each missing time.
    fn check_rows(&self, is_all_lost: bool) {
        let (archive, report) = self.open(&[]);
        assert_eq!(report.lost, []);
        let found = all_rows(&archive, 0);
        assert!(same(&found, &self.stream.messages));
        for (row, was) in found.iter().zip(&self.rows) {
            let is_lost = |end: i64| {
                report
                    .lost_times
                    .iter()
                    .any(|lost| (lost.from..lost.to).contains(&(end - 1)))
            };
            match row.arrival_us {
                None => assert!(is_lost(row.end)),
                time => assert_eq!(time, was.arrival_us),
            }
            assert!(!is_all_lost || row.arrival_us.is_none());
        }
        drop(archive);
        let (archive, report) = self.open(&[]);
        assert_eq!(
            all_rows(&archive, 0),
            found,
            "the second open changed the rows"
        );
        assert_eq!(report.lost_times, [], "lost times were reported again");
        let index = archive.index(0).unwrap();
        let (start, end) = (self.stream.base, self.stream.end());
        assert_eq!(
            index.count(start, end).unwrap().messages,
            found.len() as i64
        );
        for rows in [1, found.len() / 3, found.len() - 1] {
            let cut = index
                .cut(start, end, |counts| counts.messages <= rows as i64)
                .unwrap();
            assert_eq!(cut.position, found[rows - 1].end);
        }
    }
}

/// 08-26
#[test]
fn a_missing_index_is_created_again_without_arrival_times() {
    for is_stopped in [true, false] {
        let dead = Dead::new(is_stopped);
        assert_eq!(dead.names(".idx").len(), 3);
        for name in dead.names(".idx") {
            dead.disk.remove(&name).unwrap();
        }
        // All messages of the killed recording are committed, so no batch needs the lost times.
        if !is_stopped {
            let end = dead.stream.end();
            let (_, report) = dead.open(&dead.known(end, end));
            assert!(report.lost_times.iter().all(|lost| !lost.is_needed));
            assert_eq!(report.lost_times.len(), 3);
        }
        if is_stopped {
            dead.check_rows(true);
        }
    }
}

/// 08-26
#[test]
fn a_missing_index_file_loses_only_the_arrival_times_of_its_segment() {
    for name in Dead::new(true).names(".idx") {
        let dead = Dead::new(true);
        dead.disk.remove(&name).unwrap();
        dead.check_rows(false);
        let (archive, _) = dead.open(&[]);
        let lost = all_rows(&archive, 0);
        assert!(lost.iter().any(|row| row.arrival_us.is_none()), "{name}");
        assert!(lost.iter().any(|row| row.arrival_us.is_some()), "{name}");
    }
}

/// 08-26
#[test]
fn lost_arrival_times_of_a_logged_batch_are_reported_at_every_open() {
    let dead = Dead::new(true);
    let (first, end) = (dead.stream.messages[0].end, dead.stream.end());
    dead.disk.remove(&dead.names(".idx")[1]).unwrap();
    let needed = dead.known(first, end);
    for is_old in [false, true] {
        let (_, report) = dead.open(&needed);
        let [lost] = report.lost_times[..] else {
            panic!("{report:?}")
        };
        assert_eq!((lost.is_needed, lost.is_old), (true, is_old));
        assert_eq!(
            (lost.from, lost.to - lost.from),
            (lost.from, SEGMENT_LENGTH)
        );
    }
    let (_, report) = dead.open(&dead.known(end, end));
    assert_eq!(report.lost_times, []);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    /// 08-26
    #[test]
    fn a_shortened_index_or_a_flipped_bit_in_it_loses_no_row(which in 0usize..3, at: prop::sample::Index, bit in 0u32..8, is_cut: bool) {
        let dead = Dead::new(true);
        let name = &dead.names(".idx")[which];
        let length = dead.disk.bytes(name).unwrap().len();
        let at = at.index(length) as u64;
        if is_cut {
            dead.disk.open(name, Access::Write).unwrap().set_length(at).unwrap();
        } else {
            prop_assert!(dead.disk.flip_bit(name, at, bit));
        }
        dead.check_rows(false);
    }

    /// 08-35
    #[test]
    fn random_content_of_an_index_loses_no_row(which in 0usize..3, bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let dead = Dead::new(true);
        dead.disk.put(&dead.names(".idx")[which], &bytes);
        dead.check_rows(false);
    }
}

/// 08-26: a kill leaves at most the last block without an index entry. If more blocks have no entry, the index is
/// damaged.
#[test]
fn blocks_without_an_index_entry_get_no_invented_arrival_times() {
    let dead = Dead::new(false);
    let name = dead.names(".idx").pop().unwrap();
    let file = dead.disk.open(&name, Access::Write).unwrap();
    file.set_length(64).unwrap();
    let end = dead.stream.end();
    let (archive, report) = dead.open(&dead.known(end, end));
    assert_eq!(report.lost, []);
    assert_eq!(report.lost_times.len(), 1);
    let last = all_rows(&archive, 0).pop().unwrap();
    assert_eq!(last.arrival_us, None);
}

/// 08-27
#[test]
fn a_missing_segment_is_reported_by_name_and_its_recording_can_be_abandoned() {
    for is_stopped in [true, false] {
        let dead = Dead::new(is_stopped);
        let name = dead.names(".rec")[1].clone();
        dead.disk.remove(&name).unwrap();
        let (committed, end) = (dead.stream.messages[0].end, dead.stream.end());
        let known = dead.known(committed, end);
        for _ in 0..2 {
            let (_, report) = dead.open(&known);
            let reason = format!("{name} is missing");
            let lost = LostRange {
                recording_id: 0,
                from: committed,
                to: end,
                reason,
            };
            assert_eq!(report.lost, [lost]);
        }
        let (mut archive, _) = dead.open(&known);
        archive.give_up(0).unwrap();
        while archive.work(NOW_MS, None).unwrap() {}
        assert_eq!(dead.disk.names().unwrap(), [CATALOG]);
        assert_eq!(archive.retained_bytes(), 0);
    }
}

/// 08-27
#[test]
fn a_missing_last_segment_with_logged_data_is_a_loss() {
    let dead = Dead::new(false);
    let name = dead.names(".rec").pop().unwrap();
    dead.disk.remove(&name).unwrap();
    let (committed, end) = (dead.stream.messages[0].end, dead.stream.end());
    let (archive, report) = dead.open(&dead.known(committed, end));
    assert_eq!(report.lost.len(), 1);
    assert_eq!(report.lost[0].to, end);
    assert_eq!(report.lost[0].from, 3 * SEGMENT_LENGTH - TERM_LENGTH);
    // The data before the missing segment can still be read.
    let rows = all_rows(&archive, 0);
    assert!(same(&rows, &dead.stream.messages[..rows.len()]));
    assert!(rows.len() > 100);
}

/// 08-27: if a tool has moved the stop position below a logged position, the logged data after the new stop position is
/// lost.
#[test]
fn a_stop_position_that_a_tool_has_changed_is_used() {
    let dead = Dead::new(true);
    let moved = dead.stream.messages[20].end;
    let mut catalog = Catalog::open(&dead.disk, 0).unwrap();
    catalog.stop(0, moved, NOW_MS).unwrap();
    drop(catalog);
    let told = dead.stream.messages[30].end;
    let (archive, report) = dead.open(&dead.known(dead.stream.base, told));
    let [lost] = &report.lost[..] else {
        panic!("{report:?}")
    };
    assert_eq!((lost.from, lost.to), (moved, told));
    assert_eq!(
        report.lost_times,
        [],
        "the part of the block before the new stop position lost its time"
    );
    assert_eq!(all_rows(&archive, 0), dead.rows[..21]);
    let (_, report) = dead.open(&dead.known(dead.stream.base, moved));
    assert_eq!(report, OpenReport::default());
}

/// 08-27
#[test]
fn a_missing_or_invalid_recording_is_reported_as_lost_with_the_reason() {
    let dead = Dead::new(true);
    let mut known = dead.known(dead.stream.base, dead.stream.end());
    known[0].recording_id = 7;
    let (_, report) = dead.open(&known);
    assert!(
        report.lost[0].reason.contains("does not have it"),
        "{report:?}"
    );
    // The loss of a recording is not reported if all its logged data is committed.
    known[0].committed = known[0].told;
    assert_eq!(dead.open(&known).1, OpenReport::default());

    // This bit is in the state field of the first entry.
    dead.disk.flip_bit(CATALOG, 32 + 4, 0);
    let (archive, report) = dead.open(&dead.known(dead.stream.base, dead.stream.end()));
    assert!(report.lost[0].reason.contains("invalid"), "{report:?}");
    assert_eq!(archive.recordings().count(), 0);
    assert_eq!(dead.names(".rec").len(), 3, "a segment was removed");
}

/// 08-27
#[test]
fn a_damaged_catalog_is_refused_with_its_name() {
    let dead = Dead::new(true);
    dead.disk.flip_bit(CATALOG, 32 + 3, 6);
    let error = PrivateArchive::open(dead.disk.clone(), &[], ONE_GIB, NOW_MS).unwrap_err();
    assert!(matches!(error, PrivateError::Store(StoreError::Catalog(_))));
    assert!(error.to_string().contains(CATALOG), "{error}");

    // A missing catalog means a new archive only if no recordings are known, and if there are no segment files.
    dead.disk.remove(CATALOG).unwrap();
    let known = dead.known(0, 0);
    assert!(PrivateArchive::open(dead.disk.clone(), &known, ONE_GIB, NOW_MS).is_err());
    let error = PrivateArchive::open(dead.disk.clone(), &[], ONE_GIB, NOW_MS).unwrap_err();
    assert!(matches!(
        error,
        PrivateError::Store(StoreError::LostCatalog { segments: 3, .. })
    ));
    for name in dead.names(".rec") {
        dead.disk.remove(&name).unwrap();
    }
    let (archive, _) = dead.open(&[]);
    assert_eq!(archive.recordings().count(), 0);
}

/// 08-58
#[test]
fn a_reader_without_the_lock_finds_the_end_of_a_killed_recording_and_changes_nothing() {
    let dead = Dead::new(false);
    let steps = dead.disk.steps();
    let catalog = Catalog::open_read_only(&dead.disk).unwrap();
    let descriptor = catalog.recording(0).unwrap();
    assert!(descriptor.is_unfinished());
    assert_eq!(
        end_of_recording(&dead.disk, descriptor).unwrap(),
        dead.stream.end()
    );
    assert_eq!(dead.disk.steps(), steps);
}
