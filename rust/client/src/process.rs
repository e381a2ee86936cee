//! [`ProcessStamp`]: tells objects of this process from those of the parent that it was forked from.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::error::{Error, Result};

/// Counts the forks that lead to this process.
static FORKS: AtomicU32 = AtomicU32::new(0);

/// Says that this process is a forked child: objects made before belong to its parent, and send and close nothing here.
///
/// To be called in the child before anything else uses the library; Python does so with `os.register_at_fork`.
pub fn mark_forked_child() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// In which process an object was made.
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
