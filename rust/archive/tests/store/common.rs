//! What the tests of the store share.

use aeron_archive::memory_storage::MemoryStorage;
use aeron_archive::recorder::RecorderSession;
use aeron_archive::store::{
    ArchiveStore, Continuation, NewRecording, RecoveredRecording, StoreError, StoreOptions,
};
use aeron_archive::stream::RecordedStream;

use crate::stream::{
    INITIAL_TERM_ID, MTU_LENGTH, Publisher, SEGMENT_LENGTH, SESSION_ID, STREAM_ID, Seen,
    TERM_LENGTH, payload, read,
};

pub type Store = ArchiveStore<MemoryStorage>;
pub type Session = RecorderSession<MemoryStorage>;

/// When a store was opened and a recording stopped.
pub const OPENED_MS: i64 = 5_000;
pub const STOPPED_MS: i64 = 2_000;

pub fn options() -> StoreOptions {
    StoreOptions {
        catalog_capacity: 64 * 1024,
        segment_length: SEGMENT_LENGTH as i32,
        low_storage_space_threshold: 0,
        ..StoreOptions::default()
    }
}

pub fn open(storage: &MemoryStorage) -> (Store, Vec<RecoveredRecording>) {
    ArchiveStore::open(storage.clone(), options(), OPENED_MS).expect("a store that opens")
}

/// A store in an empty directory.
pub fn empty() -> (MemoryStorage, Store) {
    let storage = MemoryStorage::new();
    let (store, recovered) = open(&storage);
    assert_eq!(recovered, []);
    (storage, store)
}

/// An image that was joined at `join_position`.
pub fn image(join_position: i64) -> NewRecording {
    NewRecording {
        start_timestamp_ms: 1_000,
        join_position,
        initial_term_id: INITIAL_TERM_ID,
        term_length: TERM_LENGTH as i32,
        mtu_length: MTU_LENGTH as i32,
        session_id: SESSION_ID,
        stream_id: STREAM_ID,
        stripped_channel: "aeron:ipc".into(),
        original_channel: "aeron:ipc?alias=x".into(),
        source_identity: "aeron:ipc".into(),
    }
}

/// An image of the same session that goes on at `join_position`.
pub fn continuation(join_position: i64) -> Continuation {
    Continuation {
        join_position,
        initial_term_id: INITIAL_TERM_ID,
        term_length: TERM_LENGTH as i32,
        mtu_length: MTU_LENGTH as i32,
        session_id: SESSION_ID,
        control_session_id: 31,
        correlation_id: 32,
    }
}

/// Records `count` messages of 1000 bytes from where the session stands.
pub fn record(session: &mut Session, count: usize) {
    let mut publisher = Publisher::new(session.recorded_position());
    for _ in 0..count {
        for block in publisher.offer(&payload(1000)) {
            session.append(&block, |_| {}).unwrap();
            session.publish().unwrap();
        }
    }
}

/// Records `count` messages from `start` on and stops. Returns the id.
pub fn recorded(store: &mut Store, start: i64, count: usize) -> i64 {
    let mut session = store.start_recording(image(start)).unwrap();
    record(&mut session, count);
    stop(store, &session)
}

/// Stops a recording where its session stands. Returns the id.
pub fn stop(store: &mut Store, session: &Session) -> i64 {
    let id = session.stream().recording_id();
    store
        .stop_recording(id, session.recorded_position(), STOPPED_MS)
        .unwrap();
    id
}

/// Start and stop position.
pub fn positions(store: &Store, id: i64) -> (i64, i64) {
    let recording = store.recording(id).unwrap();
    (recording.start_position, recording.stop_position)
}

/// All frames of a recording that has ended.
pub fn frames(storage: &MemoryStorage, store: &Store, id: i64) -> Vec<Seen> {
    let recording = store.recording(id).unwrap();
    let stream = RecordedStream::new(&recording.into())
        .unwrap()
        .any_session();
    let (start, stop) = (recording.start_position, recording.stop_position);
    read(storage, stream, start, stop).expect("every frame of the recording is there")
}

/// Code and text of a refusal.
pub fn refusal<T: std::fmt::Debug>(result: Result<T, StoreError>) -> (i32, String) {
    let error = result.expect_err("a refusal");
    (error.archive_error_code().value(), error.to_string())
}
