//! [`Partition`]: describes a piece of a recording. The worker that reads the piece receives the description as text,
//! with its task.
//!
//! A partition contains positions and no data, so its text is short even if the piece is long. The rows depend only on
//! the partition: each attempt on each worker of the machine reads the same rows.

use aeron_archive::stream::{RecordedStream, StreamDescription, StreamError};
use serde::{Deserialize, Serialize};

/// Maximum length of the text of a live stream's partition, in bytes.
pub const MAX_PARTITION_LENGTH: usize = 1024;

/// A piece of one recording. A message belongs to the piece that contains its first frame.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Partition {
    /// Location of the archive.
    pub archive: ArchiveLocation,
    /// The recording.
    pub recording: RecordingPiece,
    /// Position of the first message that may belong to the piece.
    pub from: i64,
    /// Position at which the piece ends. Messages that begin at or after this position do not belong to it.
    pub to: i64,
    /// Position up to which frames may be read to complete a message that began before `to`. Equal to `to` in a live
    /// stream, where pieces end with their last message.
    pub end: i64,
    /// Number of the first index entry to read in the segment that holds `from`. Only a hint; `None` if unknown.
    pub index_hint: Option<u64>,
}

/// An archive directory, with values that let a worker check that it sees the same directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArchiveLocation {
    /// Absolute path of the directory.
    pub path: String,
    /// Nonce of `private.lock`; `None` if the archive is not private. If it is `None`, readers do not check the session
    /// id of frames, because the archive may store a checksum in place of the session id.
    pub nonce: Option<String>,
    /// Boot id of the machine that has the archive.
    pub boot_id: String,
    /// Host name of that machine, only for display.
    pub host: String,
}

/// The fields of a catalog entry that a reader needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordingPiece {
    /// Recording id.
    pub id: i64,
    /// Stream id of the recording's frames.
    pub stream_id: i32,
    /// Session id of the recording's frames.
    pub session_id: i32,
    /// Id of the stream's first term.
    pub initial_term_id: i32,
    /// Length of a term, in bytes.
    pub term_length: i32,
    /// Length of a segment file, in bytes.
    pub segment_length: i32,
    /// Position at which the recording begins.
    pub start_position: i64,
    /// Channel of the recording; `None` for a live stream, because the options of its query contain the channel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel: Option<String>,
}

/// Reason why a text is not a partition.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a partition of format aeron: {0}")]
pub struct PartitionError(String);

impl PartitionError {
    /// Creates the error for a text that JSON's parser refuses.
    pub(crate) fn new(error: serde_json::Error) -> Self {
        Self(error.to_string())
    }
}

impl Partition {
    /// Returns the partition as JSON text.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("numbers and texts always have a JSON form")
    }

    /// Parses the JSON text of a partition.
    ///
    /// # Errors
    /// The text is not a partition, or its numbers contradict each other.
    pub fn from_json(text: &str) -> Result<Self, PartitionError> {
        let partition: Self = serde_json::from_str(text).map_err(PartitionError::new)?;
        partition.check()?;
        Ok(partition)
    }

    /// Returns the recorded stream: the properties that all frames must have, and the layout of the segment files.
    ///
    /// # Errors
    /// No recording can have the properties of the partition.
    pub fn stream(&self) -> Result<RecordedStream, StreamError> {
        let recording = &self.recording;
        let stream = RecordedStream::new(&StreamDescription {
            recording_id: recording.id,
            start_position: recording.start_position,
            segment_length: recording.segment_length,
            term_length: recording.term_length,
            initial_term_id: recording.initial_term_id,
            session_id: recording.session_id,
            stream_id: recording.stream_id,
        })?;
        Ok(match self.archive.nonce {
            Some(_) => stream,
            // Not a private archive: the session-id field may hold a checksum.
            None => stream.any_session(),
        })
    }

    /// Checks the numbers of the partition.
    pub(crate) fn check(&self) -> Result<(), PartitionError> {
        let recording = &self.recording;
        let positions = [recording.start_position, self.from, self.to, self.end];
        if recording.start_position < 0 || !positions.is_sorted() {
            let reason = format!("start, from, to, end {positions:?} do not rise from 0 on");
            return Err(PartitionError(reason));
        }
        if let Some(position) = positions.iter().find(|&&position| position % 32 != 0) {
            let reason = format!("position {position} is not a multiple of 32");
            return Err(PartitionError(reason));
        }
        check_length("term_length", recording.term_length)?;
        check_length("segment_length", recording.segment_length)?;
        if recording.segment_length < recording.term_length {
            let (segment, term) = (recording.segment_length, recording.term_length);
            let reason = format!("segment_length {segment} is less than term_length {term}");
            return Err(PartitionError(reason));
        }
        Ok(())
    }
}

/// Checks that a term or segment length is a power of two from 64 KiB to 1 GiB.
fn check_length(name: &str, length: i32) -> Result<(), PartitionError> {
    let is_valid = (0x1_0000..=0x4000_0000).contains(&length) && length & (length - 1) == 0;
    if is_valid {
        Ok(())
    } else {
        let reason = format!("{name} {length} is not a power of two from 65536 to 1073741824");
        Err(PartitionError(reason))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn partition() -> Partition {
        Partition {
            archive: ArchiveLocation {
                path: format!("/{}", "a".repeat(254)),
                nonce: Some("f".repeat(32)),
                boot_id: "f".repeat(36),
                host: "h".repeat(64),
            },
            recording: RecordingPiece {
                id: i64::MAX,
                stream_id: i32::MIN,
                session_id: i32::MIN,
                initial_term_id: i32::MIN,
                term_length: 1 << 30,
                segment_length: 1 << 30,
                start_position: 0,
                channel: None,
            },
            from: 32,
            to: i64::MAX - 31,
            end: i64::MAX - 31,
            index_hint: Some(u64::MAX),
        }
    }

    #[test]
    fn a_partition_is_equal_after_its_text_is_parsed_and_the_text_is_short() {
        let partition = partition();
        let text = partition.to_json();
        assert!(text.len() <= MAX_PARTITION_LENGTH, "{}", text.len());
        assert_eq!(Partition::from_json(&text), Ok(partition));
    }

    #[test]
    fn a_text_with_contradicting_numbers_is_refused() {
        let refused = |change: &dyn Fn(&mut Partition), reason: &str| {
            let mut partition = partition();
            change(&mut partition);
            let error = Partition::from_json(&partition.to_json()).unwrap_err();
            assert!(error.to_string().contains(reason), "{error}");
        };
        refused(&|partition| partition.from = 33, "position 33 is not");
        refused(&|partition| partition.to = 0, "do not rise");
        refused(&|partition| partition.end = 64, "do not rise");
        refused(
            &|partition| partition.recording.start_position = -32,
            "do not rise",
        );
        refused(
            &|partition| partition.recording.term_length = 100_000,
            "term_length 100000 is not",
        );
        refused(
            &|partition| partition.recording.segment_length = 65536,
            "segment_length 65536 is less",
        );
        assert!(Partition::from_json("{}").is_err());
        assert!(Partition::from_json(&partition().to_json().replace("from", "form")).is_err());
    }
}
