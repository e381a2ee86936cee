//! Changes of a catalog: adding, changing and removing recordings.

use std::io;
use std::sync::Arc;

use aeron_archive::catalog::{
    Catalog, CatalogError, MAX_CAPACITY, NULL_VALUE, RecordingDescriptor, RecordingState,
};
use aeron_archive::memory_storage::{MemoryStorage, StorageFault};
use aeron_archive::storage::{Access, Directory, Storage, StorageFile};

use crate::catalog::common::{CAPACITY, CATALOG, TERM_LENGTH, empty, open, recording, recordings};

/// 08-17, 07-64
#[test]
fn a_recording_id_is_never_used_twice() {
    let (storage, mut catalog) = empty();
    assert_eq!(catalog.add(recording(1)).unwrap(), 0);
    assert_eq!(catalog.add(recording(2)).unwrap(), 1);
    catalog.delete(1, NULL_VALUE).unwrap();
    catalog.compact(&storage, |_| false).unwrap();

    let mut reopened = open(&storage);
    assert_eq!(reopened.next_recording_id(), 2);
    assert_eq!(reopened.add(recording(3)).unwrap(), 2);
}

/// An archive may have a hundred thousand recordings of a few channels.
#[test]
fn the_text_of_a_channel_that_several_recordings_have_is_in_memory_once() {
    let (storage, mut catalog) = empty();
    let other = RecordingDescriptor {
        original_channel: "aeron:ipc?alias=other".into(),
        ..recording(3)
    };
    for descriptor in [recording(1), recording(2), other] {
        catalog.add(descriptor).unwrap();
    }
    let reopened = open(&storage);
    let channel = |id| &reopened.recording(id).unwrap().original_channel;
    assert!(Arc::ptr_eq(channel(0), channel(1)));
    assert_ne!(channel(0), channel(2));
}

#[test]
fn a_reopened_catalog_has_all_changes() {
    let (storage, mut catalog) = empty();
    for session_id in 0..100 {
        catalog.add(recording(session_id)).unwrap();
    }
    catalog.stop(7, 96, 2_000).unwrap();
    catalog.set_start_position(8, 64).unwrap();
    catalog.delete(9, 128).unwrap();
    let reopened = open(&storage);
    assert_eq!(reopened.entries(), catalog.entries());
    let stopped = reopened.recording(7).unwrap();
    assert_eq!(
        (stopped.stop_position, stopped.stop_timestamp_ms),
        (96, 2_000)
    );
    assert_eq!(reopened.recording(8).unwrap().start_position, 64);
}

/// 08-17
#[test]
fn a_deleted_recording_is_unknown_but_its_entry_has_the_stop_position() {
    let (storage, mut catalog) = empty();
    let id = catalog.add(recording(1)).unwrap();
    catalog.stop(id, 1024, 2_000).unwrap();
    catalog.delete(id, 960).unwrap();

    for catalog in [catalog, open(&storage)] {
        let unknown = catalog.recording(id).unwrap_err();
        assert_eq!(unknown.to_string(), "unknown recording id 0");
        assert!(recordings(&catalog).is_empty());
        let entry = catalog.entry(id).unwrap();
        assert_eq!(entry.state, RecordingState::Deleted);
        assert_eq!(entry.descriptor.stop_position, 960);
        assert_eq!(entry.descriptor.stop_timestamp_ms, 2_000);
    }
}

#[test]
fn an_invalid_recording_is_unknown() {
    let (storage, mut catalog) = empty();
    catalog.add(recording(1)).unwrap();
    let file = storage.open(CATALOG, Access::Write).unwrap();
    file.write_all_at(&[0], 32 + 4).unwrap();
    let mut reopened = open(&storage);
    assert_eq!(reopened.entry(0).unwrap().state, RecordingState::Invalid);
    assert!(reopened.stop(0, 32, 1).is_err());
    assert!(reopened.delete(0, 32).is_err());
    assert!(recordings(&reopened).is_empty());
}

/// Invalid values would make the recording unreadable.
#[test]
fn invalid_values_are_refused_and_not_written() {
    let (storage, mut catalog) = empty();
    let id = catalog.add(recording(1)).unwrap();
    catalog.set_start_position(id, 1024).unwrap();
    let before = storage.bytes(CATALOG);
    let refusals = [
        catalog.stop(id, 992, 1),
        catalog.stop(id, 1040, 1),
        catalog.set_start_position(id, -32),
        catalog.delete(id, i64::MAX),
        catalog
            .add(RecordingDescriptor {
                term_length: TERM_LENGTH + 1,
                ..recording(2)
            })
            .map(drop),
    ];
    for refusal in refusals {
        assert!(matches!(refusal, Err(CatalogError::InvalidRecording(_))));
    }
    assert_eq!(storage.bytes(CATALOG), before);
    assert_eq!(
        catalog.stop(id, 992, 1).unwrap_err().to_string(),
        "recording cannot be catalogued: stopPosition at offset 48 is 992, expected -1, or a multiple of 32 that is at \
         least the start position and within the stream"
    );
}

/// 08-17, 07-65
#[test]
fn the_file_grows_by_half_until_an_entry_fits() {
    let storage = MemoryStorage::new();
    let mut catalog = Catalog::create(&storage, 600).unwrap();
    let mut capacities = vec![catalog.capacity()];
    for session_id in 0..7 {
        catalog.add(recording(session_id)).unwrap();
        capacities.push(catalog.capacity());
    }
    capacities.dedup();
    assert_eq!(capacities, [600, 900, 1350, 2025]);
    assert_eq!(storage.bytes(CATALOG).unwrap().len(), 2025);
    assert_eq!(open(&storage).entries(), catalog.entries());
}

/// 07-65
#[test]
fn an_entry_of_more_than_1_mib_is_refused() {
    let (_, mut catalog) = empty();
    let refusal = catalog
        .add(RecordingDescriptor {
            original_channel: "x".repeat(1 << 20).into(),
            ..recording(1)
        })
        .unwrap_err();
    assert_eq!(
        refusal.to_string(),
        "recording is too big: total recording length is 1048768 bytes, available space is 1048576 bytes"
    );
    assert_eq!(
        catalog.next_recording_id(),
        0,
        "a refused recording uses no id"
    );
}

/// 07-68
#[test]
fn a_capacity_out_of_range_is_refused() {
    for capacity in [0, 31, MAX_CAPACITY + 1] {
        let storage = MemoryStorage::new();
        let refusal = Catalog::create(&storage, capacity).unwrap_err();
        assert_eq!(
            refusal.to_string(),
            format!("catalog capacity {capacity} is not within 32 to 2147483647 bytes")
        );
        assert_eq!(storage.steps(), 0, "a refusal must not create a file");
    }
    let storage = MemoryStorage::new();
    assert_eq!(Catalog::create(&storage, 32).unwrap().capacity(), 32);
}

#[test]
fn opening_extends_a_short_catalog_and_does_not_shorten_a_long_catalog() {
    let (storage, _) = empty();
    assert_eq!(Catalog::open(&storage, 1024).unwrap().capacity(), CAPACITY);
    assert_eq!(
        Catalog::open(&storage, 2 * CAPACITY).unwrap().capacity(),
        2 * CAPACITY
    );
    assert_eq!(open(&storage).capacity(), 2 * CAPACITY);
    assert!(Catalog::open(&storage, MAX_CAPACITY + 1).is_err());
}

#[test]
fn creating_a_catalog_is_refused_if_the_directory_has_a_catalog() {
    let (storage, mut catalog) = empty();
    catalog.add(recording(1)).unwrap();
    assert!(Catalog::create(&storage, CAPACITY).is_err());
    assert_eq!(open(&storage).entries(), catalog.entries());
}

/// 08-17
#[test]
fn compaction_removes_the_deleted_entries_that_need_not_be_kept() {
    let (storage, mut catalog) = empty();
    for session_id in 0..6 {
        catalog.add(recording(session_id)).unwrap();
    }
    for id in [1, 2, 4] {
        catalog.delete(id, NULL_VALUE).unwrap();
    }
    catalog
        .compact(&storage, |entry| entry.descriptor.recording_id == 2)
        .unwrap();
    let ids = |catalog: &Catalog<_>| -> Vec<_> {
        let entries = catalog.entries().iter();
        entries.map(|entry| entry.descriptor.recording_id).collect()
    };
    assert_eq!(ids(&catalog), [0, 2, 3, 5]);
    assert_eq!(catalog.entry(2).unwrap().state, RecordingState::Deleted);

    catalog.stop(5, 64, 9).unwrap();
    assert_eq!(catalog.add(recording(6)).unwrap(), 6);
    let reopened = open(&storage);
    assert_eq!(reopened.entries(), catalog.entries());
    assert_eq!(reopened.capacity(), CAPACITY);
    assert_eq!(storage.names().unwrap(), [CATALOG]);
}

/// The catalog in memory and the file keep the old entry.
#[test]
fn a_failed_change_has_no_effect_and_can_be_repeated() {
    let (storage, mut catalog) = empty();
    let id = catalog.add(recording(1)).unwrap();
    let before = catalog.entries().to_vec();
    let full = StorageFault::Error(io::ErrorKind::StorageFull);
    for attempt in 0..4 {
        storage.fail_at(storage.steps(), full);
        let failure = match attempt {
            0 => catalog.stop(id, 64, 2_000),
            1 => catalog.set_start_position(id, 32),
            2 => catalog.delete(id, 64),
            _ => catalog.compact(&storage, |_| false),
        };
        let failure = failure.unwrap_err().to_string();
        assert!(
            failure.starts_with("archive.catalog: cannot write"),
            "{failure}"
        );
        assert_eq!(catalog.entries(), before);
        assert_eq!(open(&storage).entries(), before);
    }
    catalog.stop(id, 64, 2_000).unwrap();
    assert_eq!(open(&storage).recording(id).unwrap().stop_position, 64);
}

/// 08-17
#[test]
fn a_recording_can_be_added_after_an_addition_that_failed_at_any_step() {
    for step in 0..3 {
        let (storage, mut catalog) = empty();
        catalog.add(recording(1)).unwrap();
        storage.fail_at(storage.steps() + step, StorageFault::Short(150));
        let failing = storage.steps() + step + 1;
        storage.fail_at(failing, StorageFault::Error(io::ErrorKind::StorageFull));
        let long = RecordingDescriptor {
            original_channel: "\u{1}".repeat(1000).into(),
            ..recording(2)
        };
        let added = catalog.add(long).is_ok();
        storage.restart();
        let mut catalog = open(&storage);
        assert_eq!(catalog.entries().len(), 1 + usize::from(added));
        let id = catalog.add(recording(3)).unwrap();
        let reopened = open(&storage);
        assert_eq!(reopened.entries(), catalog.entries());
        assert_eq!(reopened.recording(id).unwrap().session_id, 3);
    }
}

/// A catalog that is opened read-only refuses all changes.
#[test]
fn a_catalog_that_is_opened_read_only_does_not_change_the_file() {
    let (storage, mut catalog) = empty();
    let id = catalog.add(recording(1)).unwrap();
    let before = storage.bytes(CATALOG);
    let mut reader = Catalog::open_read_only(&storage).unwrap();
    assert_eq!(reader.entries(), catalog.entries());
    assert!(reader.stop(id, 64, 1).is_err());
    assert!(reader.add(recording(2)).is_err());
    assert_eq!(storage.bytes(CATALOG), before);
}

#[test]
fn a_catalog_in_a_directory_of_the_file_system_is_reopened_unchanged() {
    let dir = tempfile::tempdir().unwrap();
    let storage = Directory::new(dir.path());
    let mut catalog = Catalog::create(&storage, 1024).unwrap();
    for session_id in 0..20 {
        catalog.add(recording(session_id)).unwrap();
    }
    catalog.delete(3, NULL_VALUE).unwrap();
    catalog.compact(&storage, |_| false).unwrap();
    let reopened = Catalog::open(&storage, 0).unwrap();
    assert_eq!(reopened.entries(), catalog.entries());
    assert_eq!(reopened.entries().len(), 19);
}
