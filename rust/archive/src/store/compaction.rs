//! Removes the catalog entries of deleted recordings, so that the catalog does not grow for ever.

use super::{ArchiveStore, StoreError};
use crate::catalog::CatalogEntry;
use crate::storage::Storage;

/// Minimum number of entries that a compaction removes.
const MIN_REMOVED: usize = 256;

impl<S: Storage + Clone> ArchiveStore<S> {
    /// Returns the number of catalog entries that a compaction keeps, if a compaction is due. It is due if at least 256
    /// entries, and more than half of all entries, can be removed. So each compaction costs less than the deletions
    /// before it.
    #[must_use]
    pub fn due_compaction(&self) -> Option<usize> {
        let entries = self.catalog.entries().len();
        let needed = self.deleting.len() + self.incompletely_deleted.len();
        let removable = self.catalog.deleted_count().saturating_sub(needed);
        debug_assert!(
            removable <= entries,
            "{removable} of {entries} catalog entries cannot be removed"
        );
        let kept = entries - removable;
        (removable >= MIN_REMOVED && removable > kept).then_some(kept)
    }

    /// Removes the catalog entries of deleted recordings for which `keep` is false. Their ids are not used again.
    ///
    /// An entry stays if files of its recording are being deleted or could not be deleted. The next start deletes these
    /// files because of the entry.
    ///
    /// # Errors
    /// The file system returns an error. Then the catalog is unchanged, with one exception: if only the last sync of
    /// the directory failed, the catalog is compact, but a loss of power may restore the old catalog.
    pub fn compact(
        &mut self,
        mut keep: impl FnMut(&CatalogEntry) -> bool,
    ) -> Result<(), StoreError> {
        // After a loss of power, no file of a removed entry may exist again.
        self.sync_directory()?;
        let (deleting, incomplete) = (&self.deleting, &self.incompletely_deleted);
        debug_assert!(
            deleting
                .keys()
                .chain(incomplete)
                .all(|id| self.catalog.entry(*id).is_some()),
            "a recording with files that are not deleted yet must have a catalog entry, for the next start"
        );
        self.catalog.compact(&self.storage, |entry| {
            let id = entry.descriptor.recording_id;
            deleting.contains_key(&id) || incomplete.contains(&id) || keep(entry)
        })?;
        Ok(())
    }
}
