//! [`lock`]: a mutex whose data is whole even if a holder has panicked.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks; a panic of another holder does not matter, because every holder leaves its data whole.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
