//! Codes for the reasons why the driver refused a command.

use std::fmt;

/// Reason why a command was refused, or why a publication received an error. Messages contain it as an i32.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(i32)]
pub enum ErrorCode {
    /// A number that this version does not define. Every unlisted number is decoded to this variant.
    Unknown = -1,
    /// Not an error; never sent.
    Unused = 0,
    /// The channel's syntax or meaning is wrong, or its session id is taken.
    InvalidChannel = 1,
    /// No subscription has the given registration id.
    UnknownSubscription = 2,
    /// No publication has the given registration id.
    UnknownPublication = 3,
    /// A channel endpoint failed. Drivers no longer send this code, but clients still accept it.
    ChannelEndpointError = 4,
    /// No counter has the given registration id.
    UnknownCounter = 5,
    /// The command's type id is not known.
    UnknownCommandTypeId = 6,
    /// The bytes of the command are not a valid command.
    MalformedCommand = 7,
    /// The driver does not support the requested feature.
    NotSupported = 8,
    /// A host name did not resolve.
    UnknownHost = 9,
    /// The resource is being closed; try again.
    ResourceTemporarilyUnavailable = 10,
    /// Any other error; see the message.
    GenericError = 11,
    /// The log does not fit on the file system.
    StorageSpace = 12,
    /// A subscriber rejected the image of a publication.
    ImageRejected = 13,
    /// The publication was revoked.
    PublicationRevoked = 14,
}

impl ErrorCode {
    /// All codes except [`ErrorCode::Unknown`], in the order of their values.
    pub const ALL: [Self; 15] = [
        Self::Unused,
        Self::InvalidChannel,
        Self::UnknownSubscription,
        Self::UnknownPublication,
        Self::ChannelEndpointError,
        Self::UnknownCounter,
        Self::UnknownCommandTypeId,
        Self::MalformedCommand,
        Self::NotSupported,
        Self::UnknownHost,
        Self::ResourceTemporarilyUnavailable,
        Self::GenericError,
        Self::StorageSpace,
        Self::ImageRejected,
        Self::PublicationRevoked,
    ];

    /// Returns the code for a number from a message; [`ErrorCode::Unknown`] for an unlisted number.
    #[must_use]
    pub fn from_value(value: i32) -> Self {
        usize::try_from(value)
            .ok()
            .and_then(|index| Self::ALL.get(index).copied())
            .unwrap_or(Self::Unknown)
    }

    /// Returns the number that is sent.
    #[must_use]
    pub const fn value(self) -> i32 {
        self as i32
    }

    /// Returns the text that a driver writes before its own message, such as `invalid channel`.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Unknown => "unknown error code",
            Self::Unused => "unused",
            Self::InvalidChannel => "invalid channel",
            Self::UnknownSubscription => "unknown subscription",
            Self::UnknownPublication => "unknown publication",
            Self::ChannelEndpointError => "channel endpoint error",
            Self::UnknownCounter => "unknown counter",
            Self::UnknownCommandTypeId => "unknown command type id",
            Self::MalformedCommand => "malformed command",
            Self::NotSupported => "not supported",
            Self::UnknownHost => "unknown host",
            Self::ResourceTemporarilyUnavailable => "resource temporarily unavailable",
            Self::GenericError => "generic error, see message",
            Self::StorageSpace => "insufficient storage space",
            Self::ImageRejected => "image rejected",
            Self::PublicationRevoked => "publication revoked",
        }
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

#[cfg(test)]
mod tests {
    use super::ErrorCode;

    #[test]
    fn each_code_is_decoded_from_its_value() {
        for (index, code) in ErrorCode::ALL.into_iter().enumerate() {
            assert_eq!(code.value(), index as i32);
            assert_eq!(ErrorCode::from_value(code.value()), code);
        }
    }

    #[test]
    fn an_unlisted_number_is_unknown() {
        for value in [-2, -1, 15, 1000, i32::MIN, i32::MAX] {
            assert_eq!(ErrorCode::from_value(value), ErrorCode::Unknown);
        }
    }
}
