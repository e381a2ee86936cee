//! The methods of [`AeronArchive`](super::AeronArchive) that applications call: one method for each
//! request.

mod extension;
mod maintenance;
mod query;
mod recording;
mod replay;
mod replication;
