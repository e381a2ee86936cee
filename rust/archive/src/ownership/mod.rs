//! Ownership of an archive directory. An archive of this project locks the lock file, so that no second archive of this
//! project uses the directory. The mark file shows to Aeron's archive and tools that the owner is alive.

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
