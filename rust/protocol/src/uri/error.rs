//! Why a channel was refused.

use crate::ErrorCode;

/// Why a channel was refused: the code that a driver answers, and what is wrong with which value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct UriError {
    /// [`ErrorCode::InvalidChannel`] for syntax, mostly [`ErrorCode::GenericError`] for values.
    pub code: ErrorCode,
    /// What is wrong.
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
