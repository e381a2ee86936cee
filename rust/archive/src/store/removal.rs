//! Operations of the store that remove a part of a recording or the whole recording: truncate, purge, detach, purge
//! segments, delete detached segments.
//!
//! Each operation first checks its arguments, then changes the catalog, and then deletes files. If
//! the process is killed before all files are deleted, the remaining files belong to no recording.

use std::collections::BTreeSet;
use std::ops::Range;

use super::deletion::SegmentFile;
use super::open::recorded_stream;
use super::{ArchiveStore, DeleteOperation, DetachedSegments, StoreError};
use crate::catalog::RecordingDescriptor;
use crate::frame::FrameFault;
use crate::index::{INDEX_EXTENSION, cut_index};
use crate::recorder::cut;
use crate::segments::sidecar_name;
use crate::storage::{Access, Storage, StorageFile};
use crate::stream::{RecordedStream, is_aligned};
use aeron_memory::log::frame::HEADER_LENGTH;

/// Current use of a recording. The caller passes it, because the store does not know recorders and
/// replays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordingActivity {
    /// Recorded position, if the recording is active.
    pub recorded_position: Option<i64>,
    /// The lowest position that a replay may still read.
    pub lowest_replay_position: Option<i64>,
}

impl<S: Storage + Clone> ArchiveStore<S> {
    /// Ends a recording at `position`: the new stop position. Before the first step of the returned
    /// deletion, the caller must stop the replays of the recording.
    ///
    /// If `position` is the start position, all files of the recording are deleted and counted. Otherwise, files after
    /// the old stop position that remain from an earlier truncation are also deleted, but not counted.
    ///
    /// # Errors
    /// The recording does not exist, is active, or has files that are being deleted. `position` is not in the
    /// recording, or no frame begins at `position`. The file system returns an error. In all these cases, nothing
    /// has changed, with one exception: if only the file of `position` could not be shortened, the catalog has the
    /// new stop position, but the files and bytes after this position remain. They are not used.
    pub fn truncate(
        &mut self,
        recording_id: i64,
        position: i64,
    ) -> Result<DeleteOperation, StoreError> {
        let descriptor = self.recording(recording_id)?.clone();
        if descriptor.is_unfinished() {
            return Err(StoreError::TruncatesActive { recording_id });
        }
        let possible = descriptor.start_position..=descriptor.stop_position;
        if !possible.contains(&position) || !is_aligned(position) {
            return Err(StoreError::InvalidPosition {
                position,
                start: descriptor.start_position,
                stop: descriptor.stop_position,
            });
        }
        self.check_not_deleting(recording_id)?;
        let mut files = self.segment_files(recording_id)?;
        let base = descriptor.segment_base(position);
        let mut count = files.len();
        let mut cut_file = None;
        if position != descriptor.start_position {
            files.retain(|file| file.base >= position);
            count = count_segments_from(&descriptor, position);
            if position != base && position != descriptor.stop_position {
                cut_file = Some(self.open_at_frame(&descriptor, position)?);
                // Before the first change: an index of a later version cannot be cut.
                self.index_file(recording_id, base)?;
            }
        }
        self.check_deleted(&files)?;
        self.catalog.truncate(recording_id, position)?;
        if let Some(file) = cut_file {
            let length = descriptor.segment_length as u64;
            cut(&file, (position - base) as u64, length).map_err(|source| {
                StoreError::storage(&segment_name(&descriptor, base), "cut it", source)
            })?;
            cut_index(&self.storage, recording_id, base, position).map_err(|source| {
                let name = sidecar_name(recording_id, base, INDEX_EXTENSION);
                StoreError::storage(&name, "cut it", source)
            })?;
        }
        Ok(self.delete_files(recording_id, count, files))
    }

    /// Deletes a whole recording. The recording id is never used again.
    ///
    /// # Errors
    /// The recording does not exist, is active or being replayed, or has files that are being
    /// deleted; or the file system returns an error. Then nothing has changed.
    pub fn purge_recording(
        &mut self,
        recording_id: i64,
        activity: &RecordingActivity,
    ) -> Result<DeleteOperation, StoreError> {
        let stop_position = self.recording(recording_id)?.stop_position;
        self.purge_recording_at(recording_id, activity, stop_position)
    }

    /// Deletes a whole recording like [`purge_recording`](Self::purge_recording). The write that
    /// marks the catalog entry as deleted also sets the stop position, which may be
    /// [`NULL_VALUE`](crate::catalog::NULL_VALUE).
    ///
    /// # Errors
    /// The same errors as [`purge_recording`](Self::purge_recording).
    pub fn purge_recording_at(
        &mut self,
        recording_id: i64,
        activity: &RecordingActivity,
        stop_position: i64,
    ) -> Result<DeleteOperation, StoreError> {
        let descriptor = self.recording(recording_id)?;
        if activity.lowest_replay_position.is_some() {
            return Err(StoreError::PurgesReplayed { recording_id });
        }
        if descriptor.is_unfinished() {
            return Err(StoreError::PurgesActive { recording_id });
        }
        self.check_not_deleting(recording_id)?;
        let first_base = descriptor.first_segment_base();
        let mut files = match self.options.detached_segments {
            DetachedSegments::Kept => self.segment_files(recording_id)?,
            DetachedSegments::Deleted => {
                let last = descriptor.segment_base(descriptor.stop_position);
                let end = last + i64::from(descriptor.segment_length);
                self.segment_files_between(descriptor, descriptor.first_segment_base()..end)?
            }
        };
        self.check_deleted(&files)?;
        let count = files.len();
        if self.options.detached_segments == DetachedSegments::Kept {
            let held: BTreeSet<i64> = files.iter().map(|file| file.base).collect();
            let indexes = self.indexes_without_segments(recording_id, first_base)?;
            files.extend(indexes.into_iter().filter(|it| !held.contains(&it.base)));
        }
        self.catalog.delete(recording_id, stop_position)?;
        // If this call fails, the next start removes the extension data about the recording. Until then, these data
        // have no effect.
        let _ = self.extensions.forget(recording_id);
        Ok(self.delete_files(recording_id, count, files))
    }

    /// Changes the start position to `new_start`. The files before `new_start` are not deleted. They can be
    /// [attached](Self::attach_segments) again.
    ///
    /// # Errors
    /// The recording does not exist. `new_start` is not the base of a segment, is not after the
    /// first segment, or is after the last segment. A replay still reads bytes before `new_start`.
    /// The file system returns an error. Then nothing has changed.
    pub fn detach_segments(
        &mut self,
        recording_id: i64,
        new_start: i64,
        activity: &RecordingActivity,
    ) -> Result<(), StoreError> {
        self.check_detach(recording_id, new_start, activity)?;
        Ok(self.catalog.set_start_position(recording_id, new_start)?)
    }

    /// Changes the start position to `new_start`. Deletes the files between the old and the new start position.
    ///
    /// # Errors
    /// The same errors as [`detach_segments`](Self::detach_segments). Files of the recording are
    /// being deleted.
    pub fn purge_segments(
        &mut self,
        recording_id: i64,
        new_start: i64,
        activity: &RecordingActivity,
    ) -> Result<DeleteOperation, StoreError> {
        let first = self.check_detach(recording_id, new_start, activity)?;
        self.check_not_deleting(recording_id)?;
        let count = self.count_segments(recording_id, first, new_start)?;
        let files = self.segment_files_between(self.recording(recording_id)?, first..new_start)?;
        self.check_deleted(&files)?;
        self.catalog.set_start_position(recording_id, new_start)?;
        Ok(self.delete_files(recording_id, count, files))
    }

    /// Does the same as [`purge_segments`](Self::purge_segments), but computes the names of the files. In a directory
    /// with a hundred thousand files, a list of the names takes too long for a duty cycle. `range` may begin before the
    /// recording.
    pub(super) fn purge_named_segments(
        &mut self,
        recording_id: i64,
        range: Range<i64>,
        activity: &RecordingActivity,
    ) -> Result<DeleteOperation, StoreError> {
        let new_start = range.end;
        let first = self.check_detach(recording_id, new_start, activity)?;
        self.check_not_deleting(recording_id)?;
        let count = self.count_segments(recording_id, first, new_start)?;
        let segment_length = self.recording(recording_id)?.segment_length as usize;
        let bases = range.step_by(segment_length);
        let files = bases.map(|base| SegmentFile {
            base,
            name: crate::segments::segment_name(recording_id, base),
        });
        let files = files.collect();
        self.catalog.set_start_position(recording_id, new_start)?;
        Ok(self.delete_files(recording_id, count, files))
    }

    /// Deletes the files before the start position. The reported number of files includes missing
    /// files between the lowest file and the start position.
    ///
    /// # Errors
    /// The recording does not exist, files of it are being deleted, or the file system returns an error.
    pub fn delete_detached_segments(
        &mut self,
        recording_id: i64,
    ) -> Result<DeleteOperation, StoreError> {
        let first = self.recording(recording_id)?.first_segment_base();
        self.check_not_deleting(recording_id)?;
        let mut files = self.segment_files(recording_id)?;
        files.retain(|file| file.base < first);
        let lowest = files.first().map_or(first, |file: &SegmentFile| file.base);
        let count = self.count_segments(recording_id, lowest, first)?;
        self.check_deleted(&files)?;
        Ok(self.delete_files(recording_id, count, files))
    }

    /// Checks a new start position. Returns the base of the current first segment.
    fn check_detach(
        &self,
        recording_id: i64,
        new_start: i64,
        activity: &RecordingActivity,
    ) -> Result<i64, StoreError> {
        let descriptor = self.recording(recording_id)?;
        self.check_not_half_migrated(recording_id)?;
        let end = match descriptor.is_unfinished() {
            true => activity
                .recorded_position
                .unwrap_or(descriptor.start_position),
            false => descriptor.stop_position,
        };
        let first = descriptor.first_segment_base();
        let lower_bound = first + i64::from(descriptor.segment_length);
        let upper_bound = descriptor.segment_base(end.max(first));
        if new_start < 0 || descriptor.segment_base(new_start) != new_start {
            return Err(StoreError::NotASegmentBase { new_start });
        }
        if new_start < lower_bound {
            return Err(StoreError::DetachesNothing {
                new_start,
                lower_bound,
            });
        }
        if new_start > upper_bound {
            return Err(StoreError::DetachesEnd {
                new_start,
                upper_bound,
            });
        }
        debug_assert!(
            new_start <= end,
            "recording {recording_id} with data up to {end} would start at {new_start}"
        );
        match activity.lowest_replay_position {
            Some(position) if descriptor.segment_base(position) < new_start => {
                Err(StoreError::DetachesReplayed {
                    new_start,
                    upper_bound: descriptor.segment_base(position),
                })
            }
            _ => Ok(first),
        }
    }

    /// Returns the number of segments from one base to another.
    fn count_segments(&self, recording_id: i64, from: i64, to: i64) -> Result<usize, StoreError> {
        let segment_length = i64::from(self.recording(recording_id)?.segment_length);
        debug_assert!(
            from <= to,
            "recording {recording_id}: segments from {from} to {to} cannot be counted"
        );
        Ok(((to - from) / segment_length) as usize)
    }

    /// Opens the segment file of `position` for writing, if a frame begins at `position`.
    fn open_at_frame(
        &self,
        descriptor: &RecordingDescriptor,
        position: i64,
    ) -> Result<S::File, StoreError> {
        let stream = recorded_stream(descriptor)?;
        let base = stream.segment_base(position);
        let name = stream.segment_name(base);
        let mut header = [0; HEADER_LENGTH];
        let file = self
            .storage
            .open(&name, Access::Write)
            .and_then(|file| {
                file.read_exact_at(&mut header, (position - base) as u64)?;
                Ok(file)
            })
            .map_err(|source| StoreError::storage(&name, "read it", source))?;
        match header_fault(&stream, position, &header) {
            None => Ok(file),
            Some(_) => Err(StoreError::NotADataHeader { position }),
        }
    }
}

/// Returns why a header is not valid at this position of the stream; `None` if it is valid.
pub(super) fn header_fault(
    stream: &RecordedStream,
    position: i64,
    header: &[u8; HEADER_LENGTH],
) -> Option<FrameFault> {
    match stream.rules().check(position, header) {
        Ok(_) => None,
        // Only the header was read, so the rest of the frame is missing.
        Err(FrameFault::Incomplete { .. }) => None,
        Err(fault) => Some(fault),
    }
}

/// Returns the number of segments that begin at `position` or later, up to the segment of the stop position. Missing
/// files are included.
fn count_segments_from(descriptor: &RecordingDescriptor, position: i64) -> usize {
    let last = descriptor.segment_base(descriptor.stop_position);
    let segment_length = i64::from(descriptor.segment_length);
    debug_assert!(
        (descriptor.start_position..=descriptor.stop_position).contains(&position),
        "recording {}: position {position} must be from {} to {}",
        descriptor.recording_id,
        descriptor.start_position,
        descriptor.stop_position
    );
    let first = descriptor.segment_base(position + segment_length - 1);
    ((last + segment_length - first) / segment_length) as usize
}

fn segment_name(descriptor: &RecordingDescriptor, base: i64) -> String {
    crate::segments::segment_name(descriptor.recording_id, base)
}
