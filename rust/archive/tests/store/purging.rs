//! Purges whole recordings.

use aeron_archive::catalog::{Catalog, RecordingState};
use aeron_archive::memory_storage::{MemoryStorage, StorageFault};
use aeron_archive::storage::Storage;
use aeron_archive::store::StoreError;

use crate::recordings::stream::SEGMENT_LENGTH;
use crate::store::common::*;

/// Returns a store with recording 0 of three segments, and recording 1 of one segment.
fn prepared() -> (MemoryStorage, Store) {
    let (storage, mut store) = empty();
    recorded(&mut store, 1024, 300);
    recorded(&mut store, 0, 10);
    (storage, store)
}

fn purge(store: &mut Store, id: i64) -> Result<usize, StoreError> {
    let operation = store.purge_recording(id, &IDLE);
    delete_all(store, operation)
}

fn state(store: &Store, storage: &MemoryStorage, id: i64) -> RecordingState {
    assert!(store.recording(id).is_err());
    let catalog = Catalog::open_read_only(storage).unwrap();
    catalog.entry(id).unwrap().state
}

/// 07-109, 07-112, 07-66
#[test]
fn purging_a_recording_deletes_all_its_files() {
    let (storage, mut store) = prepared();
    storage.put(&format!("0-{SEGMENT_LENGTH}.rec.del"), b"renamed");
    storage.put(&format!("0-{}.rec", 77 * SEGMENT_LENGTH), b"an orphan");
    storage.put("0-0.index", b"no segment");
    assert_eq!(purge(&mut store, 0).unwrap(), 5);
    assert_eq!(state(&store, &storage, 0), RecordingState::Deleted);
    assert_eq!(
        storage.names().unwrap(),
        ["0-0.index", "1-0.rec", "archive.catalog"]
    );
    let unknown = (5, "unknown recording id: 0".to_owned());
    assert_eq!(refusal(store.purge_recording(0, &IDLE)), unknown);
    assert_eq!(refusal(store.truncate(0, 0)), unknown);
    assert_eq!(refusal(store.stop_recording(0, 0, 0)), unknown);
    assert_eq!(refusal(store.update_channel(0, "a", "b")), unknown);
    assert_eq!(refusal(store.attach_segments(0)), unknown);
    assert_eq!(refusal(store.migrate_segments(0, 1)), unknown);
    assert_eq!(refusal(store.migrate_segments(1, 0)), unknown);
    assert_eq!(recorded(&mut store, 0, 1), 2);
}

/// 07-66
#[test]
fn an_invalid_recording_is_unknown_and_its_files_stay() {
    let (storage, store) = prepared();
    drop(store);
    let mut catalog = Catalog::open(&storage, 0).unwrap();
    catalog.invalidate(0).unwrap();
    drop(catalog);
    let (mut store, _) = open(&storage);
    let unknown = (5, "unknown recording id: 0".to_owned());
    assert_eq!(refusal(store.recording(0)), unknown);
    assert_eq!(refusal(store.purge_recording(0, &IDLE)), unknown);
    assert_eq!(
        refusal(store.extend_recording(0, &continuation(0))),
        unknown
    );
    assert_eq!(store.recordings().count(), 1);
    assert_eq!(bases(&storage, 0).len(), 3);
}

/// 07-109
#[test]
fn a_recording_that_is_active_or_replayed_is_not_purged() {
    let (storage, mut store) = prepared();
    let active = store.start_recording(image(0)).unwrap();
    assert_eq!(
        refusal(store.purge_recording(0, &replayed_at(4096))),
        (2, "cannot purge recording with active replay 0".to_owned())
    );
    assert_eq!(
        refusal(store.purge_recording(2, &IDLE)),
        (2, "cannot purge active recording 2".to_owned())
    );
    assert_eq!(store.recordings().count(), 3);
    assert_eq!(bases(&storage, 0).len(), 3);
    drop(active);
}

/// 07-109
#[test]
fn a_file_that_cannot_be_deleted_is_reported_and_the_others_are_deleted() {
    let (storage, mut store) = prepared();
    let mut operation = store.purge_recording(0, &IDLE).unwrap();
    let denied = StorageFault::Error(std::io::ErrorKind::PermissionDenied);
    storage.fail_at(storage.steps(), denied);
    let (code, text) = refusal(operation.step(&mut store));
    assert_eq!(code, 0);
    assert!(
        text.starts_with("unable to delete segment file: 0-0.rec: "),
        "{text}"
    );
    assert!(operation.step(&mut store).unwrap());
    assert!(!operation.step(&mut store).unwrap());
    assert_eq!(bases(&storage, 0), [0]);
    open(&storage);
    assert_eq!(bases(&storage, 0), []);
}

/// 07-109: the remaining files are deleted when the store is opened.
#[test]
fn a_kill_during_a_purge_leaves_the_whole_recording_or_no_file_of_it() {
    let (storage, store) = prepared();
    let before = frames(&storage, &store, 0);
    killed_at_each_step(
        prepared,
        |store| purge(store, 0).map(drop),
        |storage, store, is_done| {
            if store.recording(0).is_ok() {
                assert!(!is_done);
                assert_eq!(frames(storage, &store, 0), before);
            } else {
                assert_eq!(bases(storage, 0), []);
            }
            assert_eq!(frames(storage, &store, 1).len(), 10);
        },
    );
}
