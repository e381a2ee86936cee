//! Tests of the store: starting, extending, stopping and recovering recordings, operations that change or delete them,
//! index files, and the search for the position of a time.

mod attaching;
mod channels;
mod clocks;
pub mod common;
mod compacting;
mod detaching;
mod finding;
mod indexing;
mod migrating;
mod naming;
mod opening;
mod private;
mod purging;
mod recording;
mod retaining;
mod truncating;
