//! Archives in temporary directories. Their files are those that a real Aeron archive leaves.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use aeron_archive::catalog::{Catalog, DEFAULT_CAPACITY, RecordingDescriptor};
use aeron_archive::reader::RecordingReader;
use aeron_archive::recorder::RecorderSession;
use aeron_archive::storage::{Directory, SyncLevel};
use aeron_archive::stream::{RecordedStream, StreamDescription};
use aeron_pipeline::partition::Partition;
use tempfile::TempDir;

use crate::stream::{
    self, INITIAL_TERM_ID, MTU_LENGTH, Publisher, SEGMENT_LENGTH, SESSION_ID, TERM_LENGTH, payload,
};

/// An archive directory with the files that a real Aeron archive leaves: no index files and no lock file.
pub struct Archive {
    directory: TempDir,
    pub catalog: Catalog<Directory>,
}

impl Archive {
    pub fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let catalog = Catalog::create(&Directory::new(directory.path()), DEFAULT_CAPACITY).unwrap();
        Self { directory, catalog }
    }

    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Records messages of these lengths. If `is_stopped` is `true`, stores the stop position in the catalog.
    pub fn record(
        &mut self,
        stream_id: i32,
        start: i64,
        lengths: &[usize],
        is_stopped: bool,
    ) -> i64 {
        let id = self.catalog.add(descriptor(stream_id, start)).unwrap();
        let stream = RecordedStream::new(&StreamDescription {
            recording_id: id,
            ..stream::description(start)
        });
        let storage = Directory::new(self.path());
        let mut session =
            RecorderSession::create(storage, stream.unwrap(), SyncLevel::None).unwrap();
        let mut publisher = Publisher::new(start);
        for &length in lengths {
            for block in publisher.offer(&payload(length)) {
                session.append(&block, |_| {}).unwrap();
                session.publish().unwrap();
            }
        }
        if is_stopped {
            self.catalog.stop(id, publisher.position(), 2_000).unwrap();
        }
        publisher.position()
    }
}

pub fn descriptor(stream_id: i32, start_position: i64) -> RecordingDescriptor {
    RecordingDescriptor {
        control_session_id: 0,
        correlation_id: 0,
        recording_id: 0,
        start_timestamp_ms: 1_000,
        stop_timestamp_ms: -1,
        start_position,
        stop_position: -1,
        initial_term_id: INITIAL_TERM_ID,
        segment_length: SEGMENT_LENGTH as i32,
        term_length: TERM_LENGTH as i32,
        mtu_length: MTU_LENGTH as i32,
        session_id: SESSION_ID,
        stream_id,
        stripped_channel: "aeron:ipc".into(),
        original_channel: "aeron:ipc?alias=trades".into(),
        source_identity: "aeron:ipc".into(),
    }
}

/// Returns the start positions and lengths of the messages that belong to a partition.
pub fn messages(directory: &Path, partition: &Partition) -> Vec<(i64, usize)> {
    let recording = &partition.recording;
    let stream = RecordedStream::new(&StreamDescription {
        recording_id: recording.id,
        ..stream::description(recording.start_position)
    });
    let storage = Directory::new(directory);
    let mut reader =
        RecordingReader::new(storage, stream.unwrap(), partition.from, partition.end).unwrap();
    let mut messages = Vec::new();
    let mut open = None;
    while let Some(frame) = reader.next_frame().unwrap() {
        if frame.is_padding() {
            continue;
        }
        if frame.is_begin() {
            open = (frame.position() < partition.to).then_some((frame.position(), 0));
        }
        if let Some((_, length)) = &mut open {
            *length += frame.payload().len();
        }
        if frame.is_end() {
            messages.extend(open.take());
        }
    }
    messages
}

/// Returns all files of a directory, each with its bytes and the time of its last change.
pub fn contents(directory: &Path) -> Vec<(PathBuf, Vec<u8>, SystemTime)> {
    let mut files: Vec<_> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| {
            let modified = path.metadata().unwrap().modified().unwrap();
            (path.clone(), fs::read(&path).unwrap(), modified)
        })
        .collect();
    files.sort();
    files
}
