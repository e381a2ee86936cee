//! [`StepSizes`]: sizes of the steps in which an archive does long work.

use crate::extensions::MIN_COMPACTED_LENGTH;

/// Sizes of the steps in which an archive does long work, so that one duty cycle stays short.
///
/// The defaults suit all archives, so no property changes them. Simulated archives have small steps: with few
/// recordings, their work also takes several steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepSizes {
    /// Maximum number of recordings that one step of retention assigns to policies. In a dry run, also the maximum
    /// number of removals that one step evaluates for the response.
    pub retention_recordings: usize,
    /// Maximum number of files that one step of retention reads.
    pub retention_reads: usize,
    /// Maximum number of segments that one duty cycle copies to object storage, checks or deletes.
    pub copies: usize,
    /// A file of extensions of at most this length in bytes is not compacted.
    pub extensions_length: u64,
}

impl Default for StepSizes {
    fn default() -> Self {
        Self {
            retention_recordings: 16,
            retention_reads: 16,
            copies: 16,
            extensions_length: MIN_COMPACTED_LENGTH,
        }
    }
}
