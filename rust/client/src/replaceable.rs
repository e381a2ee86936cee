//! [`Replaceable`]: a part of an object that belongs to one driver.
//!
//! A client that reconnects replaces the log of each publication and the record of each counter. No call may use the
//! old part afterwards, and the old part must be freed. So calls hold a read lock of such a part. They only try the
//! lock and never wait for it. Acquiring and releasing it are two atomic instructions. A client that does not reconnect
//! has no lock.

use spin::RwLock;

/// A value that can be replaced if its client reconnects.
pub(crate) enum Replaceable<T> {
    /// The client does not reconnect.
    Fixed(T),
    Locked(RwLock<T>),
}

impl<T> Replaceable<T> {
    pub(crate) fn new(value: T, can_be_replaced: bool) -> Self {
        match can_be_replaced {
            true => Self::Locked(RwLock::new(value)),
            false => Self::Fixed(value),
        }
    }

    /// Calls `f` with the value. Returns `None` while the value is being replaced.
    #[inline(always)]
    pub(crate) fn try_with<R>(&self, f: impl FnOnce(&T) -> R) -> Option<R> {
        match self {
            Self::Fixed(value) => Some(f(value)),
            Self::Locked(lock) => lock.try_read().map(|value| f(&value)),
        }
    }

    /// Calls `f` with the value. A replacement takes nanoseconds, so this call spins until it is over.
    #[inline(always)]
    pub(crate) fn with<R>(&self, f: impl FnOnce(&T) -> R) -> R {
        match self {
            Self::Fixed(value) => f(value),
            Self::Locked(lock) => f(&lock.read()),
        }
    }

    /// Replaces the value with `make(old value)`. Waits for the calls that use the value; they do not block.
    pub(crate) fn replace(&self, make: impl FnOnce(&T) -> T) {
        let Self::Locked(lock) = self else {
            debug_assert!(false, "only a client that reconnects replaces values");
            return;
        };
        let mut value = loop {
            match lock.try_write() {
                Some(value) => break value,
                None => std::thread::yield_now(),
            }
        };
        *value = make(&value);
    }
}
