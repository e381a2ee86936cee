//! [`RecordedPublisherError`]: errors of a recorded publisher.

use std::time::Duration;

use aeron_client::{AppendError, OfferError};
use aeron_memory::log::LogError;
use aeron_protocol::archive::ArchiveErrorCode;

use super::super::error::ArchiveClientError;

/// An error of a recorded publisher. Some errors end the publisher; others are only reported to the
/// listener.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordedPublisherError {
    /// The archive does not have the recording. It may have been deleted.
    #[error("unknown recording id: {recording_id}")]
    UnknownRecording {
        /// Recording id.
        recording_id: i64,
    },
    /// The recording and the publisher have different stream ids.
    #[error("recording {recording_id} has stream id {recorded_stream_id}, not {stream_id}")]
    StreamIdMismatch {
        /// Recording id.
        recording_id: i64,
        /// Stream id of the recording.
        recorded_stream_id: i32,
        /// Stream id of the publisher.
        stream_id: i32,
    },
    /// The term length or the MTU of the recording is not valid for a stream.
    #[error("recording {recording_id} cannot be extended: {source}")]
    InvalidRecording {
        /// Recording id.
        recording_id: i64,
        /// Reason.
        source: LogError,
    },
    /// The recording id now belongs to another recording: the initial term id, the term length or the MTU has changed.
    #[error(
        "recording {recording_id} is not the one that the publisher has recorded: {field} is {found}, and was {known}"
    )]
    OtherRecording {
        /// Recording id.
        recording_id: i64,
        /// Name of the value that has changed.
        field: &'static str,
        /// The present value.
        found: i64,
        /// The earlier value.
        known: i64,
    },
    /// Another publisher extends the recording. A publisher that has not recorded a message yet
    /// waits until the other publisher has ended.
    #[error(
        "recording {recording_id} is active with session id {session_id}: another publisher extends it"
    )]
    InUse {
        /// Recording id.
        recording_id: i64,
        /// Session id of the other publisher.
        session_id: i32,
    },
    /// Another publisher has extended the recording. So the recording may now contain other messages
    /// at the positions of the kept messages.
    #[error(
        "recording {recording_id} was extended by another publisher with session id {session_id}"
    )]
    ExtendedByOther {
        /// Recording id.
        recording_id: i64,
        /// Session id of the other publisher.
        session_id: i32,
    },
    /// The recording ends before the end of the messages that the archive had reported as recorded and the publisher no
    /// longer keeps. The messages between the two positions are lost: the recording was truncated, or the archive's
    /// machine lost power.
    #[error(
        "recording {recording_id} ends at position {stop_position}, although it was recorded up to position {recorded_position}"
    )]
    RecordedPositionLost {
        /// Recording id.
        recording_id: i64,
        /// Stop position of the recording.
        stop_position: i64,
        /// Position up to which the publisher keeps no messages, because the archive had reported them as recorded.
        recorded_position: i64,
    },
    /// The recording ends at a position that is not the end of a frame of the kept messages.
    #[error(
        "recording {recording_id} ends at position {stop_position}, where no frame of the publisher ends"
    )]
    NotBetweenFrames {
        /// Recording id.
        recording_id: i64,
        /// Stop position of the recording.
        stop_position: i64,
    },
    /// The publication appended a message at another position than expected.
    #[error("a message ends at position {position} of the publication, and must end at {expected}")]
    UnexpectedPosition {
        /// Position after the message.
        position: i64,
        /// The expected position.
        expected: i64,
    },
    /// The publication refuses a message, and would refuse it again.
    #[error("publication: {source}")]
    Offer {
        /// Reason.
        source: OfferError,
    },
    /// The recording did not begin within the message timeout.
    #[error(
        "the recording did not begin within {waited:?}: the archive receives no image of the publication"
    )]
    NotStarted {
        /// The message timeout.
        waited: Duration,
    },
    /// The archive refused a request.
    #[error("{source}")]
    Refused {
        /// The archive's refusal.
        source: ArchiveClientError,
    },
    /// The connection to the archive failed, or the settings of the archive client are not valid.
    #[error("{source}")]
    Archive {
        /// Reason.
        source: ArchiveClientError,
    },
    /// The driver cannot be reached, or it has closed the client.
    #[error("{source}")]
    Client {
        /// Reason.
        source: aeron_client::Error,
    },
    /// The driver refused the publication.
    #[error("publication: {source}")]
    Publication {
        /// Reason.
        source: aeron_client::Error,
    },
}

impl RecordedPublisherError {
    /// Returns a short name of the reason. Applications can use it to handle some reasons in a
    /// different way.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            Self::UnknownRecording { .. } => "RECORDING_NOT_FOUND",
            Self::Refused { .. }
                if self.archive_code() == Some(ArchiveErrorCode::UnknownRecording) =>
            {
                "RECORDING_NOT_FOUND"
            }
            Self::StreamIdMismatch { .. } => "STREAM_ID_MISMATCH",
            Self::InUse { .. } => "IN_USE",
            Self::ExtendedByOther { .. } => "EXTENDED_BY_OTHER",
            Self::RecordedPositionLost { .. } => "RECORDED_POSITION_LOST",
            _ => "GENERIC",
        }
    }

    /// Returns the archive's error code, if the archive refused a request.
    #[must_use]
    pub fn archive_code(&self) -> Option<ArchiveErrorCode> {
        match self {
            Self::Refused { source } | Self::Archive { source } => source.archive_code(),
            _ => None,
        }
    }
}

/// Reason why a recorded publisher did not accept a message.
#[derive(Clone, Debug, thiserror::Error)]
pub enum RecordedOfferError {
    /// The message cannot be accepted now, or it can never be accepted. `NotConnected`: the
    /// publisher has not found or started the recording yet. `BackPressured`: the buffer of messages
    /// that are not recorded yet is full. `TooLong`: the message is longer than the maximum message
    /// length or than the whole buffer.
    #[error(transparent)]
    Append(#[from] AppendError),
    /// The publisher has failed.
    #[error(transparent)]
    Failed(#[from] Box<RecordedPublisherError>),
}
