//! Tests of the tools' operations on the files of an archive: verification, repair, checksums, compaction, orphans.

mod changing;
mod rebuilding;
mod verifying;
