//! Tests of the tools' operations on the files of an archive: verification, repair, checksums, compaction, orphans.

mod changing;
#[path = "../store/common.rs"]
#[allow(
    dead_code,
    reason = "made for the tests of the store, which use all of it"
)]
mod common;
mod rebuilding;
#[path = "../recordings/stream.rs"]
#[allow(
    dead_code,
    reason = "made for the tests of recordings, which use all of it"
)]
mod stream;
mod verifying;
