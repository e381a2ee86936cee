//! Replication: copies recordings of other archives. Each copy uses a client of the source archive, and a recording of
//! this archive.

mod replications;
mod request;
mod session;
mod streams;

pub(super) use replications::{ReplicationSettings, Replications};
pub(super) use request::ReplicationRequest;
pub(super) use session::{ReplicationTurn, active_destination};
