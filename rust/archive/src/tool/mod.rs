//! The operations of `ArchiveTool` on the files of an archive: describe, verify and repair recordings, compute
//! checksums, delete unused files, rebuild a lost catalog.
//!
//! Reading ([`ArchiveFiles::open`] with [`Access::Read`]) is possible while an archive runs. For
//! changes, the caller must own the directory: see [`Maintenance`](crate::ownership::Maintenance).

mod checksums;
mod error;
mod files;
mod frames;
mod rebuild;
mod removal;
mod repair;
mod scan;
mod verification;

pub use checksums::ChecksumReport;
pub use error::ToolError;
pub use files::ArchiveFiles;
pub use frames::RecordedFrames;
pub use rebuild::{
    RebuiltCatalog, RebuiltChannel, RebuiltRecording, SkippedRecording, rebuild_catalog,
};
pub use removal::Compaction;
pub use repair::{RecordingRepair, TornDecision};
pub use verification::{BrokenRecording, TornFragment, Verification, VerifyOptions};

#[cfg(doc)]
use crate::storage::Access;
