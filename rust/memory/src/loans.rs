//! [`Loans`]: counts the users of a memory that is lent until a certain moment.

#[cfg(loom)]
use loom::sync::atomic::{AtomicUsize, Ordering};
#[cfg(not(loom))]
use std::sync::atomic::{AtomicUsize, Ordering};

/// The bit that means that no further loan begins. The other bits are the number of loans.
const ENDED: usize = 1 << (usize::BITS - 1);

/// Number of users of a memory, and whether further users may come. Usable from any thread.
///
/// Both are in one word. Otherwise a user could check the end before it comes, and come after the owner has counted.
#[derive(Debug, Default)]
pub struct Loans(AtomicUsize);

impl Loans {
    /// Begins a loan. Returns `false` if no further loan may begin.
    #[must_use = "a loan that was refused must not be used"]
    pub fn begin(&self) -> bool {
        self.0
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |state| {
                (state & ENDED == 0).then_some(state + 1)
            })
            .is_ok()
    }

    /// Ends a loan.
    pub fn end(&self) {
        let before = self.0.fetch_sub(1, Ordering::AcqRel);
        debug_assert!(before & !ENDED > 0, "a loan ended that had not begun");
    }

    /// Refuses further loans. The loans that have begun continue.
    pub fn refuse(&self) {
        self.0.fetch_or(ENDED, Ordering::AcqRel);
    }

    /// Returns the number of loans that have begun and not ended.
    pub fn count(&self) -> usize {
        self.0.load(Ordering::Acquire) & !ENDED
    }
}
