//! [`ReplayMergeError`]: errors of a merge.

use super::super::error::ArchiveClientError;

/// Why a merge was refused or has failed.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ReplayMergeError {
    /// The subscription's channel, the replay channel or a destination is an IPC channel.
    #[error("IPC merging is not supported")]
    IpcChannel,
    /// The subscription does not have `control-mode=manual`.
    #[error("Subscription URI must have 'control-mode=manual' uri={channel}")]
    NotManual {
        /// Channel of the subscription.
        channel: String,
    },
    /// The replay destination has no endpoint, so the replay cannot be received.
    #[error(
        "replay destination {destination} has no endpoint: name the address that receives the replay"
    )]
    NoEndpoint {
        /// The replay destination.
        destination: String,
    },
    /// Neither the state nor the image's position has advanced for longer than the progress timeout.
    #[error(
        "ReplayMerge no progress: state={state}, activeTransportCount={active_transport_count}"
    )]
    NoProgress {
        /// Name of the state.
        state: &'static str,
        /// Number of the image's transports; 0 without an image.
        active_transport_count: i32,
    },
    /// The image was closed before the merge was complete.
    #[error("ReplayMerge Image closed unexpectedly.")]
    ImageClosed,
    /// The archive refused a request, or sent an error that no request was waiting for.
    #[error("archive response for correlationId={correlation_id}, error: {message}")]
    Refused {
        /// Correlation id of the request.
        correlation_id: i64,
        /// Code of the error.
        code: i64,
        /// Message of the archive.
        message: String,
    },
    /// The session with the archive has ended.
    #[error("archive is not connected")]
    NotConnected,
    /// The archive client failed.
    #[error(transparent)]
    Archive(ArchiveClientError),
}

impl From<ArchiveClientError> for ReplayMergeError {
    fn from(error: ArchiveClientError) -> Self {
        match error {
            ArchiveClientError::Refused {
                correlation_id,
                code,
                message,
                ..
            } => Self::Refused {
                correlation_id,
                code,
                message,
            },
            ArchiveClientError::Disconnected | ArchiveClientError::Closed => Self::NotConnected,
            error => Self::Archive(error),
        }
    }
}

impl From<aeron_client::Error> for ReplayMergeError {
    fn from(error: aeron_client::Error) -> Self {
        Self::Archive(error.into())
    }
}

impl ReplayMergeError {
    /// Returns whether a call was refused because it was made in a handler. Then the merge can
    /// continue.
    pub(super) const fn is_reentrant_call(&self) -> bool {
        matches!(
            self,
            Self::Archive(
                ArchiveClientError::ReentrantCall
                    | ArchiveClientError::Client(aeron_client::Error::ReentrantCall)
            )
        )
    }
}
