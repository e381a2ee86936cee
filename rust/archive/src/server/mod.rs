//! The archive server. Control sessions translate the messages of clients to requests, and the conductor executes them.
//!
//! * Start and end: `archive` ([`Archive`]), `startup` (order of the steps, directories), `settings` (of the parts,
//!   from the [`context`]), `core` ([`ArchiveCore`], for the simulator), `assembly` and `agents` (agent loops),
//!   [`command_line`] (`aeronarchive`), `reload`.
//! * Control sessions: `control` (messages, sessions, responses), `admission` and `fair_queue` (limits of connect
//!   requests), `authentication` and [`users`].
//! * `conductor`: the requests and replies as values, the duty cycle, and one file for each operation that needs
//!   several owners.
//! * The owners: `recording`, `replay`, `replication`, `retention`, `deletions`, `objects` (copies in object storage),
//!   `scrub`. `listing` is what a requester reads of them.
//! * `outlets`: replies and signals that leave the conductor.
//! * Observation: `counters`, `reports` (errors for the operator), `error` (errors for requesters).

mod admission;
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
mod deletions;
mod error;
mod fair_queue;
mod listing;
mod objects;
mod outlets;
mod recording;
mod reload;
mod replay;
mod replication;
mod reports;
mod retention;
mod scrub;
mod settings;
mod startup;
pub mod users;

pub use archive::Archive;
pub use authentication::{
    AcceptAll, AllowAll, AuthenticationDecision, Authenticator, AuthorisationService, ClientOrigin,
    ClientSource, DenyAll,
};
pub use context::OnFailure;
pub use core::{ArchiveCore, ArchiveEnvironment, ArchiveStart, OpenReports};
pub use error::ArchiveError;
pub use reload::ArchiveReloads;
pub use reports::ErrorReports;
pub use startup::ArchiveStartError;
