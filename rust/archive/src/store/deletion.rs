//! [`DeleteOperation`]: deletes segment files that no longer belong to a recording, one by one.

use std::collections::VecDeque;
use std::io;
use std::ops::Range;

use super::{ArchiveStore, DetachedSegments, StoreError};
use crate::catalog::RecordingDescriptor;
use crate::index::{INDEX_EXTENSION, remove_index, rename_old};
use crate::pause::{self, Point};
use crate::segments::{SEGMENT_EXTENSION, SegmentFileName, segment_name};
use crate::storage::Storage;

/// Extension, without the dot, of segment files that Aeron's archive has renamed before deleting them.
const DELETED_EXTENSION: &str = "rec.del";
/// Maximum number of files for which the names are computed from the positions. In a directory with
/// many thousands of files, this is much faster than a list of the directory. The limit exists
/// because a damaged entry may span any number of segments.
const MAX_NAMED_FILES: i64 = 64;

/// The file of one copied segment is deleted. The files of further segments may still exist.
const COPIED_FILE_DELETED: Point = Point::new("objects-file-deleted");

/// Segment files to be deleted. In the catalog, they are no longer part of the recording. With
/// [`DetachedSegments::Kept`], no other deletion of files of this recording can begin until the
/// operation is done.
#[derive(Debug)]
#[must_use = "files are only deleted by `step`"]
pub struct DeleteOperation {
    recording_id: i64,
    count: usize,
    /// Names of the files, the lowest segment first.
    files: VecDeque<String>,
    /// Whether a file could not be deleted.
    is_incomplete: bool,
    /// Whether the indexes of the segments stay.
    keeps_indexes: bool,
}

/// A segment file of a recording, possibly renamed for deletion.
#[derive(Debug)]
pub(super) struct SegmentFile {
    pub base: i64,
    pub name: String,
}

impl DeleteOperation {
    /// Returns the recording id.
    pub fn recording_id(&self) -> i64 {
        self.recording_id
    }

    /// Returns the number of files of the whole operation. It is the result that the request
    /// reports.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Keeps the indexes of the segments.
    pub(super) fn keeping_indexes(mut self) -> Self {
        self.keeps_indexes = true;
        self
    }

    /// Returns whether no file is left.
    pub fn is_done(&self) -> bool {
        self.files.is_empty()
    }

    /// Deletes the next file. A missing file is not an error. Returns whether files are left.
    ///
    /// After the last file the store accepts other operations on the recording.
    ///
    /// # Errors
    /// [`StoreError::Delete`]: the file still exists, and the next step continues with the next file.
    /// [`StoreError::Storage`]: the files are deleted, but they may exist again after a loss of
    /// power.
    pub fn step<S: Storage + Clone>(
        &mut self,
        store: &mut ArchiveStore<S>,
    ) -> Result<bool, StoreError> {
        let deleted = self.try_step(store);
        if let Err(StoreError::Delete { .. }) = deleted {
            debug_assert!(
                !self.is_done(),
                "the deletion of recording {} has failed to delete a file, but it has none",
                self.recording_id
            );
            self.files.pop_front();
            self.is_incomplete = true;
            store.incompletely_deleted.insert(self.recording_id);
            // An error of `conclude` is ignored: the error of the deletion is more useful.
            let _ = self.conclude(store);
        }
        deleted
    }

    /// Deletes the next file like [`step`](Self::step). If the file cannot be deleted, the next
    /// call tries the same file again.
    ///
    /// # Errors
    /// The same errors as [`step`](Self::step).
    pub fn try_step<S: Storage + Clone>(
        &mut self,
        store: &mut ArchiveStore<S>,
    ) -> Result<bool, StoreError> {
        debug_assert!(
            self.is_done()
                || store.options.detached_segments == DetachedSegments::Deleted
                || store.deleting.contains_key(&self.recording_id),
            "files of recording {} are deleted without a note in the store, so another change could use them",
            self.recording_id
        );
        if let Some(name) = self.files.front() {
            match self.keeps_indexes {
                true => {
                    remove_segment_file(&store.storage, name.clone())?;
                    pause::at(COPIED_FILE_DELETED);
                }
                false => remove_segment(&store.storage, name.clone())?,
            }
            self.files.pop_front();
        }
        let has_files = self.conclude(store)?;
        if !has_files && !self.is_incomplete {
            store.on_deleted(self.recording_id);
        }
        Ok(has_files)
    }

    /// Ends the operation if no file is left. Returns whether files are left.
    fn conclude<S: Storage + Clone>(
        &self,
        store: &mut ArchiveStore<S>,
    ) -> Result<bool, StoreError> {
        if !self.is_done() {
            return Ok(true);
        }
        store.deleting.remove(&self.recording_id);
        // The archive now sends the recording signal. After the signal, a loss of power must not restore the files.
        store.sync_directory().map(|()| false)
    }
}

impl<S: Storage + Clone> ArchiveStore<S> {
    /// Returns the base of the highest segment that an unfinished operation deletes. Extensions and replays must not
    /// use this segment.
    pub fn deleting_up_to(&self, recording_id: i64) -> Option<i64> {
        self.deleting.get(&recording_id).copied()
    }

    /// If segments may be attached in this archive, checks that no file of the recording is being
    /// deleted. Without attached segments, several deletions never have the same files, so they can
    /// run at the same time.
    ///
    /// # Errors
    /// [`StoreError::DeleteInProgress`] if a file is being deleted. [`StoreError::HalfMigrated`] if
    /// a migration from or to the recording is unfinished.
    pub(super) fn check_not_deleting(&self, recording_id: i64) -> Result<(), StoreError> {
        self.check_not_half_migrated(recording_id)?;
        match self.deleting_up_to(recording_id) {
            Some(_) if self.options.detached_segments == DetachedSegments::Kept => {
                Err(StoreError::DeleteInProgress { recording_id })
            }
            _ => Ok(()),
        }
    }

    /// Begins to delete `files`. `count` is the number that the request reports.
    pub(super) fn delete_files(
        &mut self,
        recording_id: i64,
        count: usize,
        files: Vec<SegmentFile>,
    ) -> DeleteOperation {
        debug_assert!(
            files
                .iter()
                .all(|file| !self.has_in_catalog(recording_id, file.base)),
            "segments of recording {recording_id} are deleted, but the catalog still has their range"
        );
        self.rename_old_indexes(recording_id);
        if let Some(highest) = files.iter().map(|file| file.base).max() {
            // Otherwise the end of one deletion would allow other changes while the second deletion still runs.
            debug_assert!(
                self.options.detached_segments == DetachedSegments::Deleted
                    || !self.deleting.contains_key(&recording_id),
                "files of recording {recording_id} are deleted by two operations"
            );
            self.deleting.insert(recording_id, highest);
        }
        DeleteOperation {
            recording_id,
            count,
            files: files.into_iter().map(|file| file.name).collect(),
            is_incomplete: false,
            keeps_indexes: false,
        }
    }

    /// Returns whether the range of a recording that exists includes data in the segment at `base`.
    fn has_in_catalog(&self, recording_id: i64, base: i64) -> bool {
        self.catalog.recording(recording_id).is_ok_and(|recording| {
            let is_empty = recording.start_position == recording.stop_position;
            let is_before_end = recording.is_unfinished() || base < recording.stop_position;
            !is_empty && is_before_end && base >= recording.first_segment_base()
        })
    }

    /// Gives all indexes of a recording their new names, if some have names of older releases.
    pub(super) fn rename_old_indexes(&self, recording_id: i64) {
        if self.has_old_indexes
            && let Ok(names) = self.storage.names()
        {
            let files: Vec<_> = SegmentFileName::among(&names).collect();
            // An index that keeps its old name is used under this name.
            let _ = rename_old(&self.storage, &files, |id| id == recording_id, usize::MAX);
        }
    }

    /// Syncs the directory if a request finds no file to delete. An earlier request may have deleted the files without
    /// forcing the deletion to the disk. Without the sync, a loss of power could restore the files.
    pub(super) fn check_deleted(&self, files: &[SegmentFile]) -> Result<(), StoreError> {
        match files {
            [] => self.sync_directory(),
            _ => Ok(()),
        }
    }

    /// Returns the segment files of a recording between two segment bases, in ascending order. Some
    /// of these files may be missing.
    pub(super) fn segment_files_between(
        &self,
        descriptor: &RecordingDescriptor,
        range: Range<i64>,
    ) -> Result<Vec<SegmentFile>, StoreError> {
        let recording_id = descriptor.recording_id;
        let segment_length = i64::from(descriptor.segment_length);
        if (range.end - range.start) / segment_length > MAX_NAMED_FILES {
            let mut files = self.segment_files(recording_id)?;
            files.retain(|file| range.contains(&file.base));
            return Ok(files);
        }
        let bases = range.step_by(segment_length as usize);
        Ok(bases
            .map(|base| SegmentFile {
                base,
                name: segment_name(recording_id, base),
            })
            .collect())
    }

    /// Returns the segment of each index before `first_base`. The segment file itself may be missing, because the
    /// segment may be only in object storage. [`DeleteOperation::step`] then deletes only the index.
    pub(super) fn indexes_without_segments(
        &self,
        recording_id: i64,
        first_base: i64,
    ) -> Result<Vec<SegmentFile>, StoreError> {
        let names = self.names()?;
        let indexes = SegmentFileName::among(&names).filter(|file| {
            file.recording_id == recording_id
                && file.extension == INDEX_EXTENSION
                && file.base < first_base
        });
        let bases: Vec<_> = indexes.map(|file| file.base).collect();
        let segment = |base| SegmentFile {
            base,
            name: segment_name(recording_id, base),
        };
        Ok(bases.into_iter().map(segment).collect())
    }

    /// Returns all segment files of a recording in ascending order, including files that were
    /// renamed for deletion.
    pub(super) fn segment_files(&self, recording_id: i64) -> Result<Vec<SegmentFile>, StoreError> {
        let mut files = segment_files_where(&self.names()?, |file| file == recording_id);
        files.sort_by_key(|file| file.base);
        Ok(files)
    }
}

/// Returns whether a file is a segment, even if it was renamed for deletion.
pub(super) fn is_segment(file: &SegmentFileName<'_>) -> bool {
    [SEGMENT_EXTENSION, DELETED_EXTENSION].contains(&file.extension)
}

/// Returns the segment files among `names` for which `is_chosen` accepts the recording id.
pub(super) fn segment_files_where(
    names: &[String],
    is_chosen: impl Fn(i64) -> bool,
) -> Vec<SegmentFile> {
    let files = names.iter().filter_map(|name| {
        let file = SegmentFileName::parse(name)?;
        (is_segment(&file) && is_chosen(file.recording_id)).then(|| SegmentFile {
            base: file.base,
            name: name.clone(),
        })
    });
    files.collect()
}

/// Deletes all segment files for which `is_chosen` accepts the recording id. Returns the number of
/// deleted files.
pub(crate) fn remove_segment_files<S: Storage>(
    storage: &S,
    is_chosen: impl Fn(i64) -> bool,
) -> Result<usize, StoreError> {
    let names = storage
        .names()
        .map_err(|source| StoreError::storage(".", "list its files", source))?;
    let files = segment_files_where(&names, is_chosen);
    let count = files.len();
    for file in files {
        remove_segment(storage, file.name)?;
    }
    Ok(count)
}

/// Deletes the index of a segment, and then the segment file, which may have been renamed for deletion.
pub(crate) fn remove_segment<S: Storage>(storage: &S, name: String) -> Result<(), StoreError> {
    if let Some(file) = SegmentFileName::parse(&name)
        && let Err(source) = remove_index(storage, file.recording_id, file.base)
    {
        return Err(StoreError::Delete { name, source });
    }
    remove_segment_file(storage, name)
}

/// Deletes a segment file, which may have been renamed for deletion. Its index stays.
pub(super) fn remove_segment_file<S: Storage>(storage: &S, name: String) -> Result<(), StoreError> {
    let removed = match storage.remove(&name) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            storage.remove(&format!("{name}.del"))
        }
        removed => removed,
    };
    match removed {
        Err(source) if source.kind() != io::ErrorKind::NotFound => {
            Err(StoreError::Delete { name, source })
        }
        _ => Ok(()),
    }
}
