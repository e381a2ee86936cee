//! The store: recordings that begin, go on, end and are recovered, and the operations that move their ends.

mod attaching;
mod channels;
mod common;
mod detaching;
mod migrating;
mod opening;
mod purging;
mod recording;
#[path = "../recordings/stream.rs"]
#[allow(
    dead_code,
    reason = "made for the tests of recordings, which use all of it"
)]
mod stream;
mod truncating;
