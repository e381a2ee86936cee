//! Changes the channels of recordings.

use aeron_archive::checksum::Checksum;
use aeron_archive::memory_storage::MemoryStorage;
use aeron_archive::store::{ArchiveStore, StoreOptions};

use crate::store::common::*;

/// Returns a store with a small catalog and three recordings.
fn prepared() -> (MemoryStorage, Store) {
    let storage = MemoryStorage::new();
    let options = StoreOptions {
        catalog_capacity: 1024,
        record_checksum: Some(Checksum::Crc32),
        ..options()
    };
    let (mut store, _) = ArchiveStore::open(storage.clone(), options, OPENED_MS).unwrap();
    for count in 0..3 {
        recorded(&mut store, 0, count);
    }
    (storage, store)
}

fn channels(store: &Store, id: i64) -> (&str, &str) {
    let recording = store.recording(id).unwrap();
    (&recording.original_channel, &recording.stripped_channel)
}

/// 07-65, 07-69
#[test]
fn longer_and_shorter_channels_do_not_change_the_other_recordings() {
    let (storage, mut store) = prepared();
    let others: Vec<_> = [0, 2].map(|id| store.recording(id).unwrap().clone()).into();
    for length in [10, 3000, 0, 200, 40_000] {
        let original = "o".repeat(length);
        let stripped = "s".repeat(length / 2);
        store.update_channel(1, &original, &stripped).unwrap();
        let (reopened, _) = open(&storage);
        for store in [&store, &reopened] {
            assert_eq!(channels(store, 1), (&*original, &*stripped));
            for other in &others {
                assert_eq!(store.recording(other.recording_id).unwrap(), other);
            }
        }
    }
    assert_eq!(recorded(&mut store, 0, 1), 3);
}

/// 07-69: the stop position is written into the changed entry.
#[test]
fn the_channel_of_an_active_recording_can_change_and_the_recording_can_be_stopped() {
    let (storage, mut store) = prepared();
    let mut session = store.start_recording(image(0)).unwrap();
    store
        .update_channel(3, &"o".repeat(2000), "stripped")
        .unwrap();
    record(&mut session, 10);
    stop(&mut store, &session);
    let (reopened, recovered) = open(&storage);
    assert_eq!(recovered, []);
    assert_eq!(positions(&reopened, 3), (0, session.recorded_position()));
    assert_eq!(channels(&reopened, 3).1, "stripped");
}

#[test]
fn a_channel_that_is_too_long_for_an_entry_is_refused_and_nothing_changes() {
    let (_, mut store) = prepared();
    let before = store.recording(1).unwrap().clone();
    assert_eq!(
        refusal(store.update_channel(7, "a", "b")),
        (5, "unknown recording id: 7".to_owned())
    );
    let (code, _) = refusal(store.update_channel(1, &"o".repeat(2 << 20), "b"));
    assert_eq!(code, 0);
    assert_eq!(store.recording(1).unwrap(), &before);
}

/// 07-69
#[test]
fn a_kill_during_a_change_of_channels_leaves_the_old_or_the_new_channels() {
    let (_, store) = prepared();
    let before: Vec<_> = store.recordings().cloned().collect();
    for length in [0, 8, 5000] {
        let original = "o".repeat(length);
        killed_at_each_step(
            prepared,
            |store| store.update_channel(1, &original, "s"),
            |storage, mut store, is_done| {
                let mut after: Vec<_> = store.recordings().cloned().collect();
                if is_done || after[1] != before[1] {
                    assert_eq!(channels(&store, 1), (&*original, "s"));
                }
                after[1] = before[1].clone();
                assert_eq!(after, before);
                assert_eq!(frames(storage, &store, 2).len(), 2);
                assert_eq!(recorded(&mut store, 0, 1), 3);
            },
        );
    }
}
