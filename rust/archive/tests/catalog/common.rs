//! Helpers of the catalog tests.

use aeron_archive::catalog::{Catalog, NULL_VALUE, RecordingDescriptor};
use aeron_archive::memory_storage::MemoryStorage;

pub const CATALOG: &str = "archive.catalog";
pub const CAPACITY: u64 = 64 * 1024;
pub const TERM_LENGTH: i32 = 64 * 1024;
pub const SEGMENT_LENGTH: i32 = 128 * 1024;

/// Returns a storage that has only one file: a catalog without recordings.
pub fn empty() -> (MemoryStorage, Catalog<MemoryStorage>) {
    let storage = MemoryStorage::new();
    let catalog = Catalog::create(&storage, CAPACITY).expect("an empty disk takes a catalog");
    (storage, catalog)
}

pub fn open(storage: &MemoryStorage) -> Catalog<MemoryStorage> {
    Catalog::open(storage, 0).expect("a catalog that opens")
}

/// Returns the descriptor of an active recording that starts at position 0.
pub fn recording(session_id: i32) -> RecordingDescriptor {
    RecordingDescriptor {
        control_session_id: 0,
        correlation_id: 0,
        recording_id: NULL_VALUE,
        start_timestamp_ms: 1_000,
        stop_timestamp_ms: NULL_VALUE,
        start_position: 0,
        stop_position: NULL_VALUE,
        initial_term_id: 7,
        segment_length: SEGMENT_LENGTH,
        term_length: TERM_LENGTH,
        mtu_length: 1408,
        session_id,
        stream_id: 1001,
        stripped_channel: "aeron:ipc".into(),
        original_channel: "aeron:ipc?alias=x".into(),
        source_identity: "aeron:ipc".into(),
    }
}

/// Returns the descriptors of all valid recordings.
pub fn recordings(catalog: &Catalog<MemoryStorage>) -> Vec<RecordingDescriptor> {
    catalog.recordings().cloned().collect()
}
