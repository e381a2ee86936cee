//! Ownership of an archive directory. Archives of this software hold a lock file; the mark file shows to all other
//! software that the owner is alive.

mod boot;
mod directory;
mod ids;
mod lock;

pub use boot::{BootId, boot_id};
pub use directory::{
    ARCHIVE_LOCK_FILE, ExpectedDirectory, Maintenance, OwnedDirectory, OwnershipError,
    OwnershipPolicy, OwnershipRequest,
};
pub use ids::{DirectoryId, LockNonce};
pub use lock::{LockDamage, LockError, LockOwner, LockRecord, OwnershipLock, OwnershipLockAttempt};
