//! The work of the archive tools on the files of an archive: look at them, verify and repair them, compute checksums, delete what no
//! recording needs.
//!
//! Looking ([`ArchiveFiles::open`] with [`Access::Read`]) is possible beside a running archive. For changes the caller holds the directory:
//! see [`Maintenance`](crate::ownership::Maintenance).

mod checksums;
mod error;
mod files;
mod frames;
mod removal;
mod repair;
mod verification;

pub use checksums::ChecksumReport;
pub use error::ToolError;
pub use files::ArchiveFiles;
pub use frames::RecordedFrames;
pub use removal::Compaction;
pub use repair::{Repair, TornDecision};
pub use verification::{BrokenRecording, TornFragment, Verification, VerifyOptions};

#[cfg(doc)]
use crate::storage::Access;
