//! Replication: copies of recordings of other archives, each by a client of the source and a recording here.

mod replications;
mod request;
mod session;
mod streams;

pub(super) use replications::{ReplicationSettings, Replications};
pub(super) use request::ReplicationRequest;
pub(super) use session::{ReplicationTurn, active_destination};
