//! [`DeleteOperation`]: segment files that belong to no recording any more, and go one by one.

use std::collections::VecDeque;
use std::io;

use super::{ArchiveStore, StoreError};
use crate::segments::{SEGMENT_EXTENSION, SegmentFileName};
use crate::storage::Storage;

/// Ending of a segment file that Aeron's archive has renamed in order to delete it, without the dot.
const DELETED_EXTENSION: &str = "rec.del";

/// Segment files that are to be deleted. The catalog does not count them any more; as long as the operation is not done, no other one of
/// the recording begins.
#[derive(Debug)]
#[must_use = "files are only deleted by `step`"]
pub struct DeleteOperation {
    recording_id: i64,
    count: usize,
    /// The lowest segment first.
    files: VecDeque<String>,
}

/// A file of a recording, a segment or what is left of one.
#[derive(Debug)]
pub(super) struct SegmentFile {
    pub base: i64,
    pub name: String,
}

impl DeleteOperation {
    /// The recording.
    pub fn recording_id(&self) -> i64 {
        self.recording_id
    }

    /// Number of files of the whole operation: the result of the request.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Whether no file is left.
    pub fn is_done(&self) -> bool {
        self.files.is_empty()
    }

    /// Deletes the next file. A file that is gone already is no error. Returns whether files are left; after the last one the store takes
    /// other operations of the recording.
    ///
    /// # Errors
    /// [`StoreError::Delete`]: the file stays, and the next step goes on with the next one. [`StoreError::Storage`]: the files are deleted,
    /// and may come back if the machine loses power.
    pub fn step<S: Storage + Clone>(
        &mut self,
        store: &mut ArchiveStore<S>,
    ) -> Result<bool, StoreError> {
        let deleted = match self.files.pop_front() {
            Some(name) => remove(&store.storage, name),
            None => Ok(()),
        };
        if !self.is_done() {
            return deleted.map(|()| true);
        }
        store.deleting.remove(&self.recording_id);
        // The request is about to succeed: if the machine loses power now, the files must not come back.
        deleted.and(store.sync_directory()).map(|()| false)
    }
}

impl<S: Storage + Clone> ArchiveStore<S> {
    /// Base of the highest segment that an operation deletes, while it is not done: neither an extension nor a replay may go so far.
    pub fn deleting_up_to(&self, recording_id: i64) -> Option<i64> {
        self.deleting.get(&recording_id).copied()
    }

    /// # Errors
    /// [`StoreError::DeleteInProgress`], [`StoreError::HalfMigrated`].
    pub(super) fn check_not_deleting(&self, recording_id: i64) -> Result<(), StoreError> {
        self.check_not_half_migrated(recording_id)?;
        match self.deleting_up_to(recording_id) {
            Some(_) => Err(StoreError::DeleteInProgress { recording_id }),
            None => Ok(()),
        }
    }

    /// Begins to delete `files`, of which the request counts `count`.
    pub(super) fn delete_files(
        &mut self,
        recording_id: i64,
        count: usize,
        files: Vec<SegmentFile>,
    ) -> DeleteOperation {
        if let Some(highest) = files.iter().map(|file| file.base).max() {
            self.deleting.insert(recording_id, highest);
        }
        DeleteOperation {
            recording_id,
            count,
            files: files.into_iter().map(|file| file.name).collect(),
        }
    }

    /// All segment files of a recording, the lowest first, with those that were renamed in order to be deleted.
    pub(super) fn segment_files(&self, recording_id: i64) -> Result<Vec<SegmentFile>, StoreError> {
        let mut files = segment_files_where(&self.names()?, |file| file == recording_id);
        files.sort_by_key(|file| file.base);
        Ok(files)
    }
}

/// All segment files among `names` of the recordings whose ids are chosen.
fn segment_files_where(names: &[String], is_chosen: impl Fn(i64) -> bool) -> Vec<SegmentFile> {
    let files = names.iter().filter_map(|name| {
        let file = SegmentFileName::parse(name)?;
        let is_segment = [SEGMENT_EXTENSION, DELETED_EXTENSION].contains(&file.extension);
        let base = file.base;
        (is_segment && is_chosen(file.recording_id)).then(|| SegmentFile {
            base,
            name: name.clone(),
        })
    });
    files.collect()
}

/// Deletes all segment files of the recordings whose ids are chosen. Returns their number.
pub(crate) fn remove_segment_files<S: Storage>(
    storage: &S,
    is_chosen: impl Fn(i64) -> bool,
) -> Result<usize, StoreError> {
    let names = storage
        .names()
        .map_err(|source| StoreError::storage(".", "list its files", source))?;
    remove_segment_files_of(storage, &names, is_chosen)
}

/// As [`remove_segment_files`], with the names of the directory's files.
pub(super) fn remove_segment_files_of<S: Storage>(
    storage: &S,
    names: &[String],
    is_chosen: impl Fn(i64) -> bool,
) -> Result<usize, StoreError> {
    let files = segment_files_where(names, is_chosen);
    let count = files.len();
    for file in files {
        remove(storage, file.name)?;
    }
    Ok(count)
}

/// Deletes a file, or what it was renamed to.
fn remove<S: Storage>(storage: &S, name: String) -> Result<(), StoreError> {
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
