//! A file of extensions with any records. The input decides for each record whether its checksum is correct. An archive
//! with this file opens, deletes no segment when it opens, and stores further changes. Retention by the policies in the
//! file deletes no data that the readers in the file need.
#![no_main]

use aeron_archive::extensions::{EXTENSIONS_FILE_NAME, ExtensionChange, NamedReader};
use aeron_archive::memory_storage::MemoryStorage;
use aeron_archive::retention::{Holders, excess_bytes, outcome, removals};
use aeron_archive::storage::Storage;
use aeron_archive::store::{ArchiveStore, NewRecording, RecordingActivity, StoreOptions};
use libfuzzer_sys::fuzz_target;

type Store = ArchiveStore<MemoryStorage>;

const SEGMENT: i64 = 65_536;
/// Length of a padding frame, in bytes. The frame fills a whole term, which is a whole segment.
const PADDING: i64 = SEGMENT;
const SEGMENTS: i64 = 4;
const HEADER_LENGTH: usize = 16;
const RECORD_HEADER_LENGTH: usize = 8;

fuzz_target!(|data: &[u8]| {
    let storage = MemoryStorage::new();
    let mut store = open(&storage);
    for _ in 0..2 {
        record(&mut store);
    }
    drop(store);
    let before = segments(&storage);
    storage.put(EXTENSIONS_FILE_NAME, &sealed(data));

    let mut store = open(&storage);
    assert_eq!(
        segments(&storage),
        before,
        "a segment of a recording is deleted"
    );
    retain(&mut store);
    let reader = NamedReader {
        recording_id: 0,
        name: "fuzz".to_owned(),
        owner: Vec::new(),
        position: 0,
        committed_ms: 1,
        max_age_ms: None,
        max_lag: None,
    };
    let change = ExtensionChange::Reader(reader.clone());
    store
        .extensions_mut()
        .apply(vec![change])
        .expect("the disk is sound");
    drop(store);

    let store = open(&storage);
    let is_there = store.recording(0).is_ok();
    let expected = is_there.then_some(&reader);
    assert_eq!(store.extensions().reader(0, "fuzz"), expected);
});

fn open(storage: &MemoryStorage) -> Store {
    let options = StoreOptions {
        catalog_capacity: 4096,
        segment_length: SEGMENT as i32,
        low_storage_space_threshold: 0,
        ..StoreOptions::default()
    };
    let (store, _) = ArchiveStore::open(storage.clone(), options, 1).expect("the disk is sound");
    store
}

/// Records segments of padding.
fn record(store: &mut Store) {
    let recording = NewRecording {
        start_timestamp_ms: 1,
        join_position: 0,
        initial_term_id: 0,
        term_length: SEGMENT as i32,
        mtu_length: 1408,
        session_id: 2,
        stream_id: 1,
        stripped_channel: "aeron:ipc".to_owned(),
        original_channel: "aeron:ipc".to_owned(),
        source_identity: "aeron:ipc".to_owned(),
    };
    let mut session = store.start_recording(recording).expect("the disk is sound");
    for term_id in 0..SEGMENTS as i32 {
        let mut header = [0; 32];
        header[..4].copy_from_slice(&(PADDING as i32).to_le_bytes());
        header[5] = 0xC0;
        header[12..16].copy_from_slice(&2_i32.to_le_bytes());
        header[16..20].copy_from_slice(&1_i32.to_le_bytes());
        header[20..24].copy_from_slice(&term_id.to_le_bytes());
        session.append(&header, |_| {}).expect("a sound frame");
        session.publish().expect("the disk is sound");
    }
    let (id, end) = (session.stream().recording_id(), session.recorded_position());
    store.stop_recording(id, end, 2).expect("the disk is sound");
}

/// Applies the policies at a late time, without activity of clients.
fn retain(store: &mut Store) {
    let now_ms = i64::MAX / 2;
    for policy in store.extensions().policies().cloned().collect::<Vec<_>>() {
        let ids: Vec<i64> = store.recordings().map(|it| it.recording_id).collect();
        let mut extents = Vec::new();
        for id in ids {
            if store.retention_policy(id).expect("it is there") == Some(&policy) {
                let mut extent = store.extent(id, None).expect("it is there");
                extent.segment_times_ms = vec![1; extent.sealed_segments()];
                extents.push(extent);
            }
        }
        let _ = excess_bytes(&policy, &extents);
        for removal in removals(&policy, &extents, now_ms) {
            let id = removal.recording_id;
            let extent = extents
                .iter()
                .find(|it| it.recording_id == id)
                .expect("one of these recordings");
            let readers = store.extensions().readers_of(id);
            let holders = Holders {
                readers: readers
                    .map(|reader| (reader.name.as_str(), reader.position))
                    .collect(),
                ..Holders::default()
            };
            let outcome = outcome(extent, &removal, &holders);
            for (_, position) in holders.readers {
                let is_needed = (0..extent.end_position).contains(&position);
                assert!(!is_needed || outcome.new_start_position <= position);
            }
            if !outcome.is_nothing() {
                let activity = RecordingActivity::default();
                let mut operation = store.remove(&outcome, &activity).expect("it is possible");
                while operation.step(store).expect("the disk is sound") {}
            }
        }
    }
}

fn segments(storage: &MemoryStorage) -> Vec<String> {
    let names = storage.names().expect("the disk is sound");
    names
        .into_iter()
        .filter(|name| name.ends_with(".rec"))
        .collect()
}

/// Returns a valid header, followed by the input as records with correct lengths. For each record, the input decides
/// whether its checksum is correct.
fn sealed(data: &[u8]) -> Vec<u8> {
    let mut bytes = b"AEXT\x01\0\0\0\0\0\0\0".to_vec();
    bytes.extend(crc32fast::hash(&bytes).to_le_bytes());
    assert_eq!(bytes.len(), HEADER_LENGTH);
    let mut rest = data;
    // For each record, the input has a byte with the length, a byte that is 255 for a wrong checksum, and the message.
    while let [length, is_damaged, after @ ..] = rest {
        let length = usize::from(*length).min(after.len());
        let (message, next) = after.split_at(length);
        let length = (length as u32).to_le_bytes();
        let checksum = crc32fast::hash(&[&length, message].concat());
        let flipped = u32::from(*is_damaged == 255);
        bytes.extend(length);
        bytes.extend((checksum ^ flipped).to_le_bytes());
        bytes.extend(message);
        bytes.resize(bytes.len().next_multiple_of(RECORD_HEADER_LENGTH), 0);
        rest = next;
    }
    bytes
}
