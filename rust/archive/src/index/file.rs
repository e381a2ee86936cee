//! [`IndexWriter`] and [`IndexFile`]: one index file, written entry by entry, and read in any order.

use std::io;

use aeron_memory::log::frame::FRAME_ALIGNMENT;

use crate::segments::{old_index_name, sidecar_name};
use crate::storage::{Access, Storage, StorageFile, SyncLevel};
use crate::stream::RecordedStream;
use crate::verifier::SessionField;

use super::arrivals::SegmentArrivals;
use super::{ENTRY_LENGTH, INDEX_EXTENSION, IndexEntry, IndexForm, IndexHeader, IndexRecorder};

/// Number of entries that one read returns in the search for the last entry.
const ENTRIES_PER_READ: usize = 64;
/// Maximum number of entries and records in an index: one for each frame of the longest segment, and two before them.
const MAX_SLOTS: u64 = MAX_SEGMENT_LENGTH / FRAME_ALIGNMENT as u64 + 2;
const MAX_SEGMENT_LENGTH: u64 = 1 << 30;
/// Offset of the recorder's record in a sparse index.
const RECORDER_OFFSET: u64 = ENTRY_LENGTH as u64;

/// Writes the index of a segment, one entry at a time.
#[derive(Debug)]
pub struct IndexWriter<F> {
    file: F,
    length: u64,
}

/// An open index file with a valid header.
#[derive(Debug)]
pub struct IndexFile<F> {
    name: String,
    file: F,
    header: IndexHeader,
    recorder: Option<IndexRecorder>,
    entry_count: u64,
}

impl<F: StorageFile> IndexWriter<F> {
    /// Creates the index file of a new segment.
    ///
    /// # Errors
    /// The file exists, or the file system returns an error. If the file was created before the
    /// error, it is removed if possible.
    pub fn create<S: Storage<File = F>>(storage: &S, header: &IndexHeader) -> io::Result<Self> {
        let name = sidecar_name(header.recording_id, header.base_position, INDEX_EXTENSION);
        Self::create_as(storage, &name, header, None)
    }

    pub(super) fn create_as<S: Storage<File = F>>(
        storage: &S,
        name: &str,
        header: &IndexHeader,
        recorder: Option<&IndexRecorder>,
    ) -> io::Result<Self> {
        let file = storage.create(name, 0)?;
        let mut bytes = header.encode().to_vec();
        if header.form == IndexForm::Sparse {
            bytes.extend(recorder.map_or([0; ENTRY_LENGTH], IndexRecorder::encode));
        }
        if let Err(error) = file.write_all_at(&bytes, 0) {
            // If the removal fails too, the first error is more useful.
            let _ = storage.remove(name);
            return Err(error);
        }
        Ok(Self {
            file,
            length: bytes.len() as u64,
        })
    }

    /// Creates a writer that appends after the complete entries of a file. An incomplete entry at
    /// the end is overwritten.
    pub(super) fn behind(file: IndexFile<F>) -> Self {
        Self {
            length: file.offset_of(file.entry_count),
            file: file.file,
        }
    }

    /// Appends an entry.
    ///
    /// # Errors
    /// The file system returns an error. Then the incomplete entry is removed, if that is possible.
    pub fn append(&mut self, entry: &IndexEntry) -> io::Result<()> {
        debug_assert!(
            self.length.is_multiple_of(ENTRY_LENGTH as u64),
            "an index entry at offset {} could cross the end of a page, so that a kill would leave a part of it",
            self.length
        );
        if let Err(error) = self.file.write_all_at(&entry.encode(), self.length) {
            // If the removal fails too, readers ignore the incomplete entry. The first error is more useful.
            let _ = self.file.set_length(self.length);
            return Err(error);
        }
        self.length += ENTRY_LENGTH as u64;
        Ok(())
    }

    /// Removes the entry that was appended last.
    ///
    /// # Errors
    /// The file system returns an error.
    pub fn undo(&mut self) -> io::Result<()> {
        debug_assert!(
            self.length >= 2 * ENTRY_LENGTH as u64,
            "an index of {} bytes has no entry that can be removed",
            self.length
        );
        self.length -= ENTRY_LENGTH as u64;
        self.file.set_length(self.length)
    }

    /// Writes the record of the recorder that writes the segment from now on. Only for the sparse form.
    pub(super) fn set_recorder(&mut self, recorder: &IndexRecorder) -> io::Result<()> {
        self.file.write_all_at(&recorder.encode(), RECORDER_OFFSET)
    }

    /// Forces the written entries to the disk.
    pub(super) fn sync(&self, level: SyncLevel) -> io::Result<()> {
        self.file.sync(level)
    }
}

impl<F: StorageFile> IndexFile<F> {
    /// Opens the index of the segment at `base`. Returns `None` if the file does not exist, or its header is damaged or
    /// belongs to another segment. If the file is too long for an index, its further entries are not read.
    ///
    /// An index may have the name of older releases. If both releases use a directory in turns, a segment may have two
    /// indexes. Then the one that covers more of the segment is opened. If both cover the same, the one with the new
    /// name is opened.
    ///
    /// # Errors
    /// The file system returns an error, or the file has a later version than this software reads.
    pub fn open<S: Storage<File = F>>(
        storage: &S,
        recording_id: i64,
        base: i64,
        access: Access,
    ) -> io::Result<Option<Self>> {
        let open = |name| Self::open_as(storage, name, recording_id, base, access);
        let new = open(sidecar_name(recording_id, base, INDEX_EXTENSION))?;
        let old = open(old_index_name(recording_id, base, INDEX_EXTENSION))?;
        match (new, old) {
            (Some(new), Some(old)) => match old.covered()? > new.covered()? {
                true => Ok(Some(old)),
                false => Ok(Some(new)),
            },
            (new, old) => Ok(new.or(old)),
        }
    }

    fn open_as<S: Storage<File = F>>(
        storage: &S,
        name: String,
        recording_id: i64,
        base: i64,
        access: Access,
    ) -> io::Result<Option<Self>> {
        let file = match storage.open(&name, access) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let Some(bytes) = read_slot(&file, 0)? else {
            return Ok(None);
        };
        if let Some(newer) = IndexHeader::newer_version(&bytes) {
            return Err(newer.into());
        }
        let slots = (file.length()? / ENTRY_LENGTH as u64).min(MAX_SLOTS);
        let Some(header) =
            IndexHeader::decode(&bytes, recording_id).filter(|header| header.base_position == base)
        else {
            return Ok(None);
        };
        let recorder = match header.form {
            IndexForm::Dense => None,
            IndexForm::Sparse => read_slot(&file, 1)?,
        };
        Ok(Some(Self {
            name,
            file,
            header,
            recorder: recorder.and_then(|bytes| IndexRecorder::decode(&bytes)),
            entry_count: slots.saturating_sub(first_slot(header.form)),
        }))
    }

    /// Returns the name of the file.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the end of the last entry, and the position at which the recorder began.
    fn covered(&self) -> io::Result<(Option<i64>, Option<i64>)> {
        let last = self.last_entry(i64::MAX)?;
        let begin = self.recorder.as_ref().map(|it| it.begin_position);
        Ok((last.map(|(_, entry)| entry.end_position), begin))
    }

    /// Returns the header of the file.
    pub fn header(&self) -> &IndexHeader {
        &self.header
    }

    /// Returns the recorder that writes the segment, if the index contains it.
    pub fn recorder(&self) -> Option<&IndexRecorder> {
        self.recorder.as_ref()
    }

    /// Returns the number of entries at the time of opening, including damaged entries.
    pub fn entry_count(&self) -> u64 {
        self.entry_count
    }

    /// Returns the entry with a number. Returns `None` if the entry is damaged or does not exist.
    ///
    /// # Errors
    /// The file system returns an error.
    pub fn entry(&self, number: u64) -> io::Result<Option<IndexEntry>> {
        let bytes = read_slot(&self.file, first_slot(self.header.form) + number)?;
        Ok(bytes.and_then(|bytes| IndexEntry::decode(&bytes)))
    }

    /// Fills `bytes` with the entries from `number` on. Returns the number of entries that were read completely.
    ///
    /// # Errors
    /// The file system returns an error.
    pub fn read(&self, number: u64, bytes: &mut [u8]) -> io::Result<usize> {
        let offset = self.offset_of(number);
        let mut filled = 0;
        while filled < bytes.len() {
            match self
                .file
                .read_at(&mut bytes[filled..], offset + filled as u64)
            {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(filled / ENTRY_LENGTH)
    }

    /// Returns whether at least one entry has an arrival time.
    ///
    /// # Errors
    /// The file system returns an error.
    pub(crate) fn has_times(&self) -> io::Result<bool> {
        Ok(
            SegmentArrivals::of(self, self.header.base_position, i64::MAX)?
                .last()?
                .is_some(),
        )
    }

    /// Returns the last valid entry that ends at `limit` or before, with its number.
    pub(crate) fn last_entry(&self, limit: i64) -> io::Result<Option<(u64, IndexEntry)>> {
        let mut bytes = vec![0; ENTRIES_PER_READ * ENTRY_LENGTH];
        let mut end = self.entry_count.min(self.most_entries(limit));
        while end > 0 {
            let first = end.saturating_sub(ENTRIES_PER_READ as u64);
            let length = (end - first) as usize * ENTRY_LENGTH;
            let count = self.read(first, &mut bytes[..length])?;
            let (slots, _) = bytes[..count * ENTRY_LENGTH].as_chunks::<ENTRY_LENGTH>();
            for (at, slot) in slots.iter().enumerate().rev() {
                let entry = IndexEntry::decode(slot);
                if let Some(entry) = entry.filter(|entry| entry.end_position <= limit) {
                    return Ok(Some((first + at as u64, entry)));
                }
            }
            end = first;
        }
        Ok(None)
    }

    /// Returns the maximum number of valid entries that end at `limit` or before. A damaged file
    /// may have many more entries.
    pub(super) fn most_entries(&self, limit: i64) -> u64 {
        let covered = limit.saturating_sub(self.header.base_position).max(0);
        covered as u64 / FRAME_ALIGNMENT as u64
    }

    /// Removes all but the first `count` entries.
    pub(super) fn keep(&self, count: u64) -> io::Result<()> {
        debug_assert!(
            count <= self.entry_count,
            "an index of {} entries cannot keep {count}",
            self.entry_count
        );
        self.file.set_length(self.offset_of(count))
    }

    /// Writes the record of the recorder that writes the segment. Only for the sparse form.
    pub(super) fn set_recorder(&self, recorder: &IndexRecorder) -> io::Result<()> {
        self.file.write_all_at(&recorder.encode(), RECORDER_OFFSET)
    }

    fn offset_of(&self, number: u64) -> u64 {
        (first_slot(self.header.form) + number) * ENTRY_LENGTH as u64
    }
}

/// Returns the number of 64-byte slots before the first entry.
fn first_slot(form: IndexForm) -> u64 {
    match form {
        IndexForm::Dense => 1,
        IndexForm::Sparse => 2,
    }
}

/// Returns the 64 bytes of a slot; `None` after the end of the file.
fn read_slot(file: &impl StorageFile, number: u64) -> io::Result<Option<[u8; ENTRY_LENGTH]>> {
    let mut bytes = [0; ENTRY_LENGTH];
    match file.read_exact_at(&mut bytes, number * ENTRY_LENGTH as u64) {
        Ok(()) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns the content of the session id fields of a segment's frames, according to its index.
pub(super) fn session_field<S: Storage>(
    storage: &S,
    stream: &RecordedStream,
    base: i64,
    is_trusted: bool,
) -> io::Result<SessionField> {
    let file = IndexFile::open(storage, stream.recording_id(), base, Access::Read)?;
    let recorder = file
        .filter(|_| is_trusted)
        .and_then(|it| it.recorder().copied());
    Ok(recorder.map_or(SessionField::Unknown, |it| it.session_field))
}
