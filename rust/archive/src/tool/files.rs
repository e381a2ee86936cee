//! [`ArchiveFiles`]: catalog and segment files of an archive directory.

use super::ToolError;
use crate::catalog::{Catalog, CatalogEntry, RecordingDescriptor, RecordingState};
use crate::segments::{SEGMENT_EXTENSION, SegmentFileName};
use crate::storage::{Access, Storage};

/// The files of an archive, opened by a tool. Not shared between threads.
#[derive(Debug)]
pub struct ArchiveFiles<S: Storage> {
    pub(super) storage: S,
    pub(super) catalog: Catalog<S>,
}

impl<S: Storage + Clone> ArchiveFiles<S> {
    /// Opens the archive in a directory. With [`Access::Read`] every change fails.
    ///
    /// # Errors
    /// There is no catalog, it is damaged or of another version, or the file system refuses.
    pub fn open(storage: S, access: Access) -> Result<Self, ToolError> {
        let catalog = Catalog::open_unchecked(&storage, access)?;
        Ok(Self { storage, catalog })
    }

    /// The catalog.
    pub fn catalog(&self) -> &Catalog<S> {
        &self.catalog
    }

    /// Returns the entry of a recording, whatever its state is.
    ///
    /// # Errors
    /// [`ToolError::UnknownRecording`].
    pub fn entry(&self, recording_id: i64) -> Result<&CatalogEntry, ToolError> {
        self.catalog
            .entry(recording_id)
            .ok_or(ToolError::UnknownRecording { recording_id })
    }

    /// Makes the catalog `capacity` bytes long if it is shorter.
    ///
    /// # Errors
    /// The capacity is out of range, or the file system refuses.
    pub fn grow(&mut self, capacity: u64) -> Result<(), ToolError> {
        Ok(self.catalog.grow(capacity)?)
    }

    /// Marks a recording as broken, or lets a recording that was marked exist again. Returns whether the state has changed.
    ///
    /// # Errors
    /// The recording is unknown or deleted, its values are impossible, or the file system refuses.
    pub fn mark(&mut self, recording_id: i64, is_valid: bool) -> Result<bool, ToolError> {
        let to = match is_valid {
            true => RecordingState::Valid,
            false => RecordingState::Invalid,
        };
        let from = self.entry(recording_id)?.state;
        if from == RecordingState::Deleted {
            let to = to.name();
            return Err(ToolError::Deleted { recording_id, to });
        }
        match is_valid {
            true => self.catalog.revalidate(recording_id)?,
            false => self.catalog.invalidate(recording_id)?,
        }
        Ok(from != to)
    }

    /// Bytes of the segment files that a command on a recording reads: of all, or of the last one. 0 if the recording is deleted.
    ///
    /// # Errors
    /// The recording is unknown, or the file system refuses.
    pub fn segment_bytes(&self, recording_id: i64, all_segments: bool) -> Result<u64, ToolError> {
        let entry = self.entry(recording_id)?;
        if entry.state == RecordingState::Deleted {
            return Ok(0);
        }
        let segments = self.segments(&entry.descriptor)?;
        let count = match all_segments {
            true => segments.len(),
            false => segments.len().min(1),
        };
        let length = u64::try_from(entry.descriptor.segment_length).unwrap_or(0);
        Ok(length.saturating_mul(count as u64))
    }

    /// Bases of the segment files of a recording, in order. Files before the segment of its start position are not of it any more.
    pub(super) fn segments(&self, descriptor: &RecordingDescriptor) -> Result<Vec<i64>, ToolError> {
        let first = descriptor.start_position & !(i64::from(descriptor.term_length) - 1);
        let names = self
            .storage
            .names()
            .map_err(|source| ToolError::storage(".".to_owned(), source))?;
        let mut bases: Vec<i64> = names
            .iter()
            .filter_map(|name| SegmentFileName::parse(name))
            .filter(|file| {
                file.recording_id == descriptor.recording_id
                    && file.extension == SEGMENT_EXTENSION
                    && file.base >= first
            })
            .map(|file| file.base)
            .collect();
        bases.sort_unstable();
        Ok(bases)
    }
}
