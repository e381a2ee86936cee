//! Verification and repair of recordings.

use std::ops::ControlFlow;

use aeron_archive::catalog::{CATALOG_FILE, NULL_VALUE, RecordingState};
use aeron_archive::checksum::Checksum;
use aeron_archive::memory_storage::MemoryStorage;
use aeron_archive::storage::Access;
use aeron_archive::tool::{ArchiveFiles, ToolError, TornDecision, Verification, VerifyOptions};
use proptest::prelude::*;

use crate::recordings::stream::{SEGMENT_LENGTH, TERM_LENGTH};
use crate::store::common::{empty, image, record, recorded};

const NOW_MS: i64 = 77_000;
const ALL: VerifyOptions = VerifyOptions {
    all_segments: true,
    checksum: None,
};

fn look(storage: &MemoryStorage) -> ArchiveFiles<MemoryStorage> {
    ArchiveFiles::open(storage.clone(), Access::Read).unwrap()
}

fn change(storage: &MemoryStorage) -> ArchiveFiles<MemoryStorage> {
    ArchiveFiles::open(storage.clone(), Access::Write).unwrap()
}

fn verify(storage: &MemoryStorage, id: i64, options: &VerifyOptions) -> Verification {
    look(storage)
        .verify(id, options, &mut |_| ControlFlow::Continue(()))
        .unwrap()
}

fn problem(storage: &MemoryStorage, id: i64) -> Option<String> {
    verify(storage, id, &ALL).problem_by(TornDecision::Keep)
}

fn repair(storage: &MemoryStorage, id: i64) -> RecordingState {
    let found = verify(storage, id, &ALL);
    let repaired = change(storage).repair(&found, TornDecision::Keep, None, NOW_MS);
    repaired.unwrap().state
}

fn segment(storage: &MemoryStorage, base: i64) -> (String, Vec<u8>) {
    let name = format!("0-{base}.rec");
    let bytes = storage.bytes(&name).unwrap();
    (name, bytes)
}

/// 07-77, 07-133
#[test]
fn a_repair_writes_the_stop_position_of_a_recording_with_a_killed_recorder() {
    let (storage, mut store) = empty();
    let mut session = store.start_recording(image(0)).unwrap();
    record(&mut session, 200);
    let end = session.recorded_position();
    drop((session, store));
    let catalog = storage.bytes(CATALOG_FILE);

    let found = verify(&storage, 0, &ALL);
    assert_eq!(found.problem_by(TornDecision::Keep), None);
    assert_eq!(
        (found.recorded_stop_position, found.stop_position),
        (NULL_VALUE, end)
    );
    assert_eq!(storage.bytes(CATALOG_FILE), catalog);

    assert_eq!(repair(&storage, 0), RecordingState::Valid);
    let files = look(&storage);
    let descriptor = &files.entry(0).unwrap().descriptor;
    assert_eq!(
        (descriptor.stop_position, descriptor.stop_timestamp_ms),
        (end, NOW_MS)
    );
}

/// 07-133
#[test]
fn a_repair_marks_a_broken_recording_as_invalid_and_as_valid_after_its_frames_are_restored() {
    let (storage, mut store) = empty();
    recorded(&mut store, 0, 200);
    drop(store);
    let (name, bytes) = segment(&storage, 0);
    assert!(storage.flip_bit(&name, 8, 1));
    let last_only = VerifyOptions::default();
    assert!(verify(&storage, 0, &last_only).broken.is_none());
    assert_eq!(
        problem(&storage, 0).unwrap(),
        "0-0.rec, position 0: term offset 2, expected 0"
    );
    assert_eq!(repair(&storage, 0), RecordingState::Invalid);
    storage.put(&name, &bytes);
    assert_eq!(repair(&storage, 0), RecordingState::Valid);
}

/// 07-133: an archive would refuse the whole catalog because of one entry with impossible values.
#[test]
fn tools_verify_the_other_entries_if_one_entry_has_impossible_values() {
    let (storage, mut store) = empty();
    recorded(&mut store, 0, 10);
    recorded(&mut store, 0, 10);
    drop(store);
    let start_position_of_first = 32 + 32 + 40;
    assert!(storage.flip_bit(CATALOG_FILE, start_position_of_first, 0));
    assert_eq!(
        problem(&storage, 0).unwrap(),
        "startPosition=1, expected a multiple of 32 within the stream"
    );
    assert_eq!(problem(&storage, 1), None);
    assert_eq!(repair(&storage, 0), RecordingState::Invalid);
    assert!(aeron_archive::catalog::Catalog::open(&storage, 0).is_ok());
}

/// 07-79
#[test]
fn the_caller_decides_whether_a_fragment_that_may_be_torn_is_kept() {
    let torn = || {
        let (storage, mut store) = empty();
        let mut session = store.start_recording(image(0)).unwrap();
        record(&mut session, 10);
        let (name, mut bytes) = segment(&storage, 0);
        // The last fragment crosses the end of a page, and the next page is all zeros.
        let end = session.recorded_position() as usize;
        bytes[end / 4096 * 4096..].fill(0);
        storage.put(&name, &bytes);
        storage
    };
    let storage = torn();
    let found = verify(&storage, 0, &ALL);
    let fragment = found.torn.clone().expect("a torn fragment");
    assert_eq!(found.stop_position, fragment.position);
    assert!(fragment.kept_position > fragment.position);

    for (decision, end) in [
        (TornDecision::Truncate, fragment.position),
        (TornDecision::Keep, fragment.kept_position),
    ] {
        let storage = torn();
        let repaired = change(&storage)
            .repair(&found, decision, None, NOW_MS)
            .unwrap();
        assert_eq!(
            (repaired.state, repaired.stop_position),
            (RecordingState::Valid, end)
        );
        let (_, bytes) = segment(&storage, 0);
        let is_cut = bytes[fragment.position as usize..]
            .iter()
            .all(|&byte| byte == 0);
        assert_eq!(is_cut, decision == TornDecision::Truncate);
        assert_eq!(bytes.len(), SEGMENT_LENGTH as usize);
    }
}

/// 07-133: a repair must not silently drop recorded bytes.
#[test]
fn a_recording_with_a_segment_file_that_ends_within_a_frame_is_broken() {
    let (storage, mut store) = empty();
    recorded(&mut store, 0, 10);
    drop(store);
    let (name, bytes) = segment(&storage, 0);
    storage.put(&name, &bytes[..5000]);
    assert_eq!(
        problem(&storage, 0).unwrap(),
        "0-0.rec: the file ends within the fragment at position 4224"
    );
}

/// 07-51, 07-63, 07-133
#[test]
fn checksums_that_were_written_later_are_verified() {
    let (storage, mut store) = empty();
    recorded(&mut store, TERM_LENGTH + 64, 300);
    drop(store);
    let by = |checksum| VerifyOptions {
        checksum: Some(checksum),
        ..ALL
    };
    assert!(verify(&storage, 0, &by(Checksum::Crc32c)).broken.is_some());
    let mut progress = Vec::new();
    let report = change(&storage)
        .write_checksums(0, Checksum::Crc32c, true, &mut |bytes| {
            progress.push(bytes);
            ControlFlow::Continue(())
        })
        .unwrap();
    assert!(report.frames >= 300);
    assert_eq!(progress, vec![SEGMENT_LENGTH as u64; report.segments]);
    assert!(verify(&storage, 0, &by(Checksum::Crc32c)).broken.is_none());
    assert!(verify(&storage, 0, &by(Checksum::Crc32)).broken.is_some());
    // A repair without a checksum option also updates the checksum of the catalog entry.
    change(&storage).mark(0, false).unwrap();
    assert_eq!(repair(&storage, 0), RecordingState::Valid);
    assert!(verify(&storage, 0, &by(Checksum::Crc32c)).broken.is_none());
}

#[test]
fn the_caller_can_interrupt_a_verification() {
    let (storage, mut store) = empty();
    recorded(&mut store, 0, 10);
    let broken_off = look(&storage).verify(0, &ALL, &mut |_| ControlFlow::Break(()));
    assert!(matches!(broken_off, Err(ToolError::Interrupted)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// The tools return a result or an error.
    #[test]
    fn tools_do_not_panic_on_flipped_bits(
        flips in prop::collection::vec((any::<bool>(), 0..4096u64, 0..8u32), 1..8),
    ) {
        let (storage, mut store) = empty();
        recorded(&mut store, 64, 100);
        recorded(&mut store, 0, 3);
        drop(store);
        for (in_catalog, offset, bit) in flips {
            let name = if in_catalog { CATALOG_FILE } else { "0-0.rec" };
            storage.flip_bit(name, if in_catalog { offset % 420 } else { offset }, bit);
        }
        let Ok(mut files) = ArchiveFiles::open(storage, Access::Write) else {
            return Ok(());
        };
        let ids: Vec<i64> = files.catalog().entries().iter().map(|entry| entry.descriptor.recording_id).collect();
        for id in ids {
            let found = files.verify(id, &ALL, &mut |_| ControlFlow::Continue(()));
            if let Ok(found) = found {
                let _ = files.repair(&found, TornDecision::Truncate, None, NOW_MS);
            }
            let _ = files.write_checksums(id, Checksum::Crc32, true, &mut |_| ControlFlow::Continue(()));
            if let Ok(mut frames) = files.frames(id) {
                while let Ok(Some(_)) = frames.next_frame() {}
            }
        }
        let _ = files.orphans(None);
    }
}
