//! The end of a recording whose recorder was killed, for each state in which a kill can leave the files.

use crate::recordings::stream::*;
use aeron_archive::checksum::Checksum;
use aeron_archive::memory_storage::MemoryStorage;
use aeron_archive::recorder::RecorderSession;
use aeron_archive::recovery::{
    OnTornFragment, RecordingEnd, RecoveryError, RecoveryPolicy, find_end, find_end_by, recover,
};
use aeron_archive::storage::{Access, Directory, Storage, StorageFile, SyncLevel};
use aeron_archive::stream::RecordedStream;
use tempfile::TempDir;

const NAME: &str = "3-0.rec";

/// A directory in which the test chooses the bytes of the first segment of recording 3.
struct Left {
    _place: TempDir,
    storage: Directory,
    stream: RecordedStream,
}

impl Left {
    fn new(bytes: &[u8]) -> Self {
        let place = TempDir::new().unwrap();
        let storage = Directory::new(place.path());
        let stream = recorded_stream(0);
        RecorderSession::create(&storage, stream, SyncLevel::None).unwrap();
        let left = Self {
            _place: place,
            storage,
            stream,
        };
        left.write(0, bytes);
        left
    }

    fn write(&self, offset: i64, bytes: &[u8]) {
        let file = self.storage.open(NAME, Access::Write).unwrap();
        file.write_all_at(bytes, offset as u64).unwrap();
    }

    /// Returns the end that `find_end` finds.
    ///
    /// Also checks that a recovery finds the same end and leaves zeros after it, and that a second
    /// search finds the same end.
    fn end(&self, known: i64) -> (i64, bool) {
        let found = find_end(&self.storage, &self.stream, known).unwrap();
        assert_eq!(recover(&self.storage, &self.stream, known).unwrap(), found);
        assert!(is_zero_from(&self.storage, NAME, found.position));
        assert_eq!(bytes(&self.storage, NAME).len() as i64, SEGMENT_LENGTH);
        let again = find_end(&self.storage, &self.stream, known).unwrap();
        assert_eq!((again.position, again.is_torn), (found.position, false));
        (found.position, found.is_torn)
    }
}

/// Returns frames with these payloads, from position 0 on.
fn frames(payloads: &[&[u8]]) -> Vec<u8> {
    let mut publisher = Publisher::new(0);
    payloads
        .iter()
        .flat_map(|payload| publisher.data(0xC0, payload))
        .collect()
}

#[test]
fn the_end_is_after_the_last_whole_frame_08_22() {
    let left = Left::new(&frames(&[b"one", b"two", &payload(1000)]));
    assert_eq!(left.end(0), (64 + 64 + 1056, false));
    assert_eq!(left.end(128), (64 + 64 + 1056, false));
}

#[test]
fn recovery_does_not_change_a_file_with_only_zeros_after_its_frames() {
    for payloads in [
        &[][..],
        &[b"one".as_slice()],
        &[&payload(4000), &payload(200)],
    ] {
        let storage = MemoryStorage::new();
        let stream = recorded_stream(0);
        let mut session = RecorderSession::create(&storage, stream, SyncLevel::None).unwrap();
        let block = frames(payloads);
        session.append(&block, |_| {}).unwrap();
        let steps = storage.steps();
        let end = recover(&storage, &stream, 0).unwrap();
        assert_eq!((end.position, end.is_torn), (block.len() as i64, false));
        assert_eq!(storage.steps(), steps);
        // Sets a bit after the end of the frames. The recovery clears it.
        assert!(storage.flip_bit(NAME, block.len() as u64 + 40, 3));
        recover(&storage, &stream, 0).unwrap();
        assert!(is_zero_from(&storage, NAME, end.position));
    }
}

/// The default policy removes the torn frame.
#[test]
fn a_last_frame_with_a_missing_page_is_torn_and_removed_08_23() {
    let block = frames(&[&payload(4000), &payload(1000)]);
    let left = Left::new(&block[..4096]);
    assert_eq!(left.end(0), (4032, true));
    // With one byte of the next page, no page of the frame is all zeros. So the same frame counts as whole.
    let left = Left::new(&block[..4097]);
    assert_eq!(left.end(0), (block.len() as i64, false));
}

#[test]
fn a_last_frame_with_any_page_of_zeros_is_torn_08_23() {
    let mut block = frames(&[&payload(20_000)]);
    block[8192..12_288].fill(0);
    assert_eq!(Left::new(&block).end(0), (0, true));
}

#[test]
fn a_whole_last_frame_with_a_page_of_zeros_below_the_acknowledged_position_is_kept_08_23() {
    let block = frames(&[b"before", &[0; 12_000]]);
    let end = block.len() as i64;
    assert_eq!(Left::new(&block).end(end), (end, false));
    assert_eq!(Left::new(&block).end(64), (64, true));
}

/// Only the last frame can be torn.
#[test]
fn a_page_of_zeros_in_a_frame_before_the_last_frame_is_accepted_08_23() {
    let block = frames(&[&[0; 12_000], b"behind"]);
    assert_eq!(Left::new(&block).end(0), (block.len() as i64, false));
}

#[test]
fn a_last_padding_frame_longer_than_a_page_is_kept_08_23() {
    let mut publisher = Publisher::new(0);
    let block = [
        publisher.data(0xC0, b"before"),
        publisher.pad(30_000 / 32 * 32),
    ]
    .concat();
    assert_eq!(Left::new(&block).end(0), (publisher.position(), false));
}

/// The frame after the end has the term offset and the term id of another position.
#[test]
fn a_recording_ends_before_a_frame_with_the_header_of_another_position_08_23() {
    let mut block = frames(&[b"first"]);
    block.extend(Publisher::new(TERM_LENGTH + 64).data(0xC0, b"of another term"));
    assert_eq!(Left::new(&block).end(0), (64, true));
}

#[test]
fn recovery_extends_a_shortened_segment_file_to_its_full_length() {
    let block = frames(&[b"one", &payload(900)]);
    for length in [0, 64, 100, block.len()] {
        let left = Left::new(&block);
        left.storage
            .open(NAME, Access::Write)
            .unwrap()
            .set_length(length as u64)
            .unwrap();
        let expected = if length == block.len() {
            length
        } else {
            length / 64 * 64
        };
        assert_eq!(left.end(0), (expected as i64, length == 100));
    }
}

#[test]
fn a_recording_without_a_segment_ends_at_its_start_position() {
    let place = TempDir::new().unwrap();
    let storage = Directory::new(place.path());
    let stream = recorded_stream(4096);
    let end = recover(&storage, &stream, 4096).unwrap();
    assert_eq!(
        end,
        RecordingEnd {
            position: 4096,
            kept_position: 4096,
            is_torn: false,
            modified: None
        }
    );
    let error = recover(&storage, &stream, 8192).unwrap_err();
    assert!(
        matches!(
            error,
            RecoveryError::Lost {
                known_position: 8192,
                end_position: 4096,
                ..
            }
        ),
        "{error}"
    );
}

#[test]
fn the_end_is_searched_in_the_last_of_several_segments_08_16() {
    let place = TempDir::new().unwrap();
    let storage = Directory::new(place.path());
    let start = TERM_LENGTH + 32;
    let stream = recorded_stream(start);
    let mut session = RecorderSession::create(&storage, stream, SyncLevel::None).unwrap();
    let mut publisher = Publisher::new(start);
    let mut last = start;
    while session.segment_base() < start + 2 * SEGMENT_LENGTH - TERM_LENGTH {
        last = publisher.position();
        for block in publisher.offer(&payload(3000)) {
            session.append(&block, |_| {}).unwrap();
            session.publish().unwrap();
        }
    }
    let end = find_end(&storage, &stream, start).unwrap();
    assert_eq!((end.position, end.is_torn), (publisher.position(), false));
    assert!(end.modified.is_some());
    // The recording ends exactly at the end of a segment. The last file is the empty next segment.
    let base = session.segment_base();
    storage
        .open(&stream.segment_name(base), Access::Write)
        .unwrap()
        .set_length(0)
        .unwrap();
    assert_eq!(
        recover(&storage, &stream, last.min(base)).unwrap().position,
        base
    );
    // The recorder was killed before it created the empty file.
    storage.remove(&stream.segment_name(base)).unwrap();
    let error = recover(&storage, &stream, base + 32).unwrap_err();
    assert!(matches!(error, RecoveryError::Lost { .. }), "{error}");
    assert_eq!(recover(&storage, &stream, base).unwrap().position, base);
    assert!(is_zero_from(&storage, &stream.segment_name(base), 0));
}

/// The caller of `find_end` guarantees that the recorder has written all bytes before the known position.
#[test]
fn data_below_the_known_position_are_neither_read_nor_removed_08_22() {
    let mut block = frames(&[b"one", b"two", b"three"]);
    block[64..96].fill(0xFF);
    assert_eq!(Left::new(&block).end(128), (192, false));
    let left = Left::new(&frames(&[b"one"]));
    assert_eq!(left.end(128), (128, false));
}

/// A segment file of this recording with an impossible base is an error. Files of other recordings
/// and kinds are ignored.
#[test]
fn files_with_impossible_bases_are_errors_and_foreign_files_are_ignored() {
    let left = Left::new(&frames(&[b"one"]));
    for name in [
        "4-131072.rec",
        "index-3-131072.idx",
        "3-0131072.rec",
        "3--131072.rec",
        "archive.catalog",
        "x.rec",
    ] {
        left.storage.create(name, 0).unwrap();
    }
    assert_eq!(left.end(0), (64, false));
    left.storage.create("3-131073.rec", 0).unwrap();
    let error = find_end(&left.storage, &left.stream, 0).unwrap_err();
    assert!(error.to_string().starts_with("3-131073.rec: "), "{error}");
    for known in [-32, 33, i64::MAX] {
        let error = find_end(&left.storage, &left.stream, known).unwrap_err();
        assert!(matches!(error, RecoveryError::Position { .. }), "{error}");
    }
}

const REFUSE: RecoveryPolicy = RecoveryPolicy {
    on_torn_fragment: OnTornFragment::Refuse,
    checksum: None,
};

#[test]
fn an_archive_refuses_a_torn_frame_and_changes_nothing_07_79() {
    let block = frames(&[&payload(4000), &payload(1000)]);
    let left = Left::new(&block[..4096]);
    let before = bytes(&left.storage, NAME);
    let refusal = find_end_by(&left.storage, &left.stream, 0, &REFUSE).unwrap_err();
    assert!(matches!(
        refusal,
        RecoveryError::Torn { position: 4032, .. }
    ));
    let text = refusal.to_string();
    let expected = "Found potentially incomplete last fragment straddling page boundary in file: 3-0.rec, position 4032: run";
    assert!(text.starts_with(expected), "{text}");
    assert_eq!(bytes(&left.storage, NAME), before);
    let truncating = RecoveryPolicy::default();
    let end = find_end_by(&left.storage, &left.stream, 0, &truncating).unwrap();
    assert_eq!((end.position, end.is_torn), (4032, true));
}

#[test]
fn a_last_frame_with_a_page_of_zeros_is_accepted_if_its_checksum_is_correct_07_80() {
    for checksum in [Checksum::Crc32, Checksum::Crc32c] {
        let place = TempDir::new().unwrap();
        let storage = Directory::new(place.path());
        let stream = recorded_stream(0);
        let mut session = RecorderSession::create(&storage, stream, SyncLevel::None)
            .unwrap()
            .with_checksum(Some(checksum));
        let block = frames(&[b"before", &[0; 12_000]]);
        session.append(&block, |_| {}).unwrap();
        let end = session.publish().unwrap();
        let stream = stream.any_session();
        let torn = find_end_by(&storage, &stream, 0, &REFUSE).unwrap_err();
        assert!(matches!(torn, RecoveryError::Torn { position: 64, .. }));
        let policy = RecoveryPolicy {
            checksum: Some(checksum),
            ..REFUSE
        };
        let found = find_end_by(&storage, &stream, 0, &policy).unwrap();
        assert_eq!((found.position, found.is_torn), (end, false));

        // Changes one byte of the frame.
        let file = storage.open(NAME, Access::Write).unwrap();
        file.write_all_at(&[1], 100).unwrap();
        let torn = find_end_by(&storage, &stream, 0, &policy).unwrap_err();
        assert!(matches!(torn, RecoveryError::Torn { position: 64, .. }));
    }
}

#[test]
fn an_archive_refuses_bytes_that_are_not_a_frame_and_ends_at_a_negative_length() {
    let left = Left::new(&frames(&[b"one"]));
    left.write(64, &[1; 40]);
    let refusal = find_end_by(&left.storage, &left.stream, 0, &REFUSE).unwrap_err();
    let text = refusal.to_string();
    assert!(text.starts_with("3-0.rec, position 64: "), "{text}");
    assert!(matches!(
        refusal,
        RecoveryError::Damaged { position: 64, .. }
    ));

    let mut unfinished = frames(&[b"one", b"two"]);
    let length = -i32::from_le_bytes(unfinished[64..68].try_into().unwrap());
    unfinished[64..68].copy_from_slice(&length.to_le_bytes());
    let left = Left::new(&unfinished);
    let end = find_end_by(&left.storage, &left.stream, 0, &REFUSE).unwrap();
    assert_eq!(end.position, 64);
}

#[test]
fn a_frame_that_crosses_the_end_of_the_file_is_torn() {
    let block = frames(&[b"one", &payload(900)]);
    let left = Left::new(&block);
    let file = left.storage.open(NAME, Access::Write).unwrap();
    file.set_length(200).unwrap();
    let refusal = find_end_by(&left.storage, &left.stream, 0, &REFUSE).unwrap_err();
    assert!(matches!(refusal, RecoveryError::Torn { position: 64, .. }));
}

#[test]
fn the_kept_position_is_the_end_of_a_last_frame_that_extends_into_a_hole_08_23() {
    let block = frames(&[b"before", &[0; 12_000]]);
    let (end, written) = (block.len() as i64, &block[..4096]);
    let check = |found: RecordingEnd| {
        assert_eq!((found.position, found.kept_position), (64, end));
        assert!(found.is_torn);
    };
    let left = Left::new(written);
    check(find_end(&left.storage, &left.stream, 0).unwrap());

    let storage = MemoryStorage::new();
    let stream = recorded_stream(0);
    RecorderSession::create(&storage, stream, SyncLevel::None).unwrap();
    let file = storage.open(NAME, Access::Write).unwrap();
    file.write_all_at(written, 0).unwrap();
    check(find_end(&storage, &stream, 0).unwrap());
}

#[test]
fn a_segment_after_the_last_possible_position_is_refused() {
    let left = Left::new(&frames(&[b"one"]));
    let base = i64::MAX / SEGMENT_LENGTH * SEGMENT_LENGTH;
    let name = format!("3-{base}.rec");
    left.storage.create(&name, SEGMENT_LENGTH as u64).unwrap();
    let refusal = find_end(&left.storage, &left.stream, 0).unwrap_err();
    assert!(matches!(refusal, RecoveryError::Segment { .. }));
}
