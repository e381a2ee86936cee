//! Rebuilds a lost catalog from segment files.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use aeron_archive::catalog::{Catalog, RecordingDescriptor, RecordingState};
use aeron_archive::checksum::Checksum;
use aeron_archive::index::IndexForm;
use aeron_archive::memory_storage::MemoryStorage;
use aeron_archive::segments::SegmentFileName;
use aeron_archive::storage::Storage;
use aeron_archive::store::{ArchiveStore, StoreOptions};
use aeron_archive::tool::{RebuiltCatalog, RebuiltChannel, ToolError, rebuild_catalog};
use fastrand::Rng;

use crate::recordings::stream::{SEGMENT_LENGTH, SESSION_ID, TERM_LENGTH};
use crate::store::common::*;

const CATALOG: &str = "archive.catalog";
const COMPACTED: &str = "archive.catalog.compact";

fn rebuild(storage: &MemoryStorage) -> Result<RebuiltCatalog, ToolError> {
    let channel = RebuiltChannel::parse("aeron:ipc?alias=lost|term-length=64k").unwrap();
    rebuild_catalog(storage, &channel, &mut |_| ControlFlow::Continue(()))
}

/// Returns all files except those of the catalog.
fn contents(storage: &MemoryStorage) -> BTreeMap<String, Vec<u8>> {
    let names = storage.names().unwrap().into_iter();
    names
        .filter(|name| !name.starts_with(CATALOG))
        .map(|name| (name.clone(), storage.bytes(&name).unwrap()))
        .collect()
}

fn recordings(storage: &MemoryStorage) -> Vec<RecordingDescriptor> {
    let catalog = Catalog::open_read_only(storage).unwrap();
    catalog.recordings().cloned().collect()
}

/// Records streams with random starts and lengths. A killed recorder leaves no stop position, so the store is opened
/// again.
fn random_archive(random: &mut Rng) -> MemoryStorage {
    let storage = MemoryStorage::new();
    let options = StoreOptions {
        index: random.bool().then_some(IndexForm::Sparse),
        record_checksum: random.bool().then_some(Checksum::Crc32c),
        ..options()
    };
    let (mut store, _) = ArchiveStore::open(storage.clone(), options, OPENED_MS).unwrap();
    for _ in 0..random.usize(1..4) {
        let start = random.i64(0..5) * TERM_LENGTH + random.i64(0..8) * 32;
        let mut session = store.start_recording(image(start)).unwrap();
        record(&mut session, random.usize(1..300));
        if random.bool() {
            stop(&mut store, &session);
        }
    }
    drop(store);
    ArchiveStore::open(storage.clone(), options, OPENED_MS).unwrap();
    storage
}

/// Compares the values that segment files have.
fn is_found_again(found: &RecordingDescriptor, former: &RecordingDescriptor) -> bool {
    // A recording of only one term has no end of a term.
    let is_short = former.start_position / TERM_LENGTH == (former.stop_position - 1) / TERM_LENGTH;
    let geometry = |it: &RecordingDescriptor| (it.term_length, it.initial_term_id);
    // Frames with checksums have no session id. Only the index has it.
    let is_session = [SESSION_ID, 0].contains(&found.session_id);
    let values = |it: &RecordingDescriptor| {
        (
            it.recording_id,
            it.start_position,
            it.stop_position,
            it.segment_length,
            it.stream_id,
        )
    };
    values(found) == values(former)
        && (is_short || geometry(found) == geometry(former))
        && is_session
        && found.mtu_length == 1056
}

/// 12, sections 10.3 and 10.4
#[test]
fn a_lost_catalog_is_rebuilt_from_the_segment_files() {
    for seed in 0..100 {
        let storage = random_archive(&mut Rng::with_seed(seed));
        let former = recordings(&storage);
        let before = contents(&storage);
        storage.remove(CATALOG).unwrap();
        let refusal = ArchiveStore::open(storage.clone(), options(), OPENED_MS).unwrap_err();
        let refusal = refusal.to_string();
        assert!(refusal.contains("rebuild-catalog"), "{refusal}");
        assert!(!storage.names().unwrap().contains(&CATALOG.to_owned()));

        let rebuilt = rebuild(&storage).unwrap();
        assert!(rebuilt.skipped.is_empty(), "seed {seed}: {rebuilt:?}");
        assert!(contents(&storage) == before, "seed {seed}");
        let found = recordings(&storage);
        assert_eq!(found.len(), former.len(), "seed {seed}");
        for (found, former) in found.iter().zip(&former) {
            assert!(
                is_found_again(found, former),
                "seed {seed}: {found:?}\nnot {former:?}"
            );
            assert_eq!(
                &*found.original_channel,
                "aeron:ipc?alias=lost|term-length=64k"
            );
            assert_eq!(&*found.source_identity, "aeron:ipc");
        }
        let (store, recovered) = open(&storage);
        assert_eq!(recovered, []);
        assert_eq!(store.next_recording_id(), former.len() as i64);
        for recording in &found {
            let messages = frames(&storage, &store, recording.recording_id);
            assert!(!messages.is_empty());
        }
    }
}

/// 12, section 10.3
#[test]
fn a_catalog_is_never_replaced() {
    let (storage, mut store) = empty();
    recorded(&mut store, 0, 3);
    drop(store);
    storage.put(CATALOG, b"damaged");
    let refusal = rebuild(&storage).unwrap_err().to_string();
    assert!(refusal.starts_with("archive.catalog exists"), "{refusal}");
    assert_eq!(storage.bytes(CATALOG).unwrap(), b"damaged");
}

/// 12, section 10.5
#[test]
fn the_new_catalog_of_a_compaction_is_used_with_the_positions_of_the_segment_files() {
    let (storage, mut store) = empty();
    recorded(&mut store, 96, 300);
    recorded(&mut store, 0, 3);
    let deleted = recorded(&mut store, 0, 3);
    drop(store);
    let former = recordings(&storage);
    // A purge was killed before it has deleted the segment.
    Catalog::open(&storage, 0)
        .unwrap()
        .delete(deleted, -1)
        .unwrap();
    let compacted = storage.bytes(CATALOG).unwrap();
    storage.put(COMPACTED, &compacted);
    storage.remove(CATALOG).unwrap();
    let rebuilt = rebuild(&storage).unwrap();
    assert!(
        rebuilt.recordings.iter().all(|it| it.notes.is_empty()),
        "{rebuilt:?}"
    );
    assert_eq!(recordings(&storage), former[..2]);
    let catalog = Catalog::open_read_only(&storage).unwrap();
    assert_eq!(
        catalog.entry(deleted).unwrap().state,
        RecordingState::Invalid
    );
    assert_eq!(catalog.next_recording_id(), 3);
}

/// 12, section 10.4
#[test]
fn a_recording_with_a_missing_segment_begins_after_the_gap() {
    let (storage, mut store) = empty();
    let id = recorded(&mut store, 0, 500);
    let (_, stop) = positions(&store, id);
    drop(store);
    storage.remove(CATALOG).unwrap();
    storage.remove(&format!("0-{SEGMENT_LENGTH}.rec")).unwrap();
    let rebuilt = rebuild(&storage).unwrap();
    let notes = &rebuilt.recordings[0].notes;
    assert!(
        notes[0].contains("1 segment files up to 0-0.rec are before a gap"),
        "{notes:?}"
    );
    let (store, _) = open(&storage);
    assert_eq!(positions(&store, id), (2 * SEGMENT_LENGTH, stop));
    assert!(storage.bytes("0-0.rec").is_some());
}

/// 12, sections 10.3 to 10.6: a thousand damaged directories.
#[test]
fn a_damaged_directory_is_rebuilt_without_a_change_of_its_files_and_the_archive_starts() {
    for seed in 1_000..2_000 {
        let mut random = Rng::with_seed(seed);
        let storage = random_archive(&mut random);
        let former = recordings(&storage);
        let catalog = storage.bytes(CATALOG).unwrap();
        storage.remove(CATALOG).unwrap();
        if random.bool() {
            let length = random.usize(..=catalog.len());
            storage.put(COMPACTED, &catalog[..length]);
        }
        let names: Vec<_> = contents(&storage).into_keys().collect();
        let damaged = random.choice(&names).unwrap();
        damage(&storage, damaged, &mut random);
        let before = contents(&storage);

        let rebuilt = rebuild(&storage).unwrap();
        assert!(contents(&storage) == before, "seed {seed}");
        let damaged_id = SegmentFileName::parse(damaged).map(|file| file.recording_id);
        let found = recordings(&storage);
        for former in former
            .iter()
            .filter(|it| Some(it.recording_id) != damaged_id)
        {
            let found = found
                .iter()
                .find(|it| it.recording_id == former.recording_id);
            let positions = |it: &RecordingDescriptor| (it.start_position, it.stop_position);
            assert_eq!(
                found.map(positions),
                Some(positions(former)),
                "seed {seed}, {damaged}: {rebuilt:?}"
            );
        }
        let opened = ArchiveStore::open(storage.clone(), options(), OPENED_MS);
        let (store, _) = opened.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        let ids = before
            .keys()
            .filter_map(|name| SegmentFileName::parse(name));
        let last_id = ids.map(|file| file.recording_id).max();
        assert!(Some(store.next_recording_id()) > last_id, "seed {seed}");
        assert!(
            before
                .keys()
                .filter(|name| name.ends_with(".rec"))
                .all(|name| storage.bytes(name).is_some()),
            "seed {seed}: the start keeps all segments"
        );
    }
}

fn damage(storage: &MemoryStorage, name: &str, random: &mut Rng) {
    let mut bytes = storage.bytes(name).unwrap();
    match random.u8(..5) {
        0 => bytes.truncate(random.usize(..=bytes.len())),
        1 if !bytes.is_empty() => {
            let begin = random.usize(..bytes.len());
            let end = (begin + 5_000).min(bytes.len());
            bytes[begin..end].fill(0);
        }
        2 => bytes
            .iter_mut()
            .take(4_096)
            .for_each(|byte| *byte = random.u8(..)),
        3 => {
            storage.remove(name).unwrap();
            return;
        }
        _ => {
            for _ in 0..20.min(bytes.len()) {
                let at = random.usize(..bytes.len());
                bytes[at] ^= 1 << random.u32(..8);
            }
        }
    }
    storage.put(name, &bytes);
}
