//! The archive server. Control sessions decode the requests of Aeron's archive protocol, and the
//! conductor executes them.
//!
//! * Start and end: `archive` ([`Archive`]), `startup` (order of the steps, directories), `assembly` and `agents`
//!   (parts and agent loops), [`context`] (settings), [`command_line`] (`aeronarchive`), `core` ([`ArchiveCore`], for
//!   the simulator).
//! * Requests: `control` (sessions, dispatch, responses), `sessions` (all sessions), `admission` and `fair_queue`
//!   (limits of connect requests), `authentication` and [`users`], `outbox` (messages to sessions).
//! * The conductor's operations: `conductor` (queries and duty cycle), `listing`, `recording`, `replay` and
//!   `replaying`, `replication` and `replicating`, `maintenance` (truncate, purge, detach, migrate), `retention`,
//!   `scrub`, `objects` and `unknown_copies` (copies in object storage).
//! * `extension`: the requests that this project adds.
//! * Observation: `counters`, `reports` (errors without a client), `error` (errors in responses).

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
mod error;
mod extension;
mod fair_queue;
mod listing;
mod maintenance;
mod objects;
mod outbox;
mod recording;
mod reload;
pub(crate) mod replay;
mod replaying;
mod replicating;
mod replication;
mod reports;
mod retention;
mod scrub;
mod sessions;
mod startup;
mod unknown_copies;
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
