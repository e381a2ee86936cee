//! [`StoreOptions`]: configuration of a store.

use super::StoreError;
use crate::catalog::DEFAULT_CAPACITY;
use crate::checksum::Checksum;
use crate::index::IndexForm;
use crate::ownership::BootId;
use crate::recovery::OnTornFragment;
use crate::storage::SyncLevel;
use aeron_memory::log::position::{MAX_TERM_LENGTH, MIN_TERM_LENGTH};

/// Configuration of a store. The defaults are those of Aeron's archive, which has no index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreOptions {
    /// Length in bytes of a new catalog. A catalog that is shorter is extended to this length.
    pub catalog_capacity: u64,
    /// Length in bytes of the segment files of new recordings: a power of two from 64 KiB to 1 GiB. If a stream's terms
    /// are longer, its segments have the length of a term.
    pub segment_length: i32,
    /// How much of each block is forced to the disk before the recorded position moves.
    pub file_sync_level: SyncLevel,
    /// How much of each change of the catalog is forced to the disk; at least `file_sync_level`.
    pub catalog_sync_level: SyncLevel,
    /// Checksum of recorded frames and of catalog entries, if any are written.
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
    /// No recording begins if at most this number of bytes is free in the file system.
    pub low_storage_space_threshold: u64,
}

/// Treatment of segment files before the start of their recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DetachedSegments {
    /// They stay: an operator has detached them, and may attach them again.
    Kept,
    /// They are deleted when the store is opened: a kill has interrupted their deletion. In this archive nothing is
    /// ever detached.
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
        }
    }
}

impl StoreOptions {
    /// Checks the options.
    ///
    /// # Errors
    /// [`StoreError::SegmentLength`], [`StoreError::SyncLevels`].
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
