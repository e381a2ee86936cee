//! [`LiveError`]: the error that ends a query. Its text is one line and is clear without other output.

use crate::offsets::RecordingOffset;
use crate::planning::CutError;
use crate::private::{IndexError, PrivateError};

/// Kind of an error. A binding maps each kind to one exception class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LiveCode {
    /// The media driver refused a channel or a setting, or an option has a value that cannot be used.
    Option,
    /// Data that the query needs cannot be read any more.
    DataLoss,
    /// No media driver runs, or the driver stopped.
    DriverTimeout,
    /// The private archive cannot be used.
    Archive,
    /// The text is not an offset, or the offset belongs to another source.
    Offset,
    /// An archive server does not respond.
    NotConnected,
    /// A message does not fit the layout or the schema.
    Record,
    /// The source is closed.
    Closed,
    /// The caller's interrupt check ended a wait.
    Interrupted,
}

/// Error that ends a query. Its text is one line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct LiveError {
    code: LiveCode,
    message: String,
}

impl LiveError {
    /// Creates an error of this kind.
    pub fn new(code: LiveCode, message: impl Into<String>) -> Self {
        let message = message.into().replace(['\n', '\r'], " ");
        Self { code, message }
    }

    /// Returns the kind of the error.
    pub fn code(&self) -> LiveCode {
        self.code
    }

    /// Creates the error for a recording that ends at `end`, before its position in the checkpoint. `archive` is the
    /// place of the archive.
    pub(crate) fn ends_too_early(checkpoint: &RecordingOffset, end: i64, archive: &str) -> Self {
        let RecordingOffset {
            recording_id,
            stream_id,
            session_id,
            position,
        } = checkpoint;
        Self::new(
            LiveCode::DataLoss,
            format!(
                "recording {recording_id} of stream {stream_id} session {session_id} of {archive} ends at {end}, before position {position} in the checkpoint: it was truncated, or the archive has lost its end. New messages before this position would be missing, so the query ends, also with failOnDataLoss=false. Start it with a new checkpoint"
            ),
        )
    }

    /// Creates the error of a hook that is called after [`close`](crate::live::LiveSource::close).
    pub(crate) fn closed() -> Self {
        Self::new(LiveCode::Closed, "this source is closed")
    }
}

impl LiveCode {
    /// Returns the kind's name in capitals. The names are stable across versions.
    pub fn name(self) -> &'static str {
        match self {
            Self::Option => "OPTION",
            Self::DataLoss => "DATA_LOSS",
            Self::DriverTimeout => "DRIVER_TIMEOUT",
            Self::Archive => "ARCHIVE",
            Self::Offset => "OFFSET",
            Self::NotConnected => "NOT_CONNECTED",
            Self::Record => "RECORD",
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
