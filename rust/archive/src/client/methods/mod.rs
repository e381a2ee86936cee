//! What an archive can be asked for: one method for each request.

mod maintenance;
mod query;
mod recording;
mod replay;
mod replication;
