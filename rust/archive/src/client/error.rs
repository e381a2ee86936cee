//! [`ArchiveClientError`]: what can go wrong in a client of an archive.

use std::time::Duration;

use aeron_client::OfferError;
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
        /// The request; `unknown request` if no call was waiting for the answer.
        request: &'static str,
        /// Correlation id of the request.
        correlation_id: i64,
        /// Code of the error, see [`archive_code`](ArchiveClientError::archive_code).
        code: i64,
        /// The archive's own words.
        message: String,
    },
    /// The archive answered a request by a kind of answer that does not belong to it.
    #[error(
        "{request}: unexpected response code {code:?} for correlationId={correlation_id}, relevantId={relevant_id}"
    )]
    UnexpectedResponse {
        /// The request.
        request: &'static str,
        /// Correlation id of the request.
        correlation_id: i64,
        /// Kind of the answer.
        code: ControlResponseCode,
        /// Value of the answer.
        relevant_id: i64,
    },
    /// No connection was made within the message timeout.
    #[error("no connection to the archive on {channel} within {waited:?}: awaiting {awaited}")]
    ConnectTimeout {
        /// What the client was waiting for.
        awaited: &'static str,
        /// Channel of the requests.
        channel: String,
        /// The message timeout.
        waited: Duration,
    },
    /// A request was not sent, or not answered, within the message timeout.
    #[error("{request}: awaiting {awaited} for {waited:?}, correlationId={correlation_id}")]
    Timeout {
        /// The request.
        request: &'static str,
        /// What the client was waiting for.
        awaited: &'static str,
        /// Correlation id of the request.
        correlation_id: i64,
        /// The message timeout.
        waited: Duration,
    },
    /// The archive ended the session, or it is gone.
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
    /// The request stream does not take a request.
    #[error("{request}: failed to send: {source}")]
    Send {
        /// The request.
        request: &'static str,
        /// Why.
        source: OfferError,
    },
    /// The archive sent what is no message of its protocol; it was passed over.
    #[error("malformed response: {0}")]
    MalformedResponse(#[from] ArchiveDecodeError),
    /// The archive sent a message longer than any of its protocol; it was passed over.
    #[error("response of {length} bytes exceeds the limit of {max} bytes")]
    ResponseTooLong {
        /// Bytes of the message.
        length: usize,
        /// Bytes allowed.
        max: usize,
    },
    /// A channel cannot be used.
    #[error("channel {channel}: {source}")]
    InvalidChannel {
        /// The channel.
        channel: String,
        /// Why.
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

impl ArchiveClientError {
    /// The archive's reason to refuse the request. Returns `None` for other errors, and for codes that this version does not know.
    #[must_use]
    pub fn archive_code(&self) -> Option<ArchiveErrorCode> {
        match self {
            Self::Refused { code, .. } => ArchiveErrorCode::from_value(i32::try_from(*code).ok()?),
            _ => None,
        }
    }

    /// Correlation id of the request that failed. Returns `None` for errors that belong to no request.
    #[must_use]
    pub const fn correlation_id(&self) -> Option<i64> {
        match self {
            Self::Refused { correlation_id, .. }
            | Self::UnexpectedResponse { correlation_id, .. }
            | Self::Timeout { correlation_id, .. } => Some(*correlation_id),
            _ => None,
        }
    }

    /// Makes the error of a channel that cannot be used.
    pub(super) fn channel(channel: &str, source: UriError) -> Self {
        Self::InvalidChannel {
            channel: channel.to_owned(),
            source,
        }
    }
}
