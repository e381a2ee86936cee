//! Removes the catalog entries of deleted recordings.

use aeron_archive::catalog::Catalog;
use aeron_archive::memory_storage::{MemoryStorage, StorageFault};

use crate::store::common::*;

/// Returns a store with `kept` recordings, and then `deleted` purged recordings without files.
fn prepared(kept: usize, deleted: usize) -> (MemoryStorage, Store) {
    let (storage, mut store) = empty();
    for _ in 0..kept {
        recorded(&mut store, 0, 1);
    }
    for _ in 0..deleted {
        let id = recorded(&mut store, 0, 1);
        let purge = store.purge_recording(id, &IDLE);
        delete_all(&mut store, purge).unwrap();
    }
    (storage, store)
}

fn ids(storage: &MemoryStorage) -> Vec<i64> {
    let catalog = Catalog::open_read_only(storage).unwrap();
    let entries = catalog.entries().iter();
    entries.map(|entry| entry.descriptor.recording_id).collect()
}

/// A compaction writes all entries that it keeps. So it is due only if it removes more entries than it keeps, and at
/// least 256 entries.
#[test]
fn a_compaction_is_due_if_it_removes_most_entries_and_at_least_256() {
    for (kept, deleted, due) in [(3, 255, None), (3, 256, Some(3)), (256, 256, None)] {
        let (storage, store) = prepared(kept, deleted);
        assert_eq!(store.due_compaction(), due, "{kept} {deleted}");
        drop(store);
        assert_eq!(open(&storage).0.due_compaction(), due, "{kept} {deleted}");
    }
}

#[test]
fn after_a_compaction_the_recordings_stay_and_their_ids_are_not_used_again() {
    let (storage, mut store) = prepared(2, 300);
    store.compact(|_| false).unwrap();
    assert_eq!(ids(&storage), [0, 1]);
    assert_eq!(store.due_compaction(), None);
    let unknown = (5, "unknown recording id: 7".to_owned());
    assert_eq!(refusal(store.recording(7)), unknown);
    assert_eq!(recorded(&mut store, 0, 1), 302);
    let (store, _) = open(&storage);
    assert_eq!(frames(&storage, &store, 1).len(), 1);
    assert_eq!(store.next_recording_id(), 303);
}

/// A failed deletion leaves files. The next opening of the store finds these files only if the catalog still has the
/// entry of their recording.
#[test]
fn the_entry_stays_while_a_file_of_its_recording_exists() {
    let (storage, mut store) = prepared(1, 0);
    let failed = recorded(&mut store, 0, 1);
    let running = recorded(&mut store, 0, 1);
    let operation = store.purge_recording(failed, &IDLE);
    let denied = StorageFault::Error(std::io::ErrorKind::PermissionDenied);
    storage.fail_at(storage.steps(), denied);
    delete_all(&mut store, operation).unwrap_err();
    let mut operation = store.purge_recording(running, &IDLE).unwrap();
    store.compact(|_| false).unwrap();
    assert_eq!(ids(&storage), [0, failed, running]);

    while operation.step(&mut store).unwrap() {}
    store.compact(|_| false).unwrap();
    assert_eq!(ids(&storage), [0, failed]);

    let (mut store, _) = open(&storage);
    assert_eq!(bases(&storage, failed), []);
    store.compact(|_| false).unwrap();
    assert_eq!(ids(&storage), [0]);
}

#[test]
fn a_kill_during_a_compaction_leaves_the_old_catalog_or_the_compact_one() {
    killed_at_each_step(
        || prepared(2, 5),
        |store| store.compact(|_| false),
        |storage, mut store, is_done| {
            let left = ids(storage);
            assert!(left == [0, 1] || (!is_done && left == [0, 1, 2, 3, 4, 5, 6]));
            assert_eq!(frames(storage, &store, 1).len(), 1);
            assert_eq!(recorded(&mut store, 0, 1), 7);
        },
    );
}
