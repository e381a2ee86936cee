//! Opens the store of a killed process.

use aeron_archive::catalog::{Catalog, NULL_VALUE};
use aeron_archive::checksum::Checksum;
use aeron_archive::memory_storage::{MemoryStorage, StorageFault};
use aeron_archive::recovery::OnTornFragment;
use aeron_archive::storage::{Access, Storage, StorageFile, SyncLevel};
use aeron_archive::store::{ArchiveStore, RecoveredRecording, StoreOptions};

use crate::recordings::stream::{Publisher, TERM_LENGTH, payload};
use crate::store::common::*;

/// Returns a storage with three recordings. The first recording has stopped. The recorder of the
/// second recording was killed within a frame of two pages. The recorder of the third recording was
/// killed after 20 messages. Also returns the position of the torn frame.
fn torn() -> (MemoryStorage, i64) {
    let (storage, mut store) = empty();
    recorded(&mut store, 0, 10);
    let mut session = store.start_recording(image(0)).unwrap();
    record(&mut session, 3);
    let position = session.recorded_position();
    let frame = Publisher::new(position).data(0xC0, &payload(4000));
    let file = storage.open("1-0.rec", Access::Write).unwrap();
    file.write_all_at(&frame[..4096 - position as usize], position as u64)
        .unwrap();
    let mut whole = store.start_recording(image(1024)).unwrap();
    record(&mut whole, 20);
    (storage, position)
}

fn open_with(
    storage: &MemoryStorage,
    on_torn_fragment: OnTornFragment,
) -> Result<(Store, Vec<RecoveredRecording>), String> {
    let options = StoreOptions {
        on_torn_fragment,
        ..options()
    };
    ArchiveStore::open(storage.clone(), options, OPENED_MS).map_err(|error| error.to_string())
}

fn contents(storage: &MemoryStorage) -> Vec<(String, Vec<u8>)> {
    let names = storage.names().unwrap();
    names
        .into_iter()
        .map(|name| (name.clone(), storage.bytes(&name).unwrap()))
        .collect()
}

/// 07-79
#[test]
fn a_store_with_a_torn_frame_is_not_opened_and_not_changed() {
    let (storage, position) = torn();
    let before = contents(&storage);
    let refusal = open_with(&storage, OnTornFragment::Refuse).unwrap_err();
    let expected = format!(
        "Found potentially incomplete last fragment straddling page boundary in file: 1-0.rec, position {position}: "
    );
    assert!(refusal.starts_with(&expected), "{refusal}");
    assert!(contents(&storage) == before);
}

/// 07-77, 07-78, 07-79, 07-82
#[test]
fn a_torn_frame_is_removed_if_the_options_allow_it() {
    let (storage, position) = torn();
    let (store, recovered) = open_with(&storage, OnTornFragment::Truncate).unwrap();
    let end = 1024 + 20 * 1056;
    let expected = [(1, position, true), (2, end, false)];
    let expected = expected.map(
        |(recording_id, stop_position, is_torn)| RecoveredRecording {
            recording_id,
            stop_position,
            is_torn,
        },
    );
    assert_eq!(recovered, expected);
    let stopped = store.recordings().map(|it| it.stop_timestamp_ms);
    assert_eq!(
        stopped.collect::<Vec<_>>(),
        [STOPPED_MS, OPENED_MS, OPENED_MS]
    );
    assert!(
        storage.bytes("1-0.rec").unwrap()[position as usize..]
            .iter()
            .all(|&byte| byte == 0)
    );
    let (_, recovered) = open_with(&storage, OnTornFragment::Refuse).unwrap();
    assert_eq!(recovered, []);
}

/// 07-80: a correct checksum proves that a last frame with a page of zeros is whole.
#[test]
fn a_frame_that_may_be_torn_is_accepted_if_its_checksum_is_correct() {
    let storage = MemoryStorage::new();
    let options = StoreOptions {
        record_checksum: Some(Checksum::Crc32c),
        ..options()
    };
    let (mut store, _) = ArchiveStore::open(storage.clone(), options, OPENED_MS).unwrap();
    let mut session = store.start_recording(image(0)).unwrap();
    record(&mut session, 3);
    let position = session.recorded_position();
    let frame = Publisher::new(position).data(0xC0, &[0; 12_000]);
    session.append(&frame, |_| {}).unwrap();
    let end = session.publish().unwrap();
    drop((store, session));
    assert!(open_with(&storage, OnTornFragment::Refuse).is_err());
    let (_, recovered) = ArchiveStore::open(storage.clone(), options, OPENED_MS).unwrap();
    let expected = RecoveredRecording {
        recording_id: 0,
        stop_position: end,
        is_torn: false,
    };
    assert_eq!(recovered, [expected]);
}

/// 07-67
#[test]
fn a_catalog_of_another_major_version_is_refused_and_not_changed() {
    let (storage, mut store) = empty();
    recorded(&mut store, 0, 1);
    drop(store);
    assert!(storage.flip_bit("archive.catalog", 2, 2));
    let before = contents(&storage);
    let refusal = open_with(&storage, OnTornFragment::Refuse).unwrap_err();
    assert!(refusal.contains("version"), "{refusal}");
    assert!(contents(&storage) == before);
}

/// 07-68
#[test]
fn a_catalog_capacity_that_is_out_of_range_is_refused() {
    for catalog_capacity in [31, 1 << 31] {
        let options = StoreOptions {
            catalog_capacity,
            ..options()
        };
        let storage = MemoryStorage::new();
        assert!(ArchiveStore::open(storage.clone(), options, 0).is_err());
        assert_eq!(contents(&storage), []);
    }
}

/// 07-77
#[test]
fn a_recording_without_a_file_ends_at_its_start_position() {
    let (storage, mut store) = empty();
    let session = store.start_recording(image(TERM_LENGTH + 96)).unwrap();
    drop((store, session));
    storage.remove(&format!("0-{TERM_LENGTH}.rec")).unwrap();
    let (store, recovered) = open(&storage);
    assert_eq!(recovered[0].stop_position, TERM_LENGTH + 96);
    assert_eq!(positions(&store, 0).1, TERM_LENGTH + 96);
}

/// In contrast, the real archive does not start if its directory contains files with these names.
#[test]
fn files_with_names_that_no_archive_uses_are_ignored() {
    let (storage, mut store) = empty();
    let id = recorded(&mut store, 0, 10);
    let mut session = store.start_recording(image(0)).unwrap();
    record(&mut session, 1);
    drop((store, session));
    for name in ["x-0.rec", "-5.rec", "1-x.rec", "nothing.rec", "1--32.rec"] {
        storage.put(name, b"strange");
    }
    let (store, recovered) = open(&storage);
    assert_eq!(recovered.len(), 1);
    assert_eq!(frames(&storage, &store, id).len(), 10);
}

/// 07-53
#[test]
fn invalid_options_are_refused_before_any_file_is_changed() {
    let storage = MemoryStorage::new();
    let refusals = [
        StoreOptions {
            segment_length: 65_535,
            ..options()
        },
        StoreOptions {
            segment_length: 32 * 1024,
            ..options()
        },
        StoreOptions {
            segment_length: i32::MIN,
            ..options()
        },
        StoreOptions {
            file_sync_level: SyncLevel::Data,
            ..options()
        },
    ]
    .map(|options| {
        ArchiveStore::open(storage.clone(), options, 0)
            .unwrap_err()
            .to_string()
    });
    assert_eq!(
        refusals[0],
        "segment length 65535 is not a power of two from 65536 to 1073741824"
    );
    assert_eq!(
        refusals[3],
        "catalog file sync level 0 is below file sync level 1: raise it"
    );
    assert_eq!(storage.steps(), 0);
}

/// 07-53, 07-77
#[test]
fn recovered_stop_positions_survive_a_loss_of_power() {
    let synced = StoreOptions {
        file_sync_level: SyncLevel::Data,
        catalog_sync_level: SyncLevel::Data,
        ..options()
    };
    let storage = MemoryStorage::new();
    let (mut store, _) = ArchiveStore::open(storage.clone(), synced, OPENED_MS).unwrap();
    let mut sessions = [0, 1024].map(|start| store.start_recording(image(start)).unwrap());
    sessions.iter_mut().for_each(|session| record(session, 3));
    drop((store, sessions));
    let (_, recovered) = ArchiveStore::open(storage.clone(), synced, OPENED_MS).unwrap();
    storage.lose_power(|| false);
    let catalog = Catalog::open_read_only(&storage).unwrap();
    let stops: Vec<_> = catalog.recordings().map(|it| it.stop_position).collect();
    assert_eq!(stops, [3 * 1056, 1024 + 3 * 1056]);
    assert!(
        stops
            .into_iter()
            .eq(recovered.iter().map(|it| it.stop_position))
    );
}

/// 07-77: after a kill at any step of a recovery, the next recovery finds the same ends.
#[test]
fn a_kill_during_the_recovery_does_not_change_the_found_ends() {
    for step in 0..16 {
        for progress in 0..3 {
            let (storage, position) = torn();
            storage.fail_at(storage.steps() + step, StorageFault::Kill { progress });
            let _ = open_with(&storage, OnTornFragment::Truncate);
            storage.restart();
            let (store, _) = open_with(&storage, OnTornFragment::Truncate).unwrap();
            assert_eq!(positions(&store, 1), (0, position));
            assert_eq!(positions(&store, 2), (1024, 1024 + 20 * 1056));
            assert!(store.recordings().all(|it| it.stop_position != NULL_VALUE));
        }
    }
}

/// 12, section 10.1
#[test]
fn a_recording_whose_entry_or_files_are_impossible_is_kept_and_not_served_and_all_others_are() {
    let (storage, mut store) = empty();
    recorded(&mut store, 0, 10);
    let mut session = store.start_recording(image(0)).unwrap();
    record(&mut session, 3);
    let second = store.start_recording(image(0)).unwrap();
    recorded(&mut store, 0, 2);
    drop((store, session, second));
    let mut catalog = storage.bytes("archive.catalog").unwrap();
    // The start position of the first recording.
    catalog[104..112].copy_from_slice(&3i64.to_le_bytes());
    storage.put("archive.catalog", &catalog);
    // A recording with this start position has no such segment.
    storage.put("2-96.rec", b"strange");

    let (store, recovered) = open(&storage);
    assert_eq!(recovered.len(), 1);
    assert_eq!(positions(&store, 1), (0, 3 * 1056));
    assert_eq!(frames(&storage, &store, 3).len(), 2);
    let served: Vec<_> = store.recordings().map(|it| it.recording_id).collect();
    assert_eq!(served, [1, 3]);
    let listed = store.listed_from(0).map(|it| it.start_position);
    assert_eq!(listed.collect::<Vec<_>>(), [3, 0, 0, 0]);
    let faults: Vec<_> = store.faults().map(|fault| fault.to_string()).collect();
    assert_eq!(faults.len(), 2);
    assert!(
        faults[0].starts_with("recording 0 cannot be served: startPosition at offset 104 is 3,"),
        "{faults:?}"
    );
    assert!(
        faults[1].starts_with("recording 2 cannot be served: 2-96.rec: no segment of recording 2"),
        "{faults:?}"
    );
    let (code, text) = refusal(store.recording(0).map(drop));
    assert_eq!((code, &text), (0, &faults[0]));

    // Nothing was changed: with the entry and the files of before, both recordings are served.
    storage.remove("2-96.rec").unwrap();
    let mut catalog = storage.bytes("archive.catalog").unwrap();
    catalog[104..112].copy_from_slice(&0i64.to_le_bytes());
    storage.put("archive.catalog", &catalog);
    drop(store);
    let (store, _) = open(&storage);
    assert_eq!(store.faults().count(), 0);
    assert_eq!(frames(&storage, &store, 0).len(), 10);
    assert_eq!(positions(&store, 2), (0, 0));
}
