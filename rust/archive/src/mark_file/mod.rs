//! The mark file: whose an archive directory is, whether its owner lives, and the errors that it met.
//!
//! One file, `archive-mark.dat`: a header of 8 KiB, then a distinct error log. The owner stores the time in it once a second. It is
//! written by `pwrite` alone, so there is no compare-and-set as between two archives that start at once: whoever calls
//! [`MarkFile::take`] has made sure by other means, a lock or [`MarkFileState::is_active`], that nobody else does.
//!
//! The version is 0 from the first byte to [`MarkFile::ready`]. A start that was killed in between can so be told from a live
//! owner, and real archives and tools wait or refuse.

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
use errors::ErrorLog;
use header::{ACTIVITY_TIMESTAMP_OFFSET, VERSION_OFFSET};

/// Name of the mark file.
pub const MARK_FILE: &str = "archive-mark.dat";
/// Name of the file that says in which other directory the mark file is.
pub const LINK_FILE: &str = "archive-mark.lnk";
/// Version of the layout. A mark file of another major version is refused.
pub const MARK_FILE_VERSION: SemanticVersion = SemanticVersion::new(3, 1, 0);
/// Bytes of the error log behind the header, unless an archive is set to another length.
pub const ERROR_BUFFER_LENGTH: usize = 1024 * 1024;
/// Length of the whole file in bytes with an error log of that length.
pub const FILE_LENGTH: u64 = file_length(ERROR_BUFFER_LENGTH);
/// How old the last sign of life of a dead owner is at least.
pub const ACTIVITY_TIMEOUT_MS: i64 = 10_000;
/// How often an owner gives a sign of life.
pub const HEARTBEAT_INTERVAL_MS: i64 = 1_000;

/// Longest error log of another archive that is read, in bytes.
const MAX_ERROR_BUFFER_LENGTH: u64 = 64 * 1024 * 1024;
/// Bytes of an old error log that are looked at at once.
const CLEARED_BLOCK_LENGTH: usize = 1024 * 1024;
/// The file is as long as whole pages.
const PAGE_LENGTH: u64 = 4096;
/// Longest path in a link file that is read, in bytes.
const MAX_LINK_LENGTH: usize = 4096;
/// Activity timestamp of an archive that ended in good order.
const ENDED: i64 = -1;

/// The mark file of an archive that this process owns. Dropped without [`close`](Self::close), it looks like that of a killed owner.
#[derive(Debug)]
pub struct MarkFile<F> {
    file: F,
    errors: ErrorLog,
    last_activity_ms: i64,
}

/// Why a mark file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum MarkFileError {
    /// The file system refused.
    #[error("{name}: cannot {doing}: {source}")]
    Io {
        /// The file.
        name: String,
        /// The operation that failed.
        doing: &'static str,
        /// What the file system answered.
        source: io::Error,
    },
    /// Written by software with another layout.
    #[error("mark file version {file} is not compatible with software: {MARK_FILE_VERSION}")]
    IncompatibleVersion {
        /// The version in the file.
        file: SemanticVersion,
    },
    /// Bytes that no archive writes.
    #[error("{MARK_FILE} is damaged: {0}")]
    Damaged(#[from] Damage),
    /// The channels and the directory are too long.
    #[error("mark file header of {length} bytes exceeds {HEADER_LENGTH}")]
    HeaderTooLong {
        /// Bytes that it would take.
        length: usize,
    },
    /// The error is known to nobody but the caller.
    #[error(transparent)]
    ErrorLogFull(#[from] ErrorLogFull),
}

/// What the mark file of a directory says, if there is one. A file that is still empty counts as one of version 0.
///
/// # Errors
/// The file is damaged or of another major version, or the file system refuses.
pub fn read<S: Storage>(storage: &S) -> Result<Option<MarkFileState>, MarkFileError> {
    let Some(file) = open(storage, MARK_FILE, Access::Read)? else {
        return Ok(None);
    };
    read_state(&file).map(Some)
}

/// The errors in the mark file of a directory, oldest first.
///
/// # Errors
/// As [`read`].
pub fn read_errors<S: Storage>(storage: &S) -> Result<Vec<ErrorObservation>, MarkFileError> {
    let Some(file) = open(storage, MARK_FILE, Access::Read)? else {
        return Ok(Vec::new());
    };
    let state = read_state(&file)?;
    let log = read_error_log(&file, state.error_buffer_length)?;
    Ok(observations(&log))
}

/// The directory that holds the mark file of this one, if it is another.
///
/// # Errors
/// The file system refuses, or the path is longer than 4096 bytes or no text.
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
    /// Makes the directory the owner's, whosever it was: errors of the one before are saved in a file beside, and a link to another
    /// directory is removed. The error log has [`ERROR_BUFFER_LENGTH`].
    ///
    /// # Errors
    /// The owner's texts do not fit, or the file system refuses. What is there may then be of version 0.
    pub fn take<S: Storage<File = F>>(
        storage: &S,
        owner: &Owner,
        now_ms: i64,
    ) -> Result<Self, MarkFileError> {
        Self::take_with_error_buffer(storage, owner, ERROR_BUFFER_LENGTH, now_ms)
    }

    /// [`take`](Self::take) with an error log of `error_buffer_length` bytes, at most 2^31 - 1.
    ///
    /// # Errors
    /// As [`take`](Self::take).
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
                clear_errors(&file)?;
                file
            }
            None => storage
                .create(MARK_FILE, file_length)
                .map_err(|source| failure(MARK_FILE, "create it", source))?,
        };
        file.write_all_at(&header, 0)
            .and_then(|()| file.set_length(file_length))
            .map_err(writing)?;
        Ok(Self {
            file,
            errors: ErrorLog::new(error_buffer_length),
            last_activity_ms: now_ms,
        })
    }

    /// Tells everybody that the archive is up.
    ///
    /// # Errors
    /// The file system refuses.
    pub fn ready(&mut self, now_ms: i64) -> Result<(), MarkFileError> {
        self.store_activity(now_ms)?;
        self.file
            .write_all_at(
                &I32::new(MARK_FILE_VERSION.0).to_bytes(),
                VERSION_OFFSET as u64,
            )
            .map_err(writing)
    }

    /// Gives a sign of life, if the last one is a second old. To be called in every duty cycle.
    ///
    /// # Errors
    /// The file system refuses.
    pub fn heartbeat(&mut self, now_ms: i64) -> Result<(), MarkFileError> {
        if now_ms < self.last_activity_ms.saturating_add(HEARTBEAT_INTERVAL_MS) {
            return Ok(());
        }
        self.store_activity(now_ms)
    }

    /// Counts an observation of an error.
    ///
    /// # Errors
    /// The text is new and the log full, or the file system refuses.
    pub fn record_error(&mut self, now_ms: i64, text: &str) -> Result<(), MarkFileError> {
        self.errors.observe(&self.file, now_ms, text)
    }

    /// Gives the directory up: the next owner does not have to wait.
    ///
    /// # Errors
    /// The file system refuses; then the next owner waits.
    pub fn close(mut self) -> Result<(), MarkFileError> {
        self.store_activity(ENDED)
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
    /// Whether the owner gave a sign of life in the last ten seconds, or in a moment that is yet to come. No archive starts where
    /// another one lives.
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

/// Puts the errors of the owner before into a file of their own. A header that cannot be read has no log.
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

/// Zeros whatever stands where the log of the new owner will be.
fn clear_errors(file: &impl StorageFile) -> Result<(), MarkFileError> {
    let mut block = vec![0; CLEARED_BLOCK_LENGTH];
    let mut at = HEADER_LENGTH as u64;
    let end = file.length().map_err(reading)?;
    while at < end {
        let length = (end - at).min(block.len() as u64) as usize;
        let old = &mut block[..length];
        file.read_exact_at(old, at).map_err(reading)?;
        // Most of it is zero, and takes no space as long as it is not written.
        if let Some(last) = old.iter().rposition(|&byte| byte != 0) {
            old.fill(0);
            file.write_all_at(&old[..=last], at).map_err(writing)?;
        }
        at += length as u64;
    }
    Ok(())
}

/// Length of a mark file whose error log has this length.
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
        // Another start in this very millisecond saved them.
        Err(source) if source.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(source) => Err(failure(&name, "create it", source)),
    }
}

/// The bytes of an error log that is declared to have a length, as far as the file has them.
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
