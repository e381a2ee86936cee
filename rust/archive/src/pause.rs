//! Test hooks: points at which a test can stop a process, to kill it there.
//!
//! The hooks exist only in builds with the feature `test-hooks`. In all other builds, such as the shipped module,
//! [`at`] is empty. In a build with hooks, the environment variable `AERON_PIPELINE_PAUSE` has the form
//! `<point>:<n>:<file>`. `<point>` is the name of a [`Point`]. The thread that reaches this point for the n-th
//! time (counted from 1) creates the file and then sleeps for ever.

#[cfg(feature = "test-hooks")]
mod hooks;

#[cfg(feature = "test-hooks")]
pub use hooks::at;

/// A point in the code of an archive. Kills at different points leave different states of the
/// files. Crates that use this crate have further points.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Point(&'static str);

impl Point {
    /// A block is in its segment file; its index entry is not yet written.
    pub const APPENDED: Self = Self::new("appended");
    /// A block and its index entry, if one is due, are written; the recorded position is not yet
    /// moved.
    pub const INDEXED: Self = Self::new("indexed");
    /// A new owner has written the mark file, but not yet the lock file.
    pub const TAKEN_OVER: Self = Self::new("taken-over");

    /// Creates a point with the name that the environment variable contains.
    #[must_use]
    pub const fn new(name: &'static str) -> Self {
        Self(name)
    }
}

/// Does nothing: this build has no test hooks.
#[cfg(not(feature = "test-hooks"))]
#[inline(always)]
pub fn at(_point: Point) {}
