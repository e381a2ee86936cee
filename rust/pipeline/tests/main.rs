//! The tests of this crate, in one program. It is built and linked once.

mod archives;
mod batch_reads;
mod columns;
mod private_archive;
mod ranges;
mod recordings;
#[path = "../../archive/tests/recordings/stream.rs"]
#[allow(
    dead_code,
    reason = "made for the tests of recordings, which use all of it"
)]
mod stream;
