//! Helpers of the store tests.

use aeron_archive::memory_storage::{MemoryStorage, StorageFault};
use aeron_archive::recorder::RecorderSession;
use aeron_archive::segments::SegmentFileName;
use aeron_archive::storage::Storage;
use aeron_archive::store::{
    ArchiveStore, Continuation, DeleteOperation, NewRecording, RecordingActivity,
    RecoveredRecording, StoreError, StoreOptions,
};
use aeron_archive::stream::RecordedStream;

use crate::recordings::stream::{
    INITIAL_TERM_ID, MTU_LENGTH, Publisher, SEGMENT_LENGTH, SESSION_ID, STREAM_ID, Seen,
    TERM_LENGTH, payload, read,
};

pub type Store = ArchiveStore<MemoryStorage>;
pub type Session = RecorderSession<MemoryStorage>;

/// Time at which a store is opened, in milliseconds since the epoch.
pub const OPENED_MS: i64 = 5_000;
/// Time at which recordings are stopped, in milliseconds since the epoch.
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

/// Returns a store in an empty directory.
pub fn empty() -> (MemoryStorage, Store) {
    let storage = MemoryStorage::new();
    let (store, recovered) = open(&storage);
    assert_eq!(recovered, []);
    (storage, store)
}

/// Returns the values of a new recording of an image that was joined at `join_position`.
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

/// Returns the values of an image of the same session that continues a recording at
/// `join_position`.
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

/// Records `count` messages of 1000 bytes from the session's position on.
pub fn record(session: &mut Session, count: usize) {
    let mut publisher = Publisher::new(session.recorded_position());
    for _ in 0..count {
        for block in publisher.offer(&payload(1000)) {
            session.append(&block, |_| {}).unwrap();
            session.publish().unwrap();
        }
    }
}

/// Records `count` messages from `start` on and stops the recording. Returns the recording id.
pub fn recorded(store: &mut Store, start: i64, count: usize) -> i64 {
    let mut session = store.start_recording(image(start)).unwrap();
    record(&mut session, count);
    stop(store, &session)
}

/// Stops a recording at its session's position. Returns the recording id.
pub fn stop(store: &mut Store, session: &Session) -> i64 {
    let id = session.stream().recording_id();
    store
        .stop_recording(id, session.recorded_position(), STOPPED_MS)
        .unwrap();
    id
}

/// Returns the start and stop position of a recording.
pub fn positions(store: &Store, id: i64) -> (i64, i64) {
    let recording = store.recording(id).unwrap();
    (recording.start_position, recording.stop_position)
}

/// Returns all frames of a recording that has ended.
pub fn frames(storage: &MemoryStorage, store: &Store, id: i64) -> Vec<Seen> {
    let recording = store.recording(id).unwrap();
    let stream = RecordedStream::new(&recording.into())
        .unwrap()
        .any_session();
    let (start, stop) = (recording.start_position, recording.stop_position);
    read(storage, stream, start, stop).expect("all frames of the recording can be read")
}

/// Returns the code and text of an error.
pub fn refusal<T: std::fmt::Debug>(result: Result<T, StoreError>) -> (i32, String) {
    let error = result.expect_err("a refusal");
    (error.archive_error_code().value(), error.to_string())
}

/// Activity of a recording that is neither active nor being replayed.
pub const IDLE: RecordingActivity = RecordingActivity {
    recorded_position: None,
    lowest_replay_position: None,
};

/// Returns the activity of a stopped recording that is replayed at this position.
pub fn replayed_at(position: i64) -> RecordingActivity {
    RecordingActivity {
        lowest_replay_position: Some(position),
        ..IDLE
    }
}

/// Returns the bases in the names of a recording's segment and index files, in ascending order. The base of a segment
/// with an index occurs twice.
pub fn bases(storage: &MemoryStorage, id: i64) -> Vec<i64> {
    let names = storage.names().unwrap();
    let files = names.iter().filter_map(|name| SegmentFileName::parse(name));
    let mut bases: Vec<i64> = files
        .filter(|file| file.recording_id == id)
        .map(|file| file.base)
        .collect();
    bases.sort_unstable();
    bases
}

/// Deletes all files of an operation. Returns the number of files that the operation reports.
pub fn delete_all(
    store: &mut Store,
    operation: Result<DeleteOperation, StoreError>,
) -> Result<usize, StoreError> {
    let mut operation = operation?;
    while operation.step(store)? {}
    Ok(operation.count())
}

/// Runs `operation` on a store that `prepare` creates. Each run kills the process one step later
/// than the previous run. The last run is the first run without a kill.
///
/// After each run, opens the store again and calls `check` with the storage, the store, and whether `operation`
/// succeeded.
pub fn killed_at_each_step(
    prepare: impl Fn() -> (MemoryStorage, Store),
    operation: impl Fn(&mut Store) -> Result<(), StoreError>,
    check: impl Fn(&MemoryStorage, Store, bool),
) {
    for progress in 0..3 {
        let mut step = 0;
        loop {
            let (storage, mut store) = prepare();
            storage.fail_at(storage.steps() + step, StorageFault::Kill { progress });
            let is_done = operation(&mut store).is_ok();
            let is_killed = storage.is_killed();
            assert!(is_done || is_killed, "the operation fails without a kill");
            storage.restart();
            check(&storage, open(&storage).0, is_done);
            if !is_killed {
                break;
            }
            step += 1;
        }
    }
}
