//! [`OpenState`]: open until closed once, for a stated reason.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::CloseCause;

/// Whether a client or one of its resources is open, and what closed it. One load on the data path.
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

    /// Closes; answers whether it was open until now. The first cause stays.
    pub(crate) fn close(&self, cause: CloseCause) -> bool {
        let first = self.cause.set(cause).is_ok();
        self.closed.store(true, Ordering::Release);
        first
    }

    /// What closed it; the application, as long as nothing did.
    pub(crate) fn cause(&self) -> CloseCause {
        self.cause.get().cloned().unwrap_or_default()
    }
}
