//! [`SingleCaller`]: an object that one thread at a time calls, and that any thread may close.

use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::sync::{Mutex, TryLockError};

/// An object of the archive's client that must not be called by two threads at the same time.
pub trait Called: Send {
    /// The state of the object, which any thread may read at any time.
    type Status;

    fn status(&self) -> Self::Status;
    fn is_closed(status: &Self::Status) -> bool;
    fn close(&mut self);
}

/// An object that the program calls, and that native threads check in between.
pub struct SingleCaller<T: Called> {
    object: Mutex<T>,
    status: T::Status,
    is_closing: AtomicBool,
    /// Whether a call of the program runs.
    is_called: AtomicBool,
}

/// Error: another call of the program is under way, on another thread or on this thread.
pub struct CallInProgress;

impl<T: Called> SingleCaller<T> {
    pub fn new(object: T) -> Self {
        Self {
            status: object.status(),
            object: Mutex::new(object),
            is_closing: AtomicBool::new(false),
            is_called: AtomicBool::new(false),
        }
    }

    /// Calls `f` with the object. If a close was requested during the call, closes the object. Returns `None` if
    /// another thread briefly has the lock, to close or check the object.
    pub fn with<R>(&self, f: impl FnOnce(&mut T) -> R) -> Result<Option<R>, CallInProgress> {
        let result = match self.object.try_lock() {
            Ok(mut object) => f(&mut object),
            Err(TryLockError::Poisoned(poisoned)) => f(&mut poisoned.into_inner()),
            Err(TryLockError::WouldBlock) if self.is_called.load(Ordering::SeqCst) => {
                return Err(CallInProgress);
            }
            Err(TryLockError::WouldBlock) => return Ok(None),
        };
        self.close_if_asked();
        Ok(Some(result))
    }

    /// Like [`with`](Self::with), for a call of the program: during the call, a second call is refused.
    pub fn call<R>(&self, f: impl FnOnce(&mut T) -> R) -> Result<Option<R>, CallInProgress> {
        self.with(|object| {
            self.is_called.store(true, Ordering::SeqCst);
            let result = f(object);
            self.is_called.store(false, Ordering::SeqCst);
            result
        })
    }

    /// Closes the object at once, or after the current call if a call runs.
    pub fn close(&self) {
        self.is_closing.store(true, Ordering::SeqCst);
        self.close_if_asked();
    }

    fn close_if_asked(&self) {
        // A close stores the flag and then tries the lock; a call releases the lock and then loads the flag. The fence
        // ensures that one of the two sees the other.
        fence(Ordering::SeqCst);
        if !self.is_closing.load(Ordering::SeqCst) || T::is_closed(&self.status) {
            return;
        }
        match self.object.try_lock() {
            Ok(mut object) => object.close(),
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner().close(),
            Err(TryLockError::WouldBlock) => {}
        }
    }

    pub fn is_closed(&self) -> bool {
        self.is_closing.load(Ordering::SeqCst) || T::is_closed(&self.status)
    }
}
