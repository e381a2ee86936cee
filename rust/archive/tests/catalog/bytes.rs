//! Compares the bytes of the header and the entries with files of a real archive.

use aeron_archive::catalog::{Catalog, NULL_VALUE, RecordingDescriptor, RecordingState};
use aeron_archive::memory_storage::MemoryStorage;
use aeron_archive::storage::Storage;

use crate::catalog::common::{CATALOG, TERM_LENGTH, recording};

const RUNNING: &[u8] = include_bytes!("../vectors/catalog-running.bin");
const ENDED: &[u8] = include_bytes!("../vectors/catalog-ended.bin");

fn real(bytes: &[u8]) -> Catalog<MemoryStorage> {
    let storage = MemoryStorage::new();
    storage.put(CATALOG, bytes);
    Catalog::open_read_only(&storage).expect("a real archive wrote it")
}

/// Creates a catalog with the same recordings as the real catalog. Makes the changes that have led
/// to the entries of the real catalog.
fn replay(real: &Catalog<MemoryStorage>, capacity: u64) -> MemoryStorage {
    let storage = MemoryStorage::new();
    let mut ours = Catalog::create(&storage, capacity).unwrap();
    for entry in real.entries() {
        let last = &entry.descriptor;
        let id = ours
            .add(RecordingDescriptor {
                start_position: 0,
                stop_position: NULL_VALUE,
                stop_timestamp_ms: NULL_VALUE,
                ..last.clone()
            })
            .unwrap();
        if !last.is_unfinished() {
            ours.stop(id, last.stop_position, last.stop_timestamp_ms)
                .unwrap();
        }
        if last.start_position > 0 {
            ours.set_start_position(id, last.start_position).unwrap();
        }
        if entry.state == RecordingState::Deleted {
            ours.delete(id, last.stop_position).unwrap();
        }
    }
    storage
}

/// 08-17, 07-70
#[test]
fn a_catalog_with_the_recordings_of_a_real_archive_has_the_same_bytes() {
    for bytes in [RUNNING, ENDED] {
        let storage = replay(&real(bytes), bytes.len() as u64);
        assert_eq!(storage.bytes(CATALOG).unwrap(), bytes);
    }
}

/// 08-17, 07-70
#[test]
fn a_catalog_of_a_real_archive_is_read() {
    let running = real(RUNNING);
    assert_eq!(running.next_recording_id(), 4);
    let states: Vec<_> = running.entries().iter().map(|entry| entry.state).collect();
    let valid = RecordingState::Valid;
    assert_eq!(states, [RecordingState::Deleted, valid, valid, valid]);

    let purged = running.recording(1).unwrap();
    assert_eq!(
        (purged.start_position, purged.stop_position),
        (131_072, 211_392)
    );
    assert_eq!((purged.stream_id, purged.term_length), (1001, TERM_LENGTH));
    assert_eq!(
        (purged.segment_length, purged.mtu_length),
        (2 * TERM_LENGTH, 1408)
    );
    assert_eq!(&*purged.source_identity, "aeron:ipc");
    assert!(purged.original_channel.ends_with("alias=rec-1"));
    assert!(running.recording(3).unwrap().is_unfinished());
    assert_eq!(real(ENDED).recording(3).unwrap().stop_position, 3168);
}

/// 08-17, 07-62
#[test]
fn a_new_catalog_has_a_header_and_then_only_zeros() {
    let storage = MemoryStorage::new();
    let catalog = Catalog::create(&storage, 1024 * 1024).unwrap();
    assert_eq!(
        (catalog.capacity(), catalog.next_recording_id()),
        (1 << 20, 0)
    );
    let bytes = storage.bytes(CATALOG).unwrap();
    let header = [0, 1, 3, 0, 32, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 64, 0];
    assert_eq!(bytes[..18], header);
    assert!(bytes[18..].iter().all(|&byte| byte == 0));
    assert_eq!(bytes.len(), 1 << 20);
    assert_eq!(storage.names().unwrap(), [CATALOG]);
}

/// 08-17, 07-63
#[test]
fn an_entry_is_padded_to_64_bytes_and_has_no_checksum() {
    let storage = MemoryStorage::new();
    let mut catalog = Catalog::create(&storage, 1024).unwrap();
    let texts = |length| "x".repeat(length);
    // The header, the fields of fixed length and the lengths of three texts have 124 bytes. So with
    // 4 bytes of text, an entry fills two units of 64 bytes.
    for (length, frame) in [(4, 128), (5, 192)] {
        let before = used(&storage);
        catalog
            .add(RecordingDescriptor {
                stripped_channel: "".into(),
                original_channel: texts(length).into(),
                source_identity: "".into(),
                ..recording(1)
            })
            .unwrap();
        let entry = &storage.bytes(CATALOG).unwrap()[before..before + frame];
        assert_eq!(entry[..4], (frame as i32 - 32).to_le_bytes());
        assert_eq!(entry[4..8], 1i32.to_le_bytes());
        assert!(entry[8..32].iter().all(|&byte| byte == 0));
        assert_eq!(used(&storage), before + frame);
    }
}

/// Returns the offset of the end of the entries.
fn used(storage: &MemoryStorage) -> usize {
    let bytes = storage.bytes(CATALOG).unwrap();
    let mut end = 32;
    while let Some(length) = bytes.get(end..end + 4) {
        match i32::from_le_bytes(length.try_into().unwrap()) {
            0 => break,
            length => end += 32 + length as usize,
        }
    }
    end
}

#[test]
fn texts_that_are_not_ascii_are_stored_unchanged() {
    let storage = MemoryStorage::new();
    let mut catalog = Catalog::create(&storage, 1024).unwrap();
    let channel = "aeron:ipc?alias=Ölpreis-€";
    let id = catalog
        .add(RecordingDescriptor {
            original_channel: channel.into(),
            ..recording(1)
        })
        .unwrap();
    let opened = crate::catalog::common::open(&storage);
    assert_eq!(&*opened.recording(id).unwrap().original_channel, channel);
}
