//! Test hooks: points at which a test can stop a process, to kill it there.
//!
//! The hooks exist only in builds with the feature `test-hooks`. In all other builds, such as the shipped module,
//! [`at`] is empty. In a build with hooks the environment variable `AERON_PIPELINE_PAUSE` has the form
//! `<point>:<n>:<file>` and names a variant of [`Point`]. The thread that reaches this point for the n-th time (counted
//! from 1) creates the file and then sleeps for ever.

#[cfg(feature = "test-hooks")]
mod hooks;

#[cfg(feature = "test-hooks")]
pub use hooks::at;

/// Points in the life of an archive at which a kill leaves different states.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Point {
    /// Spark has logged batch 0; nothing of the archive exists yet.
    BatchZero,
    /// The offsets of a batch are logged and its partitions are planned, but not yet returned.
    Planned,
    /// A block is in its segment file; its index entry is not yet written.
    Appended,
    /// A block and its index entry are written; the recorded position is not yet moved.
    Indexed,
    /// The start position of a recording is moved; the segment files before it still exist.
    Purged,
    /// A new owner has written the mark file, but not yet the lock file.
    TakenOver,
}

/// Does nothing: this build has no test hooks.
#[cfg(not(feature = "test-hooks"))]
#[inline(always)]
pub fn at(_point: Point) {}
