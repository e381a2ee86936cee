//! [`SharedPartition`]: a range of a recording of an archive server, as the text that travels with a task.

use aeron_archive::stream::{RecordedStream, StreamDescription, StreamError};
use serde::{Deserialize, Serialize};

use crate::partition::{ArchiveLocation, Partition, PartitionError, RecordingPiece};

/// A range of one recording that begins and ends between two messages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SharedPartition {
    /// Id of the archive, by which a worker recognizes its directory.
    pub archive_id: i64,
    /// The recording.
    pub recording: RecordingPiece,
    /// Start of the range.
    pub from: i64,
    /// End of the range.
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

    /// Returns the stream of the recording. Its frames may have any session id, because a recording can be extended.
    ///
    /// # Errors
    /// No recording can have the properties of the partition.
    pub fn stream(&self) -> Result<RecordedStream, StreamError> {
        self.in_directory("").stream()
    }

    /// Returns the stream of a replay on this stream id. The frames of a replay have the replay's session and stream.
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

    /// Returns the partition of an archive directory with the same rows.
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
