//! [`StoreOptions`]: configuration of a store.

use super::StoreError;
use crate::catalog::DEFAULT_CAPACITY;
use crate::checksum::Checksum;
use crate::extensions::MIN_COMPACTED_LENGTH;
use crate::index::IndexForm;
use crate::ownership::BootId;
use crate::recovery::OnTornFragment;
use crate::storage::SyncLevel;
use aeron_memory::log::position::{MAX_TERM_LENGTH, MIN_TERM_LENGTH};

/// Configuration of a store. The defaults are the defaults of Aeron's archive, so no index is
/// written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreOptions {
    /// Length of a new catalog in bytes. A shorter catalog is extended to this length.
    pub catalog_capacity: u64,
    /// Length of the segment files of new recordings in bytes: a power of two from 64 KiB to 1 GiB.
    /// If the terms of a stream are longer, its segments have the length of a term.
    pub segment_length: i32,
    /// How much of each block is forced to the disk before the recorded position moves.
    pub file_sync_level: SyncLevel,
    /// How much of each change of the catalog is forced to the disk: at least as much as
    /// `file_sync_level`.
    pub catalog_sync_level: SyncLevel,
    /// Checksum of recorded frames and catalog entries; `None` if no checksums are written.
    pub record_checksum: Option<Checksum>,
    /// Decision about a last frame that may be torn, in a recording whose recorder was killed.
    pub on_torn_fragment: OnTornFragment,
    /// Form of the index that is written beside each segment; `None` if no index is written: see [`crate::index`].
    pub index: Option<IndexForm>,
    /// The current boot of the machine, if it is known. Bytes that a recorder wrote since this boot are in the files,
    /// even without a sync.
    pub boot_id: Option<BootId>,
    /// Treatment of segment files before the start of their recording.
    pub detached_segments: DetachedSegments,
    /// A recording begins only if more than this number of bytes is free in the file system.
    pub low_storage_space_threshold: u64,
    /// A file of extensions of at most this length in bytes is not compacted.
    pub extensions_length: u64,
}

/// Treatment of segment files before the start of their recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DetachedSegments {
    /// The files stay: an operator has detached them, and may attach them again.
    Kept,
    /// The files are deleted when the store is opened. In this archive nothing is ever detached, so
    /// such files come from an interrupted deletion.
    Deleted,
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self {
            catalog_capacity: DEFAULT_CAPACITY,
            segment_length: 128 * 1024 * 1024,
            file_sync_level: SyncLevel::None,
            catalog_sync_level: SyncLevel::None,
            record_checksum: None,
            on_torn_fragment: OnTornFragment::Refuse,
            index: None,
            detached_segments: DetachedSegments::Kept,
            boot_id: None,
            low_storage_space_threshold: 128 * 1024 * 1024,
            extensions_length: MIN_COMPACTED_LENGTH,
        }
    }
}

impl StoreOptions {
    /// Checks the options.
    ///
    /// # Errors
    /// [`StoreError::SegmentLength`] or [`StoreError::SyncLevels`] if an option is not valid.
    pub(super) fn check(&self) -> Result<(), StoreError> {
        let segment_length = self.segment_length;
        let possible = MIN_TERM_LENGTH as i32..=MAX_TERM_LENGTH as i32;
        if !possible.contains(&segment_length) || segment_length.count_ones() != 1 {
            return Err(StoreError::SegmentLength { segment_length });
        }
        if self.catalog_sync_level < self.file_sync_level {
            return Err(StoreError::SyncLevels {
                catalog: self.catalog_sync_level,
                file: self.file_sync_level,
            });
        }
        Ok(())
    }
}
