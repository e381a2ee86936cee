//! [`PersistentSubscriptionError`]: errors of a persistent subscription.

use std::time::Duration;

use aeron_protocol::archive::ArchiveErrorCode;

use super::super::error::ArchiveClientError;

/// Aeron's categories of the reasons why a persistent subscription has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureReason {
    /// Any other reason.
    Generic,
    /// The archive does not have the recording.
    RecordingNotFound,
    /// The recording and the live stream have different stream ids.
    StreamIdMismatch,
    /// The recording does not contain the position at which the replay would begin.
    InvalidStartPosition,
}

impl FailureReason {
    /// Returns the name of the reason in Aeron.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Generic => "GENERIC",
            Self::RecordingNotFound => "RECORDING_NOT_FOUND",
            Self::StreamIdMismatch => "STREAM_ID_MISMATCH",
            Self::InvalidStartPosition => "INVALID_START_POSITION",
        }
    }
}

/// An error of a persistent subscription. Some errors end the subscription; others are only
/// reported to the listener.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PersistentSubscriptionError {
    /// The archive does not have the recording.
    #[error("unknown recording id: {recording_id}")]
    UnknownRecording {
        /// Recording id.
        recording_id: i64,
    },
    /// The recording and the live stream have different stream ids.
    #[error(
        "Requested live stream with ID: {live_stream_id} does not match stream ID: {recorded_stream_id} for recording: {recording_id}"
    )]
    StreamIdMismatch {
        /// Stream id of the live stream.
        live_stream_id: i32,
        /// Stream id of the recording.
        recorded_stream_id: i32,
        /// Recording id.
        recording_id: i64,
    },
    /// The recording stopped before the highest position of the live stream, so messages would be
    /// missing.
    #[error(
        "recording {recording_id} stopped at position={stop_position} which is earlier than last observed live position={live_position}"
    )]
    StoppedBeforeLivePosition {
        /// Recording id.
        recording_id: i64,
        /// Stop position of the recording.
        stop_position: i64,
        /// Highest position of the live stream.
        live_position: i64,
    },
    /// The replay would begin before the start of the recording.
    #[error(
        "requested replay start position={position} is less than recording start position={start_position} for recording {recording_id}"
    )]
    BeforeStart {
        /// Position at which the replay would begin.
        position: i64,
        /// Start position of the recording.
        start_position: i64,
        /// Recording id.
        recording_id: i64,
    },
    /// The replay would begin after the end of the recording.
    #[error(
        "requested replay start position={position} must be less than the limit position={stop_position} for recording {recording_id}"
    )]
    BeyondStop {
        /// Position at which the replay would begin.
        position: i64,
        /// Stop position of the recording.
        stop_position: i64,
        /// Recording id.
        recording_id: i64,
    },
    /// The live image begins before the position that the subscription has reached. So the live
    /// stream is not the recorded stream.
    #[error(
        "live stream joined at position {joined} which is earlier than last seen position {position}"
    )]
    JoinedBehind {
        /// Position at which the live image begins.
        joined: i64,
        /// The position that the subscription has reached.
        position: i64,
    },
    /// The archive refused a request.
    #[error("{request} failed: {}", words(source))]
    Refused {
        /// Name of the request.
        request: &'static str,
        /// The archive's refusal.
        source: ArchiveClientError,
    },
    /// The connection to the archive failed, or the settings of the archive client are not valid.
    #[error(transparent)]
    Archive(ArchiveClientError),
    /// The driver refused a publication or subscription, or the Aeron client is closed.
    #[error("{resource}: {source}")]
    Resource {
        /// Name of the publication or subscription.
        resource: &'static str,
        /// Reason.
        source: aeron_client::Error,
    },
    /// No live image was available within the message timeout. The subscription continues to wait.
    #[error(
        "No image became available on the live subscription within {waited:?}. The publisher may have stopped, channel or stream id may be wrong, or a firewall may be in between."
    )]
    NoLiveImage {
        /// The message timeout.
        waited: Duration,
    },
}

impl PersistentSubscriptionError {
    /// Returns Aeron's category of the error.
    #[must_use]
    pub fn reason(&self) -> FailureReason {
        match self {
            Self::UnknownRecording { .. } => FailureReason::RecordingNotFound,
            Self::StreamIdMismatch { .. } => FailureReason::StreamIdMismatch,
            Self::StoppedBeforeLivePosition { .. }
            | Self::BeforeStart { .. }
            | Self::BeyondStop { .. } => FailureReason::InvalidStartPosition,
            Self::Refused { request, source } => reason_of_refusal(request, source),
            Self::JoinedBehind { .. }
            | Self::Archive(_)
            | Self::Resource { .. }
            | Self::NoLiveImage { .. } => FailureReason::Generic,
        }
    }
}

/// Name of the replay request in error texts.
pub(super) const REPLAY_REQUEST: &str = "replay request";

/// Returns the category of a refusal. Only a refused replay request can mean that the recording or
/// the position is wrong.
fn reason_of_refusal(request: &str, refusal: &ArchiveClientError) -> FailureReason {
    match refusal.archive_code() {
        Some(ArchiveErrorCode::InvalidPosition) if request == REPLAY_REQUEST => {
            FailureReason::InvalidStartPosition
        }
        Some(ArchiveErrorCode::UnknownRecording) if request == REPLAY_REQUEST => {
            FailureReason::RecordingNotFound
        }
        _ => FailureReason::Generic,
    }
}

/// Returns the message of the archive without the text that the client adds.
fn words(error: &ArchiveClientError) -> String {
    match error {
        ArchiveClientError::Refused { message, .. } => message.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(request: &'static str, code: i64) -> PersistentSubscriptionError {
        let source = ArchiveClientError::Refused {
            request: "start replay",
            correlation_id: 7,
            code,
            message: "words of the archive".to_owned(),
        };
        PersistentSubscriptionError::Refused { request, source }
    }

    /// 11-33, 11-74
    #[test]
    fn a_refusal_has_the_text_of_the_archive_and_only_a_refused_replay_has_a_category() {
        let replay = refused(REPLAY_REQUEST, 16);
        assert_eq!(
            replay.to_string(),
            "replay request failed: words of the archive"
        );
        assert_eq!(replay.reason(), FailureReason::InvalidStartPosition);
        let unknown = refused(REPLAY_REQUEST, 5).reason();
        assert_eq!(unknown, FailureReason::RecordingNotFound);
        for code in [0, 7, 13] {
            let reason = refused(REPLAY_REQUEST, code).reason();
            assert_eq!(reason, FailureReason::Generic);
        }
        let token = refused("replay token request", 5).reason();
        assert_eq!(token, FailureReason::Generic);
    }
}
