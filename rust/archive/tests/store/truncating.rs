//! Truncates recordings.

use std::io::ErrorKind;

use aeron_archive::memory_storage::{MemoryStorage, StorageFault};
use aeron_archive::storage::SyncLevel;
use aeron_archive::store::{ArchiveStore, StoreError, StoreOptions};

use crate::recordings::stream::{SEGMENT_LENGTH, TERM_LENGTH, is_zero_from};
use crate::store::common::*;

const START: i64 = 1024;
/// Length of the frame of each message that `record` records, in bytes.
const FRAME: i64 = 1056;

/// Returns a store with a recording of three segments.
fn prepared() -> (MemoryStorage, Store) {
    let (storage, mut store) = empty();
    recorded(&mut store, START, 300);
    assert_eq!(bases(&storage, 0), [0, SEGMENT_LENGTH, 2 * SEGMENT_LENGTH]);
    (storage, store)
}

fn truncate(store: &mut Store, position: i64) -> Result<usize, StoreError> {
    let operation = store.truncate(0, position);
    delete_all(store, operation)
}

/// 07-108, 07-112
#[test]
fn a_truncated_recording_ends_at_the_position_and_zeros_follow_in_its_file() {
    let (storage, mut store) = prepared();
    let before = frames(&storage, &store, 0);
    let position = SEGMENT_LENGTH + 3 * FRAME;
    assert_eq!(truncate(&mut store, position).unwrap(), 1);
    assert_eq!(positions(&store, 0), (START, position));
    assert_eq!(bases(&storage, 0), [0, SEGMENT_LENGTH]);
    let name = format!("0-{SEGMENT_LENGTH}.rec");
    assert!(is_zero_from(&storage, &name, 3 * FRAME));
    assert_eq!(storage.bytes(&name).unwrap().len(), SEGMENT_LENGTH as usize);
    let after = frames(&storage, &store, 0);
    assert_eq!(after, before[..after.len()]);
    assert_eq!(store.recording(0).unwrap().stop_timestamp_ms, STOPPED_MS);
}

/// 07-108: truncates to the stop position, to a segment base, to a padding frame, and to the start
/// position.
#[test]
fn a_recording_can_be_truncated_to_its_start_to_its_end_and_to_any_frame() {
    let (storage, mut store) = prepared();
    let stop = positions(&store, 0).1;
    assert_eq!(truncate(&mut store, stop).unwrap(), 0);
    assert_eq!(bases(&storage, 0).len(), 3);
    assert_eq!(truncate(&mut store, SEGMENT_LENGTH).unwrap(), 2);
    assert_eq!(bases(&storage, 0), [0]);
    // The count includes the file that would begin at this position, like in the real archive.
    assert_eq!(truncate(&mut store, SEGMENT_LENGTH).unwrap(), 1);
    let padding = START + (TERM_LENGTH - START) / FRAME * FRAME;
    assert_eq!(truncate(&mut store, padding).unwrap(), 1);
    assert_eq!(positions(&store, 0), (START, padding));
    assert_eq!(truncate(&mut store, START).unwrap(), 1);
    assert_eq!(positions(&store, 0), (START, START));
    assert_eq!(bases(&storage, 0), []);
}

/// 07-108
#[test]
fn a_position_that_cannot_be_an_end_is_refused_and_nothing_changes() {
    let (storage, mut store) = prepared();
    let active = store.start_recording(image(0)).unwrap();
    let stop = positions(&store, 0).1;
    assert_eq!(
        refusal(store.truncate(7, START)),
        (5, "unknown recording id: 7".into())
    );
    assert_eq!(
        refusal(store.truncate(1, 0)),
        (2, "cannot truncate active recording".into())
    );
    for position in [START - 32, stop + 32, START + 1, -32, -1] {
        let text = format!("invalid position {position}: start={START} stop={stop} alignment=32");
        assert_eq!(refusal(store.truncate(0, position)), (16, text));
    }
    let position = START + 32;
    assert_eq!(
        refusal(store.truncate(0, position)),
        (
            0,
            format!("{position} position not aligned to a data header")
        )
    );
    assert_eq!(positions(&store, 0), (START, stop));
    assert_eq!(bases(&storage, 0).len(), 3);
    drop(active);
}

/// 07-108: other recordings are not affected.
#[test]
fn a_deletion_or_an_extension_is_refused_until_the_files_of_a_truncation_are_deleted() {
    let (_, mut store) = prepared();
    recorded(&mut store, 0, 1);
    let stop = 3 * FRAME + START;
    let mut operation = store.truncate(0, stop).unwrap();
    assert_eq!((operation.count(), operation.is_done()), (2, false));
    let busy = || {
        (
            0,
            "another delete operation in progress for recording id: 0".to_owned(),
        )
    };
    assert_eq!(refusal(store.truncate(0, START)), busy());
    assert_eq!(refusal(store.purge_recording(0, &IDLE)), busy());
    assert_eq!(refusal(store.delete_detached_segments(0)), busy());
    assert_eq!(
        refusal(store.extend_recording(0, &continuation(stop))),
        (
            0,
            "cannot extend recording 0 due to an outstanding delete operation".to_owned()
        )
    );
    let other = store.purge_recording(1, &IDLE);
    delete_all(&mut store, other).unwrap();

    assert!(operation.step(&mut store).unwrap());
    assert!(!operation.step(&mut store).unwrap());
    assert!(operation.is_done());
    store.extend_recording(0, &continuation(stop)).unwrap();
}

/// 07-108: after a kill, the same request completes the interrupted truncation. Then the recording can be extended.
#[test]
fn a_kill_during_a_truncation_leaves_the_old_or_the_new_stop_position() {
    for position in [
        START,
        START + 2 * FRAME,
        SEGMENT_LENGTH,
        SEGMENT_LENGTH + 3 * FRAME,
    ] {
        let (storage, store) = prepared();
        let old_end = positions(&store, 0).1;
        let before = frames(&storage, &store, 0);
        killed_at_each_step(
            prepared,
            |store| truncate(store, position).map(drop),
            |storage, mut store, is_done| {
                let end = positions(&store, 0).1;
                assert!(end == position || end == old_end && !is_done);
                let after = frames(storage, &store, 0);
                assert_eq!(after, before[..after.len()]);
                truncate(&mut store, position).unwrap();
                let mut session = store.extend_recording(0, &continuation(position)).unwrap();
                record(&mut session, 300);
                stop(&mut store, &session);
                assert_eq!(
                    frames(storage, &store, 0)
                        .iter()
                        .filter(|frame| !frame.4 && frame.0 >= position)
                        .count(),
                    300
                );
            },
        );
    }
}

#[test]
fn a_loss_of_power_does_not_restore_truncated_data_even_after_an_extension() {
    let synced = StoreOptions {
        file_sync_level: SyncLevel::Data,
        catalog_sync_level: SyncLevel::Data,
        ..options()
    };
    for position in [START + FRAME, SEGMENT_LENGTH, SEGMENT_LENGTH + 3 * FRAME] {
        let storage = MemoryStorage::new();
        let (mut store, _) = ArchiveStore::open(storage.clone(), synced, OPENED_MS).unwrap();
        recorded(&mut store, START, 300);
        truncate(&mut store, position).unwrap();
        let left = bases(&storage, 0);
        storage.lose_power(|| false);
        let (mut store, _) = ArchiveStore::open(storage.clone(), synced, OPENED_MS).unwrap();
        assert_eq!(
            bases(&storage, 0),
            left,
            "a deleted file must not exist again after the loss of power"
        );
        let _session = store.extend_recording(0, &continuation(position)).unwrap();
        storage.lose_power(|| false);
        let (store, _) = ArchiveStore::open(storage.clone(), synced, OPENED_MS).unwrap();
        assert_eq!(positions(&store, 0), (START, position));
    }
}

#[test]
fn a_repeated_truncation_forces_the_deletions_of_the_first_truncation_to_the_disk() {
    let synced = StoreOptions {
        catalog_sync_level: SyncLevel::Data,
        ..options()
    };
    let storage = MemoryStorage::new();
    let (mut store, _) = ArchiveStore::open(storage.clone(), synced, OPENED_MS).unwrap();
    recorded(&mut store, START, 300);
    let mut deletion = store.truncate(0, SEGMENT_LENGTH).unwrap();
    assert!(deletion.step(&mut store).unwrap(), "no other file is left");
    // Five steps remove the index and a possible new index, each with both names, and the segment. The sixth step
    // forces the removals to the disk.
    storage.fail_at(
        storage.steps() + 5,
        StorageFault::Error(ErrorKind::StorageFull),
    );
    deletion.step(&mut store).unwrap_err();
    assert_eq!(bases(&storage, 0), [0]);
    truncate(&mut store, SEGMENT_LENGTH).unwrap();
    storage.lose_power(|| false);
    assert_eq!(
        bases(&storage, 0),
        [0],
        "a deleted file must not exist again after the loss of power"
    );
}

#[test]
fn a_truncation_that_cannot_be_forced_to_the_disk_changes_nothing() {
    let synced = StoreOptions {
        catalog_sync_level: SyncLevel::Data,
        ..options()
    };
    let storage = MemoryStorage::new();
    let (mut store, _) = ArchiveStore::open(storage.clone(), synced, OPENED_MS).unwrap();
    recorded(&mut store, START, 300);
    let old = positions(&store, 0);
    // The first step writes the catalog entry. The second step forces the entry to the disk, and fails.
    storage.fail_at(
        storage.steps() + 1,
        StorageFault::Error(ErrorKind::StorageFull),
    );
    store.truncate(0, SEGMENT_LENGTH).unwrap_err();
    assert_eq!(positions(&store, 0), old);
    let (store, _) = ArchiveStore::open(storage, synced, OPENED_MS).unwrap();
    assert_eq!(positions(&store, 0), old);
}
