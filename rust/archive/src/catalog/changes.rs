//! Changes of existing recordings. Each change writes only the fields that differ, and never makes
//! an entry longer.
//!
//! If all fields of a change are on one page of the file, they are written with one write. If the process
//! is killed during this write, the file contains either all new values or all old values. If the
//! fields are on two pages, they are written one by one. The order of these writes ensures that each
//! intermediate state is valid.
//!
//! After an error of the file system, the old fields are written again. If this fails too, the file may contain all or
//! a part of the change.

use std::ops::Range;

use aeron_layout::{I32, I64};

use super::descriptor::{
    CHECKSUM_OFFSET, ENTRY_HEADER_LENGTH, SESSION_ID_OFFSET, START_POSITION_OFFSET, STATE_OFFSET,
    STOP_POSITION_OFFSET, STOP_TIMESTAMP_OFFSET,
};
use super::entry::CHECKSUM_FIELD;
use super::{
    Catalog, CatalogEntry, CatalogError, NULL_VALUE, PAGE_LENGTH, RecordingDescriptor,
    RecordingState,
};
use crate::storage::Storage;

/// The values that an extension writes into the catalog entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extension {
    /// Session of the new image.
    pub session_id: i32,
    /// Control session of the request.
    pub control_session_id: i64,
    /// Correlation id of the request.
    pub correlation_id: i64,
}

// Ranges of fields in an entry. An entry may cross the end of a page, but each of these ranges is on one page: entries
// begin 32 bytes after a multiple of 64, and each range is within one unit of 64 bytes.
const STATE: Range<usize> = STATE_OFFSET..STATE_OFFSET + size_of::<I32>();
const START_POSITION: Range<usize> = of_descriptor(START_POSITION_OFFSET, size_of::<I64>());
const STOP_POSITION: Range<usize> = of_descriptor(STOP_POSITION_OFFSET, size_of::<I64>());
const STOP_TIMESTAMP_AND_POSITION: Range<usize> =
    STOP_TIMESTAMP_OFFSET + ENTRY_HEADER_LENGTH..STOP_POSITION.end;
const SESSION_ID: Range<usize> = of_descriptor(SESSION_ID_OFFSET, size_of::<I32>());
/// The fields of the descriptor from `control_session_id` to `stop_position`.
const IDS_AND_STOP: Range<usize> = ENTRY_HEADER_LENGTH..STOP_POSITION.end;

impl<S: Storage> Catalog<S> {
    /// Sets the position and the time at which a recording ended. One write changes both. If `timestamp_ms` is before
    /// the start of the recording, the wall clock was set back, and the time becomes that of the start.
    ///
    /// # Errors
    /// The recording does not exist, or the position cannot be its end: the entry is unchanged. The file system returns
    /// an error: the file may contain all or a part of the change.
    pub fn stop(
        &mut self,
        recording_id: i64,
        position: i64,
        timestamp_ms: i64,
    ) -> Result<(), CatalogError> {
        self.change(recording_id, &[STOP_TIMESTAMP_AND_POSITION], |descriptor| {
            descriptor.stop_position = position;
            descriptor.stop_timestamp_ms = timestamp_ms.max(descriptor.start_timestamp_ms);
        })
    }

    /// Corrects the position and the time at which a recording ended, even if the recording is marked as broken. One
    /// write changes both. The time is at least that of the start of the recording.
    ///
    /// # Errors
    /// The recording never existed or is deleted, or the position cannot be its end: the entry is unchanged. The file
    /// system returns an error: the file may contain all or a part of the change.
    pub fn correct_stop(
        &mut self,
        recording_id: i64,
        position: i64,
        timestamp_ms: i64,
    ) -> Result<(), CatalogError> {
        let place = self.not_deleted(recording_id)?;
        let mut entry = self.entries[place].clone();
        entry.descriptor.stop_position = position;
        entry.descriptor.stop_timestamp_ms = timestamp_ms.max(entry.descriptor.start_timestamp_ms);
        self.write_changed(place, entry, &[STOP_TIMESTAMP_AND_POSITION])
    }

    /// Moves the end of a recording to `position`. The time at which the recording ended is not
    /// changed.
    ///
    /// # Errors
    /// The recording does not exist, or the position cannot be its end: the entry is unchanged. The file system returns
    /// an error: the file may contain all or a part of the change.
    pub fn truncate(&mut self, recording_id: i64, position: i64) -> Result<(), CatalogError> {
        self.change(recording_id, &[STOP_POSITION], |descriptor| {
            descriptor.stop_position = position;
        })
    }

    /// Moves the start of a recording, after the first segments were removed or earlier segments were attached.
    ///
    /// # Errors
    /// The recording does not exist, or the position cannot be its start: the entry is unchanged. The file system
    /// returns an error: the file may contain all or a part of the change.
    pub fn set_start_position(
        &mut self,
        recording_id: i64,
        position: i64,
    ) -> Result<(), CatalogError> {
        self.change(recording_id, &[START_POSITION], |descriptor| {
            descriptor.start_position = position;
        })
    }

    /// Makes a stopped recording active again, with the image of another session.
    ///
    /// A kill during the call leaves the recording unchanged or extended. There is one exception: if
    /// the fields are on two pages of the file, the stop position is written last. A kill may then
    /// leave the old stop position with the session id of the extension.
    ///
    /// # Errors
    /// The recording does not exist: the entry is unchanged. The file system returns an error: the file may contain all
    /// or a part of the change.
    pub fn extend(&mut self, recording_id: i64, extension: &Extension) -> Result<(), CatalogError> {
        self.change(recording_id, &[SESSION_ID, IDS_AND_STOP], |descriptor| {
            descriptor.session_id = extension.session_id;
            descriptor.control_session_id = extension.control_session_id;
            descriptor.correlation_id = extension.correlation_id;
            descriptor.stop_timestamp_ms = NULL_VALUE;
            descriptor.stop_position = NULL_VALUE;
        })
    }

    /// Marks a recording as deleted, and sets its stop position, which may be [`NULL_VALUE`].
    ///
    /// If both fields are on one page of the file, one write changes them. Otherwise, the position is
    /// written first. After a kill between the two writes, the recording exists with this stop
    /// position. The recording can be deleted again.
    ///
    /// # Errors
    /// The recording does not exist, or the position cannot be its end: the entry is unchanged. The file system returns
    /// an error: the file may contain all or a part of the change.
    pub fn delete(&mut self, recording_id: i64, stop_position: i64) -> Result<(), CatalogError> {
        let place = self.existing(recording_id)?;
        let mut entry = self.entries[place].clone();
        entry.state = RecordingState::Deleted;
        entry.descriptor.stop_position = stop_position;
        let written = self.write_changed(place, entry, &[STOP_POSITION, STATE]);
        debug_assert!(
            self.deleted < self.entries.len(),
            "the catalog counts {} deleted entries of {}, but recording {recording_id} was not deleted yet",
            self.deleted,
            self.entries.len()
        );
        // After some errors, the entry is deleted nevertheless.
        self.deleted += usize::from(self.entries[place].state == RecordingState::Deleted);
        written
    }

    /// Marks a recording as broken, so that readers no longer see it. Does nothing if it is marked already.
    ///
    /// # Errors
    /// The recording never existed or is deleted: the entry is unchanged. The file system returns an error: the file
    /// may contain all or a part of the change.
    pub fn invalidate(&mut self, recording_id: i64) -> Result<(), CatalogError> {
        self.mark(recording_id, RecordingState::Invalid)
    }

    /// Removes the mark of a broken recording, so that readers see the recording again. Does
    /// nothing if the recording has no such mark.
    ///
    /// # Errors
    /// The recording never existed or is deleted, or its entry fails [`RecordingDescriptor::check`]: the entry is
    /// unchanged. The file system returns an error: the file may contain all or a part of the change.
    pub fn revalidate(&mut self, recording_id: i64) -> Result<(), CatalogError> {
        self.mark(recording_id, RecordingState::Valid)
    }

    /// Writes a checksum for each entry that has none. Such an entry was written without a
    /// checksum, or a kill interrupted a change of the entry. Does nothing if the catalog writes no
    /// checksums. Returns the number of entries that were changed.
    ///
    /// # Errors
    /// The file system returns an error.
    pub fn add_missing_checksums(&mut self) -> Result<usize, CatalogError> {
        if self.checksum.is_none() {
            return Ok(0);
        }
        let missing: Vec<usize> = (0..self.entries.len())
            .filter(|&place| self.entries[place].checksum == 0)
            .collect();
        for &place in &missing {
            self.write_checksum(place)?;
        }
        self.sync()?;
        Ok(missing.len())
    }

    /// Writes the checksum of an entry's current bytes, for an entry in any state. Does nothing if
    /// the catalog writes no checksums.
    ///
    /// # Errors
    /// The recording never existed, or the file system returns an error.
    pub fn update_checksum(&mut self, recording_id: i64) -> Result<(), CatalogError> {
        let place = self
            .position_of(recording_id)
            .ok_or(CatalogError::UnknownRecording { recording_id })?;
        self.write_checksum(place)?;
        self.sync()
    }

    fn write_checksum(&mut self, place: usize) -> Result<(), CatalogError> {
        if self.checksum.is_none() {
            return Ok(());
        }
        let mut entry = self.entries[place].clone();
        let bytes = entry.encode(self.checksum);
        self.write_part(&entry, &bytes, CHECKSUM_FIELD)?;
        self.entries[place] = entry;
        Ok(())
    }

    fn not_deleted(&self, recording_id: i64) -> Result<usize, CatalogError> {
        self.position_of(recording_id)
            .filter(|&place| self.entries[place].state != RecordingState::Deleted)
            .ok_or(CatalogError::UnknownRecording { recording_id })
    }

    fn mark(&mut self, recording_id: i64, state: RecordingState) -> Result<(), CatalogError> {
        let place = self.not_deleted(recording_id)?;
        if self.entries[place].state == state {
            return Ok(());
        }
        let mut entry = self.entries[place].clone();
        entry.state = state;
        self.write_changed(place, entry, &[STATE])
    }

    fn change(
        &mut self,
        recording_id: i64,
        fields: &[Range<usize>],
        change: impl FnOnce(&mut RecordingDescriptor),
    ) -> Result<(), CatalogError> {
        let place = self.existing(recording_id)?;
        let mut entry = self.entries[place].clone();
        change(&mut entry.descriptor);
        debug_assert_eq!(
            entry.descriptor.recording_id, recording_id,
            "a change of recording {recording_id} must keep its id"
        );
        self.write_changed(place, entry, fields)
    }

    /// Replaces the old entry at index `place` by `entry`. Only `fields` differ between the two entries.
    ///
    /// `fields` is in the order in which the fields are written if they are not on one page.
    fn write_changed(
        &mut self,
        place: usize,
        mut entry: CatalogEntry,
        fields: &[Range<usize>],
    ) -> Result<(), CatalogError> {
        if entry.state != RecordingState::Invalid {
            entry
                .descriptor
                .check()
                .map_err(CatalogError::InvalidRecording)?;
        }
        let bytes = entry.encode(self.checksum);
        let checksum = self.checksum.map(|_| CHECKSUM_FIELD);
        let all = || fields.iter().chain(&checksum);
        let first = all().map(|field| field.start).min().unwrap_or(0);
        let last = all().map(|field| field.end).max().unwrap_or(first);
        debug_assert!(
            first < last && last <= bytes.len(),
            "the changed bytes {first}..{last} must be within the entry of {} bytes",
            bytes.len()
        );
        debug_assert_eq!(
            bytes.len(),
            self.entries[place].length,
            "a change of single fields must not change the length of the entry of recording {}",
            entry.descriptor.recording_id
        );
        if !entry.is_on_one_page(first, last) {
            let written = self
                .write_parts(&entry, &bytes, fields)
                .and_then(|()| self.sync());
            match written {
                Ok(()) => self.entries[place] = entry,
                Err(_) => self.write_old_parts(place, fields),
            }
            return written;
        }
        self.write_part(&entry, &bytes, first..last)?;
        let mut old = std::mem::replace(&mut self.entries[place], entry);
        self.sync().inspect_err(|_| {
            // After a failed sync, it is unknown which of the two entries is on the disk. So the
            // old entry is written again.
            let bytes = old.encode(self.checksum);
            if self.write_part(&old, &bytes, first..last).is_ok() {
                self.entries[place] = old;
            }
        })
    }

    /// Writes the fields of an entry again after a change that failed. A failed sync drops bytes that were written: it
    /// is unknown which fields on the disk are old.
    fn write_old_parts(&mut self, place: usize, fields: &[Range<usize>]) {
        let mut old = self.entries[place].clone();
        let bytes = old.encode(self.checksum);
        let _ = self.write_parts(&old, &bytes, fields);
    }

    /// Writes fields one by one. Between the first and the last write, the entry has no checksum.
    /// Otherwise a kill could leave a wrong checksum.
    fn write_parts(
        &self,
        entry: &CatalogEntry,
        bytes: &[u8],
        fields: &[Range<usize>],
    ) -> Result<(), CatalogError> {
        if self.checksum.is_some() {
            let none = I32::new(0).to_bytes();
            self.write(&none, entry.offset + CHECKSUM_OFFSET as u64)?;
            self.sync()?;
        }
        for field in fields {
            self.write_part(entry, bytes, field.clone())?;
            self.sync()?;
        }
        match self.checksum {
            Some(_) => self.write_part(entry, bytes, CHECKSUM_FIELD),
            None => Ok(()),
        }
    }

    fn write_part(
        &self,
        entry: &CatalogEntry,
        bytes: &[u8],
        part: Range<usize>,
    ) -> Result<(), CatalogError> {
        let offset = entry.offset + part.start as u64;
        self.write(&bytes[part], offset)
    }
}

impl CatalogEntry {
    /// Returns whether the bytes `first..last` of the entry are on one page of the file.
    fn is_on_one_page(&self, first: usize, last: usize) -> bool {
        let page_of = |at: usize| (self.offset + at as u64) / PAGE_LENGTH;
        page_of(first) == page_of(last - 1)
    }
}

/// Returns the range, within an entry, of a field at `offset` in the descriptor.
const fn of_descriptor(offset: usize, length: usize) -> Range<usize> {
    ENTRY_HEADER_LENGTH + offset..ENTRY_HEADER_LENGTH + offset + length
}
