//! The settings that choose between named alternatives.

use std::path::PathBuf;

/// Which threads the agents of an archive run on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ArchiveThreadingMode {
    /// Conductor, recorder and replayer on a thread each.
    #[default]
    Dedicated,
    /// All three on one thread.
    Shared,
    /// All three on the thread of the caller.
    Invoker,
}

/// Who may connect.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum AuthenticatorKind {
    /// Everybody.
    #[default]
    AcceptAll,
    /// The users of this file ([`Users`](crate::server::users::Users)).
    UsersFile(PathBuf),
}

/// What clients may ask for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AuthorisationKind {
    /// Everything.
    #[default]
    AllowAll,
    /// Nothing.
    DenyAll,
    /// What the role of the user allows ([`Role`](crate::server::users::Role)).
    Roles,
}

impl ArchiveThreadingMode {
    /// The name used in settings and counter labels.
    pub fn name(self) -> &'static str {
        match self {
            Self::Dedicated => "DEDICATED",
            Self::Shared => "SHARED",
            Self::Invoker => "INVOKER",
        }
    }

    /// The mode with exactly this (upper case) name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Dedicated, Self::Shared, Self::Invoker]
            .into_iter()
            .find(|mode| mode.name() == name)
    }
}
