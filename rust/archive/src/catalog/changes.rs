//! Changes of recordings that exist: each writes the fields that differ, and none of them makes an entry longer.
//!
//! What changes together is written at once if it lies on one page of the file, so that a killed process leaves all of it or nothing.
//! Where an entry goes over the end of a page, its fields are written in an order in which each state is one that a recording can have.

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

/// The values that a recording takes over from the image that continues it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extension {
    /// Session of the new image.
    pub session_id: i32,
    /// Control session of the request.
    pub control_session_id: i64,
    /// Correlation id of the request.
    pub correlation_id: i64,
}

// Fields of an entry. None of them goes over the end of a page: entries begin 32 bytes after a multiple of 64, and each range is within
// one unit of 64 bytes.
const STATE: Range<usize> = STATE_OFFSET..STATE_OFFSET + size_of::<I32>();
const START_POSITION: Range<usize> = of_descriptor(START_POSITION_OFFSET, size_of::<I64>());
const STOP_POSITION: Range<usize> = of_descriptor(STOP_POSITION_OFFSET, size_of::<I64>());
const STOP_TIMESTAMP_AND_POSITION: Range<usize> =
    STOP_TIMESTAMP_OFFSET + ENTRY_HEADER_LENGTH..STOP_POSITION.end;
const SESSION_ID: Range<usize> = of_descriptor(SESSION_ID_OFFSET, size_of::<I32>());
/// From the ids of the last extension to the stop position.
const IDS_AND_STOP: Range<usize> = ENTRY_HEADER_LENGTH..STOP_POSITION.end;

impl<S: Storage> Catalog<S> {
    /// Notes where and when a recording ended. Both change at once.
    ///
    /// # Errors
    /// The recording does not exist, the position cannot be its end, or the file system refuses; then nothing changed.
    pub fn stop(
        &mut self,
        recording_id: i64,
        position: i64,
        timestamp_ms: i64,
    ) -> Result<(), CatalogError> {
        self.change(recording_id, &[STOP_TIMESTAMP_AND_POSITION], |descriptor| {
            descriptor.stop_position = position;
            descriptor.stop_timestamp_ms = timestamp_ms;
        })
    }

    /// Corrects where and when a recording ended that may be marked as broken. Both change at once.
    ///
    /// # Errors
    /// The recording never existed or is deleted, the position cannot be its end, or the file system refuses; then nothing changed.
    pub fn correct_stop(
        &mut self,
        recording_id: i64,
        position: i64,
        timestamp_ms: i64,
    ) -> Result<(), CatalogError> {
        let place = self.not_deleted(recording_id)?;
        let mut entry = self.entries[place].clone();
        entry.descriptor.stop_position = position;
        entry.descriptor.stop_timestamp_ms = timestamp_ms;
        self.write_changed(place, entry, &[STOP_TIMESTAMP_AND_POSITION])
    }

    /// Moves the end of a recording to `position` and leaves the time at which the recording ended.
    ///
    /// # Errors
    /// The recording does not exist, the position cannot be its end, or the file system refuses; then nothing changed.
    pub fn truncate(&mut self, recording_id: i64, position: i64) -> Result<(), CatalogError> {
        self.change(recording_id, &[STOP_POSITION], |descriptor| {
            descriptor.stop_position = position;
        })
    }

    /// Moves the start of a recording, after its first bytes were given up or earlier ones were attached.
    ///
    /// # Errors
    /// The recording does not exist, the position cannot be its start, or the file system refuses; then nothing changed.
    pub fn set_start_position(
        &mut self,
        recording_id: i64,
        position: i64,
    ) -> Result<(), CatalogError> {
        self.change(recording_id, &[START_POSITION], |descriptor| {
            descriptor.start_position = position;
        })
    }

    /// Makes a recording that had ended one that is being recorded, by another session.
    ///
    /// A kill leaves the recording as it was or extended. In an entry over a page's end it may leave an ended recording that has the session
    /// id of the extension: the stop position changes last.
    ///
    /// # Errors
    /// The recording does not exist, or the file system refuses; then it is not extended.
    pub fn extend(&mut self, recording_id: i64, extension: &Extension) -> Result<(), CatalogError> {
        self.change(recording_id, &[SESSION_ID, IDS_AND_STOP], |descriptor| {
            descriptor.session_id = extension.session_id;
            descriptor.control_session_id = extension.control_session_id;
            descriptor.correlation_id = extension.correlation_id;
            descriptor.stop_timestamp_ms = NULL_VALUE;
            descriptor.stop_position = NULL_VALUE;
        })
    }

    /// Ends the existence of a recording, and notes where it stopped, or [`NULL_VALUE`]: a session that comes back may want to know.
    ///
    /// Both are one write. In an entry over a page's end the kill of a process could part them, so there the position is written
    /// first: a recording that exists with that stop position is one that can be deleted again.
    ///
    /// # Errors
    /// The recording does not exist, the position cannot be its end, or the file system refuses; then it still exists.
    pub fn delete(&mut self, recording_id: i64, stop_position: i64) -> Result<(), CatalogError> {
        let place = self.existing(recording_id)?;
        let mut entry = self.entries[place].clone();
        entry.state = RecordingState::Deleted;
        entry.descriptor.stop_position = stop_position;
        self.write_changed(place, entry, &[STOP_POSITION, STATE])
    }

    /// Marks a recording as broken: it does not exist for readers any more. Does nothing if it is marked already.
    ///
    /// # Errors
    /// The recording never existed or is deleted, or the file system refuses; then nothing changed.
    pub fn invalidate(&mut self, recording_id: i64) -> Result<(), CatalogError> {
        self.mark(recording_id, RecordingState::Invalid)
    }

    /// Makes a recording that was marked as broken exist again. Does nothing if the recording exists.
    ///
    /// # Errors
    /// The recording never existed or is deleted, its entry fails [`RecordingDescriptor::check`], or the file system refuses; then nothing
    /// changed.
    pub fn revalidate(&mut self, recording_id: i64) -> Result<(), CatalogError> {
        self.mark(recording_id, RecordingState::Valid)
    }

    /// Gives a checksum to each entry that has none: entries of a catalog that was written without, or in which a kill ended a change.
    /// Does nothing if the catalog writes no checksums. Returns the number of entries that were changed.
    ///
    /// # Errors
    /// The file system refuses.
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

    /// Gives an entry, whatever its state is, the checksum of what it says now. Does nothing if the catalog writes no checksums.
    ///
    /// # Errors
    /// The recording never existed, or the file system refuses.
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
        self.write_changed(place, entry, fields)
    }

    /// Puts `entry` in the place of the one that differs from it in `fields`, which are in the order in which they are written.
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
        if entry.is_on_one_page(first, last) {
            self.write_part(&entry, &bytes, first..last)?;
        } else {
            self.write_parts(&entry, &bytes, fields)?;
        }
        self.entries[place] = entry;
        self.sync()
    }

    /// Writes fields one by one. Between the first and the last of them the entry has no checksum, which is better than a wrong one.
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
    /// Whether the bytes from `first` to `last` of the entry are on one page of the file.
    fn is_on_one_page(&self, first: usize, last: usize) -> bool {
        let page_of = |at: usize| (self.offset + at as u64) / PAGE_LENGTH;
        page_of(first) == page_of(last - 1)
    }
}

/// The bytes of an entry at `offset` in its descriptor.
const fn of_descriptor(offset: usize, length: usize) -> Range<usize> {
    ENTRY_HEADER_LENGTH + offset..ENTRY_HEADER_LENGTH + offset + length
}
