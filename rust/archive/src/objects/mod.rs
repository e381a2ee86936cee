//! Copies of sealed segments in object storage, as the archive sees them.
//!
//! The archive reports sealed segments to a [`SegmentCopier`], and requests segments that are no longer on the disk
//! from a [`SegmentFetcher`]. Both return at once. Another crate implements them on a thread of its own, so that the
//! archive needs neither a network nor a runtime for it. [`CopiedSegments`] computes which segments may be deleted and
//! which can be read back.

mod copied;

pub use copied::{CopiedRange, CopiedSegments, SegmentCopy};

use crate::catalog::RecordingDescriptor;
use crate::segments::sidecar_name;
use crate::server::context::ArchiveContext;

/// Extension, without the dot, of a segment that was fetched. Aeron's tools ignore such files.
pub const FETCHED_EXTENSION: &str = "fetched";

/// Returns the name of the file of a fetched segment.
#[must_use]
pub fn fetched_name(recording_id: i64, base: i64) -> String {
    sidecar_name(recording_id, base, FETCHED_EXTENSION)
}

const MANIFEST_PREFIX: &str = "archive-objects-";
const MANIFEST_SUFFIX: &str = ".manifest";

/// Returns the name of the manifest of a recording in the archive directory.
#[must_use]
pub fn manifest_name(recording_id: i64) -> String {
    format!("{MANIFEST_PREFIX}{recording_id}{MANIFEST_SUFFIX}")
}

/// Returns the recording id in the file name of a manifest; `None` for other file names.
#[must_use]
pub fn manifest_owner(name: &str) -> Option<i64> {
    let id = name.strip_prefix(MANIFEST_PREFIX)?;
    let id = id.strip_suffix(MANIFEST_SUFFIX)?.parse().ok()?;
    (manifest_name(id) == name).then_some(id)
}

/// Distinguishes a recording from all others that have used the same storage. If the directory of an
/// archive is deleted, the next archive there uses the same recording ids again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RecordingIdentity {
    /// Recording id.
    pub recording_id: i64,
    /// Time at which the recording began, in milliseconds since the epoch.
    pub start_timestamp_ms: i64,
    /// Id of the stream's first term.
    pub initial_term_id: i32,
}

impl RecordingIdentity {
    /// Returns the identity of a recording.
    #[must_use]
    pub fn of(recording: &RecordingDescriptor) -> Self {
        Self {
            recording_id: recording.recording_id,
            start_timestamp_ms: recording.start_timestamp_ms,
            initial_term_id: recording.initial_term_id,
        }
    }
}

/// A segment into which the recorder writes no more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealedSegment {
    /// The recording, as the catalog describes it.
    pub recording: RecordingDescriptor,
    /// Position of the segment's first byte.
    pub base: i64,
}

/// An event of a [`SegmentCopier`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CopierEvent {
    /// The copies that the manifest of a recording names. The list may be empty. This event comes once for each
    /// recording that was in the catalog when the object storage was opened.
    Known {
        /// The recording.
        recording: RecordingIdentity,
        /// The copies.
        copies: Vec<SegmentCopy>,
    },
    /// A segment was copied, its copy was read back and is equal, and the manifest names it.
    Copied {
        /// The recording.
        recording: RecordingIdentity,
        /// The copy.
        copy: SegmentCopy,
    },
    /// A segment was not copied, because its file no longer exists. No other event of the segment follows.
    Missing {
        /// The recording.
        recording: RecordingIdentity,
        /// Position of the segment's first byte.
        base: i64,
    },
    /// An operation failed. If a segment could not be copied, the copier tries again later.
    Failed {
        /// The failure with its reason, and the time of the next attempt.
        text: String,
    },
    /// A segment was fetched.
    Fetched {
        /// Length in bytes.
        bytes: i64,
    },
}

/// Copies sealed segments. No function except [`close`](Self::close) waits.
pub trait SegmentCopier: Send {
    /// Requests the copy of a segment. Returns false if too many copies are waiting; then the request has no effect.
    fn copy(&mut self, segment: SealedSegment) -> bool;

    /// Forgets copies that reach beyond `position`, and all copies in progress, because the recording was truncated at
    /// `position`. Returns false if the request must be repeated.
    fn forget(&mut self, recording: RecordingIdentity, position: i64) -> bool;

    /// Returns the next event.
    fn poll(&mut self) -> Option<CopierEvent>;

    /// Ends all work, and waits until it has ended. Later calls have no effect.
    fn close(&mut self);
}

/// Progress of a segment that a [`SegmentFetcher`] fetches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FetchProgress {
    /// The segment is not there yet: ask again.
    Waiting,
    /// The file [`fetched_name`] holds the segment. It may be deleted later, but not while it is open.
    Ready,
    /// The segment cannot be fetched. The next request begins again.
    Failed(String),
}

/// Fetches segments that are no longer on the disk. No function waits.
pub trait SegmentFetcher: Send {
    /// Requests a segment, and returns its progress.
    fn fetch(&mut self, recording_id: i64, base: i64) -> FetchProgress;
}

/// The object storage of an archive.
pub struct ArchiveObjects {
    /// For the conductor.
    pub copier: Box<dyn SegmentCopier>,
    /// For the replayer.
    pub fetcher: Box<dyn SegmentFetcher>,
}

/// Opens the object storage that the settings name. The archive calls this function after it has taken ownership of its
/// directory, and before it opens the catalog. The error has the problem and the remedy.
pub type OpenObjects = fn(&ArchiveContext) -> Result<ArchiveObjects, String>;
