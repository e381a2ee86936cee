//! Forks: in a child process, objects of the parent process cannot be used.
//!
//! A child inherits memory mappings but no threads. Every object stores the process that created it. In a child, using
//! the object raises `ForkedError`. Dropping the object in a child sends and deletes nothing.

use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicU32, Ordering};

use pyo3::prelude::*;

use crate::errors::raise;

/// Number of forks between the process that loaded the module and this process.
static FORKS: AtomicU32 = AtomicU32::new(0);

extern "C" fn in_child() {
    FORKS.fetch_add(1, Ordering::Relaxed);
    aeron_client::mark_forked_child();
    aeron_agent::logging::mark_forked_child();
    aeron_memory::lock_file::close_in_forked_child();
}

/// Starts to count forks.
pub fn watch() {
    // SAFETY: the handler only changes atomics and closes files. Both are permitted between fork and exec.
    unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
}

/// Identifies a process among its parents and children: the number of forks that led to it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Process(u32);

impl Process {
    pub fn current() -> Self {
        Self(FORKS.load(Ordering::Relaxed))
    }

    /// Raises `ForkedError` if `self` is not the current process.
    #[inline]
    pub fn check(self) -> PyResult<()> {
        if self == Self::current() {
            Ok(())
        } else {
            Err(forked())
        }
    }
}

/// A value that belongs to the process that created it, and is not dropped in any other process.
pub struct OfProcess<T> {
    value: ManuallyDrop<T>,
    process: Process,
}

impl<T> OfProcess<T> {
    pub fn new(value: T) -> Self {
        Self {
            value: ManuallyDrop::new(value),
            process: Process::current(),
        }
    }

    pub fn is_foreign(&self) -> bool {
        self.process != Process::current()
    }

    /// Returns the value. Raises `ForkedError` in a process that did not create the value.
    #[inline]
    pub fn get(&self) -> PyResult<&T> {
        self.process.check()?;
        Ok(&self.value)
    }

    /// Returns the value in any process. Use it only to read immutable parts.
    pub fn anywhere(&self) -> &T {
        &self.value
    }
}

impl<T> Drop for OfProcess<T> {
    fn drop(&mut self) {
        if !self.is_foreign() {
            // SAFETY: the value is dropped only here, and is not used afterwards.
            unsafe { ManuallyDrop::drop(&mut self.value) }
        }
    }
}

#[cold]
fn forked() -> PyErr {
    raise(
        "ForkedError",
        "this object belongs to the parent process: open a client or a driver in the child",
    )
}
