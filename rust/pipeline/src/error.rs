//! [`LiveError`]: what ends a query, in one line that is complete in itself.

use crate::planning::CutError;
use crate::private::{IndexError, PrivateError};

/// What kind of error it is; a binding has one class for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LiveCode {
    /// A channel or setting that was refused by the media driver, or a limit that cannot be kept.
    Option,
    /// Something that the query needs cannot be read any more.
    DataLoss,
    /// There is no media driver, or it stopped.
    DriverTimeout,
    /// The private archive cannot be used.
    Archive,
    /// An offset that is none, or is another source's.
    Offset,
    /// The source is closed.
    Closed,
    /// The caller's own check ended a wait.
    Interrupted,
}

/// What ends a query. Texts are one line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct LiveError {
    code: LiveCode,
    message: String,
}

impl LiveError {
    /// An error of this kind.
    pub fn new(code: LiveCode, message: impl Into<String>) -> Self {
        let message = message.into().replace(['\n', '\r'], " ");
        Self { code, message }
    }

    /// The kind.
    pub fn code(&self) -> LiveCode {
        self.code
    }

    /// A hook was called after the end.
    pub(crate) fn closed() -> Self {
        Self::new(LiveCode::Closed, "this source is closed")
    }
}

impl LiveCode {
    /// Its name in capitals, stable over versions.
    pub fn name(self) -> &'static str {
        match self {
            Self::Option => "OPTION",
            Self::DataLoss => "DATA_LOSS",
            Self::DriverTimeout => "DRIVER_TIMEOUT",
            Self::Archive => "ARCHIVE",
            Self::Offset => "OFFSET",
            Self::Closed => "CLOSED",
            Self::Interrupted => "INTERRUPTED",
        }
    }
}

impl From<crate::offsets::OffsetError> for LiveError {
    fn from(error: crate::offsets::OffsetError) -> Self {
        Self::new(LiveCode::Offset, error.to_string())
    }
}

impl From<PrivateError> for LiveError {
    fn from(error: PrivateError) -> Self {
        Self::new(LiveCode::Archive, error.to_string())
    }
}

impl From<IndexError> for LiveError {
    fn from(error: IndexError) -> Self {
        Self::new(LiveCode::Archive, error.to_string())
    }
}

impl From<CutError<IndexError>> for LiveError {
    fn from(error: CutError<IndexError>) -> Self {
        let code = match error {
            CutError::Messages(_) => LiveCode::Archive,
            CutError::TooMany { .. } => LiveCode::Option,
        };
        Self::new(code, error.to_string())
    }
}
