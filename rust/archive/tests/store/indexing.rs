//! Index files of segments: their entries, their changes together with the segments, and their use
//! after a kill.

use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use aeron_agent::EpochClock;
use aeron_archive::checksum::Checksum;
use aeron_archive::index::{ArrivalClock, IndexEntry, IndexFile, IndexForm, written_end};
use aeron_archive::memory_storage::{MemoryStorage, PAGE_LENGTH, StorageFault};
use aeron_archive::ownership::BootId;
use aeron_archive::recovery::OnTornFragment;
use aeron_archive::storage::{Access, Directory, Storage, StorageFile, SyncLevel};
use aeron_archive::store::{ArchiveStore, RecoveredRecording, StoreOptions};
use aeron_archive::stream::RecordedStream;
use aeron_archive::tool::{ArchiveFiles, TornDecision, VerifyOptions};

use proptest::prelude::*;

use crate::recordings::stream::{Publisher, SEGMENT_LENGTH, payload};
use crate::store::common::*;

/// A payload of zeros. A frame with this payload has whole pages of zeros, so the frame looks torn.
const EMPTY_PAGES: [u8; 12_000] = [0; 12_000];

/// A clock that a test sets, in microseconds.
#[derive(Debug, Default, Clone)]
struct Clock(Arc<AtomicI64>);

impl EpochClock for Clock {
    fn time_ms(&self) -> i64 {
        self.time_us() / 1_000
    }

    fn time_us(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Clock {
    fn advance(&self, by_us: i64) {
        self.0.fetch_add(by_us, Ordering::Relaxed);
    }
}

fn boot(number: u8) -> Option<BootId> {
    BootId::from_bytes([number; 16])
}

fn indexed() -> StoreOptions {
    StoreOptions {
        index: Some(IndexForm::Sparse),
        boot_id: boot(1),
        ..options()
    }
}

/// Returns options without an index. A store with these options acts like an archive of other software.
fn foreign() -> StoreOptions {
    StoreOptions {
        index: None,
        boot_id: boot(1),
        ..options()
    }
}

fn open_with(
    storage: &MemoryStorage,
    options: StoreOptions,
) -> Result<(Store, Vec<RecoveredRecording>), String> {
    ArchiveStore::open(storage.clone(), options, OPENED_MS).map_err(|error| error.to_string())
}

fn new_store(options: StoreOptions) -> (MemoryStorage, Store, Clock) {
    let storage = MemoryStorage::new();
    let (mut store, _) = open_with(&storage, options).unwrap();
    let clock = Clock::default();
    clock.advance(1_000_000);
    store.set_arrival_clock(ArrivalClock::new(Arc::new(clock.clone())));
    (storage, store, clock)
}

/// Returns the entries of a segment's index.
fn entries(storage: &MemoryStorage, id: i64, base: i64) -> Vec<IndexEntry> {
    let file = IndexFile::open(storage, id, base, Access::Read).unwrap();
    let file = file.expect("an index");
    assert_eq!(file.header().form, IndexForm::Sparse);
    let sound = |number| file.entry(number).unwrap().expect("a sound entry");
    (0..file.entry_count()).map(sound).collect()
}

/// Returns the end and arrival time of each entry.
fn times(storage: &MemoryStorage, id: i64, base: i64) -> Vec<(i64, Option<i64>)> {
    let entries = entries(storage, id, base).into_iter();
    entries.map(|it| (it.end_position, it.arrival_us)).collect()
}

fn index_names(storage: &MemoryStorage) -> Vec<String> {
    let mut names = storage.names().unwrap();
    names.retain(|name| name.contains(".idx"));
    names.sort();
    names
}

/// Records one frame. Returns the recorded position.
fn record_frame(session: &mut Session, payload: &[u8]) -> i64 {
    let frame = Publisher::new(session.recorded_position()).data(0xC0, payload);
    session.append(&frame, |_| {}).unwrap();
    session.publish().unwrap()
}

/// Writes a torn frame like a killed process: the bytes from the recorded position up to the end of
/// the page. Returns the recorded position.
fn tear(storage: &MemoryStorage, session: &Session, name: &str) -> i64 {
    let position = session.recorded_position();
    let frame = Publisher::new(position).data(0xC0, &payload(6_000));
    let page = PAGE_LENGTH - position as usize % PAGE_LENGTH;
    let file = storage.open(name, Access::Write).unwrap();
    file.write_all_at(&frame[..page], position as u64).unwrap();
    position
}

#[test]
fn an_entry_is_written_after_a_millisecond_or_64_kib_and_other_blocks_need_no_write() {
    let (storage, mut store, clock) = new_store(indexed());
    let mut session = store.start_recording(image(0)).unwrap();
    record(&mut session, 1);
    assert_eq!(times(&storage, 0, 0), [(1_056, Some(1_000_000))]);
    let steps = storage.steps();
    clock.advance(999);
    record(&mut session, 5);
    assert_eq!(
        storage.steps() - steps,
        5,
        "one write for each block, and no write for the index"
    );
    clock.advance(1);
    record(&mut session, 1);
    assert_eq!(entries(&storage, 0, 0).len(), 2);
    assert_eq!(entries(&storage, 0, 0)[1].progress.counts.messages, 7);
    record(&mut session, 61);
    assert_eq!(entries(&storage, 0, 0).len(), 2);
    record(&mut session, 1);
    let last = entries(&storage, 0, 0)[2];
    assert_eq!(
        (last.end_position, last.progress.head),
        (72_928, Some(72_928))
    );
}

#[test]
fn blocks_before_a_pause_keep_their_arrival_time() {
    let (storage, mut store, clock) = new_store(indexed());
    let mut session = store.start_recording(image(0)).unwrap();
    record(&mut session, 1);
    clock.advance(10);
    record(&mut session, 1);
    clock.advance(5_000_000);
    record(&mut session, 1);
    let expected = [
        (1_056, Some(1_000_000)),
        (2 * 1_056, Some(1_000_010)),
        (3 * 1_056, Some(6_000_010)),
    ];
    assert_eq!(times(&storage, 0, 0), expected);
}

#[test]
fn the_entry_of_the_last_blocks_is_written_in_a_pause_of_a_millisecond() {
    let (storage, mut store, clock) = new_store(indexed());
    let mut session = store.start_recording(image(0)).unwrap();
    record(&mut session, 1);
    clock.advance(10);
    record(&mut session, 1);
    clock.advance(999);
    session.note_pause();
    assert_eq!(entries(&storage, 0, 0).len(), 1);
    clock.advance(1);
    session.note_pause();
    session.note_pause();
    let expected = [(1_056, Some(1_000_000)), (2 * 1_056, Some(1_000_010))];
    assert_eq!(times(&storage, 0, 0), expected);
}

#[test]
fn times_do_not_decrease_if_the_clock_is_set_back() {
    let (storage, mut store, clock) = new_store(indexed());
    let mut session = store.start_recording(image(0)).unwrap();
    record(&mut session, 1);
    clock.advance(10);
    record(&mut session, 1);
    clock.advance(-5_000);
    record(&mut session, 1);
    session.finish_index().unwrap();
    let expected = [(1_056, Some(1_000_000)), (3 * 1_056, Some(1_000_010))];
    assert_eq!(times(&storage, 0, 0), expected);
}

#[test]
fn a_stopped_recording_has_an_index_for_each_segment_and_an_entry_at_its_end() {
    let (storage, mut store, _) = new_store(indexed());
    let mut session = store.start_recording(image(0)).unwrap();
    record(&mut session, 200);
    session.finish_index().unwrap();
    let id = stop(&mut store, &session);
    let segments = bases(&storage, id);
    let stop = positions(&store, id).1;
    let last = store.recording(id).unwrap().segment_base(stop);
    assert_eq!(index_names(&storage).len() * 2, segments.len());
    assert_eq!(
        entries(&storage, id, last).last().unwrap().end_position,
        stop
    );
    assert_eq!(
        entries(&storage, id, 0).last().unwrap().end_position,
        SEGMENT_LENGTH
    );
}

#[test]
fn without_the_option_no_index_is_written() {
    let (storage, mut store, _) = new_store(foreign());
    recorded(&mut store, 0, 100);
    assert_eq!(index_names(&storage), [""; 0]);
}

#[test]
fn an_extension_continues_after_the_existing_entries() {
    let (storage, mut store, clock) = new_store(indexed());
    let mut session = store.start_recording(image(0)).unwrap();
    record(&mut session, 2);
    session.finish_index().unwrap();
    let id = stop(&mut store, &session);
    clock.advance(1_000);
    let mut session = store
        .extend_recording(id, &continuation(2 * 1_056))
        .unwrap();
    record(&mut session, 1);
    let expected = [
        (1_056, Some(1_000_000)),
        (2 * 1_056, Some(1_000_000)),
        (3 * 1_056, Some(1_001_000)),
    ];
    assert_eq!(times(&storage, id, 0), expected);
    assert_eq!(entries(&storage, id, 0)[2].progress.counts.messages, 3);
}

#[test]
fn an_index_of_a_later_version_is_never_changed_even_after_a_kill() {
    let (storage, mut store, _) = new_store(indexed());
    let mut session = store.start_recording(image(0)).unwrap();
    record(&mut session, 2);
    drop((session, store));
    let index = storage.open("index-0-0.idx", Access::Write).unwrap();
    let mut header = [0; 64];
    index.read_exact_at(&mut header, 0).unwrap();
    header[4] = 3;
    let checksum = Checksum::Crc32.compute(&header[..60]);
    header[60..].copy_from_slice(&checksum.to_le_bytes());
    assert!(is_of_a_later_version(&header));
    index.write_all_at(&header, 0).unwrap();
    let bytes = || {
        let index = storage.open("index-0-0.idx", Access::Read).unwrap();
        let mut bytes = vec![0; index.length().unwrap() as usize];
        index.read_exact_at(&mut bytes, 0).unwrap();
        bytes
    };
    let before = bytes();

    let (mut store, recovered) = open_with(&storage, indexed()).unwrap();
    let refusals = [
        store
            .extend_recording(0, &continuation(2 * 1_056))
            .map(drop)
            .unwrap_err(),
        store.truncate(0, 1_056).map(drop).unwrap_err(),
    ];

    assert_eq!(recovered[0].stop_position, 2 * 1_056);
    for refusal in refusals {
        assert!(
            refusal
                .to_string()
                .contains("index-0-0.idx: cannot read it: the file has version 3"),
            "{refusal}"
        );
    }
    assert_eq!(positions(&store, 0), (0, 2 * 1_056));
    assert_eq!(bytes(), before);
}

#[test]
fn an_extension_repairs_a_missing_or_damaged_index_and_keeps_the_entries_before_the_damage() {
    type Harm = fn(&MemoryStorage);
    let harms: [(Harm, usize); 3] = [
        (|storage| storage.remove("index-0-0.idx").unwrap(), 0),
        (
            |storage| {
                let file = storage.open("index-0-0.idx", Access::Write).unwrap();
                file.set_length(3 * 64 + 10).unwrap();
            },
            1,
        ),
        (
            |storage| assert!(storage.flip_bit("index-0-0.idx", 64 * 3 + 1, 1)),
            1,
        ),
    ];
    for (harm, kept) in harms {
        let (storage, mut store, clock) = new_store(indexed());
        let mut session = store.start_recording(image(0)).unwrap();
        for _ in 0..10 {
            record(&mut session, 1);
            clock.advance(1_000);
        }
        let id = stop(&mut store, &session);
        harm(&storage);
        store
            .extend_recording(id, &continuation(10 * 1_056))
            .unwrap();
        let times = times(&storage, id, 0);
        assert_eq!(times.last().unwrap().0, 10 * 1_056);
        assert_eq!(times[..kept], [(1_056, Some(1_000_000))][..kept]);
        let last = entries(&storage, id, 0).last().unwrap().progress;
        assert_eq!((last.counts.messages, last.head), (10, Some(10 * 1_056)));
    }
}

#[test]
fn entries_of_bytes_that_another_archive_has_overwritten_are_dropped() {
    let (storage, mut store, _) = new_store(indexed());
    let mut session = store.start_recording(image(0)).unwrap();
    record(&mut session, 10);
    session.finish_index().unwrap();
    let id = stop(&mut store, &session);
    drop(store);
    // Truncates the recording and restores the old index, because an archive of other software
    // would not change the index.
    let index = storage.bytes("index-0-0.idx").unwrap();
    let (mut other, _) = open_with(&storage, foreign()).unwrap();
    let operation = other.truncate(id, 2 * 1_056);
    delete_all(&mut other, operation).unwrap();
    let mut session = other
        .extend_recording(id, &continuation(2 * 1_056))
        .unwrap();
    record(&mut session, 4);
    stop(&mut other, &session);
    drop(other);
    storage.put("index-0-0.idx", &index);
    let (mut store, _) = open_with(&storage, indexed()).unwrap();
    store
        .extend_recording(id, &continuation(6 * 1_056))
        .unwrap();
    assert_eq!(times(&storage, id, 0), [(6 * 1_056, None)]);
}

#[test]
fn a_truncation_removes_the_entries_after_the_new_end() {
    let (storage, mut store, clock) = new_store(indexed());
    let mut session = store.start_recording(image(0)).unwrap();
    for _ in 0..5 {
        record(&mut session, 1);
        clock.advance(1_000);
    }
    let id = stop(&mut store, &session);
    let operation = store.truncate(id, 2 * 1_056);
    delete_all(&mut store, operation).unwrap();
    let ends: Vec<_> = times(&storage, id, 0).iter().map(|(end, _)| *end).collect();
    assert_eq!(ends, [1_056, 2 * 1_056]);
}

/// The operations are the purge of segments, the deletion of detached segments, and the purge of the recording.
#[test]
fn each_operation_that_deletes_segments_deletes_their_indexes() {
    let (storage, mut store, _) = new_store(indexed());
    let id = recorded(&mut store, 0, 300);
    let names = index_names(&storage);
    assert_eq!(names.len(), 3, "{names:?}");
    let operation = store.purge_segments(id, SEGMENT_LENGTH, &IDLE);
    delete_all(&mut store, operation).unwrap();
    assert_eq!(index_names(&storage).len(), names.len() - 1);
    store
        .detach_segments(id, 2 * SEGMENT_LENGTH, &IDLE)
        .unwrap();
    let operation = store.delete_detached_segments(id);
    delete_all(&mut store, operation).unwrap();
    assert_eq!(index_names(&storage).len(), names.len() - 2);
    let operation = store.purge_recording(id, &IDLE);
    delete_all(&mut store, operation).unwrap();
    assert_eq!(index_names(&storage), [""; 0]);
}

#[test]
fn tools_that_delete_segments_delete_their_indexes() {
    let (storage, mut store, _) = new_store(indexed());
    let orphaned = recorded(&mut store, 0, 300);
    let dropped = recorded(&mut store, 0, 100);
    store
        .detach_segments(orphaned, SEGMENT_LENGTH, &IDLE)
        .unwrap();
    drop(store);
    let mut files = ArchiveFiles::open(storage.clone(), Access::Write).unwrap();
    assert_eq!(files.orphans(None).unwrap(), ["0-0.rec"]);
    files.delete_orphan("0-0.rec").unwrap();
    assert!(!index_names(&storage).contains(&"index-0-0.idx".to_owned()));
    files.mark(dropped, false).unwrap();
    files.compact().unwrap();
    assert!(
        index_names(&storage)
            .iter()
            .all(|name| name.starts_with("index-0-"))
    );
}

#[test]
fn a_repair_that_removes_a_fragment_removes_its_index_entries() {
    let (storage, mut store, _) = new_store(indexed());
    let mut session = store.start_recording(image(0)).unwrap();
    record(&mut session, 3);
    session.finish_index().unwrap();
    let position = session.recorded_position();
    let end = record_frame(&mut session, &EMPTY_PAGES);
    drop((store, session));
    assert_eq!(entries(&storage, 0, 0).last().unwrap().end_position, end);
    let mut files = ArchiveFiles::open(storage.clone(), Access::Write).unwrap();
    let mut on_progress = |_| ControlFlow::Continue(());
    let found = files
        .verify(0, &VerifyOptions::default(), &mut on_progress)
        .unwrap();
    files
        .repair(&found, TornDecision::Truncate, None, 0)
        .unwrap();
    assert_eq!(
        entries(&storage, 0, 0).last().unwrap().end_position,
        position
    );
}

/// 12, section 9.2
#[test]
fn each_writer_of_a_stop_time_uses_the_latest_of_start_time_last_arrival_and_now() {
    let arrived_ms = 4_000_000;
    for options in [indexed(), foreign()] {
        for now_ms in [
            -30_000_000,
            0,
            999,
            1_000,
            1_001,
            arrived_ms - 1,
            arrived_ms + 1,
        ] {
            let latest = match options.index {
                Some(_) => now_ms.max(arrived_ms),
                None => now_ms.max(1_000),
            };
            let killed = || {
                let (storage, mut store, clock) = new_store(options);
                clock.advance(arrived_ms * 1_000 - clock.time_us());
                let mut session = store.start_recording(image(0)).unwrap();
                record_frame(&mut session, &[1; 100]);
                let end = session.recorded_position();
                (storage, store, end)
            };
            let stopped_ms = |store: &Store| store.recording(0).unwrap().stop_timestamp_ms;
            // A normal stop.
            let (_, mut store, end) = killed();
            store.stop_recording(0, end, now_ms).unwrap();
            assert_eq!(stopped_ms(&store), latest, "stop at {now_ms}");
            // A recovery.
            let (storage, ..) = killed();
            let (store, _) = ArchiveStore::open(storage, options, now_ms).unwrap();
            assert_eq!(stopped_ms(&store), latest, "recovery at {now_ms}");
            assert_eq!(
                store.earlier_time().last_ms,
                Some(latest.min(arrived_ms))
                    .filter(|_| options.index.is_some())
                    .or(Some(1_000))
            );
            // A repair by a tool.
            let (storage, ..) = killed();
            let mut files = ArchiveFiles::open(storage.clone(), Access::Write).unwrap();
            let found = files
                .verify(0, &VerifyOptions::default(), &mut |_| {
                    ControlFlow::Continue(())
                })
                .unwrap();
            files
                .repair(&found, TornDecision::Keep, None, now_ms)
                .unwrap();
            let (store, _) = ArchiveStore::open(storage, options, 0).unwrap();
            assert_eq!(stopped_ms(&store), latest, "repair at {now_ms}");
        }
    }
}

/// Verifies recording 0 in the boot with this number, and repairs it. Returns the stop position after the repair.
fn repaired_in(storage: &MemoryStorage, number: u8, decision: TornDecision) -> (Option<bool>, i64) {
    let files = ArchiveFiles::open(storage.clone(), Access::Write).unwrap();
    let mut files = files.in_boot(boot(number));
    let found = files
        .verify(0, &VerifyOptions::default(), &mut |_| {
            ControlFlow::Continue(())
        })
        .unwrap();
    let is_unacknowledged = found.torn.as_ref().map(|torn| torn.is_unacknowledged);
    let stop_position = found.stop_position_by(decision);
    let repaired = files.repair(&found, decision, None, OPENED_MS).unwrap();
    assert_eq!(repaired.stop_position, stop_position);
    (is_unacknowledged, stop_position)
}

/// 07-133
#[test]
fn a_repair_uses_the_proof_of_the_index_as_a_start_does() {
    use TornDecision::{Keep, Truncate};
    let killed = || {
        let (storage, mut store, _) = new_store(indexed());
        let mut session = store.start_recording(image(0)).unwrap();
        record(&mut session, 3);
        session.finish_index().unwrap();
        let position = session.recorded_position();
        let end = record_frame(&mut session, &EMPTY_PAGES);
        drop(session);
        (storage, store, position, end)
    };
    for decision in [Truncate, Keep] {
        // The index proves the frame, whether the recording was stopped or not.
        let (storage, store, position, end) = killed();
        drop(store);
        let copy = copy_of(&storage);
        assert_eq!(repaired_in(&storage, 1, decision), (None, end));
        let (_, recovered) = open_with(&copy, indexed()).unwrap();
        assert_eq!(recovered[0].stop_position, end);
        let (storage, mut store, ..) = killed();
        store.stop_recording(0, end, 0).unwrap();
        drop(store);
        assert_eq!(repaired_in(&storage, 1, decision), (None, end));
        // In another boot, the index proves nothing.
        let (storage, store, ..) = killed();
        drop(store);
        let decided = match decision {
            Truncate => position,
            Keep => end,
        };
        assert_eq!(repaired_in(&storage, 2, decision), (Some(false), decided));
        // The index proves that the frame was not acknowledged.
        let (storage, store, ..) = killed();
        drop(store);
        remove_last_entry(&storage, 0, 0);
        let copy = copy_of(&storage);
        assert_eq!(repaired_in(&storage, 1, decision), (Some(true), position));
        let (_, recovered) = open_with(&copy, indexed()).unwrap();
        assert_eq!(recovered[0].stop_position, position);
        // A stop position after the frame shows that it was acknowledged, so the user decides.
        let (storage, mut store, ..) = killed();
        store.stop_recording(0, end, 0).unwrap();
        drop(store);
        remove_last_entry(&storage, 0, 0);
        assert_eq!(repaired_in(&storage, 1, decision), (Some(false), decided));
    }
}

/// Returns a storage with the same files.
fn copy_of(storage: &MemoryStorage) -> MemoryStorage {
    let copy = MemoryStorage::new();
    for name in storage.names().unwrap() {
        copy.put(&name, &storage.bytes(&name).unwrap());
    }
    copy
}

/// Removes the last entry of a segment's index.
fn remove_last_entry(storage: &MemoryStorage, id: i64, base: i64) {
    let name = format!("index-{id}-{base}.idx");
    let length = storage.bytes(&name).unwrap().len() as u64;
    let file = storage.open(&name, Access::Write).unwrap();
    file.set_length(length - 64).unwrap();
}

/// A storage, and a change of its files that returns the text of its error.
type PreparedChange = (MemoryStorage, Box<dyn FnOnce() -> Result<(), String>>);

/// Makes each step of a change fail in turn. Returns the texts of the errors.
fn errors_at_each_step(prepare: impl Fn() -> PreparedChange) -> Vec<String> {
    let mut texts = Vec::new();
    loop {
        let (storage, change) = prepare();
        let step = storage.steps() + texts.len() as u64;
        storage.fail_at(step, StorageFault::Error(io::ErrorKind::PermissionDenied));
        match change() {
            Ok(()) => return texts,
            Err(text) => texts.push(text),
        }
    }
}

#[test]
fn an_error_of_an_index_has_the_name_of_the_index() {
    let prepare = || {
        let (storage, mut store, _) = new_store(indexed());
        let mut session = store.start_recording(image(0)).unwrap();
        record(&mut session, 3);
        session.finish_index().unwrap();
        let position = session.recorded_position();
        let end = record_frame(&mut session, &EMPTY_PAGES);
        (storage, store, session, position, end)
    };
    let repair = || -> PreparedChange {
        let (storage, ..) = prepare();
        let mut files = ArchiveFiles::open(storage.clone(), Access::Write).unwrap();
        let mut on_progress = |_| ControlFlow::Continue(());
        let found = files
            .verify(0, &VerifyOptions::default(), &mut on_progress)
            .unwrap();
        let change = move || {
            let repaired = files.repair(&found, TornDecision::Truncate, None, 0);
            repaired.map(drop).map_err(|error| error.to_string())
        };
        (storage, Box::new(change))
    };
    let truncate = || -> PreparedChange {
        let (storage, mut store, session, position, end) = prepare();
        drop(session);
        store.stop_recording(0, end, 0).unwrap();
        let change = move || {
            let truncated = store.truncate(0, position);
            truncated.map(drop).map_err(|error| error.to_string())
        };
        (storage, Box::new(change))
    };
    for texts in [errors_at_each_step(repair), errors_at_each_step(truncate)] {
        for name in ["0-0.rec", "index-0-0.idx"] {
            assert!(texts.iter().any(|text| text.contains(name)), "{texts:?}");
        }
    }
}

#[test]
fn indexes_move_with_the_segments_even_if_a_migration_is_killed_at_any_step() {
    let prepare = || {
        let (storage, mut store, _) = new_store(indexed());
        let mut session = store.start_recording(image(0)).unwrap();
        record(&mut session, 150);
        session.finish_index().unwrap();
        let end = store
            .recording(0)
            .unwrap()
            .segment_base(session.recorded_position());
        stop(&mut store, &session);
        let operation = store.truncate(0, end);
        delete_all(&mut store, operation).unwrap();
        let mut session = store.start_recording(image(end)).unwrap();
        record(&mut session, 1);
        stop(&mut store, &session);
        (storage, store)
    };
    let (before, _) = prepare();
    let first = times(&before, 0, 0);
    killed_at_each_step(
        prepare,
        |store| {
            let migration = store.migrate_segments(0, 1)?;
            delete_all(store, Ok(migration.deletion)).map(drop)
        },
        |storage, store, is_done| {
            let is_moved = positions(&store, 1).0 == 0;
            assert!(is_moved || !is_done);
            let id = i64::from(is_moved);
            assert_eq!(times(storage, id, 0), first);
            let names = index_names(storage);
            assert_eq!(
                names.contains(&"index-0-0.idx".to_owned()),
                !is_moved,
                "{names:?}"
            );
        },
    );
}

#[test]
fn opening_the_archive_creates_no_index_for_a_killed_recording_without_one() {
    let (storage, mut store, _) = new_store(foreign());
    for _ in 0..3 {
        record(&mut store.start_recording(image(0)).unwrap(), 5);
    }
    drop(store);
    let (_, recovered) = open_with(&storage, indexed()).unwrap();
    assert_eq!(recovered.len(), 3);
    assert_eq!(index_names(&storage), Vec::<String>::new());
}

#[test]
fn keep_alive_is_called_between_the_steps_of_a_long_opening() {
    let (storage, mut store, _) = new_store(indexed());
    for _ in 0..3 {
        record(&mut store.start_recording(image(0)).unwrap(), 5);
    }
    drop(store);
    let mut steps = vec![storage.steps()];
    let mut note_steps = || steps.push(storage.steps());
    ArchiveStore::open_with(storage.clone(), indexed(), OPENED_MS, &mut note_steps).unwrap();
    let rounds = steps.windows(2).map(|pair| pair[1] - pair[0]);
    assert!(steps.len() > 3 * 3, "{steps:?}");
    assert!(rounds.max().unwrap() < 10, "{steps:?}");
}

#[test]
fn an_index_without_its_segment_is_removed_when_the_archive_is_opened() {
    let (storage, mut store, _) = new_store(indexed());
    recorded(&mut store, 0, 10);
    drop(store);
    storage.put(
        "index-0-65536000.idx",
        b"left by an archive that deletes only segments",
    );
    storage.put("index-0-0.idx.new", b"left by a repair that was killed");
    open_with(&storage, indexed()).unwrap();
    assert_eq!(index_names(&storage), ["index-0-0.idx"]);
}

#[test]
fn an_archive_starts_with_a_directory_that_has_the_name_of_an_index() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("index-7-0.idx");
    std::fs::create_dir(&path).unwrap();
    let storage = Directory::new(directory.path().to_owned());
    ArchiveStore::open(storage, indexed(), OPENED_MS).unwrap();
    assert!(path.is_dir());
}

/// The index proves that the torn frame was never acknowledged.
#[test]
fn a_torn_frame_that_was_not_acknowledged_is_removed_even_with_refuse() {
    let (storage, mut store, _) = new_store(indexed());
    let mut session = store.start_recording(image(0)).unwrap();
    record(&mut session, 3);
    let position = tear(&storage, &session, "0-0.rec");
    drop((store, session));
    let (store, recovered) = open_with(&storage, indexed()).unwrap();
    let expected = RecoveredRecording {
        recording_id: 0,
        stop_position: position,
        is_torn: true,
    };
    assert_eq!(recovered, [expected]);
    assert_eq!(
        recovered[0].to_string(),
        format!(
            "recording 0 was not stopped: it ends at position {position}; an incomplete fragment was removed there"
        )
    );
    assert_eq!(positions(&store, 0), (0, position));
    assert_eq!(
        entries(&storage, 0, 0).last().unwrap().end_position,
        position
    );
}

#[test]
fn an_acknowledged_frame_with_pages_of_zeros_is_kept_with_any_options() {
    for on_torn_fragment in [OnTornFragment::Refuse, OnTornFragment::Truncate] {
        let (storage, mut store, _) = new_store(indexed());
        let mut session = store.start_recording(image(0)).unwrap();
        record(&mut session, 3);
        let end = record_frame(&mut session, &EMPTY_PAGES);
        drop((store, session));
        let options = StoreOptions {
            on_torn_fragment,
            ..indexed()
        };
        let (_, recovered) = open_with(&storage, options).unwrap();
        assert_eq!(
            (recovered[0].stop_position, recovered[0].is_torn),
            (end, false)
        );
    }
}

/// Creates a recording that ends with a torn frame, changes its files, and opens the store. Returns
/// the stop position.
fn opened_after(change: impl FnOnce(&MemoryStorage), options: StoreOptions) -> Result<i64, String> {
    let (storage, mut store, _) = new_store(indexed());
    let mut session = store.start_recording(image(0)).unwrap();
    record(&mut session, 3);
    tear(&storage, &session, "0-0.rec");
    drop((store, session));
    change(&storage);
    open_with(&storage, options).map(|(store, _)| positions(&store, 0).1)
}

/// Without the proof of an index, a torn frame is refused.
#[test]
fn an_index_that_is_missing_damaged_or_of_another_boot_proves_nothing() {
    assert!(opened_after(|_| {}, indexed()).is_ok());
    let refusal = opened_after(
        |storage| storage.remove("index-0-0.idx").unwrap(),
        indexed(),
    );
    assert!(
        refusal
            .unwrap_err()
            .contains("straddling page boundary in file: 0-0.rec")
    );
    let damage = |storage: &MemoryStorage| assert!(storage.flip_bit("index-0-0.idx", 70, 0));
    assert!(opened_after(damage, indexed()).is_err());
    for boot_id in [boot(2), None] {
        let options = StoreOptions {
            boot_id,
            ..indexed()
        };
        assert!(opened_after(|_| {}, options).is_err(), "{boot_id:?}");
    }
}

#[test]
fn an_index_proves_nothing_about_frames_of_another_recorder() {
    let (storage, mut store, _) = new_store(indexed());
    let mut session = store.start_recording(image(0)).unwrap();
    record(&mut session, 3);
    let id = stop(&mut store, &session);
    drop((store, session));
    let (mut other, _) = open_with(&storage, foreign()).unwrap();
    let mut session = other
        .extend_recording(id, &continuation(3 * 1_056))
        .unwrap();
    record_frame(&mut session, &EMPTY_PAGES);
    drop((other, session));
    let refusal = open_with(&storage, indexed()).unwrap_err();
    assert!(refusal.contains("straddling page boundary"), "{refusal}");
}

/// An index proves nothing about frames of an earlier recorder.
#[test]
fn a_frame_before_an_extension_is_not_removed_because_of_the_index() {
    let (storage, mut store, _) = new_store(indexed());
    let mut session = store.start_recording(image(0)).unwrap();
    let end = {
        // The frame is not the last frame of its block, so no index entry ends with this frame.
        let mut publisher = Publisher::new(0);
        let mut block = publisher.data(0xC0, &EMPTY_PAGES);
        let end = block.len() as i64;
        block.extend(publisher.data(0xC0, &payload(100)));
        session.append(&block, |_| {}).unwrap();
        session.publish().unwrap();
        end
    };
    let id = stop(&mut store, &session);
    let operation = store.truncate(id, end);
    delete_all(&mut store, operation).unwrap();
    drop(store.extend_recording(id, &continuation(end)).unwrap());
    drop(store);
    let (store, _) = open_with(&storage, indexed()).unwrap();
    assert_eq!(positions(&store, id).1, end);
}

/// At sync levels above [`SyncLevel::None`], acknowledged blocks and their entries are on the disk.
#[test]
fn with_a_sync_level_an_index_is_a_proof_even_after_a_loss_of_power() {
    for is_whole in [false, true] {
        let synced = StoreOptions {
            file_sync_level: SyncLevel::Data,
            catalog_sync_level: SyncLevel::Data,
            ..indexed()
        };
        let (storage, mut store, _) = new_store(synced);
        let mut session = store.start_recording(image(0)).unwrap();
        record(&mut session, 3);
        let end = match is_whole {
            true => record_frame(&mut session, &EMPTY_PAGES),
            false => tear(&storage, &session, "0-0.rec"),
        };
        drop((store, session));
        storage.lose_power(|| !is_whole);
        let options = StoreOptions {
            boot_id: boot(2),
            ..synced
        };
        let (_, recovered) = open_with(&storage, options).unwrap();
        let found = (recovered[0].stop_position, recovered[0].is_torn);
        assert_eq!(found, (end, !is_whole));
    }
}

/// A loss of power may set the time of a file back, so the time of the last write is certain only within one boot.
#[test]
fn the_last_bytes_of_a_killed_recording_have_a_time_only_if_the_machine_did_not_restart() {
    for (opened_in, time_us) in [(boot(1), Some(7_000_000)), (boot(2), None), (None, None)] {
        let (storage, mut store, _) = new_store(indexed());
        storage.set_time(Duration::from_secs(7));
        let mut session = store.start_recording(image(0)).unwrap();
        record(&mut session, 3);
        drop((store, session));
        let options = StoreOptions {
            boot_id: opened_in,
            ..indexed()
        };
        let _ = open_with(&storage, options).unwrap();
        let expected = [(1_056, Some(1_000_000)), (3 * 1_056, time_us)];
        assert_eq!(times(&storage, 0, 0), expected);
    }
}

/// Records frames with and without pages of zeros. A frame counts as acknowledged after `publish` has returned.
#[test]
fn after_a_kill_at_any_step_a_recording_has_all_acknowledged_and_only_written_frames() {
    for progress in 0..4 {
        for step in 0.. {
            let (storage, mut store, clock) = new_store(indexed());
            let mut session = store.start_recording(image(0)).unwrap();
            storage.fail_at(storage.steps() + step, StorageFault::Kill { progress });
            let mut told = 0;
            let mut written = 0;
            for number in 0..12 {
                clock.advance(400);
                let message = match number % 3 {
                    0 => EMPTY_PAGES.to_vec(),
                    1 => payload(9_000),
                    _ => [payload(3_000), EMPTY_PAGES.to_vec()].concat(),
                };
                let mut publisher = Publisher::new(session.recorded_position());
                let frame = publisher.data(0xC0, &message);
                let room = SEGMENT_LENGTH - session.recorded_position() % SEGMENT_LENGTH;
                if frame.len() as i64 > room {
                    break;
                }
                written = session.recorded_position() + frame.len() as i64;
                let published = session
                    .append(&frame, |_| {})
                    .and_then(|_| session.publish());
                match published {
                    Ok(position) => told = position,
                    Err(_) => break,
                }
            }
            let is_killed = storage.is_killed();
            drop((store, session));
            storage.restart();
            let (store, _) = open_with(&storage, indexed()).unwrap();
            let end = positions(&store, 0).1;
            assert!(
                (told..=written).contains(&end),
                "step {step}: {told} {end} {written}"
            );
            let last = entries(&storage, 0, 0)
                .last()
                .map(|entry| entry.end_position);
            assert_eq!(last.unwrap_or(0), end, "step {step}");
            if !is_killed {
                break;
            }
        }
    }
}

/// An entry that is no proof is needed only for its arrival time, so the recording can continue without it.
#[test]
fn a_failed_write_of_an_entry_that_is_no_proof_does_not_end_the_recording() {
    let (storage, mut store, clock) = new_store(indexed());
    let mut session = store.start_recording(image(0)).unwrap();
    record(&mut session, 1);
    clock.advance(1_000);
    let before = storage.steps();
    let full = StorageFault::Error(std::io::ErrorKind::StorageFull);
    storage.fail_at(before + 1, full);
    record(&mut session, 1);
    // Three steps: the write of the block, the write of the entry, and the removal of the incomplete entry.
    assert_eq!(storage.steps(), before + 3);
    record(&mut session, 1);
    assert_eq!(
        storage.steps(),
        before + 4,
        "after the failure, a block costs one write again"
    );
    let whole = session.recorded_position();
    session.finish_index().unwrap();
    assert_eq!(entries(&storage, 0, 0).last().unwrap().end_position, whole);
    tear(&storage, &session, "0-0.rec");
    drop((store, session));
    let (store, _) = open_with(&storage, indexed()).unwrap();
    assert_eq!(positions(&store, 0), (0, whole));
}

#[test]
fn only_the_possible_entries_of_an_index_that_is_too_long_are_read() {
    let (storage, mut store, _) = new_store(indexed());
    let mut session = store.start_recording(image(0)).unwrap();
    record(&mut session, 3);
    let position = tear(&storage, &session, "0-0.rec");
    drop((store, session));
    let index = storage.open("index-0-0.idx", Access::Write).unwrap();
    index.set_length(1 << 46).unwrap();
    let (mut store, _) = open_with(&storage, indexed()).unwrap();
    assert_eq!(positions(&store, 0), (0, position));
    assert_eq!(
        entries(&storage, 0, 0).last().unwrap().end_position,
        position
    );
    let index = storage.open("index-0-0.idx", Access::Write).unwrap();
    index.set_length(1 << 46).unwrap();
    store.extend_recording(0, &continuation(position)).unwrap();
    let index = storage.open("index-0-0.idx", Access::Read).unwrap();
    assert!(index.length().unwrap() < 1_024);
}

#[test]
fn an_extension_writes_entries_after_an_entry_with_a_time_before_the_epoch() {
    let (storage, mut store, clock) = new_store(indexed());
    let mut session = store.start_recording(image(0)).unwrap();
    record(&mut session, 1);
    session.finish_index().unwrap();
    let stop = session.recorded_position();
    store.stop_recording(0, stop, 1).unwrap();
    drop(session);
    let last = entries(&storage, 0, 0).pop().unwrap();
    let early = IndexEntry {
        arrival_us: Some(-i64::MAX),
        ..last
    };
    let mut index = storage.bytes("index-0-0.idx").unwrap();
    index.truncate(128);
    index.extend(early.encode());
    storage.put("index-0-0.idx", &index);
    let mut session = store.extend_recording(0, &continuation(stop)).unwrap();
    clock.advance(1_000);
    let end = record_frame(&mut session, &[1; 100]);
    assert_eq!(times(&storage, 0, 0).last(), Some(&(end, Some(1_001_000))));
}

/// A frame with pages of zeros needs an index entry as a proof that the frame is not torn.
#[test]
fn a_recording_ends_before_the_block_if_its_proof_cannot_be_written() {
    let (storage, mut store, clock) = new_store(indexed());
    let mut session = store.start_recording(image(0)).unwrap();
    record(&mut session, 1);
    clock.advance(1_000);
    let fault = StorageFault::Error(std::io::ErrorKind::StorageFull);
    storage.fail_at(storage.steps() + 1, fault);
    let frame = Publisher::new(1_056).data(0xC0, &EMPTY_PAGES);
    session.append(&frame, |_| {}).unwrap();
    let error = session.publish().unwrap_err().to_string();
    assert!(error.contains("index-0-0.idx at position 1056"), "{error}");
    assert_eq!(session.recorded_position(), 1_056);
    let rest = &storage.bytes("0-0.rec").unwrap()[1_056..];
    assert!(rest.iter().all(|&byte| byte == 0));
}

/// Returns a recording that lacks the last block of its first segment, and that block.
fn before_the_end_of_a_segment() -> (MemoryStorage, Clock, Session, Vec<u8>) {
    let (storage, mut store, clock) = new_store(StoreOptions {
        file_sync_level: SyncLevel::Data,
        catalog_sync_level: SyncLevel::Data,
        ..indexed()
    });
    let mut session = store.start_recording(image(0)).unwrap();
    while session.recorded_position() + 1_056 < SEGMENT_LENGTH {
        record(&mut session, 1);
    }
    let rest = (SEGMENT_LENGTH - session.recorded_position()) as usize;
    let block = Publisher::new(session.recorded_position()).data(0xC0, &payload(rest - 32));
    (storage, clock, session, block)
}

#[test]
fn after_a_failed_creation_of_the_next_index_no_empty_index_is_left() {
    let mut without_index = 0;
    for step in 0..12 {
        let (storage, _, mut session, block) = before_the_end_of_a_segment();
        storage.fail_at(
            storage.steps() + step,
            StorageFault::Error(io::ErrorKind::StorageFull),
        );
        let published = session
            .append(&block, |_| {})
            .and_then(|_| session.publish());
        let Some(error) = session.take_index_error() else {
            continue;
        };
        without_index += 1;
        assert_eq!(published.unwrap(), SEGMENT_LENGTH);
        let name = format!("index-0-{SEGMENT_LENGTH}.idx");
        assert!(error.to_string().contains(&name), "{error}");
        assert!(session.take_index_error().is_none());
        record(&mut session, 5);
        assert_eq!(session.recorded_position(), SEGMENT_LENGTH + 5 * 1_056);
        assert_eq!(index_names(&storage), ["index-0-0.idx"]);
    }
    assert!(without_index >= 3, "{without_index}");
}

#[test]
fn after_a_failed_write_of_a_segments_last_entry_the_next_index_begins_with_its_own_entries() {
    let mut retried = 0;
    for step in 0..12 {
        let (storage, clock, mut session, block) = before_the_end_of_a_segment();
        let fault = storage.steps() + step;
        storage.fail_at(fault, StorageFault::Error(io::ErrorKind::StorageFull));
        let published = session
            .append(&block, |_| {})
            .and_then(|_| session.publish());
        if storage.steps() <= fault {
            break;
        }
        if published.is_err() || session.take_index_error().is_some() {
            continue;
        }
        clock.advance(2_000);
        record(&mut session, 5);
        clock.advance(2_000);
        session.note_pause();
        let first = times(&storage, 0, 0);
        let second = times(&storage, 0, SEGMENT_LENGTH);
        retried += usize::from(first.last().is_some_and(|(end, _)| *end == SEGMENT_LENGTH));
        assert!(first.is_sorted() && second.is_sorted());
        assert!(
            second
                .iter()
                .all(|(end, arrival_us)| *end > SEGMENT_LENGTH && arrival_us.is_some()),
            "{second:?}"
        );
        assert_eq!(
            second.last().map(|(end, _)| *end),
            Some(session.recorded_position())
        );
    }
    assert!(retried >= 1, "{retried}");
}

/// Returns a copy of an index with some changed bytes. If `sealed`, the checksums are correct.
fn changed(index: &[u8], changes: &[(usize, u8)], sealed: bool, length: usize) -> Vec<u8> {
    let mut bytes = index.to_vec();
    bytes.resize(length.min(2 * index.len()), 0);
    for &(at, byte) in changes {
        let length = bytes.len().max(1);
        if let Some(changed) = bytes.get_mut(at % length) {
            *changed = byte;
        }
    }
    for slot in bytes.chunks_exact_mut(64).filter(|_| sealed) {
        let (body, checksum) = slot.split_at_mut(60);
        checksum.copy_from_slice(&Checksum::Crc32.compute(body).to_le_bytes());
    }
    bytes
}

/// Returns whether an index has a sound header with a later version than 2.
fn is_of_a_later_version(index: &[u8]) -> bool {
    index.first_chunk::<64>().is_some_and(|header| {
        let (body, checksum) = header.split_at(60);
        body.starts_with(b"AIDX")
            && body[4..8].iter().rev().gt(&[0, 0, 0, 2])
            && *checksum == Checksum::Crc32.compute(body).to_le_bytes()
    })
}

proptest! {
    #[test]
    fn an_index_of_any_content_is_used_or_ignored_and_an_extension_repairs_it(
        changes in prop::collection::vec((0usize..1_000, any::<u8>()), 0..6), sealed: bool, length in 0usize..1_500,
    ) {
        let (storage, mut store, clock) = new_store(indexed());
        let mut session = store.start_recording(image(0)).unwrap();
        for _ in 0..8 {
            clock.advance(1_000);
            record(&mut session, 1);
        }
        let whole = session.recorded_position();
        let end = record_frame(&mut session, &EMPTY_PAGES);
        drop((store, session));
        let index = storage.bytes("index-0-0.idx").unwrap();
        let content = changed(&index, &changes, sealed, length);
        storage.put("index-0-0.idx", &content);
        if is_of_a_later_version(&content) {
            let extended = open_with(&storage, indexed()).and_then(|(mut store, _)| {
                let stop = positions(&store, 0).1;
                store.extend_recording(0, &continuation(stop)).map(drop).map_err(|error| error.to_string())
            });
            let refusal = extended.unwrap_err();
            prop_assert!(refusal.contains("index-0-0.idx: ") && refusal.contains("the file has version"), "{}", refusal);
            prop_assert_eq!(storage.bytes("index-0-0.idx").unwrap(), content);
            return Ok(());
        }
        let truncate = StoreOptions { on_torn_fragment: OnTornFragment::Truncate, ..indexed() };
        let opened = open_with(&storage, indexed());
        if let Err(refusal) = &opened {
            prop_assert!(refusal.contains("straddling page boundary"), "{}", refusal);
        }
        let (mut store, _) = opened.or_else(|_| open_with(&storage, truncate)).unwrap();
        let stop = positions(&store, 0).1;
        prop_assert!(stop == whole || stop == end, "{}", stop);
        store.extend_recording(0, &continuation(stop)).unwrap();
        prop_assert_eq!(entries(&storage, 0, 0).last().map(|entry| entry.end_position), Some(stop));
    }
}

/// Returns the written end of a recording without a stop position, according to its index.
fn shown_end(storage: &MemoryStorage, store: &Store, id: i64) -> Option<i64> {
    let descriptor = store.recording(id).unwrap();
    let stream = RecordedStream::of_recording(descriptor).unwrap();
    written_end(storage, descriptor, &stream).unwrap()
}

#[test]
fn the_written_end_of_an_active_recording_is_at_most_64_kib_before_the_recorded_position() {
    let (storage, mut store, _clock) = new_store(indexed());
    let mut session = store.start_recording(image(0)).unwrap();
    let id = session.stream().recording_id();
    for _ in 0..400 {
        record(&mut session, 1);
        let recorded = session.recorded_position();
        let shown = shown_end(&storage, &store, id).unwrap();
        assert!(
            shown <= recorded && recorded - shown <= 64 * 1024,
            "{shown} of {recorded}"
        );
    }
    assert!(session.recorded_position() > 2 * SEGMENT_LENGTH);
}

#[test]
fn the_written_end_is_unknown_after_another_archive_has_continued_the_recording() {
    let (storage, mut store, _clock) = new_store(indexed());
    let id = recorded(&mut store, 0, 10);
    assert!(shown_end(&storage, &store, id).is_some());
    drop(store);
    let (mut store, _) = open_with(&storage, foreign()).unwrap();
    let stop = positions(&store, id).1;
    let mut session = store.extend_recording(id, &continuation(stop)).unwrap();
    record(&mut session, 1);
    assert_eq!(shown_end(&storage, &store, id), None);
}

#[test]
fn the_written_end_is_unknown_without_an_index() {
    let (storage, mut store, _clock) = new_store(foreign());
    let id = recorded(&mut store, 0, 10);
    assert_eq!(shown_end(&storage, &store, id), None);
}
