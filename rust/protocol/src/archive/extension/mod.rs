//! Messages that this project adds to the archive's control protocol. These messages have the same header and schema
//! id, and template ids from [`FIRST_TEMPLATE_ID`] on, which the schema of Aeron does not use.
//!
//! Aeron's archive ignores a message with an unknown template id. So a client first sends a [`CapabilitiesRequest`]:
//! an archive that does not respond has no [capabilities](Capabilities).
//!
//! A listing responds with any number of descriptors, and then with a
//! [`ControlResponse`](super::ControlResponse) whose result is the index of the next entry, or
//! [`NULL_VALUE`](super::NULL_VALUE) after the last entry.

mod note;
mod request;
mod response;

pub use note::*;
pub use request::*;
pub use response::*;

/// Lowest template id of these messages.
pub const FIRST_TEMPLATE_ID: u16 = 20_000;

/// Maximum number of entries that one listing returns.
pub const MAX_LISTED: i32 = 1_000;

/// Maximum length of the name of a reader or a recording, in bytes of UTF-8.
pub const MAX_NAME_LENGTH: usize = 255;

/// Maximum length of the part of a channel in a retention policy, in bytes.
pub const MAX_CHANNEL_FRAGMENT_LENGTH: usize = 1_024;

/// Maximum length of the metadata of a recording, in bytes.
pub const MAX_METADATA_LENGTH: usize = 16 * 1024;

/// Unit of the replay speed in a request: a speed of 1,000,000 is the recorded speed.
pub const SPEED_UNIT: i64 = 1_000_000;

/// The messages that an archive serves, as a set of bits. An unknown bit is ignored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capabilities(i64);

impl Capabilities {
    /// Named readers.
    pub const READERS: Self = Self(1);
    /// Retention policies.
    pub const RETENTION: Self = Self(1 << 1);
    /// Names, metadata and links of recordings.
    pub const RECORDING_INFO: Self = Self(1 << 2);
    /// Positions by time.
    pub const TIME: Self = Self(1 << 3);
    /// Replays at a rate.
    pub const REPLAY_RATE: Self = Self(1 << 4);
    /// Copies in object storage.
    pub const OBJECTS: Self = Self(1 << 5);

    /// Creates the set from the result of a [`CapabilitiesRequest`].
    #[must_use]
    pub const fn from_bits(bits: i64) -> Self {
        Self(bits)
    }

    /// Returns the bits of the set. They are the result of a [`CapabilitiesRequest`].
    #[must_use]
    pub const fn bits(self) -> i64 {
        self.0
    }

    /// Returns the union of both sets.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns whether all capabilities of `other` are in this set.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}
