//! [`SessionKey`]: the identity of a session. [`Start`]: the start of a recording, which may continue an earlier
//! recording of the session.

use aeron_archive::catalog::RecordingDescriptor;
use serde::{Deserialize, Serialize};

/// Properties of an image to record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageDescription {
    /// The channel in the form in which the user gave it.
    pub original_channel: String,
    /// The channel with only the parameters that identify it.
    pub stripped_channel: String,
    /// Stream id.
    pub stream_id: i32,
    /// Session id.
    pub session_id: i32,
    /// Source identity of the image.
    pub source_identity: String,
    /// Id of the stream's first term.
    pub initial_term_id: i32,
    /// Length of a term in bytes.
    pub term_length: i32,
    /// Maximum length of a frame in bytes.
    pub mtu_length: i32,
    /// Position of the image's first frame.
    pub join_position: i64,
}

/// Identifies a session: images with equal keys belong to the same session.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionKey {
    channel: String,
    /// Stream id.
    pub stream_id: i32,
    /// Session id.
    pub session_id: i32,
    source_identity: String,
    initial_term_id: i32,
    term_length: i32,
}

/// Positions of an ended recording of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EarlierRecording {
    pub recording_id: i64,
    /// End of the last complete message. If no message is complete, start of the first message.
    pub head: i64,
    pub stop_position: i64,
}

/// Start of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Start {
    pub position: i64,
    /// Recording from which to copy the frames between `position` and the join position.
    pub copy_from: Option<i64>,
    /// Head of the earlier recording, if bytes between this head and the join position were missed.
    pub missed_since: Option<i64>,
}

impl EarlierRecording {
    /// Returns the rank of a recording. The recording with the greater stop position has the greater rank. If the stop
    /// positions are equal, the later recording has the greater rank.
    pub(super) fn rank(&self) -> (i64, i64) {
        (self.stop_position, self.recording_id)
    }
}

impl SessionKey {
    /// Returns the session key of an image.
    pub fn of_image(image: &ImageDescription) -> Self {
        Self {
            channel: image.original_channel.clone(),
            stream_id: image.stream_id,
            session_id: image.session_id,
            source_identity: image.source_identity.clone(),
            initial_term_id: image.initial_term_id,
            term_length: image.term_length,
        }
    }

    pub(super) fn of_recording(descriptor: &RecordingDescriptor) -> Self {
        Self {
            channel: descriptor.original_channel.to_string(),
            stream_id: descriptor.stream_id,
            session_id: descriptor.session_id,
            source_identity: descriptor.source_identity.to_string(),
            initial_term_id: descriptor.initial_term_id,
            term_length: descriptor.term_length,
        }
    }
}

impl Start {
    pub fn of(join_position: i64, earlier: Option<EarlierRecording>) -> Self {
        let here = Self {
            position: join_position,
            copy_from: None,
            missed_since: None,
        };
        match earlier {
            Some(earlier) if join_position <= earlier.head => Self {
                position: earlier.head,
                ..here
            },
            Some(earlier) if join_position <= earlier.stop_position => Self {
                position: earlier.head,
                copy_from: Some(earlier.recording_id),
                ..here
            },
            Some(earlier) => Self {
                missed_since: Some(earlier.head),
                ..here
            },
            None => here,
        }
    }
}
