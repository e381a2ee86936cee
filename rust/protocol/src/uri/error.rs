//! [`UriError`]: the reason why a channel was refused.

use crate::ErrorCode;

/// Reason why a channel was refused: the code that a driver returns, and a text with the value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct UriError {
    /// [`ErrorCode::InvalidChannel`] for invalid syntax, and in most cases [`ErrorCode::GenericError`] for invalid
    /// values.
    pub code: ErrorCode,
    /// Description of the error.
    pub message: String,
}

impl UriError {
    pub(super) fn invalid_channel(message: impl Into<String>) -> Self {
        Self {
            code: ErrorCode::InvalidChannel,
            message: message.into(),
        }
    }

    pub(super) fn generic(message: impl Into<String>) -> Self {
        Self {
            code: ErrorCode::GenericError,
            message: message.into(),
        }
    }
}
