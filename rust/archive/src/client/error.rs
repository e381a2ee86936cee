//! [`ArchiveClientError`]: errors of an archive client.

use std::time::Duration;

use aeron_client::{OfferError, OperationError};
use aeron_protocol::archive::{ArchiveDecodeError, ArchiveErrorCode, ControlResponseCode};
use aeron_protocol::uri::UriError;

/// Result of a call to an archive.
pub type Result<T> = std::result::Result<T, ArchiveClientError>;

/// A failed call to an archive, or an error that no call was waiting for.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ArchiveClientError {
    /// The archive refused a request.
    #[error(
        "{request}: response for correlationId={correlation_id}, errorCode={code}, error: {message}"
    )]
    Refused {
        /// Name of the request; `unknown request` if the client does not know the request.
        request: &'static str,
        /// Correlation id of the request.
        correlation_id: i64,
        /// Code of the error: see [`archive_code`](ArchiveClientError::archive_code).
        code: i64,
        /// Message of the archive.
        message: String,
    },
    /// The kind of the archive's response does not belong to the request.
    #[error(
        "{request}: unexpected response code {code:?} for correlationId={correlation_id}, relevantId={relevant_id}"
    )]
    UnexpectedResponse {
        /// Name of the request.
        request: &'static str,
        /// Correlation id of the request.
        correlation_id: i64,
        /// Code of the response.
        code: ControlResponseCode,
        /// Value of the response.
        relevant_id: i64,
    },
    /// No connection was made within the message timeout.
    #[error("no connection to the archive on {channel} within {waited:?}: awaiting {awaited}")]
    ConnectTimeout {
        /// The step that the client was waiting for.
        awaited: &'static str,
        /// Channel of the requests.
        channel: String,
        /// The message timeout.
        waited: Duration,
    },
    /// Sending a request took longer than the message timeout, or the archive did not respond
    /// within the message timeout.
    #[error("{request}: awaiting {awaited} for {waited:?}, correlationId={correlation_id}")]
    Timeout {
        /// Name of the request.
        request: &'static str,
        /// The step that the client was waiting for.
        awaited: &'static str,
        /// Correlation id of the request.
        correlation_id: i64,
        /// The message timeout.
        waited: Duration,
    },
    /// The archive does not serve a request that this project adds to Aeron's protocol.
    #[error("{request}: not supported by the archive: {}", missing_capability(*silence))]
    NotSupported {
        /// Name of the request.
        request: &'static str,
        /// Time without a response to the request for the archive's capabilities. `None` if the archive has responded,
        /// and lacks the capability.
        silence: Option<Duration>,
    },
    /// A recording has no message in the range of time of a replay.
    #[error(
        "recording {recording_id} has no message in the range of time: choose an earlier begin or a later end"
    )]
    EmptyTimeRange {
        /// Recording id.
        recording_id: i64,
    },
    /// The archive has ended the session, or the archive no longer runs.
    #[error("not connected to the archive: its response stream has ended")]
    Disconnected,
    /// The client of the archive is closed.
    #[error("client of the archive is closed")]
    Closed,
    /// A call was made from inside a handler of the archive's client.
    #[error("reentrant calls not permitted during callbacks")]
    ReentrantCall,
    /// The operation was cancelled.
    #[error("the operation was cancelled")]
    OperationCancelled,
    /// The request stream cannot accept the request.
    #[error("{request}: failed to send: {source}")]
    Send {
        /// Name of the request.
        request: &'static str,
        /// Reason.
        source: OfferError,
    },
    /// The archive sent a message that does not belong to the archive's protocol. The message was
    /// skipped.
    #[error("malformed response: {0}")]
    MalformedResponse(#[from] ArchiveDecodeError),
    /// The archive sent a message that is longer than any message of the archive's protocol. The
    /// message was skipped.
    #[error("response of {length} bytes exceeds the limit of {max} bytes")]
    ResponseTooLong {
        /// Length of the message in bytes.
        length: usize,
        /// Maximum length in bytes.
        max: usize,
    },
    /// A channel cannot be used.
    #[error("channel {channel}: {source}")]
    InvalidChannel {
        /// The channel.
        channel: String,
        /// Reason.
        source: UriError,
    },
    /// An argument is outside its range.
    #[error("{0}")]
    InvalidArgument(String),
    /// A setting is missing or outside its range.
    #[error("{0}")]
    Configuration(String),
    /// The Aeron client failed.
    #[error(transparent)]
    Client(#[from] aeron_client::Error),
}

fn missing_capability(silence: Option<Duration>) -> String {
    match silence {
        Some(waited) => format!(
            "it did not respond to a request for its capabilities within {waited:?}; check that it runs, and use aeronarchive of this project"
        ),
        None => "its capabilities lack this request; use a newer aeronarchive of this project"
            .to_owned(),
    }
}

impl OperationError for ArchiveClientError {
    const CANCELLED: Self = Self::OperationCancelled;

    fn is_passing(&self) -> bool {
        // The operation continues after the handler has returned.
        matches!(self, Self::ReentrantCall)
    }
}

impl ArchiveClientError {
    /// Returns the archive's reason for refusing the request. Returns `None` for other errors, and for unknown codes.
    #[must_use]
    pub fn archive_code(&self) -> Option<ArchiveErrorCode> {
        match self {
            Self::Refused { code, .. } => ArchiveErrorCode::from_value(i32::try_from(*code).ok()?),
            _ => None,
        }
    }

    /// Returns the correlation id of the request that failed. Returns `None` for errors without a request.
    #[must_use]
    pub const fn correlation_id(&self) -> Option<i64> {
        match self {
            Self::Refused { correlation_id, .. }
            | Self::UnexpectedResponse { correlation_id, .. }
            | Self::Timeout { correlation_id, .. } => Some(*correlation_id),
            _ => None,
        }
    }

    /// Creates the error for a channel that cannot be used.
    pub(super) fn channel(channel: &str, source: UriError) -> Self {
        Self::InvalidChannel {
            channel: channel.to_owned(),
            source,
        }
    }
}
