//! [`ExtensionFile`]: the file of extensions. Each change is appended to the file. When the file
//! has become too long, it is replaced by a new file.

use std::fmt;
use std::io;

use super::record::{FILE_HEADER_LENGTH, file_header, newer_version, read_records, write_record};
use super::state::ExtensionChange;
use crate::storage::{Access, Storage, StorageFile, SyncLevel};

/// Name of the file.
pub const EXTENSIONS_FILE_NAME: &str = "archive-extensions.dat";
/// Name of a new file until it replaces the existing file.
const NEW_FILE_NAME: &str = "archive-extensions.new";
/// Name of a damaged file that was set aside.
const DAMAGED_FILE_NAME: &str = "archive-extensions.damaged";
/// Longest file that is read, in bytes. A file with all readers, policies and infos that an archive
/// accepts is shorter, even just before a compaction.
const MAX_LENGTH: u64 = 1 << 30;
/// Default length up to which a file is not compacted, in bytes.
pub const MIN_COMPACTED_LENGTH: u64 = 256 * 1024;
/// A file is compacted when it is more than this many times as long as after the last compaction.
const GROWTH: u64 = 4;

/// The file of extensions was damaged, and was renamed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DamagedExtensions {
    /// New name of the file.
    pub name: &'static str,
}

impl fmt::Display for DamagedExtensions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{EXTENSIONS_FILE_NAME} was damaged and is now {}: the archive has no named readers, no retention policies, \
             and no names and metadata of recordings until they are set again; it resumes no recording; no data of \
             recordings is lost",
            self.name
        )
    }
}

#[derive(Debug)]
pub(super) struct ExtensionFile<S: Storage> {
    storage: S,
    sync_level: SyncLevel,
    /// A file of at most this length is not compacted.
    min_compacted_length: u64,
    /// The open file, and the end of its last record.
    open: Option<(S::File, u64)>,
    /// Length after the last compaction by this process; 0 before its first compaction. So the first change after a
    /// start compacts a long file, and the file does not become longer from start to start.
    compacted_length: u64,
}

impl<S: Storage> ExtensionFile<S> {
    /// Opens the file, if it exists, and reads its changes.
    pub(super) fn open(
        storage: S,
        sync_level: SyncLevel,
        min_compacted_length: u64,
    ) -> io::Result<(Self, Vec<ExtensionChange>, Option<DamagedExtensions>)> {
        let mut file = Self {
            storage,
            sync_level,
            min_compacted_length,
            open: None,
            compacted_length: 0,
        };
        let existing = match file.storage.open(EXTENSIONS_FILE_NAME, Access::Write) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok((file, Vec::new(), None));
            }
            existing => existing?,
        };
        check_version(&existing)?;
        let length = existing.length()?;
        // The file is empty if a process was killed after it had created the file and before it wrote the first record.
        if length == 0 {
            file.open = Some((existing, 0));
            return Ok((file, Vec::new(), None));
        }
        let mut bytes = Vec::new();
        if length <= MAX_LENGTH {
            bytes.resize(length as usize, 0);
            existing.read_exact_at(&mut bytes, 0)?;
        }
        match read_records(&bytes) {
            Some(records) => {
                file.open = Some((existing, records.end as u64));
                Ok((file, records.changes, None))
            }
            None if length < FILE_HEADER_LENGTH as u64 => {
                file.open = Some((existing, 0));
                Ok((file, Vec::new(), None))
            }
            None => {
                let name = DAMAGED_FILE_NAME;
                file.storage.rename(EXTENSIONS_FILE_NAME, name)?;
                Ok((file, Vec::new(), Some(DamagedExtensions { name })))
            }
        }
    }

    /// Appends the records of changes.
    pub(super) fn append(&mut self, changes: &[ExtensionChange]) -> io::Result<()> {
        let is_new = self.open.is_none();
        let (file, end) = match self.open.take() {
            Some(open) => open,
            None => (self.storage.create(EXTENSIONS_FILE_NAME, 0)?, 0),
        };
        let written = append_records(&file, changes, end, self.sync_level);
        if written.is_err() {
            // If this call fails too, the next change removes the bytes after `end`.
            let _ = file.set_length(end);
        }
        let new_end = written.as_ref().map_or(end, |end| *end);
        debug_assert!(
            new_end >= end,
            "the extensions must not become shorter, from {end} to {new_end} bytes, without a compaction"
        );
        self.open = Some((file, new_end));
        written?;
        if is_new && self.sync_level != SyncLevel::None {
            self.storage.sync()?;
        }
        Ok(())
    }

    /// Returns whether the file has grown so much that it should be compacted.
    pub(super) fn is_compaction_due(&self) -> bool {
        let length = self.open.as_ref().map_or(0, |(_, end)| *end);
        length
            > self
                .min_compacted_length
                .max(self.compacted_length.saturating_mul(GROWTH))
    }

    /// Writes a new file with only these changes. The new file replaces the old file.
    pub(super) fn compact(&mut self, changes: Vec<ExtensionChange>) -> io::Result<()> {
        let mut bytes = file_header().to_vec();
        for change in &changes {
            write_record(change, &mut bytes);
        }
        // A killed process may have left a file with this name.
        match self.storage.remove(NEW_FILE_NAME) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let file = self.storage.create(NEW_FILE_NAME, 0)?;
        file.write_all_at(&bytes, 0)?;
        // The new file replaces all records. So it is forced to the disk before the rename, at any sync level.
        file.sync(SyncLevel::DataAndMetadata)?;
        self.storage.rename(NEW_FILE_NAME, EXTENSIONS_FILE_NAME)?;
        self.compacted_length = bytes.len() as u64;
        self.open = Some((file, self.compacted_length));
        self.storage.sync()
    }
}

/// Checks that the file has no later version than this software reads. The file may be empty or damaged.
pub(super) fn check_version<F: StorageFile>(file: &F) -> io::Result<()> {
    let mut header = [0; FILE_HEADER_LENGTH];
    match file.read_exact_at(&mut header, 0) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(()),
        Err(error) => Err(error),
        Ok(()) => newer_version(&header).map_or(Ok(()), |newer| Err(newer.into())),
    }
}

/// Writes the records of changes at `end`, and a header into an empty file. First removes the bytes after `end`: a part
/// of a record from an earlier write that failed. Returns the new end.
///
/// Each record is forced to the disk before the next one is written. Otherwise a loss of power could keep a later
/// record and lose an earlier one, and the file would be damaged.
fn append_records<F: StorageFile>(
    file: &F,
    changes: &[ExtensionChange],
    mut end: u64,
    sync_level: SyncLevel,
) -> io::Result<u64> {
    debug_assert!(
        end.is_multiple_of(8),
        "a record at offset {end} would not be found: records begin at multiples of 8"
    );
    if file.length()? > end {
        file.set_length(end)?;
    }
    let mut bytes = match end {
        0 => file_header().to_vec(),
        _ => Vec::new(),
    };
    for change in changes {
        write_record(change, &mut bytes);
        file.write_all_at(&bytes, end)?;
        file.sync(sync_level)?;
        end += bytes.len() as u64;
        bytes.clear();
    }
    Ok(end)
}
