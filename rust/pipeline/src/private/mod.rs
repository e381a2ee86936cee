//! The private archive: an archive directory with index files. The source process of one query owns it.
//!
//! A live stream is first recorded here and then read from here. [`PrivateArchive`] is the state machine: it starts,
//! ends and continues recordings, bounds the retained bytes, and purges committed data. It works on any
//! [`Storage`](aeron_archive::storage::Storage), so that tests can simulate a kill at every step. On a real file
//! system, [`ArchiveRoots`] finds or creates an archive's directory, a [`DirectoryLock`] ensures one living owner, and
//! [`LockedArchive`] combines these steps: find or create, lock, open.

mod archive;
mod arrivals;
mod directory_lock;
mod error;
mod expired;
mod locked_archive;
mod notes;
mod open;
mod published;
mod purge;
mod returning;
mod roots;
mod session;
mod totals;
mod visible;
mod writer;

pub use aeron_archive::index::{Counts, Cut, HeadTracker, Index, IndexError, Progress};
pub use aeron_archive::ownership::{
    DirectoryId as PrivateArchiveId, LockDamage, LockNonce, LockRecord,
};
pub use archive::{PrivateArchive, RecordingInfo};
pub use arrivals::Arrivals;
pub use directory_lock::{DirectoryLock, LockRequest};
pub use error::PrivateError;
pub use expired::ended_archives;
pub use locked_archive::LockedArchive;
pub use notes::{RowNotes, take_notes};
pub use open::{KnownRecording, LostRange, LostTimes, OpenReport};
pub use published::Published;
pub use roots::{ArchiveRoots, SelectedRoot};
pub use session::{ImageDescription, SessionKey};
pub use totals::{MAX_GAPS, NEW_TOTALS_FILE, OpenSession, RecordingGap, TOTALS_FILE, Totals};
pub use visible::{ArchiveOwner, check_unused, end_of_active, end_of_recording, visible};
pub use writer::RecordingWriter;

/// Name of the lock file of a private archive.
pub const LOCK_FILE: &str = "private.lock";
/// Maximum length of a block in bytes. One poll returns at most one block.
pub const MAX_BLOCK_LENGTH: usize = aeron_archive::index::MAX_BLOCK_LENGTH;
/// Maximum number of concurrent recordings.
pub const MAX_LIVE_RECORDINGS: usize = 4096;
/// Minimum length of a segment in bytes. A segment has at least this length even if terms are shorter: this keeps the
/// number of files small.
pub const MIN_SEGMENT_LENGTH: i32 = 1024 * 1024;
/// Time in milliseconds for which the archive keeps a recording that ended within a message, because its session may
/// come back.
pub const SESSION_RETURN_TIMEOUT_MS: i64 = 60_000;
/// Age in hours after which the archive of an ended query is removed.
pub const ARCHIVE_TTL_HOURS: i64 = 24;
