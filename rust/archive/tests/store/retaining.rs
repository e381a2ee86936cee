//! Deletion by retention: times of segments, kills at each step, and losses of power.

use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use aeron_agent::CachedEpochClock;
use aeron_archive::catalog::{CATALOG_FILE, Catalog};
use aeron_archive::extensions::{
    ExtensionChange, NamedReader, RecordingLabels, RetentionPolicy, RetentionScope,
};
use aeron_archive::index::{ArrivalClock, IndexForm};
use aeron_archive::memory_storage::{MemoryStorage, StorageFault};
use aeron_archive::retention::{
    Holders, RecordingExtent, RetentionHolder, RetentionOutcome, excess_bytes, needs_segment_time,
    outcome, removals,
};
use aeron_archive::segments::segment_name;
use aeron_archive::storage::{Access, Storage, StorageFile, SyncLevel};
use aeron_archive::store::{ArchiveStore, RecordingActivity, StoreError, StoreOptions};

use crate::recordings::stream::{SEGMENT_LENGTH, Seen};
use crate::store::common::*;

const NOW_MS: i64 = 100_000;

fn indexed() -> StoreOptions {
    StoreOptions {
        index: Some(IndexForm::Sparse),
        catalog_sync_level: SyncLevel::Data,
        file_sync_level: SyncLevel::Data,
        ..options()
    }
}

fn reopen(storage: &MemoryStorage) -> Store {
    let (store, _) = ArchiveStore::open(storage.clone(), indexed(), OPENED_MS).unwrap();
    store
}

fn empty_with_clock() -> (MemoryStorage, Store, Arc<CachedEpochClock>) {
    let storage = MemoryStorage::new();
    let mut store = reopen(&storage);
    let clock = Arc::new(CachedEpochClock::new(1_000));
    store.set_arrival_clock(ArrivalClock::new(Arc::clone(&clock) as _));
    (storage, store, clock)
}

/// Returns a store with three recordings, a policy for all recordings, and a policy for recording 2
/// alone. Recording 0 has four segments, and a reader has committed a part of the second segment.
/// Recording 1 has three segments. Recording 2 is older than its policy allows.
fn prepared() -> (MemoryStorage, Store) {
    let (storage, mut store, clock) = empty_with_clock();
    recorded(&mut store, 1024, 400);
    clock.update(2_000);
    recorded(&mut store, 0, 300);
    let old = recorded(&mut store, 0, 20);
    let committed = ExtensionChange::Reader(NamedReader {
        recording_id: 0,
        name: "bars".into(),
        owner: Vec::new(),
        position: SEGMENT_LENGTH + 4_096,
        committed_ms: 1_500,
        max_age_ms: None,
        max_lag: None,
    });
    let policy = |scope, max_bytes, max_age_ms| {
        ExtensionChange::Policy(RetentionPolicy {
            scope,
            max_bytes,
            max_age_ms,
        })
    };
    let everything = RetentionScope::Matching {
        stream_id: None,
        channel_fragment: String::new(),
    };
    let info = RecordingLabels {
        name: "old".into(),
        ..RecordingLabels::default()
    };
    store
        .extensions_mut()
        .apply(vec![
            committed,
            policy(everything, Some(SEGMENT_LENGTH), None),
            policy(RetentionScope::Recording(old), None, Some(1_000)),
            ExtensionChange::Info {
                recording_id: old,
                info,
            },
        ])
        .unwrap();
    (storage, store)
}

/// Applies the policies like the archive, but without a delay.
fn retain(store: &mut Store) -> Result<Vec<RetentionOutcome>, StoreError> {
    let mut outcomes = Vec::new();
    for policy in store.extensions().policies().cloned().collect::<Vec<_>>() {
        let ids = store.recordings().map(|recording| recording.recording_id);
        let ids = ids.filter(|id| store.retention_policy(*id).unwrap() == Some(&policy));
        let mut extents: Vec<RecordingExtent> =
            ids.map(|id| store.extent(id, None).unwrap()).collect();
        let excess = excess_bytes(&policy, &extents);
        for extent in &mut extents {
            while needs_segment_time(&policy, extent, excess, NOW_MS) {
                let base = extent.segment_base(extent.segment_times_ms.len());
                let time_ms = store.segment_time_ms(extent, base)?;
                extent.segment_times_ms.push(time_ms);
            }
        }
        for removal in removals(&policy, &extents, NOW_MS) {
            let id = removal.recording_id;
            let extent = extents.iter().find(|extent| extent.recording_id == id);
            let readers = store.extensions().readers_of(id);
            let holders = Holders {
                readers: readers
                    .map(|reader| (reader.name.as_str(), reader.position))
                    .collect(),
                ..Holders::default()
            };
            let outcome = outcome(extent.unwrap(), &removal, &holders);
            if !outcome.is_nothing() {
                let operation = store.remove(&outcome, &IDLE);
                delete_all(store, operation)?;
            }
            outcomes.push(outcome);
        }
    }
    Ok(outcomes)
}

/// Checks that each recording has the files and the frames from its start position on, and that the
/// data after the reader's position exist.
fn check(storage: &MemoryStorage, store: &Store, before: &[Vec<Seen>; 3]) {
    for recording in store.recordings() {
        let id = recording.recording_id;
        let (start, stop) = positions(store, id);
        let (first, last) = (recording.first_segment_base(), recording.segment_base(stop));
        let expected: Vec<i64> = (first..=last).step_by(SEGMENT_LENGTH as usize).collect();
        assert_eq!(bases_of(storage, id, "rec"), expected, "recording {id}");
        assert_eq!(bases_of(storage, id, "idx"), expected, "recording {id}");
        let kept = before[id as usize].iter().filter(|frame| frame.0 >= start);
        assert_eq!(
            frames(storage, store, id),
            kept.cloned().collect::<Vec<_>>()
        );
    }
    let kept = positions(store, 0).0;
    assert!(
        kept <= SEGMENT_LENGTH,
        "the reader's data are deleted up to {kept}"
    );
    assert_eq!(
        store.extensions().reader(0, "bars").unwrap().position,
        SEGMENT_LENGTH + 4_096
    );
    assert!(store.recording(1).is_ok());
    match store.recording(2) {
        Ok(_) => assert_eq!(store.extensions().info(2).name, "old"),
        Err(_) => {
            assert_eq!(bases_of(storage, 2, "rec"), []);
            assert!(store.extensions().info(2).is_empty());
            assert!(
                store
                    .extensions()
                    .policy(&RetentionScope::Recording(2))
                    .is_none()
            );
        }
    }
}

fn bases_of(storage: &MemoryStorage, id: i64, extension: &str) -> Vec<i64> {
    let names = storage.names().unwrap();
    let suffix = format!(".{extension}");
    let mut bases: Vec<i64> = names
        .iter()
        .filter_map(|name| {
            name.strip_suffix(&suffix)?
                .trim_start_matches("index-")
                .strip_prefix(&format!("{id}-"))?
                .parse()
                .ok()
        })
        .collect();
    bases.sort_unstable();
    bases
}

fn all_frames(storage: &MemoryStorage, store: &Store) -> [Vec<Seen>; 3] {
    [0, 1, 2].map(|id| frames(storage, store, id))
}

#[test]
fn retention_deletes_old_segments_and_recordings_but_keeps_data_that_a_reader_needs() {
    let (storage, mut store) = prepared();
    let before = all_frames(&storage, &store);
    let outcomes = retain(&mut store).unwrap();
    let of = |outcome: &RetentionOutcome| {
        (
            outcome.recording_id,
            outcome.new_start_position,
            outcome.reader.clone(),
        )
    };
    assert_eq!(
        outcomes.iter().map(of).collect::<Vec<_>>(),
        [
            (2, positions_of(&before[2]), String::new()),
            (0, SEGMENT_LENGTH, "bars".to_owned()),
            (1, 2 * SEGMENT_LENGTH, String::new()),
        ]
    );
    check(&storage, &store, &before);
    assert!(store.recording(2).is_err());
    let again = retain(&mut store).unwrap();
    assert!(again.iter().all(RetentionOutcome::is_nothing), "{again:?}");
}

fn positions_of(frames: &[Seen]) -> i64 {
    let last = frames.last().unwrap();
    last.0 + aeron_memory::log::frame::aligned_length(1_032) as i64
}

#[test]
fn after_a_killed_retention_the_files_agree_with_the_catalog_and_needed_data_exist() {
    let (storage, store) = prepared();
    let before = all_frames(&storage, &store);
    let last = std::cell::Cell::new(0);
    killed_at_each_step(
        prepared,
        |store| retain(store).map(drop),
        |storage, store, is_done| {
            drop(store);
            let mut store = reopen(storage);
            check(storage, &store, &before);
            if is_done {
                assert!(store.recording(2).is_err());
                assert_eq!(positions(&store, 1).0, 2 * SEGMENT_LENGTH);
            }
            retain(&mut store).unwrap();
            assert_eq!(positions(&store, 0).0, SEGMENT_LENGTH);
            assert_eq!(positions(&store, 1).0, 2 * SEGMENT_LENGTH);
            last.set(last.get() + 1);
        },
    );
    assert!(last.get() > 20, "{} kills", last.get());
}

#[test]
fn files_that_could_not_be_deleted_are_deleted_by_the_next_deletion_or_at_the_next_start() {
    let removal = |new_start_position| RetentionOutcome {
        recording_id: 0,
        start_position: 0,
        new_start_position,
        allowed_position: new_start_position,
        is_purge: false,
        held_by: RetentionHolder::Nothing,
        reader: String::new(),
    };
    // The first deletion removes an index and a segment.
    for failing_step in 0..2 {
        for has_next_deletion in [false, true] {
            let (storage, mut store) = prepared();
            let operation = store.remove(&removal(SEGMENT_LENGTH), &IDLE).unwrap();
            let error = StorageFault::Error(ErrorKind::Other);
            storage.fail_at(storage.steps() + failing_step, error);
            let refused = delete_all(&mut store, Ok(operation));
            assert!(matches!(refused, Err(StoreError::Delete { .. })));
            assert_eq!(bases_of(&storage, 0, "rec")[0], 0);
            let first = match has_next_deletion {
                false => {
                    drop(store);
                    reopen(&storage);
                    SEGMENT_LENGTH
                }
                true => {
                    let operation = store.remove(&removal(2 * SEGMENT_LENGTH), &IDLE);
                    delete_all(&mut store, operation).unwrap();
                    assert_eq!(store.extensions().deletion(0), None);
                    2 * SEGMENT_LENGTH
                }
            };
            for extension in ["rec", "idx"] {
                assert_eq!(bases_of(&storage, 0, extension)[0], first);
            }
        }
    }
}

#[test]
fn after_retention_and_a_loss_of_power_the_files_agree_with_the_catalog() {
    for lost in 0..40 {
        let (storage, mut store) = prepared();
        let before = all_frames(&storage, &store);
        storage.sync().unwrap();
        retain(&mut store).unwrap();
        drop(store);
        let mut change = 0;
        storage.lose_power(|| {
            change += 1;
            change != lost
        });
        let store = reopen(&storage);
        check(&storage, &store, &before);
        assert!(store.recording(2).is_err());
    }
}

#[test]
fn the_time_of_a_segment_is_in_its_last_entry_or_else_the_modification_time_of_its_file() {
    let (storage, mut store, clock) = empty_with_clock();
    storage.set_time(Duration::from_millis(50_000));
    let mut session = store.start_recording(image(0)).unwrap();
    record(&mut session, 100);
    clock.update(1_234);
    record(&mut session, 50);
    clock.update(9_999);
    record(&mut session, 150);
    let id = stop(&mut store, &session);
    let extent = store.extent(id, None).unwrap();
    let time_of = |store: &Store, base| store.segment_time_ms(&extent, base).unwrap();
    assert_eq!(time_of(&store, 0), 1_235);
    assert_eq!(time_of(&store, SEGMENT_LENGTH), 10_000);

    // Removes the entry of the last bytes, as if the disk had been full when the archive wrote the entry. Then the
    // modification time of the segment file is used, which is later than the times of the other entries.
    let name = "index-0-0.idx";
    let file = storage.open(name, Access::Write).unwrap();
    file.set_length(file.length().unwrap() - 64).unwrap();
    assert_eq!(time_of(&store, 0), 50_001);
    storage.remove(name).unwrap();
    assert_eq!(time_of(&store, 0), 50_001);
    // A segment without a file has no data, so it can always be removed from the recording.
    storage.remove(&segment_name(id, 0)).unwrap();
    assert_eq!(time_of(&store, 0), i64::MIN);
}

#[test]
fn the_policy_of_a_recording_overrides_the_policy_of_its_stream() {
    let (_, store) = prepared();
    let scope = |id| &store.retention_policy(id).unwrap().unwrap().scope;
    assert_eq!(*scope(2), RetentionScope::Recording(2));
    assert!(matches!(scope(0), RetentionScope::Matching { .. }));
    assert_eq!(refusal(store.retention_policy(3)).0, 5);
}

#[test]
fn a_store_without_policies_deletes_nothing() {
    let (storage, mut store, _) = empty_with_clock();
    recorded(&mut store, 0, 300);
    assert_eq!(retain(&mut store).unwrap(), []);
    assert_eq!(
        bases(&storage, 0).len(),
        6,
        "three segments and their indexes"
    );
}

#[test]
fn the_new_start_is_on_the_disk_before_the_first_copied_file_is_deleted() {
    let (storage, mut store) = empty();
    let id = recorded(&mut store, 0, 400);
    let catalog = storage.open(CATALOG_FILE, Access::Write).unwrap();
    catalog.sync(SyncLevel::DataAndMetadata).unwrap();
    storage.sync().unwrap();
    let new_start = 2 * SEGMENT_LENGTH;
    let operation = store.remove_copied(id, new_start, &RecordingActivity::default());
    assert!(!operation.unwrap().is_done());
    drop(store);
    storage.lose_power(|| false);
    let catalog = Catalog::open_read_only(&storage).unwrap();
    let [entry] = catalog.entries() else {
        panic!("one recording was made");
    };
    assert_eq!(entry.descriptor.start_position, new_start);
}
