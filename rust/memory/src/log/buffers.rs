//! [`LogBuffers`]: one log as three terms and its metadata, newly created or opened from a file.

use std::io;
use std::path::Path;

use super::LogError;
use super::description::{LogDescription, LogType};
use super::frame::{FRAME_ALIGNMENT, Framing, HeaderWords};
use super::metadata::{LogMetadata, METADATA_LENGTH};
use super::position::{PARTITION_COUNT, Positions, RawTail, check_term_length, partition_of_count};
use crate::buffer::SharedBuffer;
use crate::mapped::MappedFile;
use crate::words::{Words, align};

/// Minimum page size to which a log's length is rounded, in bytes.
pub const MIN_PAGE_SIZE: usize = 4096;
/// Maximum page size to which a log's length is rounded, in bytes.
pub const MAX_PAGE_SIZE: usize = 1024 * 1024 * 1024;

/// A log: its terms, its metadata, and the values computed from them.
///
/// Term length, MTU and ids are read once, when the log is created or opened. Later writes to the memory do not change
/// the values in this struct. Clones refer to the same memory and keep it mapped.
#[derive(Debug, Clone)]
pub struct LogBuffers<W> {
    terms: [W; PARTITION_COUNT],
    metadata: LogMetadata<W>,
    positions: Positions,
    framing: Framing,
    header: HeaderWords,
}

/// Reason why a log file could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenLogError {
    /// The file could not be mapped.
    #[error("log file cannot be mapped: {0}")]
    Io(#[from] io::Error),
    /// The file is not a log.
    #[error("not a log file: {0}")]
    Invalid(#[from] LogError),
}

/// Returns the length of a log's file in bytes, for this term length and page size.
///
/// # Errors
/// The term length or the page size is out of range or not a power of two.
pub fn log_length(term_length: i64, page_size: i64) -> Result<usize, LogError> {
    check_term_length(term_length)?;
    check_page_size(page_size)?;
    Ok(align(
        PARTITION_COUNT * term_length as usize + METADATA_LENGTH,
        page_size as usize,
    ))
}

impl LogBuffers<SharedBuffer> {
    /// Maps the log in the file `path`, read-write. With `pre_touch`, loads all pages into memory at once.
    ///
    /// # Errors
    /// The file cannot be mapped, or it is not a log.
    pub fn open(path: &Path, pre_touch: bool) -> Result<Self, OpenLogError> {
        let file = MappedFile::open(path, pre_touch)?;
        Ok(Self::attach(file.buffer())?)
    }
}

impl<W: Words> LogBuffers<W> {
    /// Creates a log in zeroed `memory` of [`log_length`] bytes. The first frame of a publication will be at
    /// `start_position`.
    ///
    /// # Errors
    /// The description has a length out of range, the memory is too short, or no frame can begin at `start_position`.
    pub fn create(
        memory: &W,
        description: &LogDescription,
        start_position: i64,
    ) -> Result<Self, LogError> {
        let needed = log_length(description.term_length.into(), description.page_size.into())?;
        check_length(memory.len(), needed)?;
        let positions = Positions::new(
            description.term_length as usize,
            description.initial_term_id,
        )?;
        Framing::new(description.mtu_length.into(), positions.term_length())?;
        let aligned = start_position & (FRAME_ALIGNMENT as i64 - 1) == 0;
        if !aligned || !(0..=positions.max_position()).contains(&start_position) {
            return Err(LogError::StartPosition(start_position));
        }
        let (tails, count) = match description.log_type {
            LogType::Image => ([RawTail(0); PARTITION_COUNT], 0),
            _ => tails_at(positions, start_position),
        };
        metadata_of(memory).initialise(description, tails, count);
        Self::attach(memory)
    }

    /// Opens the log in `memory`.
    ///
    /// # Errors
    /// The memory is shorter than its metadata requires, or the metadata has an invalid value.
    pub fn attach(memory: &W) -> Result<Self, LogError> {
        check_length(memory.len(), METADATA_LENGTH)?;
        let metadata = metadata_of(memory);
        let description = metadata.description();
        let term_length = description.term_length as usize;
        check_term_length(description.term_length.into())?;
        check_page_size(description.page_size.into())?;
        check_length(
            memory.len(),
            PARTITION_COUNT * term_length + METADATA_LENGTH,
        )?;
        Ok(Self {
            terms: std::array::from_fn(|i| memory.slice(i * term_length, term_length)),
            positions: Positions::new(term_length, description.initial_term_id)?,
            framing: Framing::new(description.mtu_length.into(), term_length)?,
            header: HeaderWords::new(description.session_id, description.stream_id),
            metadata,
        })
    }

    /// Creates a log for the model checker. Its terms may be shorter than in a real log. The metadata consists of the
    /// tails and the state, with the values in `memory`.
    #[cfg(loom)]
    pub fn model(memory: &W, positions: Positions, framing: Framing) -> Self {
        let term_length = positions.term_length();
        Self {
            terms: std::array::from_fn(|i| memory.slice(i * term_length, term_length)),
            metadata: metadata_of(memory),
            positions,
            framing,
            header: HeaderWords::new(1, 2),
        }
    }

    /// Returns the term in `partition` (0, 1 or 2).
    #[inline]
    pub fn term(&self, partition: usize) -> &W {
        &self.terms[partition]
    }

    /// Returns the term that holds `position`.
    #[inline]
    pub fn term_at(&self, position: i64) -> &W {
        &self.terms[self.positions.partition(position)]
    }

    /// Returns the metadata.
    #[inline]
    pub fn metadata(&self) -> &LogMetadata<W> {
        &self.metadata
    }

    /// Returns the converter between the stream's positions and terms with offsets.
    #[inline]
    pub fn positions(&self) -> Positions {
        self.positions
    }

    /// Returns the limits of the stream's frames and messages.
    #[inline]
    pub fn framing(&self) -> Framing {
        self.framing
    }

    /// Returns the fields that all frame headers of the log have in common.
    #[inline]
    pub fn header(&self) -> HeaderWords {
        self.header
    }

    /// Returns the length of each term, in bytes.
    #[inline]
    pub fn term_length(&self) -> usize {
        self.positions.term_length()
    }

    /// Returns the position up to which publishers have claimed the stream, from the tail of the active term.
    #[inline]
    pub fn producer_position(&self) -> i64 {
        let count = self.metadata.active_term_count();
        let tail = self.metadata.tail(partition_of_count(count));
        self.positions
            .position(tail.term_id(), tail.offset(self.term_length()))
    }
}

fn metadata_of<W: Words>(memory: &W) -> LogMetadata<W> {
    LogMetadata::new(memory.slice(memory.len() - METADATA_LENGTH, METADATA_LENGTH))
}

/// Returns the tails and the active term count of a publication that starts at `position`. The tail of each inactive
/// partition has a term id that is 3 less than the id of the partition's next term, because rotation expects this
/// value.
fn tails_at(positions: Positions, position: i64) -> ([RawTail; PARTITION_COUNT], i32) {
    let count = (position >> positions.bits_to_shift()).min(i64::from(i32::MAX)) as i32;
    let term_id = positions.initial_term_id().wrapping_add(count);
    let offset = position - (i64::from(count) << positions.bits_to_shift());
    debug_assert!(
        (0..=positions.term_length() as i64).contains(&offset),
        "the start position {position} is outside of the term with {count} terms before it"
    );
    let active = partition_of_count(count);
    let mut tails = [RawTail(0); PARTITION_COUNT];
    tails[active] = RawTail::new(term_id, offset as usize);
    tails[(active + 1) % PARTITION_COUNT] = RawTail::new(term_id.wrapping_sub(2), 0);
    tails[(active + 2) % PARTITION_COUNT] = RawTail::new(term_id.wrapping_sub(1), 0);
    (tails, count)
}

fn check_page_size(page_size: i64) -> Result<(), LogError> {
    let within = (MIN_PAGE_SIZE as i64..=MAX_PAGE_SIZE as i64).contains(&page_size);
    if within && page_size & (page_size - 1) == 0 {
        Ok(())
    } else {
        Err(LogError::PageSize(page_size))
    }
}

/// Checks that the length is sufficient. It must also be a whole number of pages, so that the metadata is aligned.
fn check_length(length: usize, needed: usize) -> Result<(), LogError> {
    if length >= needed && length.is_multiple_of(MIN_PAGE_SIZE) {
        Ok(())
    } else {
        Err(LogError::Length { length, needed })
    }
}
