//! Tests of the store: starting, extending, stopping and recovering recordings, operations that change or delete them,
//! index files, and the search for the position of a time.

mod attaching;
mod channels;
mod clocks;
mod common;
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
#[path = "../recordings/stream.rs"]
#[allow(
    dead_code,
    reason = "made for the tests of recordings, which use all of it"
)]
mod stream;
mod truncating;
