//! Replication: copies recordings of other archives. Each replication has a client session with the
//! source archive, and a recording in this archive.

mod permission;
mod replications;
mod request;
mod session;
mod streams;

pub(super) use replications::{ReplicationSettings, Replications};
pub(super) use request::ReplicationRequest;
pub(super) use session::{ReplicationTurn, active_destination};
