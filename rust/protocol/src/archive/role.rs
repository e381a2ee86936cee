//! [`Role`]: the requests that a user of an archive may send.

/// The requests that a user may send. Each role includes the requests of the roles before it. The declaration of a
/// request names its role: see [`ArchiveRequest`](super::ArchiveRequest) and
/// [`ExtensionRequest`](super::extension::ExtensionRequest).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Reads recordings, and moves named readers. Replays and readers of other users need [`Role::Record`].
    Read,
    /// Also starts, extends and stops recordings, and sets their names and metadata.
    Record,
    /// Sends all requests, including the requests that change or delete recorded data.
    Admin,
}

impl Role {
    /// Returns the role of a name in a users file.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "read" => Some(Self::Read),
            "record" => Some(Self::Record),
            "admin" => Some(Self::Admin),
            _ => None,
        }
    }
}
