//! Deletes segment files outside of their recording, and the files and entries of recordings that
//! no longer exist.

use super::{ArchiveFiles, ToolError};
use crate::catalog::{CatalogEntry, RecordingDescriptor, RecordingState};
use crate::segments::{SEGMENT_EXTENSION, SegmentFileName};
use crate::storage::Storage;
use crate::store::{remove_segment, remove_segment_files};

/// The entries and files that a compaction has removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Compaction {
    /// Number of removed catalog entries.
    pub entries: usize,
    /// Number of bytes of these entries.
    pub bytes: u64,
    /// Number of removed segment files.
    pub files: usize,
}

impl<S: Storage + Clone> ArchiveFiles<S> {
    /// Returns the names of segment files outside of their recording: before its first segment or
    /// after its last segment.
    ///
    /// Without a recording id, covers all recordings. Files of deleted recordings are not included:
    /// [`compact`](Self::compact) deletes such files.
    ///
    /// # Errors
    /// The recording is unknown, a migration of its segments is not finished, or the file system cannot list the files.
    pub fn orphans(&self, recording_id: Option<i64>) -> Result<Vec<String>, ToolError> {
        if let Some(recording_id) = recording_id {
            self.entry(recording_id)?;
        }
        for entry in self.catalog.entries() {
            let id = entry.descriptor.recording_id;
            if recording_id.is_none_or(|chosen| chosen == id) {
                self.check_not_half_migrated(id)?;
            }
        }
        let names = self
            .storage
            .names()
            .map_err(|source| ToolError::storage(".".to_owned(), source))?;
        let mut orphans: Vec<String> = names
            .into_iter()
            .filter(|name| self.is_orphan(name, recording_id))
            .collect();
        orphans.sort_by_key(|name| {
            SegmentFileName::parse(name).map(|file| (file.recording_id, file.base))
        });
        Ok(orphans)
    }

    /// Deletes a file that [`orphans`](Self::orphans) has returned.
    ///
    /// # Errors
    /// A migration of segments of the file's recording is not finished, or the file system returns
    /// an error.
    pub fn delete_orphan(&self, name: &str) -> Result<(), ToolError> {
        if let Some(file) = SegmentFileName::parse(name) {
            self.check_not_half_migrated(file.recording_id)?;
        }
        match self.is_orphan(name, None) {
            true => Ok(remove_segment(&self.storage, name.to_owned())?),
            false => Ok(()),
        }
    }

    /// Deletes the segment files of recordings that are `INVALID` or `DELETED`, then their entries, and shortens the
    /// catalog to the length of the other entries. The next start of an archive makes the catalog longer again.
    ///
    /// # Errors
    /// If a migration of segments of such a recording is not finished, nothing is deleted. If the
    /// file system returns an error, the entries still exist, unless only the last step failed.
    pub fn compact(&mut self) -> Result<Compaction, ToolError> {
        let is_dropped = |entry: &CatalogEntry| entry.state != RecordingState::Valid;
        let dropped: Vec<CatalogEntry> = self
            .catalog
            .entries()
            .iter()
            .filter(|entry| is_dropped(entry))
            .cloned()
            .collect();
        for entry in &dropped {
            self.check_not_half_migrated(entry.descriptor.recording_id)?;
        }
        let files = remove_segment_files(&self.storage, |recording_id| {
            self.catalog.entry(recording_id).is_some_and(is_dropped)
        })?;
        self.catalog.compact_to_valid(&self.storage)?;
        Ok(Compaction {
            entries: dropped.len(),
            bytes: dropped.iter().map(|entry| entry.length() as u64).sum(),
            files,
        })
    }

    fn is_orphan(&self, name: &str, recording_id: Option<i64>) -> bool {
        let Some(file) = SegmentFileName::parse(name) else {
            return false;
        };
        let is_chosen = recording_id.is_none_or(|recording_id| recording_id == file.recording_id);
        if !is_chosen || file.extension != SEGMENT_EXTENSION {
            return false;
        }
        self.catalog.entry(file.recording_id).is_some_and(|entry| {
            // If the values of the entry are not valid, it is unknown which files belong to the recording.
            entry.state != RecordingState::Deleted
                && entry.descriptor.check().is_ok()
                && is_outside(file.base, &entry.descriptor)
        })
    }
}

/// Returns whether a segment at `base` is before the recording's first segment or after its last
/// segment.
fn is_outside(base: i64, descriptor: &RecordingDescriptor) -> bool {
    let is_after =
        !descriptor.is_unfinished() && base > descriptor.segment_base(descriptor.stop_position);
    base < descriptor.first_segment_base() || is_after
}
