//! The content of the segment files that a recorder session writes.

use crate::recordings::stream::*;
use aeron_archive::frame::FrameFault;
use aeron_archive::memory_storage::MemoryStorage;
use aeron_archive::recorder::{RecorderError, RecorderSession};
use aeron_archive::recovery::find_end;
use aeron_archive::storage::{Access, Directory, Storage, StorageFile, SyncLevel};
use aeron_archive::stream::RecordedStream;
use tempfile::TempDir;

fn directory() -> (TempDir, Directory) {
    let place = TempDir::new().unwrap();
    let directory = Directory::new(place.path());
    (place, directory)
}

/// Appends and publishes each block.
fn record(session: &mut RecorderSession<&Directory>, blocks: Vec<Vec<u8>>) {
    for block in blocks {
        session.append(&block, |_| {}).unwrap();
        session.publish().unwrap();
    }
}

fn names(directory: &TempDir) -> Vec<String> {
    let mut names: Vec<_> = std::fs::read_dir(directory.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn the_file_offset_of_a_frame_is_its_position_minus_the_segment_base_08_15() {
    let (_place, storage) = directory();
    let start = 3 * TERM_LENGTH + 1024;
    let mut publisher = Publisher::new(start);
    let mut session =
        RecorderSession::create(&storage, recorded_stream(start), SyncLevel::None).unwrap();
    let blocks = [
        publisher.offer(b"one"),
        publisher.offer(&payload(5000)),
        publisher.offer(b""),
    ]
    .concat();
    let published = blocks.concat();
    record(&mut session, blocks);
    assert_eq!(session.recorded_position(), publisher.position());
    let file = bytes(&storage, "3-196608.rec");
    assert_eq!(file.len() as i64, SEGMENT_LENGTH);
    assert!(file[..1024].iter().all(|byte| *byte == 0));
    assert_eq!(&file[1024..][..published.len()], published);
    assert!(is_zero_from(
        &storage,
        "3-196608.rec",
        1024 + published.len() as i64
    ));
}

/// 07-50
#[test]
fn only_the_header_of_padding_is_written_and_zeros_follow_08_15() {
    let (_place, storage) = directory();
    let mut publisher = Publisher::new(0);
    let mut session =
        RecorderSession::create(&storage, recorded_stream(0), SyncLevel::None).unwrap();
    record(&mut session, publisher.offer(b"before"));
    let mut padding = publisher.pad(TERM_LENGTH - publisher.position());
    let header = padding.clone();
    // A block of a log also contains the bytes after the header of the padding.
    padding.resize(500, 0xEE);
    record(&mut session, vec![padding]);
    record(&mut session, publisher.offer(b"behind"));
    let file = bytes(&storage, "3-0.rec");
    assert_eq!(&file[64..96], header);
    assert!(file[96..TERM_LENGTH as usize].iter().all(|byte| *byte == 0));
    assert_eq!(&file[TERM_LENGTH as usize + 32..][..6], b"behind");
    assert_eq!(session.recorded_position(), TERM_LENGTH + 64);
}

#[test]
fn the_next_segment_is_created_when_a_segment_is_full_08_16() {
    let (place, storage) = directory();
    let mut publisher = Publisher::new(TERM_LENGTH + 64);
    let stream = recorded_stream(publisher.position());
    let mut session = RecorderSession::create(&storage, stream, SyncLevel::None).unwrap();
    assert_eq!(names(&place), ["3-65536.rec"]);
    let last = TERM_LENGTH + SEGMENT_LENGTH - 32;
    while publisher.position() < last - TERM_LENGTH / 2 {
        record(&mut session, publisher.offer(&payload(1000)));
    }
    let rest = last - publisher.position();
    record(&mut session, vec![publisher.pad(rest)]);
    session.append(&publisher.data(0xC0, b""), |_| {}).unwrap();
    assert_eq!(session.next_segment(), Some(TERM_LENGTH + SEGMENT_LENGTH));
    assert_eq!(names(&place), ["3-65536.rec"]);
    session.publish().unwrap();
    assert_eq!(session.next_segment(), None);
    assert_eq!(names(&place), ["3-196608.rec", "3-65536.rec"]);
    assert!(is_zero_from(&storage, "3-196608.rec", 0));
    assert_eq!(bytes(&storage, "3-196608.rec").len() as i64, SEGMENT_LENGTH);
    record(&mut session, publisher.offer(b"next"));
    assert_eq!(&bytes(&storage, "3-196608.rec")[32..36], b"next");
}

/// 07-49
#[test]
fn a_recording_ends_if_the_file_of_its_next_segment_exists() {
    let (_place, storage) = directory();
    let stream = recorded_stream(0);
    let mut session = RecorderSession::create(&storage, stream, SyncLevel::None).unwrap();
    storage
        .create("3-131072.rec", SEGMENT_LENGTH as u64)
        .unwrap();
    let mut publisher = Publisher::new(0);
    record(&mut session, vec![publisher.pad(TERM_LENGTH)]);
    session.append(&publisher.pad(TERM_LENGTH), |_| {}).unwrap();
    let Err(RecorderError::Create { name, source }) = session.publish() else {
        panic!("the file was used");
    };
    assert_eq!(name, "3-131072.rec");
    assert_eq!(source.kind(), std::io::ErrorKind::AlreadyExists);
    assert_eq!(session.recorded_position(), SEGMENT_LENGTH);
}

#[test]
fn a_recording_continues_in_the_next_segment_with_every_segment_length_08_16() {
    for bits in 16..=30 {
        let term_length = 1i64 << bits;
        let mut description = description(6 * term_length - 96);
        description.term_length = term_length as i32;
        description.segment_length = (2 * term_length).clamp(1 << 20, 1 << 30) as i32;
        let stream = RecordedStream::new(&description).unwrap();
        let storage = MemoryStorage::new();
        let mut session = RecorderSession::create(&storage, stream, SyncLevel::None).unwrap();
        let mut publisher = Publisher::with_term_length(description.start_position, term_length);
        let end = 5 * term_length + i64::from(description.segment_length);
        while publisher.position() < end {
            let left = term_length - publisher.position() % term_length;
            let block = if left == 96 {
                publisher.data(0xC0, b"last of its term")
            } else {
                publisher.pad(left)
            };
            session.append(&block, |_| {}).unwrap();
            session.publish().unwrap();
        }
        for base in [5 * term_length, end] {
            let file = storage
                .open(&format!("3-{base}.rec"), Access::Read)
                .unwrap();
            assert_eq!(file.length().unwrap(), description.segment_length as u64);
        }
        let frames = read(&storage, stream, description.start_position, end).unwrap();
        assert_eq!(frames[0].1, b"last of its term");
        assert_eq!(find_end(&storage, &stream, end).unwrap().position, end);
    }
}

#[test]
fn an_existing_file_is_never_overwritten_08_25() {
    let (place, storage) = directory();
    let next = place.path().join("3-131072.rec");
    std::fs::write(&next, b"somebody's").unwrap();
    let mut publisher = Publisher::new(0);
    let mut session =
        RecorderSession::create(&storage, recorded_stream(0), SyncLevel::None).unwrap();
    record(&mut session, vec![publisher.pad(TERM_LENGTH)]);
    session.append(&publisher.pad(TERM_LENGTH), |_| {}).unwrap();
    let error = session.publish().unwrap_err();
    assert!(
        matches!(&error, RecorderError::Create { name, .. } if name == "3-131072.rec"),
        "{error}"
    );
    assert_eq!(session.recorded_position(), SEGMENT_LENGTH);
    assert_eq!(std::fs::read(&next).unwrap(), b"somebody's");
    let error = RecorderSession::create(&storage, recorded_stream(0), SyncLevel::None).unwrap_err();
    assert!(error.to_string().contains("3-0.rec"), "{error}");
}

#[test]
fn an_unpublished_append_can_be_undone_08_24() {
    let (_place, storage) = directory();
    let mut publisher = Publisher::new(0);
    let mut session =
        RecorderSession::create(&storage, recorded_stream(0), SyncLevel::None).unwrap();
    record(&mut session, publisher.offer(b"kept"));
    let before = publisher.clone();
    session
        .append(&publisher.offer(&payload(9000)).concat(), |_| {})
        .unwrap();
    assert!(session.appended_position() > session.recorded_position());
    session.undo().unwrap();
    assert_eq!(session.appended_position(), 64);
    assert!(is_zero_from(&storage, "3-0.rec", 64));
    assert_eq!(bytes(&storage, "3-0.rec").len() as i64, SEGMENT_LENGTH);
    publisher = before;
    record(&mut session, publisher.offer(b"instead"));
    assert_eq!(&bytes(&storage, "3-0.rec")[96..103], b"instead");
}

#[test]
fn a_block_with_an_invalid_frame_is_not_recorded() {
    let (_place, storage) = directory();
    let mut publisher = Publisher::new(0);
    let mut session =
        RecorderSession::create(&storage, recorded_stream(0), SyncLevel::None).unwrap();
    let mut block = publisher.offer(b"first").concat();
    block.extend(Publisher::new(128).data(0xC0, b"out of place"));
    let error = session.append(&block, |_| {}).unwrap_err();
    let expected = FrameFault::Field {
        field: "term offset",
        found: 128,
        expected: 64,
    };
    assert!(matches!(error, RecorderError::Frame { position: 64, fault, .. } if fault == expected));
    let mut block = Publisher::new(0).data(0xC0, b"data");
    block.extend(Publisher::new(64).pad(64));
    assert!(matches!(
        session.append(&block, |_| {}),
        Err(RecorderError::Frame { position: 64, .. })
    ));
    assert!(is_zero_from(&storage, "3-0.rec", 0));
    assert_eq!(session.appended_position(), 0);
}

#[test]
fn a_block_that_passes_the_end_of_its_segment_is_refused() {
    let (_place, storage) = directory();
    let mut session =
        RecorderSession::create(&storage, recorded_stream(0), SyncLevel::None).unwrap();
    let mut publisher = Publisher::new(0);
    session.append(&publisher.pad(TERM_LENGTH), |_| {}).unwrap();
    session.append(&publisher.pad(TERM_LENGTH), |_| {}).unwrap();
    let behind = publisher.data(0xC0, b"");
    let error = session.append(&behind, |_| {}).unwrap_err();
    assert!(
        matches!(error, RecorderError::Block { length: 32, .. }),
        "{error}"
    );
    session.publish().unwrap();
    session.append(&behind, |_| {}).unwrap();
}

#[test]
fn append_calls_on_frame_with_each_frame_of_a_block() {
    let (_place, storage) = directory();
    let mut publisher = Publisher::new(0);
    let mut session =
        RecorderSession::create(&storage, recorded_stream(0), SyncLevel::None).unwrap();
    let mut seen = Vec::new();
    let blocks = publisher.offer(&payload(3000));
    session
        .append(&blocks.concat(), |frame| {
            seen.push((
                frame.position(),
                frame.end_position(),
                frame.is_begin(),
                frame.is_end(),
            ));
            assert!(is_zero_from(&storage, "3-0.rec", 0));
        })
        .unwrap();
    assert_eq!(
        seen,
        [
            (0, 1408, true, false),
            (1408, 2816, false, false),
            (2816, 3104, false, true)
        ]
    );
}
