//! Ownership of an archive directory: our own archives hold a lock file, and the mark file tells all others that the owner lives.

mod boot;
mod directory;
mod ids;
mod lock;

pub use boot::boot_id;
pub use directory::{
    ARCHIVE_LOCK_FILE, Maintenance, OwnedDirectory, OwnershipError, OwnershipRequest,
};
pub use ids::{DirectoryId, LockNonce};
pub use lock::{LockAttempt, LockDamage, LockError, LockFile, LockOwner, LockRecord};
