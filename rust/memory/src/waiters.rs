//! [`Waiters`]: tells a writer whether threads wait for its data, so that it takes a lock only if it has to wake one.

#[cfg(loom)]
use loom::sync::atomic::{AtomicUsize, Ordering, fence};
#[cfg(not(loom))]
use std::sync::atomic::{AtomicUsize, Ordering, fence};

/// Number of threads that wait for data.
///
/// A waiting thread registers, and then looks for the data. The writer stores the data, and then looks for waiting
/// threads. Because of the full fences, at least one of the two sees the other. Without them, both could look before
/// the other's store is visible, even on x86.
#[derive(Debug, Default)]
pub struct Waiters(AtomicUsize);

impl Waiters {
    /// Registers the calling thread. Call this before looking for the data.
    pub fn register(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// Removes the calling thread, which no longer waits.
    pub fn remove(&self) {
        let before = self.0.fetch_sub(1, Ordering::Relaxed);
        debug_assert!(before > 0, "a thread was removed that did not wait");
    }

    /// Whether a thread waits. Call this after storing the data.
    pub fn is_any(&self) -> bool {
        fence(Ordering::SeqCst);
        self.0.load(Ordering::Relaxed) > 0
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_thread_still_waits_after_another_one_has_been_removed() {
        let waiters = Waiters::default();
        waiters.register();
        waiters.register();
        waiters.remove();
        assert!(waiters.is_any());
        waiters.remove();
        assert!(!waiters.is_any());
    }
}
