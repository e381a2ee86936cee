//! Changes of catalog entries: extensions, channels, states and checksums.

use aeron_archive::catalog::{Catalog, Extension, NULL_VALUE, RecordingDescriptor, RecordingState};
use aeron_archive::checksum::Checksum;
use aeron_archive::memory_storage::MemoryStorage;
use aeron_archive::storage::Storage;

use crate::catalog::common::{CATALOG, empty, open, recording, recordings};
use crate::catalog::kills::wrong_checksums;

/// 07-59
#[test]
fn an_extended_recording_is_active_and_has_the_ids_of_the_extension() {
    let (storage, mut catalog) = empty();
    let id = catalog.add(recording(1)).unwrap();
    catalog.stop(id, 1024, 2_000).unwrap();
    let extension = Extension {
        session_id: -5,
        control_session_id: 11,
        correlation_id: 12,
    };
    catalog.extend(id, &extension).unwrap();
    let expected = RecordingDescriptor {
        recording_id: id,
        session_id: -5,
        control_session_id: 11,
        correlation_id: 12,
        ..recording(1)
    };
    assert_eq!(recordings(&open(&storage)), [expected]);
    assert!(catalog.extend(id + 1, &extension).is_err());
}

/// 07-69
#[test]
fn a_channel_of_any_length_does_not_change_the_following_entries() {
    for length in [0, 1, 9, 10, 60, 64, 128, 4000] {
        let (storage, mut catalog) = empty();
        for session_id in 0..3 {
            catalog.add(recording(session_id)).unwrap();
        }
        let channel = "c".repeat(length);
        catalog
            .update_channel(&storage, 1, &channel, "aeron:ipc")
            .unwrap();
        catalog.stop(2, 64, 5).unwrap();
        let reopened = open(&storage);
        assert_eq!(reopened.entries(), catalog.entries());
        let all = recordings(&reopened);
        assert_eq!((all[0].session_id, all[2].stop_position), (0, 64));
        let changed = RecordingDescriptor {
            recording_id: 1,
            original_channel: channel.into(),
            stripped_channel: "aeron:ipc".into(),
            ..recording(1)
        };
        assert_eq!(all[1], changed);
        assert_eq!(storage.names().unwrap(), [CATALOG]);
    }
}

/// 07-69
#[test]
fn a_shorter_channel_keeps_the_length_of_the_entry_and_zeros_the_rest() {
    let (storage, mut catalog) = empty();
    let long = RecordingDescriptor {
        original_channel: "x".repeat(500).into(),
        ..recording(1)
    };
    let id = catalog.add(long).unwrap();
    let length = catalog.entry(id).unwrap().body_length();
    catalog
        .update_channel(&storage, id, "aeron:ipc", "aeron:ipc")
        .unwrap();
    assert_eq!(catalog.entry(id).unwrap().body_length(), length);
    let bytes = storage.bytes(CATALOG).unwrap();
    assert_eq!(bytes[32..36], (length as i32).to_le_bytes());
    assert!(bytes[32 + 192..].iter().all(|&byte| byte == 0));
    catalog.compact(&storage, |_| false).unwrap();
    assert_eq!(open(&storage).entries(), catalog.entries());
}

/// 07-65, 07-69
#[test]
fn a_longer_channel_makes_a_full_catalog_grow() {
    let storage = MemoryStorage::new();
    let mut catalog = Catalog::create(&storage, 32 + 192).unwrap();
    let id = catalog.add(recording(1)).unwrap();
    assert_eq!(catalog.capacity(), 32 + 192);
    let channel = "x".repeat(100);
    catalog
        .update_channel(&storage, id, &channel, "aeron:ipc")
        .unwrap();
    assert_eq!(catalog.capacity(), 224 + 112);
    assert_eq!(open(&storage).entries(), catalog.entries());
    let too_long = "x".repeat(1 << 20);
    let refusal = catalog
        .update_channel(&storage, id, &too_long, "")
        .unwrap_err();
    assert!(refusal.to_string().starts_with("recording is too big"));
    assert_eq!(&*catalog.recording(id).unwrap().original_channel, channel);
}

/// 07-108
#[test]
fn a_truncation_changes_only_the_stop_position() {
    let (storage, mut catalog) = empty();
    let id = catalog.add(recording(1)).unwrap();
    catalog.stop(id, 1024, 2_000).unwrap();
    let before = storage.bytes(CATALOG).unwrap();
    catalog.truncate(id, 64).unwrap();
    let after = storage.bytes(CATALOG).unwrap();
    let changed: Vec<usize> = (0..after.len())
        .filter(|&at| before[at] != after[at])
        .collect();
    assert_eq!(changed, [112, 113]);
}

/// 07-66, 07-133
#[test]
fn an_invalid_recording_can_be_made_valid_but_a_deleted_recording_cannot() {
    let (storage, mut catalog) = empty();
    let id = catalog.add(recording(1)).unwrap();
    for _ in 0..2 {
        catalog.invalidate(id).unwrap();
    }
    assert_eq!(
        open(&storage).entry(id).unwrap().state,
        RecordingState::Invalid
    );
    assert!(catalog.stop(id, 32, 1).is_err());
    for _ in 0..2 {
        catalog.revalidate(id).unwrap();
    }
    assert_eq!(
        open(&storage).recording(id).unwrap(),
        catalog.recording(id).unwrap()
    );
    catalog.delete(id, NULL_VALUE).unwrap();
    assert!(catalog.invalidate(id).is_err());
    assert!(catalog.revalidate(id).is_err());
    assert!(catalog.invalidate(7).is_err());
}

/// 07-66
#[test]
fn an_invalid_recording_with_impossible_values_cannot_be_made_valid() {
    let (storage, mut catalog) = empty();
    let id = catalog.add(recording(1)).unwrap();
    catalog.invalidate(id).unwrap();
    let mut file = storage.bytes(CATALOG).unwrap();
    file[124..132].fill(0xFF);
    storage.put(CATALOG, &file);
    let mut reopened = open(&storage);
    assert!(reopened.revalidate(id).is_err());
    assert_eq!(reopened.entry(id).unwrap().state, RecordingState::Invalid);
}

/// 07-63
#[test]
fn every_change_writes_the_checksum_of_the_entry() {
    for checksum in [Checksum::Crc32, Checksum::Crc32c] {
        let (storage, mut catalog) = empty();
        catalog.add(recording(0)).unwrap();
        catalog.set_checksum(Some(checksum));
        let id = catalog.add(recording(1)).unwrap();
        let mut seen = vec![stored_checksum(&storage, id)];
        catalog.stop(id, 1024, 2_000).unwrap();
        seen.push(stored_checksum(&storage, id));
        catalog.truncate(id, 960).unwrap();
        seen.push(stored_checksum(&storage, id));
        catalog
            .update_channel(&storage, id, "aeron:udp?endpoint=localhost:1", "aeron:udp")
            .unwrap();
        seen.push(stored_checksum(&storage, id));
        catalog.delete(id, NULL_VALUE).unwrap();
        seen.push(stored_checksum(&storage, id));
        assert!(seen.iter().all(|&checksum| checksum != 0));
        assert_eq!(
            stored_checksum(&storage, 0),
            0,
            "the first entry was written before checksums were enabled"
        );
        assert_eq!(catalog.add_missing_checksums().unwrap(), 1);
        if checksum == Checksum::Crc32c {
            assert_eq!(wrong_checksums(&storage), []);
        }
        assert_eq!(open(&storage).entries(), catalog.entries());
    }
}

fn stored_checksum(storage: &MemoryStorage, id: i64) -> i32 {
    // Entries of 192 bytes precede the entry of this recording.
    let at = 32 + id as usize * 192 + 8;
    i32::from_le_bytes(
        storage.bytes(CATALOG).unwrap()[at..at + 4]
            .try_into()
            .unwrap(),
    )
}
