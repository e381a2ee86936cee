//! Tests of the store: starting, extending, stopping and recovering recordings, and operations that
//! change their start or stop position.

mod attaching;
mod channels;
mod common;
mod compacting;
mod detaching;
mod finding;
mod indexing;
mod migrating;
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
