//! Why a command failed: the code that its client gets, and the text that the client and the error log get.

use std::fmt;
use std::io;

use aeron_protocol::uri::UriError;
use aeron_protocol::{DecodeError, ErrorCode};

/// A failure. Its text begins with `(<number>) <what that number means>`, then says one thing per line, the innermost first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DriverError {
    code: ErrorCode,
    text: String,
    /// The text of the error log, in place of `text`.
    entry: Option<String>,
}

impl DriverError {
    /// A failure that has a code of its own.
    pub fn coded(code: ErrorCode, message: impl fmt::Display) -> Self {
        DriverError {
            code,
            text: format!("({}) {}\n{message}\n", -code.value(), code.text()),
            entry: None,
        }
    }

    /// A value that makes no sense; travels as [`ErrorCode::GenericError`].
    pub fn invalid_argument(message: impl fmt::Display) -> Self {
        DriverError {
            code: ErrorCode::GenericError,
            text: format!("(22) Invalid argument\n{message}\n"),
            entry: None,
        }
    }

    /// A failure of the operating system: a full file system is [`ErrorCode::StorageSpace`], all else generic.
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

    /// The same failure with `message` in its place in the error log.
    ///
    /// The error log keeps each different text for ever. A text with a number in it that changes with each occurrence would
    /// fill the log, so the log gets a text without the number; the client still gets the number.
    pub fn noted_as(mut self, message: impl fmt::Display) -> Self {
        let reason = self.text.lines().next().unwrap_or_default();
        self.entry = Some(format!("{reason}\n{message}\n"));
        self
    }

    /// The same failure with one more line that says where it happened.
    pub fn context(mut self, line: impl fmt::Display) -> Self {
        let line = format!("{line}\n");
        self.text.push_str(&line);
        if let Some(entry) = &mut self.entry {
            entry.push_str(&line);
        }
        self
    }

    /// The failure of a channel, with the channel's text.
    pub fn bad_channel(error: UriError, channel: &[u8]) -> Self {
        let channel = String::from_utf8_lossy(channel);
        Self::from(error).context(format_args!("channel={channel}"))
    }

    /// What the client is told.
    pub fn code(&self) -> ErrorCode {
        self.code
    }

    /// Whether all it says is "try again".
    pub fn is_temporary(&self) -> bool {
        self.code == ErrorCode::ResourceTemporarilyUnavailable
    }

    /// What the client is told in words.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The entry in the error log.
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
