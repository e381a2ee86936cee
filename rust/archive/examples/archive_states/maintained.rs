//! Creates archive directories with the state after an operation of an [`ArchiveStore`], and lists the recordings of a
//! directory.

use aeron_archive::checksum::Checksum;
use aeron_archive::recorder::RecorderSession;
use aeron_archive::storage::Directory;
use aeron_archive::store::{
    ArchiveStore, Continuation, DeleteOperation, NewRecording, RecordingActivity, StoreError,
    StoreOptions,
};

use crate::stream::{
    INITIAL_TERM_ID, MTU_LENGTH, Publisher, SEGMENT_LENGTH, SESSION_ID, STREAM_ID, TERM_LENGTH,
    payload,
};
use crate::{Result, now_ms, own};

/// The operation on a store, the checksum that the store writes, and whether the process is killed afterwards.
#[derive(Clone, Copy)]
pub struct Operation {
    apply: fn(&mut Archive) -> Result<()>,
    checksum: Option<Checksum>,
    is_killed: bool,
}

/// A store, and the time at which its recordings are stopped.
struct Archive {
    store: ArchiveStore<Directory>,
    now_ms: i64,
}

type Session = RecorderSession<Directory>;

/// Returns the operation for the state with this name.
pub fn operation(state: &str) -> Option<Operation> {
    let (name, checksum) = match state.strip_suffix("-with-checksums") {
        Some(name) => (name, Some(Checksum::Crc32c)),
        None => (state, None),
    };
    let (apply, is_killed): (fn(&mut Archive) -> Result<()>, bool) = match name {
        "extended" => (Archive::extended, false),
        "extending" => (Archive::extending, true),
        "other-channels" => (Archive::other_channels, false),
        "truncated" => (Archive::truncated, false),
        "truncated-to-a-segment" => (Archive::truncated_to_a_segment, false),
        "detached" => (Archive::detached, false),
        "given-up" => (Archive::given_up, false),
        "migrated" => (Archive::migrated, false),
        _ => return None,
    };
    Some(Operation {
        apply,
        checksum,
        is_killed,
    })
}

/// Creates the state in a directory.
pub fn write(operation: Operation, storage: Directory) -> Result<()> {
    let mark_file = own(&storage)?;
    let now_ms = now_ms()?;
    let options = StoreOptions {
        segment_length: SEGMENT_LENGTH as i32,
        record_checksum: operation.checksum,
        low_storage_space_threshold: 0,
        ..StoreOptions::default()
    };
    let (store, _) = ArchiveStore::open(storage, options, now_ms)?;
    (operation.apply)(&mut Archive { store, now_ms })?;
    match operation.is_killed {
        true => Ok(()),
        false => Ok(mark_file.close()?),
    }
}

/// Opens a store and prints its recordings.
pub fn open(storage: Directory) -> Result<()> {
    let (store, _) = ArchiveStore::open(storage, StoreOptions::default(), now_ms()?)?;
    for recording in store.recordings() {
        println!(
            "{} {} {} {}",
            recording.recording_id,
            recording.start_position,
            recording.stop_position,
            recording.original_channel
        );
    }
    Ok(())
}

impl Archive {
    /// Extends three recordings. The first ends within a segment, the second has no bytes, and the
    /// third ends at a segment base.
    fn extended(&mut self) -> Result<()> {
        for (start, count) in [(1024, 100), (TERM_LENGTH, 0)] {
            let id = self.recorded(start, count)?;
            self.extended_by(id, 200)?;
        }
        let id = self.recorded(0, 200)?;
        self.truncate(id, SEGMENT_LENGTH)?;
        self.extended_by(id, 200)
    }

    /// Extends two recordings. When the process is killed, one extension has recorded frames, and
    /// the other extension has not.
    fn extending(&mut self) -> Result<()> {
        for count in [150, 0] {
            let id = self.recorded(1024, 100)?;
            let mut session = self.extend(id)?;
            record(&mut session, OTHER_SESSION_ID, count)?;
        }
        Ok(())
    }

    /// Records three recordings. Makes both channels of the second recording longer and then
    /// shorter. Makes one channel of the third recording longer.
    fn other_channels(&mut self) -> Result<()> {
        for count in [10, 20, 30] {
            self.recorded(0, count)?;
        }
        let long = format!("aeron:udp?endpoint=localhost:1|alias={}", "x".repeat(2000));
        self.store.update_channel(1, &long, &long)?;
        self.store.update_channel(1, "aeron:ipc", "aeron:ipc")?;
        self.store.update_channel(2, &long, "aeron:ipc")?;
        Ok(())
    }

    /// Truncates three recordings: one at the start of a data frame, one at its start position, and one at the start of
    /// padding.
    fn truncated(&mut self) -> Result<()> {
        for position in [SEGMENT_LENGTH + 3 * FRAME, 0, TERM_LENGTH / FRAME * FRAME] {
            let id = self.recorded(0, 250)?;
            self.truncate(id, position)?;
        }
        Ok(())
    }

    /// Truncates a recording to the base of a segment. The file of this segment is then deleted.
    fn truncated_to_a_segment(&mut self) -> Result<()> {
        let id = self.recorded(0, 250)?;
        self.truncate(id, SEGMENT_LENGTH)
    }

    /// Detaches segments: some keep their files, some are attached again, and some are deleted.
    fn detached(&mut self) -> Result<()> {
        for _ in 0..3 {
            let id = self.recorded(1024, 400)?;
            self.store.detach_segments(id, 2 * SEGMENT_LENGTH, &IDLE)?;
        }
        self.store.attach_segments(1)?;
        let files = self.store.delete_detached_segments(2);
        self.delete(files)
    }

    /// Purges the first segments of one recording, and all of another recording. A third recording is unchanged.
    fn given_up(&mut self) -> Result<()> {
        let shortened = self.recorded(1024, 400)?;
        let purged = self.recorded(1024, 400)?;
        self.recorded(0, 10)?;
        let files = self
            .store
            .purge_segments(shortened, 2 * SEGMENT_LENGTH, &IDLE);
        self.delete(files)?;
        let files = self.store.purge_recording(purged, &IDLE);
        self.delete(files)
    }

    /// Migrates segments to a later recording, and other segments to an earlier recording.
    fn migrated(&mut self) -> Result<()> {
        for _ in 0..2 {
            let earlier = self.recorded(1024, 300)?;
            self.truncate(earlier, 2 * SEGMENT_LENGTH)?;
            self.recorded(2 * SEGMENT_LENGTH, 200)?;
        }
        for (source, destination) in [(0, 1), (3, 2)] {
            let migration = self.store.migrate_segments(source, destination)?;
            self.delete(Ok(migration.deletion))?;
        }
        Ok(())
    }

    fn recorded(&mut self, start: i64, count: usize) -> Result<i64> {
        let mut session = self.store.start_recording(NewRecording {
            start_timestamp_ms: self.now_ms,
            join_position: start,
            initial_term_id: INITIAL_TERM_ID,
            term_length: TERM_LENGTH as i32,
            mtu_length: MTU_LENGTH as i32,
            session_id: SESSION_ID,
            stream_id: STREAM_ID,
            stripped_channel: "aeron:ipc".to_owned(),
            original_channel: "aeron:ipc?term-length=64k".to_owned(),
            source_identity: "aeron:ipc".to_owned(),
        })?;
        record(&mut session, SESSION_ID, count)?;
        self.stop(&session)
    }

    fn extend(&mut self, id: i64) -> Result<Session> {
        let image = Continuation {
            join_position: self.store.recording(id)?.stop_position,
            initial_term_id: INITIAL_TERM_ID,
            term_length: TERM_LENGTH as i32,
            mtu_length: MTU_LENGTH as i32,
            session_id: OTHER_SESSION_ID,
            control_session_id: 7,
            correlation_id: 8,
        };
        Ok(self.store.extend_recording(id, &image)?)
    }

    fn extended_by(&mut self, id: i64, count: usize) -> Result<()> {
        let mut session = self.extend(id)?;
        record(&mut session, OTHER_SESSION_ID, count)?;
        self.stop(&session).map(drop)
    }

    fn stop(&mut self, session: &Session) -> Result<i64> {
        let (id, position) = (session.stream().recording_id(), session.recorded_position());
        self.store.stop_recording(id, position, self.now_ms)?;
        Ok(id)
    }

    fn truncate(&mut self, id: i64, position: i64) -> Result<()> {
        let files = self.store.truncate(id, position);
        self.delete(files)
    }

    fn delete(&mut self, files: std::result::Result<DeleteOperation, StoreError>) -> Result<()> {
        let mut files = files?;
        while files.step(&mut self.store)? {}
        Ok(())
    }
}

/// Session id of the images that extend recordings.
const OTHER_SESSION_ID: i32 = SESSION_ID + 1;

/// Aligned length of the frame of a message of 1000 bytes.
const FRAME: i64 = 1056;

const IDLE: RecordingActivity = RecordingActivity {
    recorded_position: None,
    lowest_replay_position: None,
};

/// Records messages of 1000 bytes from the session's position on.
fn record(session: &mut Session, session_id: i32, count: usize) -> Result<()> {
    let mut publisher = Publisher::new(session.recorded_position()).of_session(session_id);
    for _ in 0..count {
        for block in publisher.offer(&payload(1000)) {
            session.append(&block, |_| {})?;
            session.publish()?;
        }
    }
    Ok(())
}
