//! Replication: copies recordings of other archives. Each replication has a client session with the
//! source archive, and a recording in this archive.

mod live;
mod permission;
mod replications;
mod request;
mod session;
mod source;
mod state;
mod streams;

pub(super) use replications::Replications;
pub(super) use request::{ReplicationRequest, ReplicationSettings};
pub(super) use session::{ReplicationTurn, active_destination};
