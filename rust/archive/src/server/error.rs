//! [`ArchiveError`]: why the archive refuses a request, with the code and text of the response.

use aeron_protocol::archive::ArchiveErrorCode;

use crate::extensions::EXTENSIONS_FILE_NAME;
use crate::store::StoreError;

/// Why a request failed, with the code and the text of the response.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ArchiveError {
    /// Code of the response.
    pub code: ArchiveErrorCode,
    /// Text of the response.
    pub message: String,
}

impl ArchiveError {
    /// Creates an error with a code.
    pub fn new(code: ArchiveErrorCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
        }
    }

    /// Creates an error with the generic code.
    pub fn generic(message: impl ToString) -> Self {
        Self::new(ArchiveErrorCode::Generic, message.to_string())
    }

    /// Creates the error for a failed change of the file of extensions.
    pub(super) fn not_stored(source: std::io::Error) -> Self {
        StoreError::storage(EXTENSIONS_FILE_NAME, "write it", source).into()
    }

    /// Creates the error for a recording that does not exist.
    pub fn unknown_recording(recording_id: i64) -> Self {
        StoreError::UnknownRecording { recording_id }.into()
    }
}

impl From<StoreError> for ArchiveError {
    fn from(error: StoreError) -> Self {
        Self::new(error.archive_error_code(), error.to_string())
    }
}

impl From<aeron_client::Error> for ArchiveError {
    fn from(error: aeron_client::Error) -> Self {
        Self::generic(error)
    }
}

impl From<aeron_protocol::uri::UriError> for ArchiveError {
    fn from(error: aeron_protocol::uri::UriError) -> Self {
        Self::generic(error)
    }
}
