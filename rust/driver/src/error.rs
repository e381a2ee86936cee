//! [`DriverError`]: the failure of a command. It has a code and a text for the client, and a text for the error log.

use std::fmt;
use std::io;

use aeron_protocol::uri::UriError;
use aeron_protocol::{DecodeError, ErrorCode};

/// The failure of a command or of a system call.
///
/// The text begins with `(<number>) <meaning of the number>`. Each following line adds one fact, first about the cause,
/// then about its context.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DriverError {
    code: ErrorCode,
    text: String,
    /// The text for the error log, if it differs from `text`.
    entry: Option<String>,
}

impl DriverError {
    /// Creates a failure with the given error code.
    pub fn coded(code: ErrorCode, message: impl fmt::Display) -> Self {
        DriverError {
            code,
            text: format!("({}) {}\n{message}\n", -code.value(), code.text()),
            entry: None,
        }
    }

    /// Creates the failure of an invalid value; the client receives [`ErrorCode::GenericError`].
    pub fn invalid_argument(message: impl fmt::Display) -> Self {
        DriverError {
            code: ErrorCode::GenericError,
            text: format!("(22) Invalid argument\n{message}\n"),
            entry: None,
        }
    }

    /// Creates a failure of the operating system.
    ///
    /// The code is [`ErrorCode::StorageSpace`] for a full file system, else [`ErrorCode::GenericError`].
    pub fn io(error: &io::Error, message: impl fmt::Display) -> Self {
        let code = match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => ErrorCode::StorageSpace,
            _ => ErrorCode::GenericError,
        };
        let text = error.to_string();
        let reason = text.split(" (os error").next().unwrap_or_default();
        DriverError {
            code,
            text: format!(
                "({}) {reason}\n{message}\n",
                error.raw_os_error().unwrap_or(-code.value())
            ),
            entry: None,
        }
    }

    /// Sets a separate text for the error log: the first line of the text for the client, and `message`.
    ///
    /// The error log never removes a text. Texts that differ only in a number would fill the log. The text for the log
    /// therefore does not contain the number. The client still receives the number.
    pub fn noted_as(mut self, message: impl fmt::Display) -> Self {
        let reason = self.text.lines().next().unwrap_or_default();
        self.entry = Some(format!("{reason}\n{message}\n"));
        self
    }

    /// Appends a line that says where the failure happened.
    pub fn context(mut self, line: impl fmt::Display) -> Self {
        let line = format!("{line}\n");
        self.text.push_str(&line);
        if let Some(entry) = &mut self.entry {
            entry.push_str(&line);
        }
        self
    }

    /// Creates the failure of an invalid channel, with the text of the channel.
    pub fn bad_channel(error: UriError, channel: &[u8]) -> Self {
        let channel = String::from_utf8_lossy(channel);
        Self::from(error).context(format_args!("channel={channel}"))
    }

    /// Returns the error code for the client.
    pub fn code(&self) -> ErrorCode {
        self.code
    }

    /// Returns whether the failure is temporary, so that the client may retry.
    pub fn is_temporary(&self) -> bool {
        self.code == ErrorCode::ResourceTemporarilyUnavailable
    }

    /// Returns the error message for the client.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the text for the error log.
    pub fn entry(&self) -> &str {
        self.entry.as_deref().unwrap_or(&self.text)
    }
}

impl fmt::Display for DriverError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

impl std::error::Error for DriverError {}

impl From<DecodeError> for DriverError {
    fn from(error: DecodeError) -> Self {
        DriverError::coded(error.code(), error)
    }
}

impl From<UriError> for DriverError {
    fn from(error: UriError) -> Self {
        match error.code {
            ErrorCode::GenericError => DriverError::invalid_argument(error.message),
            code => DriverError::coded(code, error.message),
        }
    }
}
