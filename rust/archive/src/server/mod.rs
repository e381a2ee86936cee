//! The archive server: a conductor with a typed interface, and control sessions that translate Aeron's archive protocol to it.

mod agents;
mod archive;
mod assembly;
mod authentication;
pub mod command_line;
mod conductor;
pub mod context;
mod control;
mod core;
mod counters;
mod error;
mod listing;
mod maintenance;
mod outbox;
mod recording;
pub(crate) mod replay;
mod replaying;
mod replicating;
mod replication;
mod reports;
mod sessions;
mod startup;
pub mod users;

pub use archive::Archive;
pub use authentication::{
    AcceptAll, AllowAll, AuthenticationDecision, Authenticator, AuthorisationService, DenyAll,
};
pub use core::{ArchiveCore, ArchiveStart, ArchiveSurroundings, OpenReports};
pub use error::ArchiveError;
pub use reports::ErrorReports;
pub use startup::ArchiveStartError;
