//! The store's part of retention: extents of recordings, times of segments, and deletion of files.

use std::io;
use std::time::UNIX_EPOCH;

use super::deletion::{remove_segment, remove_segment_file, segment_files_where};
use super::{ArchiveStore, DeleteOperation, RecordingActivity, StoreError};
use crate::extensions::{ExtensionChange, RetentionPolicy, SegmentDeletion};
use crate::index::IndexFile;
use crate::retention::{RecordingExtent, RetentionOutcome, policy_of};
use crate::segments::segment_name;
use crate::storage::{Access, Storage, StorageFile};

/// Time of a segment without a file, in milliseconds since the epoch. Such a segment has no data,
/// so it is older than any limit.
const NO_DATA_MS: i64 = i64::MIN;

impl<S: Storage + Clone> ArchiveStore<S> {
    /// Returns the retention policy of a recording.
    ///
    /// # Errors
    /// [`StoreError::UnknownRecording`] if the recording does not exist.
    pub fn retention_policy(
        &self,
        recording_id: i64,
    ) -> Result<Option<&RetentionPolicy>, StoreError> {
        let recording = self.recording(recording_id)?;
        Ok(policy_of(
            self.extensions().policies(),
            recording.recording_id,
            recording.stream_id,
            &recording.original_channel,
        ))
    }

    /// Returns the extent of a recording, without times of segments. The caller passes the recorded
    /// position of an active recording.
    ///
    /// # Errors
    /// [`StoreError::UnknownRecording`] if the recording does not exist.
    pub fn extent(
        &self,
        recording_id: i64,
        recorded_position: Option<i64>,
    ) -> Result<RecordingExtent, StoreError> {
        let recording = self.recording(recording_id)?;
        Ok(RecordingExtent::new(recording, recorded_position))
    }

    /// Returns the time of a segment, in milliseconds since the epoch. No message of the segment
    /// arrived after this time. The segment must not be the segment with the end of the recording.
    ///
    /// The time is the arrival time in the last index entry of the segment. If the index does not
    /// have this time, it is the modification time of the segment file.
    ///
    /// # Errors
    /// The file system returns an error.
    pub fn segment_time_ms(&self, extent: &RecordingExtent, base: i64) -> Result<i64, StoreError> {
        let failed = |source| {
            let name = segment_name(extent.recording_id, base);
            StoreError::storage(&name, "read its time", source)
        };
        match self.last_arrival_us(extent, base).map_err(failed)? {
            Some(arrival_us) => Ok(arrival_us.div_euclid(1_000) + 1),
            None => self.modified_ms(extent.recording_id, base).map_err(failed),
        }
    }

    /// Returns whether files of the recording are being deleted or migrated.
    pub fn is_changing(&self, recording_id: i64) -> bool {
        self.check_not_deleting(recording_id).is_err()
    }

    /// Begins to delete the part of a recording that retention has chosen: segments at the start,
    /// or the whole recording.
    ///
    /// If the process is killed before all files are deleted, the next start deletes the others. If an earlier deletion
    /// of segments at the start could not delete some files, a new deletion of segments tries these files again.
    ///
    /// # Errors
    /// The same errors as [`purge_segments`](Self::purge_segments) and
    /// [`purge_recording`](Self::purge_recording). Then nothing has changed.
    pub fn remove(
        &mut self,
        outcome: &RetentionOutcome,
        activity: &RecordingActivity,
    ) -> Result<DeleteOperation, StoreError> {
        let (id, new_start) = (outcome.recording_id, outcome.new_start_position);
        if outcome.is_purge {
            return self.purge_recording(id, activity);
        }
        self.remove_segments(id, new_start, false, activity)
    }

    /// Deletes the segments before `new_start`, which are in object storage. Their indexes stay. Before the first file
    /// is deleted, the catalog is forced to the disk.
    ///
    /// If the process is killed before all files are deleted, the next start deletes the others.
    ///
    /// # Errors
    /// See [`purge_segments`](Self::purge_segments). Nothing changed then, with one exception: if the catalog cannot be
    /// forced to the disk, it has the new start position, and the next start deletes the files.
    pub fn remove_copied(
        &mut self,
        id: i64,
        new_start: i64,
        activity: &RecordingActivity,
    ) -> Result<DeleteOperation, StoreError> {
        let operation = self.remove_segments(id, new_start, true, activity)?;
        // Otherwise a loss of power could delete the files and restore the former start position.
        if let Err(error) = self.catalog.force() {
            self.deleting.remove(&id);
            return Err(error.into());
        }
        Ok(operation)
    }

    fn remove_segments(
        &mut self,
        id: i64,
        new_start: i64,
        keeps_indexes: bool,
        activity: &RecordingActivity,
    ) -> Result<DeleteOperation, StoreError> {
        let first = self.recording(id)?.first_segment_base();
        let left = self.extensions.deletion(id).cloned();
        let (start, keeps_indexes) = left.as_ref().map_or((first, keeps_indexes), |left| {
            let start = left.range.start.min(first);
            (start, keeps_indexes || left.keeps_indexes)
        });
        // After a kill, files before the start position may be left from this deletion, or may be
        // detached segments, which must stay. The note in the file of extensions contains the range of
        // files that the next start deletes. If the note cannot be written because the disk is full, the deletion
        // begins nevertheless: free space is more important than complete deletion after a kill.
        let deletion = SegmentDeletion {
            range: start..new_start,
            keeps_indexes,
        };
        self.note_deletion(id, deletion);
        let operation = self.purge_named_segments(id, start..new_start, activity);
        if operation.is_err() {
            self.note_deletion(id, left.unwrap_or_default());
        }
        Ok(match keeps_indexes {
            true => operation?.keeping_indexes(),
            false => operation?,
        })
    }

    /// Deletes the segments that are left because a kill interrupted a deletion by retention.
    pub(super) fn finish_deletions(&mut self, names: &[String]) -> Result<(), StoreError> {
        let deletions: Vec<_> = self
            .extensions
            .deletions()
            .map(|(id, deletion)| (id, deletion.clone()))
            .collect();
        for (id, deletion) in deletions {
            // The process may have been killed before the catalog changed. Then the segments still
            // belong to the recording.
            let first = self.recording(id).map_or(0, |it| it.first_segment_base());
            let files = segment_files_where(names, |file| file == id);
            for file in files {
                if !deletion.range.contains(&file.base) || file.base >= first {
                    continue;
                }
                match deletion.keeps_indexes {
                    true => remove_segment_file(&self.storage, file.name)?,
                    false => remove_segment(&self.storage, file.name)?,
                }
            }
            self.sync_directory()?;
            self.note_deletion(id, SegmentDeletion::default());
        }
        Ok(())
    }

    /// Removes the note of a deletion after its last file was deleted.
    pub(super) fn on_deleted(&mut self, recording_id: i64) {
        if self.extensions.deletion(recording_id).is_some() {
            self.note_deletion(recording_id, SegmentDeletion::default());
        }
    }

    fn note_deletion(&mut self, recording_id: i64, deletion: SegmentDeletion) {
        let change = ExtensionChange::Deleting {
            recording_id,
            deletion,
        };
        let _ = self.extensions.apply(vec![change]);
    }

    /// Returns the arrival time of the last bytes of a segment in microseconds since the epoch, if
    /// the index has this time.
    fn last_arrival_us(&self, extent: &RecordingExtent, base: i64) -> io::Result<Option<i64>> {
        let id = extent.recording_id;
        let Some(index) = IndexFile::open(&self.storage, id, base, Access::Read)? else {
            return Ok(None);
        };
        let end = base + extent.segment_length;
        let last = index.last_entry(end)?.map(|(_, entry)| entry);
        // If the last entry does not end at the end of the segment, the time of the last bytes is unknown.
        Ok(last
            .filter(|entry| entry.end_position == end)
            .and_then(|entry| entry.arrival_us))
    }

    fn modified_ms(&self, recording_id: i64, base: i64) -> io::Result<i64> {
        let name = segment_name(recording_id, base);
        let file = match self.storage.open(&name, Access::Read) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(NO_DATA_MS),
            opened => opened?,
        };
        let since_epoch = file.modified()?.duration_since(UNIX_EPOCH);
        Ok(since_epoch.map_or(0, |time| {
            i64::try_from(time.as_millis())
                .unwrap_or(i64::MAX)
                .saturating_add(1)
        }))
    }
}
