//! One index file: written entry by entry, and read in any order.

use std::io;

use aeron_archive::segments::sidecar_name;
use aeron_archive::storage::{Access, Storage, StorageFile};

use super::{ENTRY_LENGTH, INDEX_EXTENSION, IndexEntry, IndexHeader};

/// Writes the index of a segment, an entry at a time.
#[derive(Debug)]
pub struct IndexWriter<F> {
    file: F,
    length: u64,
}

/// An index file with a sound header.
#[derive(Debug)]
pub struct IndexFile<F> {
    file: F,
    header: IndexHeader,
    entry_count: u64,
}

impl<F: StorageFile> IndexWriter<F> {
    /// Makes the index file of a segment that is about to begin.
    ///
    /// # Errors
    /// There is one already, or the file system refuses; what was made is removed then, as far as that is possible.
    pub fn create<S: Storage<File = F>>(storage: &S, header: &IndexHeader) -> io::Result<Self> {
        let name = sidecar_name(header.recording_id, header.base_position, INDEX_EXTENSION);
        Self::create_as(storage, &name, header)
    }

    pub(super) fn create_as<S: Storage<File = F>>(
        storage: &S,
        name: &str,
        header: &IndexHeader,
    ) -> io::Result<Self> {
        let file = storage.create(name, 0)?;
        if let Err(error) = file.write_all_at(&header.encode(), 0) {
            // The first error tells more.
            let _ = storage.remove(name);
            return Err(error);
        }
        Ok(Self {
            file,
            length: ENTRY_LENGTH as u64,
        })
    }

    /// Goes on behind the whole entries of a file; a part of one behind them is overwritten.
    pub(super) fn behind(file: IndexFile<F>) -> Self {
        Self {
            length: (file.entry_count + 1) * ENTRY_LENGTH as u64,
            file: file.file,
        }
    }

    /// Writes the next entry.
    ///
    /// # Errors
    /// The file system refuses; nothing of the entry is left then, as far as that is possible.
    pub fn append(&mut self, entry: &IndexEntry) -> io::Result<()> {
        if let Err(error) = self.file.write_all_at(&entry.encode(), self.length) {
            // The first error tells more; a part of an entry is taken for none.
            let _ = self.file.set_length(self.length);
            return Err(error);
        }
        self.length += ENTRY_LENGTH as u64;
        Ok(())
    }

    /// Takes back the entry that was appended last.
    ///
    /// # Errors
    /// The file system refuses.
    pub fn undo(&mut self) -> io::Result<()> {
        self.length -= ENTRY_LENGTH as u64;
        self.file.set_length(self.length)
    }
}

impl<F: StorageFile> IndexFile<F> {
    /// Opens the index of the segment at `base`; `None` when there is none, or its header is not the one of this segment.
    ///
    /// # Errors
    /// The file system refuses.
    pub fn open<S: Storage<File = F>>(
        storage: &S,
        recording_id: i64,
        base: i64,
        access: Access,
    ) -> io::Result<Option<Self>> {
        let name = sidecar_name(recording_id, base, INDEX_EXTENSION);
        let file = match storage.open(&name, access) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let Some(bytes) = read_slot(&file, 0)? else {
            return Ok(None);
        };
        let entry_count = file.length()? / ENTRY_LENGTH as u64;
        let header = IndexHeader::decode(&bytes)
            .filter(|header| (header.recording_id, header.base_position) == (recording_id, base));
        Ok(header.map(|header| Self {
            file,
            header,
            entry_count: entry_count.saturating_sub(1),
        }))
    }

    /// What the recording held before the segment.
    pub fn header(&self) -> &IndexHeader {
        &self.header
    }

    /// Entries that were there when it was opened, sound or not.
    pub fn entry_count(&self) -> u64 {
        self.entry_count
    }

    /// The entry of this number, from 0 on; `None` when it is damaged or not there.
    ///
    /// # Errors
    /// The file system refuses.
    pub fn entry(&self, number: u64) -> io::Result<Option<IndexEntry>> {
        let bytes = read_slot(&self.file, number + 1)?;
        Ok(bytes.and_then(|bytes| IndexEntry::decode(&bytes)))
    }

    /// Fills `bytes` with the entries from `number` on; answers how many are whole.
    ///
    /// # Errors
    /// The file system refuses.
    pub fn read(&self, number: u64, bytes: &mut [u8]) -> io::Result<usize> {
        let offset = (number + 1) * ENTRY_LENGTH as u64;
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
}

/// The 64 bytes of this number; `None` behind the end.
fn read_slot(file: &impl StorageFile, number: u64) -> io::Result<Option<[u8; ENTRY_LENGTH]>> {
    let mut bytes = [0; ENTRY_LENGTH];
    match file.read_exact_at(&mut bytes, number * ENTRY_LENGTH as u64) {
        Ok(()) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(error),
    }
}
