//! [`lock`]: locks a mutex even if an earlier holder has panicked.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex. Ignores a panic of an earlier holder: no holder panics with the data in an inconsistent state.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
