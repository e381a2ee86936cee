//! A session: what tells it apart, and where the recording of one that comes back begins.

use aeron_archive::catalog::RecordingDescriptor;
use serde::{Deserialize, Serialize};

/// What is known of an image that is to be recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageDescription {
    /// The channel as the user gave it.
    pub original_channel: String,
    /// The channel without what does not identify it.
    pub stripped_channel: String,
    /// Stream id.
    pub stream_id: i32,
    /// Session id.
    pub session_id: i32,
    /// Where the image comes from.
    pub source_identity: String,
    /// Id of the stream's first term.
    pub initial_term_id: i32,
    /// Bytes of a term.
    pub term_length: i32,
    /// Longest frame.
    pub mtu_length: i32,
    /// Position of the image's first frame.
    pub join_position: i64,
}

/// What makes two images the same session.
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

/// The recording of a session that goes furthest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Earlier {
    pub recording_id: i64,
    /// End of its last complete message, or the begin of its first.
    pub head: i64,
    pub stop_position: i64,
}

/// Where a recording begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Start {
    pub position: i64,
    /// Recording to copy the frames from that lie between `position` and the join position.
    pub copy_from: Option<i64>,
    /// Head of the earlier recording if the stream was missed from there on.
    pub missed_since: Option<i64>,
}

impl Earlier {
    /// The greater, the further; of equal ones the later.
    pub(super) fn rank(&self) -> (i64, i64) {
        (self.stop_position, self.recording_id)
    }
}

impl SessionKey {
    /// The session of an image.
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
            channel: descriptor.original_channel.clone(),
            stream_id: descriptor.stream_id,
            session_id: descriptor.session_id,
            source_identity: descriptor.source_identity.clone(),
            initial_term_id: descriptor.initial_term_id,
            term_length: descriptor.term_length,
        }
    }
}

impl Start {
    pub fn of(join_position: i64, earlier: Option<Earlier>) -> Self {
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
