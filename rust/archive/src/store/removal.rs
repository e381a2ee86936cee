//! Operations that give up a part of a recording, or all of it: truncate, purge, detach, purge segments, delete detached segments.
//!
//! Everything is checked first. Then the catalog changes, then files go: a kill in between leaves files that no recording counts.

use super::deletion::SegmentFile;
use super::open::recorded_stream;
use super::{ArchiveStore, DeleteOperation, StoreError};
use crate::catalog::RecordingDescriptor;
use crate::frame::FrameFault;
use crate::purge::{PurgeError, check_new_start};
use crate::recorder::cut;
use crate::storage::{Access, Storage, StorageFile};
use crate::stream::{RecordedStream, is_aligned};
use aeron_memory::log::frame::HEADER_LENGTH;

/// Use of a recording that only the caller knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordingActivity {
    /// How far the recording has come, while it is recorded.
    pub recorded_position: Option<i64>,
    /// The lowest position that a replay may still read.
    pub lowest_replay_position: Option<i64>,
}

impl<S: Storage + Clone> ArchiveStore<S> {
    /// Gives up all that is recorded from `position` on, which becomes the stop position. The caller ends replays of the recording before it
    /// deletes the files. Files that an earlier truncation left after the stop position are deleted too, and not counted.
    ///
    /// # Errors
    /// The recording does not exist, is recorded, or has files that are being deleted; `position` is not in it or no frame begins there; or
    /// the file system refuses. Nothing changed then, unless the file of `position` could not be cut: what the file has too much does no
    /// harm.
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
            }
        }
        self.catalog.truncate(recording_id, position)?;
        if let Some(file) = cut_file {
            let length = descriptor.segment_length as u64;
            cut(&file, (position - base) as u64, length).map_err(|source| {
                StoreError::storage(&segment_name(&descriptor, base), "cut it", source)
            })?;
        }
        Ok(self.delete_files(recording_id, count, files))
    }

    /// Gives up a whole recording. Its id is never used again.
    ///
    /// # Errors
    /// The recording does not exist, is recorded or replayed, or has files that are being deleted; or the file system refuses. Nothing
    /// changed then.
    pub fn purge_recording(
        &mut self,
        recording_id: i64,
        activity: &RecordingActivity,
    ) -> Result<DeleteOperation, StoreError> {
        let descriptor = self.recording(recording_id)?;
        let stop_position = descriptor.stop_position;
        if activity.lowest_replay_position.is_some() {
            return Err(StoreError::PurgesReplayed { recording_id });
        }
        if descriptor.is_unfinished() {
            return Err(StoreError::PurgesActive { recording_id });
        }
        self.check_not_deleting(recording_id)?;
        let files = self.segment_files(recording_id)?;
        self.catalog.delete(recording_id, stop_position)?;
        Ok(self.delete_files(recording_id, files.len(), files))
    }

    /// Makes `new_start` the start position. The files before it stay, and can be [attached](Self::attach_segments) again.
    ///
    /// # Errors
    /// The recording does not exist, `new_start` is not the base of a segment after the first and up to the last one, a replay reads before
    /// it, or the file system refuses. Nothing changed then.
    pub fn detach_segments(
        &mut self,
        recording_id: i64,
        new_start: i64,
        activity: &RecordingActivity,
    ) -> Result<(), StoreError> {
        self.check_detach(recording_id, new_start, activity)?;
        Ok(self.catalog.set_start_position(recording_id, new_start)?)
    }

    /// Makes `new_start` the start position, and deletes the files between the old and the new one.
    ///
    /// # Errors
    /// As [`detach_segments`](Self::detach_segments); also if files of the recording are being deleted.
    pub fn purge_segments(
        &mut self,
        recording_id: i64,
        new_start: i64,
        activity: &RecordingActivity,
    ) -> Result<DeleteOperation, StoreError> {
        let first = self.check_detach(recording_id, new_start, activity)?;
        self.check_not_deleting(recording_id)?;
        let count = self.count_segments(recording_id, first, new_start)?;
        let mut files = self.segment_files(recording_id)?;
        files.retain(|file| (first..new_start).contains(&file.base));
        self.catalog.set_start_position(recording_id, new_start)?;
        Ok(self.delete_files(recording_id, count, files))
    }

    /// Deletes the files before the start position. The operation also counts files that are missing between them.
    ///
    /// # Errors
    /// The recording does not exist, files of it are being deleted, or the file system refuses.
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
        Ok(self.delete_files(recording_id, count, files))
    }

    /// Checks a new start position. Returns the base of the first segment as it is now.
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
        if new_start < 0 || descriptor.segment_base(new_start) != new_start {
            return Err(PurgeError::NotASegmentBase { new_start }.into());
        }
        check_new_start(descriptor, new_start, end)?;
        match activity.lowest_replay_position {
            Some(position) if descriptor.segment_base(position) < new_start => {
                Err(StoreError::DetachesReplayed {
                    new_start,
                    upper_bound: descriptor.segment_base(position),
                })
            }
            _ => Ok(descriptor.first_segment_base()),
        }
    }

    /// Number of segments from one base to another.
    fn count_segments(&self, recording_id: i64, from: i64, to: i64) -> Result<usize, StoreError> {
        let segment_length = i64::from(self.recording(recording_id)?.segment_length);
        Ok(((to - from) / segment_length) as usize)
    }

    /// Opens the segment file of `position` for writing, if a frame begins there.
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

/// Says why the header is not that of a frame at this place of the stream, if it is not.
pub(super) fn header_fault(
    stream: &RecordedStream,
    position: i64,
    header: &[u8; HEADER_LENGTH],
) -> Option<FrameFault> {
    match stream.rules().check(position, header) {
        Ok(_) => None,
        // The rest of the frame was not read.
        Err(FrameFault::Incomplete { .. }) => None,
        Err(fault) => Some(fault),
    }
}

/// Number of segments that begin at `position` or later, up to the one of the stop position, whether they have files or not.
fn count_segments_from(descriptor: &RecordingDescriptor, position: i64) -> usize {
    let last = descriptor.segment_base(descriptor.stop_position);
    let segment_length = i64::from(descriptor.segment_length);
    let first = descriptor.segment_base(position + segment_length - 1);
    ((last + segment_length - first) / segment_length) as usize
}

fn segment_name(descriptor: &RecordingDescriptor, base: i64) -> String {
    crate::segments::segment_name(descriptor.recording_id, base)
}
