//! The mark file: shows the owner of an archive directory, the heartbeat of the owner, and the errors of the archive.
//!
//! The file `archive-mark.dat` has a header of 8 KiB and then a distinct error log. The owner
//! writes the time into the file once a second. The file is written by `pwrite`, without an atomic
//! compare-and-set. So two archives that start at the same time could both take the file. Before
//! [`MarkFile::take`], the caller must exclude other starts, by a lock or by
//! [`MarkFileState::is_active`].
//!
//! The version is 0 from creation to [`MarkFile::ready`]. So an owner that was killed during its
//! start can be distinguished from an owner that was ready. Aeron's own archives and tools wait for
//! another version than 0, or refuse the file.

mod errors;
mod header;

pub use header::{HEADER_LENGTH, MarkFileState, Owner};

use std::io;

use aeron_layout::{I32, I64};
use aeron_memory::buffer::SharedBuffer;
use aeron_memory::cnc::SemanticVersion;
use aeron_memory::date::format_date;
use aeron_memory::error_log::{self, ErrorLogFull, ErrorObservation};

use crate::Damage;
use crate::storage::{Access, Storage, StorageFile};
use errors::{ErrorLog, ErrorOrigin};
use header::{ACTIVITY_TIMESTAMP_OFFSET, VERSION_OFFSET};

/// Name of the mark file.
pub const MARK_FILE: &str = "archive-mark.dat";
/// Name of the file with the path of the mark file's directory. It exists if the mark file is in
/// another directory.
pub const LINK_FILE: &str = "archive-mark.lnk";
/// Version of the layout. A mark file of another major version is refused.
pub const MARK_FILE_VERSION: SemanticVersion = SemanticVersion::new(3, 1, 0);
/// Default length of the error log after the header, in bytes.
pub const ERROR_BUFFER_LENGTH: usize = 1024 * 1024;
/// Length of the whole file with an error log of the default length, in bytes.
pub const FILE_LENGTH: u64 = file_length(ERROR_BUFFER_LENGTH);
/// An owner is dead if its last heartbeat is at least this old, in milliseconds.
pub const ACTIVITY_TIMEOUT_MS: i64 = 10_000;
/// Interval of the owner's heartbeats, in milliseconds.
pub const HEARTBEAT_INTERVAL_MS: i64 = 1_000;

/// Maximum number of bytes that are read from the error log of an existing mark file.
const MAX_ERROR_BUFFER_LENGTH: u64 = 64 * 1024 * 1024;
/// Maximum number of bytes that one read returns while an old error log is cleared.
const CLEARED_BLOCK_LENGTH: usize = 1024 * 1024;
/// The length of the file is a multiple of this length.
const PAGE_LENGTH: u64 = 4096;
/// Maximum length of the path in a link file, in bytes. A longer path is an error.
const MAX_LINK_LENGTH: usize = 4096;
/// Activity timestamp after a regular end of the archive.
const ENDED: i64 = -1;

/// The mark file of an archive that this process owns. If this value is dropped without
/// [`close`](Self::close), the file stays like the mark file of a killed owner.
#[derive(Debug)]
pub struct MarkFile<F> {
    file: F,
    errors: ErrorLog,
    last_activity_ms: i64,
}

/// Why a mark file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum MarkFileError {
    /// The file system returned an error.
    #[error("{name}: cannot {doing}: {source}")]
    Io {
        /// Name of the file.
        name: String,
        /// The operation that failed.
        doing: &'static str,
        /// Error of the file system.
        source: io::Error,
    },
    /// The file was written with another major version of the layout.
    #[error("mark file version {file} is not compatible with software: {MARK_FILE_VERSION}")]
    IncompatibleVersion {
        /// The version in the file.
        file: SemanticVersion,
    },
    /// The file has bytes that no archive writes.
    #[error("{MARK_FILE} is damaged: {0}")]
    Damaged(#[from] Damage),
    /// The channels and the directory are too long for the header.
    #[error("mark file header of {length} bytes exceeds {HEADER_LENGTH}")]
    HeaderTooLong {
        /// Number of bytes that the header would need.
        length: usize,
    },
    /// The error log has no room for the error, so the error was not logged.
    #[error(transparent)]
    ErrorLogFull(#[from] ErrorLogFull),
}

/// Returns the content of the mark file of a directory, if the file exists. An empty file is
/// treated as a file of version 0.
///
/// # Errors
/// The file is damaged or has another major version, or the file system returns an error.
pub fn read<S: Storage>(storage: &S) -> Result<Option<MarkFileState>, MarkFileError> {
    let Some(file) = open(storage, MARK_FILE, Access::Read)? else {
        return Ok(None);
    };
    read_state(&file).map(Some)
}

/// Returns the errors in the mark file of a directory, oldest first.
///
/// # Errors
/// The same errors as [`read`].
pub fn read_errors<S: Storage>(storage: &S) -> Result<Vec<ErrorObservation>, MarkFileError> {
    let Some(file) = open(storage, MARK_FILE, Access::Read)? else {
        return Ok(Vec::new());
    };
    let state = read_state(&file)?;
    let log = read_error_log(&file, state.error_buffer_length)?;
    Ok(observations(&log))
}

/// Returns the path in the link file: the directory of the mark file. Returns `None` if there is no
/// link file.
///
/// # Errors
/// The file system returns an error, or the path is longer than 4096 bytes or not UTF-8.
pub fn read_link<S: Storage>(storage: &S) -> Result<Option<String>, MarkFileError> {
    let Some(file) = open(storage, LINK_FILE, Access::Read)? else {
        return Ok(None);
    };
    let reading = |source| failure(LINK_FILE, "read it", source);
    let length = file.length().map_err(reading)?;
    if length > MAX_LINK_LENGTH as u64 {
        return Err(reading(io::ErrorKind::FileTooLarge.into()));
    }
    let mut path = vec![0; length as usize];
    file.read_exact_at(&mut path, 0).map_err(reading)?;
    String::from_utf8(path)
        .map(Some)
        .map_err(|error| reading(io::Error::new(io::ErrorKind::InvalidData, error)))
}

impl<F: StorageFile> MarkFile<F> {
    /// Writes a new mark file for `owner`, even if the directory has a mark file of an active owner. The errors of the
    /// previous owner are saved in a separate file, and a link to another directory is removed. The length of the
    /// error log is [`ERROR_BUFFER_LENGTH`]. The space of the error log is reserved, so that it can be written when the
    /// disk is full.
    ///
    /// # Errors
    /// The owner's texts do not fit, or the file system returns an error. Then the mark file is marked as ended, if the
    /// file system permits it.
    pub fn take<S: Storage<File = F>>(
        storage: &S,
        owner: &Owner,
        now_ms: i64,
    ) -> Result<Self, MarkFileError> {
        Self::take_with_error_buffer(storage, owner, ERROR_BUFFER_LENGTH, now_ms)
    }

    /// Does the same as [`take`](Self::take), with an error log of `error_buffer_length` bytes, at
    /// most 2^31 - 1.
    ///
    /// # Errors
    /// The same errors as [`take`](Self::take).
    pub fn take_with_error_buffer<S: Storage<File = F>>(
        storage: &S,
        owner: &Owner,
        error_buffer_length: usize,
        now_ms: i64,
    ) -> Result<Self, MarkFileError> {
        let header = owner.encode(error_buffer_length, now_ms)?;
        let file_length = file_length(error_buffer_length);
        if let Err(source) = storage.remove(LINK_FILE)
            && source.kind() != io::ErrorKind::NotFound
        {
            return Err(failure(LINK_FILE, "remove it", source));
        }
        let file = match open(storage, MARK_FILE, Access::Write)? {
            Some(file) => {
                save_errors(storage, &file, now_ms)?;
                clear_errors(&file, file_length)?;
                file
            }
            None => storage.create(MARK_FILE, file_length).map_err(|source| {
                // The file may exist without a length. It would have version 0, which blocks Aeron's archive.
                if source.kind() != io::ErrorKind::AlreadyExists {
                    let _ = storage.remove(MARK_FILE);
                }
                failure(MARK_FILE, "create it", source)
            })?,
        };
        let written = file
            .write_all_at(&header, 0)
            .and_then(|()| file.set_length(file_length));
        // An error is ignored. An archive on a full disk must start, because it can still replay and delete recordings.
        // Some file systems cannot reserve space.
        let _ = file.reserve(file_length);
        let mark_file = Self {
            file,
            errors: ErrorLog::new(error_buffer_length),
            last_activity_ms: now_ms,
        };
        if let Err(source) = written {
            // The first error is more useful than those of these calls. A file that stays with version 0 would block
            // Aeron's archive. Without a whole header, the version does not count.
            let header = mark_file.file.write_all_at(&header, 0);
            if header.is_err() || mark_file.close().is_err() {
                let _ = storage.remove(MARK_FILE);
            }
            return Err(writing(source));
        }
        Ok(mark_file)
    }

    /// Marks the archive as ready, by writing the version.
    ///
    /// # Errors
    /// The file system returns an error.
    pub fn ready(&mut self, now_ms: i64) -> Result<(), MarkFileError> {
        self.store_activity(now_ms)?;
        self.store_version()
    }

    /// Writes the time into the file if the last heartbeat is at least one second old, or if the wall clock was set
    /// back. Call it in every duty cycle.
    ///
    /// # Errors
    /// The file system returns an error.
    pub fn heartbeat(&mut self, now_ms: i64) -> Result<(), MarkFileError> {
        let next_ms = self.last_activity_ms.saturating_add(HEARTBEAT_INTERVAL_MS);
        if (self.last_activity_ms..next_ms).contains(&now_ms) {
            return Ok(());
        }
        self.store_activity(now_ms)
    }

    /// Counts one observation of an error of the archive or its data. Such errors have at least three quarters of the
    /// log.
    ///
    /// # Errors
    /// The text is new and the log is full: then one entry counts all such errors. Or the file system returns an error.
    pub fn record_error(&mut self, now_ms: i64, text: &str) -> Result<(), MarkFileError> {
        self.errors
            .observe(&self.file, now_ms, ErrorOrigin::Archive, text)
    }

    /// Counts one observation of an error that a client has caused. A text of more than 1,024 bytes is cut. Such errors
    /// may fill a quarter of the log.
    ///
    /// # Errors
    /// The same errors as [`record_error`](Self::record_error).
    pub fn record_client_error(&mut self, now_ms: i64, text: &str) -> Result<(), MarkFileError> {
        self.errors
            .observe(&self.file, now_ms, ErrorOrigin::Client, text)
    }

    /// Marks the archive as ended, so that the next owner need not wait. After a start that failed, also writes the
    /// version: Aeron's archive refuses a directory with version 0.
    ///
    /// # Errors
    /// The file system returns an error. The next owner then waits.
    pub fn close(mut self) -> Result<(), MarkFileError> {
        // The activity is stored first: with a version, it would belong to an archive that is ready.
        self.store_activity(ENDED)?;
        self.store_version()
    }

    fn store_version(&mut self) -> Result<(), MarkFileError> {
        let version = I32::new(MARK_FILE_VERSION.0).to_bytes();
        self.file
            .write_all_at(&version, VERSION_OFFSET as u64)
            .map_err(writing)
    }

    fn store_activity(&mut self, timestamp_ms: i64) -> Result<(), MarkFileError> {
        self.file
            .write_all_at(
                &I64::new(timestamp_ms).to_bytes(),
                ACTIVITY_TIMESTAMP_OFFSET as u64,
            )
            .map_err(writing)?;
        self.last_activity_ms = timestamp_ms;
        Ok(())
    }
}

impl MarkFileState {
    /// Returns whether the last heartbeat is less than ten seconds old, or in the future. An archive does not start in
    /// a directory with an active owner.
    #[must_use]
    pub fn is_active(&self, now_ms: i64) -> bool {
        let age_ms = now_ms.saturating_sub(self.activity_timestamp_ms);
        self.activity_timestamp_ms != ENDED && age_ms < ACTIVITY_TIMEOUT_MS
    }
}

fn read_state(file: &impl StorageFile) -> Result<MarkFileState, MarkFileError> {
    let mut header = [0; HEADER_LENGTH];
    let length = file.length().map_err(reading)?.min(HEADER_LENGTH as u64) as usize;
    file.read_exact_at(&mut header[..length], 0)
        .map_err(reading)?;
    MarkFileState::decode(&header)
}

/// Saves the errors of the previous owner in a separate file. If the header of the mark file
/// cannot be read, no errors are saved.
fn save_errors<S: Storage>(storage: &S, file: &S::File, now_ms: i64) -> Result<(), MarkFileError> {
    let Ok(state) = read_state(file) else {
        return Ok(());
    };
    let errors = observations(&read_error_log(file, state.error_buffer_length)?);
    match errors.is_empty() {
        true => Ok(()),
        false => save_report(storage, &errors, now_ms),
    }
}

/// Fills the error log of the previous owner with zeros, up to `kept_length`. The caller cuts the file there.
fn clear_errors(file: &impl StorageFile, kept_length: u64) -> Result<(), MarkFileError> {
    let mut block = vec![0; CLEARED_BLOCK_LENGTH];
    let mut at = HEADER_LENGTH as u64;
    let end = file.length().map_err(reading)?.min(kept_length);
    while at < end {
        let length = (end - at).min(block.len() as u64) as usize;
        let old = &mut block[..length];
        file.read_exact_at(old, at).map_err(reading)?;
        // Zeros at the end of the block are not written again, so that unwritten parts of a sparse file take no space.
        if let Some(last) = old.iter().rposition(|&byte| byte != 0) {
            old.fill(0);
            file.write_all_at(&old[..=last], at).map_err(writing)?;
        }
        at += length as u64;
    }
    Ok(())
}

/// Returns the length of a mark file whose error log has this length.
const fn file_length(error_buffer_length: usize) -> u64 {
    ((HEADER_LENGTH + error_buffer_length) as u64).next_multiple_of(PAGE_LENGTH)
}

fn save_report<S: Storage>(
    storage: &S,
    errors: &[ErrorObservation],
    now_ms: i64,
) -> Result<(), MarkFileError> {
    let date = format_date(now_ms).replace([' ', ':', '.'], "-");
    let name = format!("archive-{date}-error.log");
    let mut report = String::new();
    error_log::write_report(&mut report, errors, format_date)
        .expect("writing to a string does not fail");
    match storage.create(&name, 0) {
        Ok(file) => file
            .write_all_at(report.as_bytes(), 0)
            .map_err(|source| failure(&name, "write it", source)),
        // Another start in the same millisecond has saved the errors.
        Err(source) if source.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(source) => Err(failure(&name, "create it", source)),
    }
}

/// Returns the bytes of an error log. `declared` is its length according to the header; the end of
/// the file may be earlier.
fn read_error_log(file: &impl StorageFile, declared: i32) -> Result<Vec<u8>, MarkFileError> {
    let available = file
        .length()
        .map_err(reading)?
        .saturating_sub(HEADER_LENGTH as u64);
    let declared = u64::try_from(declared).unwrap_or(0);
    let length = declared.min(available).min(MAX_ERROR_BUFFER_LENGTH);
    let mut log = vec![0; length as usize];
    file.read_exact_at(&mut log, HEADER_LENGTH as u64)
        .map_err(reading)?;
    Ok(log)
}

fn observations(log: &[u8]) -> Vec<ErrorObservation> {
    error_log::read(&SharedBuffer::copy_of(log), 0)
}

fn open<S: Storage>(
    storage: &S,
    name: &str,
    access: Access,
) -> Result<Option<S::File>, MarkFileError> {
    match storage.open(name, access) {
        Ok(file) => Ok(Some(file)),
        Err(source) if source.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(failure(name, "open it", source)),
    }
}

fn reading(source: io::Error) -> MarkFileError {
    failure(MARK_FILE, "read it", source)
}

fn writing(source: io::Error) -> MarkFileError {
    failure(MARK_FILE, "write it", source)
}

fn failure(name: &str, doing: &'static str, source: io::Error) -> MarkFileError {
    MarkFileError::Io {
        name: name.to_owned(),
        doing,
        source,
    }
}
