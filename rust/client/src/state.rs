//! [`OpenState`]: whether an object is open, and the cause of its close.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering};

use crate::error::CloseCause;

const OPEN: u8 = 0;
/// The client has no driver. The object opens again when the client has connected to the next driver.
const SUSPENDED: u8 = 1;
const CLOSED: u8 = 2;

/// Whether a client or one of its resources is open, and the cause of its close. On the data path, a check needs one
/// load.
#[derive(Debug, Default)]
pub(crate) struct OpenState {
    state: AtomicU8,
    cause: OnceLock<CloseCause>,
}

impl OpenState {
    /// Whether the object is open, and its client has a driver.
    #[inline(always)]
    pub(crate) fn is_open(&self) -> bool {
        self.state.load(Ordering::Acquire) == OPEN
    }

    #[inline]
    pub(crate) fn is_closed(&self) -> bool {
        self.state.load(Ordering::Acquire) == CLOSED
    }

    /// Suspends an open object until [`resume`](Self::resume). Returns whether it was open.
    pub(crate) fn suspend(&self) -> bool {
        self.change(OPEN, SUSPENDED)
    }

    /// Opens a suspended object. An object in another state keeps its state.
    pub(crate) fn resume(&self) {
        self.change(SUSPENDED, OPEN);
    }

    fn change(&self, from: u8, to: u8) -> bool {
        self.state
            .compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
    }

    /// Closes the object. Returns whether it was not closed before. The first cause is kept.
    pub(crate) fn close(&self, cause: CloseCause) -> bool {
        let first = self.cause.set(cause).is_ok();
        self.state.store(CLOSED, Ordering::Release);
        first
    }

    /// Returns the cause of the close. While the object is not closed, returns the cause that means "closed by the
    /// application".
    pub(crate) fn cause(&self) -> CloseCause {
        self.cause.get().cloned().unwrap_or_default()
    }
}
