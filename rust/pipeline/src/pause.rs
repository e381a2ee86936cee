//! Test hooks: points at which a process can be made to stand still, so that a test can kill it there.
//!
//! Only a build with the feature `test-hooks` has them; in all others, the shipped module among them, [`at`] is empty. In a build
//! with hooks the environment variable `AERON_PIPELINE_PAUSE`, of the form `<point>:<n>:<file>`, names one of the points of [`Point`]:
//! the thread that comes there for the n-th time (from 1 on) makes the file and never goes on.

#[cfg(feature = "test-hooks")]
mod hooks;

#[cfg(feature = "test-hooks")]
pub use hooks::at;

/// A place at which a kill is told apart from kills elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Point {
    /// Batch 0 is logged, and nothing of its archive made.
    BatchZero,
    /// The offsets of a batch are logged, and its partitions planned, but not handed out.
    Planned,
    /// A block is in its segment file; its index entry is not yet written.
    Appended,
    /// A block and its index entry are written; the recorded position is not yet moved.
    Indexed,
    /// The start position of a recording is moved, and the files before it are still there.
    Purged,
    /// A new owner has written the mark file, but not the lock file.
    TakenOver,
}

/// Does nothing: this build has no test hooks.
#[cfg(not(feature = "test-hooks"))]
#[inline(always)]
pub fn at(_point: Point) {}
