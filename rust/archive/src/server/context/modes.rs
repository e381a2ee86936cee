//! Types for settings of the archive with few possible values: threading mode, authenticator and authorisation.

use crate::server::users::AuthenticateFunction;
use std::path::PathBuf;

/// The threads on which the agents of an archive run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ArchiveThreadingMode {
    /// Conductor, recorder and replayer each have a thread.
    #[default]
    Dedicated,
    /// Conductor, recorder and replayer run on one thread.
    Shared,
    /// Conductor, recorder and replayer run on the thread of the caller.
    Invoker,
}

/// How the archive treats the rest of an image after its recording has failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnFailure {
    /// The image is not read, so its publisher is blocked, and no bytes are lost.
    #[default]
    Block,
    /// The image is read and not recorded, so its publisher continues.
    Release,
}

/// Clients that may connect.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum AuthenticatorKind {
    /// All clients.
    #[default]
    AcceptAll,
    /// The users in this file: see [`Users`](crate::server::users::Users).
    UsersFile(PathBuf),
    /// The clients that a function accepts.
    Function(AuthenticateFunction),
}

/// Requests that clients may send.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AuthorisationKind {
    /// All requests.
    #[default]
    AllowAll,
    /// No requests.
    DenyAll,
    /// The requests that the role of the user allows: see [`Role`](aeron_protocol::archive::Role).
    Roles,
}

impl ArchiveThreadingMode {
    /// Returns the name that settings and counter labels use.
    pub fn name(self) -> &'static str {
        match self {
            Self::Dedicated => "DEDICATED",
            Self::Shared => "SHARED",
            Self::Invoker => "INVOKER",
        }
    }

    /// Returns the mode with exactly this name, in upper case.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Dedicated, Self::Shared, Self::Invoker]
            .into_iter()
            .find(|mode| mode.name() == name)
    }
}

impl OnFailure {
    /// Returns the name that settings and channels use.
    pub fn name(self) -> &'static str {
        match self {
            Self::Block => "block",
            Self::Release => "release",
        }
    }

    /// Returns the treatment with exactly this name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Block, Self::Release]
            .into_iter()
            .find(|treatment| treatment.name() == name)
    }
}
