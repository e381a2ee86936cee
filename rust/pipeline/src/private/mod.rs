//! The private archive: an archive directory that one query's source process keeps for itself, with index sidecars.
//!
//! A live stream is recorded here first and read from here. [`PrivateArchive`] is the state machine: recordings that start, end
//! and come back, what is retained, and what is purged behind a commit. It works on any [`Storage`](aeron_archive::storage::Storage),
//! so that tests kill it at every step. On a real file system, [`ArchiveRoots`] finds or makes an archive's directory, a
//! [`DirectoryLock`] gives it one living owner, and [`LockedArchive`] does all three: find or make, lock, open.

mod archive;
mod directory_lock;
mod error;
mod expired;
mod heads;
mod index;
mod locked_archive;
mod malformed;
mod open;
mod published;
mod purge;
mod returning;
mod roots;
mod session;
mod totals;
mod visible;
mod writer;

pub use aeron_archive::ownership::{
    DirectoryId as PrivateArchiveId, LockDamage, LockNonce, LockOwner, LockRecord,
};
pub use archive::{PrivateArchive, RecordingInfo};
pub use directory_lock::{DirectoryLock, LockRequest};
pub use error::PrivateError;
pub use expired::ended_archives;
pub use heads::{Counts, HeadTracker, Progress};
pub use index::{Arrivals, Cut, Index, IndexError};
pub use locked_archive::LockedArchive;
pub use malformed::{MalformedNote, take_notes};
pub use open::{Known, LostRange, LostTimes, OpenReport};
pub use published::Published;
pub use roots::{ArchiveRoots, SelectedRoot};
pub use session::{ImageDescription, SessionKey};
pub use totals::{Gap, MAX_GAPS, NEW_TOTALS_FILE, OpenSession, TOTALS_FILE, Totals};
pub use visible::{check_unused, end_of_recording, visible};
pub use writer::RecordingWriter;

/// Name of the lock file of a private archive.
pub const LOCK_FILE: &str = "private.lock";
/// Most bytes of a block, and so of one poll.
pub const MAX_BLOCK_LENGTH: usize = 256 * 1024;
/// Most recordings that run at once.
pub const MAX_LIVE_RECORDINGS: usize = 4096;
/// Least length of a segment: files are not made more often than that, however short the terms are.
pub const MIN_SEGMENT_LENGTH: i32 = 1024 * 1024;
/// How long the rest of a recording that ended amid a message waits for its session to come back.
pub const SESSION_RETURN_TIMEOUT_MS: i64 = 60_000;
/// Age at which the archive of a dead query is removed.
pub const ARCHIVE_TTL_HOURS: i64 = 24;
