//! Sessions that continue a recording at its stop position.

use crate::recordings::stream::*;
use aeron_archive::memory_storage::MemoryStorage;
use aeron_archive::recorder::{RecorderError, RecorderSession};
use aeron_archive::storage::{Access, Storage, StorageFile, SyncLevel};
use aeron_archive::stream::{RecordedStream, StreamDescription};

/// Records `count` messages of 1000 bytes.
fn record(session: &mut RecorderSession<&MemoryStorage>, publisher: &mut Publisher, count: usize) {
    for _ in 0..count {
        for block in publisher.offer(&payload(1000)) {
            session.append(&block, |_| {}).unwrap();
            session.publish().unwrap();
        }
    }
}

#[test]
fn a_session_continues_at_the_end_of_the_previous_session_07_59() {
    let storage = MemoryStorage::new();
    for start in [0, 1024, TERM_LENGTH + 32] {
        for first_count in [0, 3, 200] {
            for name in storage.names().unwrap() {
                storage.remove(&name).unwrap();
            }
            let stream = recorded_stream(start);
            let mut publisher = Publisher::new(start);
            let mut first = RecorderSession::create(&storage, stream, SyncLevel::None).unwrap();
            record(&mut first, &mut publisher, first_count);
            let stop = first.recorded_position();
            let mut second =
                RecorderSession::reopen(&storage, stream, stop, SyncLevel::None).unwrap();
            assert_eq!(second.recorded_position(), stop);
            assert_eq!(second.segment_base(), first.segment_base());
            record(&mut second, &mut publisher, 200);
            let end = second.recorded_position();
            let seen = read(&storage, stream, start, end).unwrap();
            let messages = seen.iter().filter(|frame| !frame.4).count();
            assert_eq!(messages, first_count + 200);
        }
    }
}

#[test]
fn a_session_accepts_only_frames_of_the_image_that_continues_the_recording_07_59() {
    let storage = MemoryStorage::new();
    let stream = recorded_stream(0);
    let mut first = RecorderSession::create(&storage, stream, SyncLevel::None).unwrap();
    record(&mut first, &mut Publisher::new(0), 3);
    let stop = first.recorded_position();
    let description = StreamDescription {
        session_id: SESSION_ID + 1,
        ..description(0)
    };
    let other = RecordedStream::new(&description).unwrap();
    let mut second = RecorderSession::reopen(&storage, other, stop, SyncLevel::None).unwrap();
    let of_first = Publisher::new(stop).data(0xC0, b"of the first session");
    assert!(second.append(&of_first, |_| {}).is_err());
    let mut publisher = Publisher::new(stop).of_session(SESSION_ID + 1);
    record(&mut second, &mut publisher, 3);
    let end = second.recorded_position();
    assert!(read(&storage, other, 0, end).is_err());
    let seen = read(&storage, stream.any_session(), 0, end).unwrap();
    assert_eq!(seen.len(), 6);
}

#[test]
fn reopening_removes_the_bytes_after_the_stop_position() {
    let storage = MemoryStorage::new();
    let stream = recorded_stream(0);
    let mut publisher = Publisher::new(0);
    let mut first = RecorderSession::create(&storage, stream, SyncLevel::None).unwrap();
    record(&mut first, &mut publisher, 10);
    RecorderSession::reopen(&storage, stream, 1056, SyncLevel::None).unwrap();
    assert!(is_zero_from(&storage, "3-0.rec", 1056));
    assert_eq!(bytes(&storage, "3-0.rec").len() as i64, SEGMENT_LENGTH);
}

#[test]
fn a_missing_segment_is_created_only_if_it_would_have_no_recorded_bytes() {
    let start = TERM_LENGTH + 96;
    let stream = recorded_stream(start);
    for (position, fine) in [
        (start, true),
        (start + 32, false),
        (TERM_LENGTH + SEGMENT_LENGTH, true),
        (TERM_LENGTH + SEGMENT_LENGTH + 32, false),
    ] {
        let storage = MemoryStorage::new();
        match RecorderSession::reopen(&storage, stream, position, SyncLevel::None) {
            Ok(session) => {
                assert!(fine);
                let name = stream.segment_name(session.segment_base());
                let file = storage.open(&name, Access::Read).unwrap();
                assert_eq!(file.length().unwrap() as i64, SEGMENT_LENGTH);
            }
            Err(error) => {
                assert!(!fine);
                assert!(matches!(error, RecorderError::Open { .. }), "{error}");
            }
        }
    }
}
