//! Who owns an archive directory: one living process, among ours by a lock file, and for everybody else by the mark file.

mod boot;
mod directory;
mod ids;
mod lock;

pub use boot::boot_id;
pub use directory::{ARCHIVE_LOCK_FILE, OwnedDirectory, OwnershipError, OwnershipRequest};
pub use ids::{DirectoryId, LockNonce};
pub use lock::{LockAttempt, LockDamage, LockError, LockFile, LockOwner, LockRecord};
