//! [`ProcessStamp`]: distinguishes objects of this process from objects of the parent process.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::error::{Error, Result};

/// Number of forks between the first process and this one.
static FORKS: AtomicU32 = AtomicU32::new(0);

/// Marks this process as a forked child. Objects that were created before the fork belong to the parent: in the child,
/// these objects send nothing and close nothing.
///
/// Call this function in the child before any other use of the library. The Python package calls it through
/// `os.register_at_fork`.
pub fn mark_forked_child() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// The process in which an object was created.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ProcessStamp(u32);

impl ProcessStamp {
    pub(crate) fn now() -> Self {
        Self(FORKS.load(Ordering::Relaxed))
    }

    pub(crate) fn is_foreign(self) -> bool {
        self != Self::now()
    }

    pub(crate) fn check(self) -> Result<()> {
        if self.is_foreign() {
            Err(Error::Forked)
        } else {
            Ok(())
        }
    }
}
