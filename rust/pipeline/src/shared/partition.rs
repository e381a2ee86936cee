//! [`SharedPartition`]: a range of a recording of an archive server. A worker receives the range as JSON text, with its
//! task.

use aeron_archive::stream::{RecordedStream, StreamDescription, StreamError};
use serde::{Deserialize, Serialize};

use crate::partition::{ArchiveLocation, Partition, PartitionError, RecordingPiece};

/// A range of one recording that begins and ends between two messages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SharedPartition {
    /// Id of the archive. A worker compares this id with the id in the mark file of the archive's directory.
    pub archive_id: i64,
    /// Properties of the recording.
    pub recording: RecordingPiece,
    /// Position of the start of the range, in bytes.
    pub from: i64,
    /// Position of the end of the range, in bytes.
    pub to: i64,
}

impl SharedPartition {
    /// Returns the JSON text of the partition.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("numbers and texts always have a JSON form")
    }

    /// Parses the JSON text of a partition.
    ///
    /// # Errors
    /// The text is not a partition, or its numbers contradict each other.
    pub fn from_json(text: &str) -> Result<Self, PartitionError> {
        let partition: Self = serde_json::from_str(text).map_err(PartitionError::new)?;
        partition.in_directory("").check()?;
        Ok(partition)
    }

    /// Returns the recorded stream. Its frames may have any session id, because another session may have extended the
    /// recording.
    ///
    /// # Errors
    /// No recording can have the properties of the partition.
    pub fn stream(&self) -> Result<RecordedStream, StreamError> {
        self.in_directory("").stream()
    }

    /// Returns the stream of a replay of the recording on this stream id. The frames of a replay have the session id
    /// and the stream id of the replay.
    ///
    /// # Errors
    /// No recording can have the properties of the partition.
    pub fn replayed_stream(&self, replay_stream_id: i32) -> Result<RecordedStream, StreamError> {
        let recording = &self.recording;
        let stream = RecordedStream::new(&StreamDescription {
            recording_id: recording.id,
            start_position: recording.start_position,
            segment_length: recording.segment_length,
            term_length: recording.term_length,
            initial_term_id: recording.initial_term_id,
            session_id: recording.session_id,
            stream_id: replay_stream_id,
        })?;
        Ok(stream.any_session())
    }

    /// Returns the same range as a [`Partition`] that names the archive's directory. A worker with access to the
    /// directory reads its rows from the segment files.
    pub fn in_directory(&self, path: &str) -> Partition {
        Partition {
            archive: ArchiveLocation {
                path: path.to_owned(),
                nonce: None,
                boot_id: String::new(),
                host: String::new(),
            },
            recording: self.recording.clone(),
            from: self.from,
            to: self.to,
            end: self.to,
            index_hint: None,
        }
    }
}
