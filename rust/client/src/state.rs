//! [`OpenState`]: whether an object is open, and the cause of its close.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::CloseCause;

/// Whether a client or one of its resources is open, and the cause of its close. On the data path, a check needs one
/// load.
#[derive(Debug, Default)]
pub(crate) struct OpenState {
    closed: AtomicBool,
    cause: OnceLock<CloseCause>,
}

impl OpenState {
    #[inline]
    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Closes the object. Returns whether it was open. The first cause is kept.
    pub(crate) fn close(&self, cause: CloseCause) -> bool {
        let first = self.cause.set(cause).is_ok();
        self.closed.store(true, Ordering::Release);
        first
    }

    /// Returns the cause of the close. While the object is open, returns the cause that means "closed by the
    /// application".
    pub(crate) fn cause(&self) -> CloseCause {
        self.cause.get().cloned().unwrap_or_default()
    }
}
