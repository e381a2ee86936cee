//! [`Arrivals`]: reads the arrival times of a recording's blocks in the order of positions.

use std::io;

use aeron_archive::index::{ENTRY_LENGTH, IndexEntry, IndexFile};
use aeron_archive::storage::{Access, Storage};
use aeron_archive::stream::RecordedStream;

/// Number of entries per read.
const ENTRIES_PER_READ: usize = 256;

/// Arrival times of a recording. Reads the index of one segment at a time, several entries ahead.
#[derive(Debug)]
pub struct Arrivals<S: Storage> {
    storage: S,
    stream: RecordedStream,
    /// The block with the arrival time `arrival_us` ends at this position.
    block_end: i64,
    arrival_us: Option<i64>,
    /// End position of the open segment.
    segment_end: i64,
    file: Option<IndexFile<S::File>>,
    /// Number of the first entry after those in `bytes`.
    next_number: u64,
    bytes: Vec<u8>,
    /// Offset of the next entry in `bytes`, whose first `filled` bytes contain entries.
    next: usize,
    filled: usize,
}

impl<S: Storage> Arrivals<S> {
    /// Creates a reader of the arrival times of positions after `from`. `hint` is the number of an index entry in the
    /// segment that holds `from`, or `None`. All blocks of earlier entries must end at or before `from`.
    ///
    /// # Errors
    /// A file-system operation failed. A missing index is not an error: all its times are unknown.
    pub fn new(
        storage: S,
        stream: RecordedStream,
        from: i64,
        hint: Option<u64>,
    ) -> io::Result<Self> {
        let mut arrivals = Self {
            storage,
            stream,
            block_end: from,
            arrival_us: None,
            segment_end: from,
            file: None,
            next_number: 0,
            bytes: vec![0; ENTRIES_PER_READ * ENTRY_LENGTH],
            next: 0,
            filled: 0,
        };
        arrivals.open(stream.segment_base(from))?;
        arrivals.next_number = hint.unwrap_or(0);
        Ok(arrivals)
    }

    /// Returns the arrival time of the block that completed the message with the end `position`, in microseconds since
    /// the epoch. Returns `None` if no index has the time. Call it with ascending positions.
    ///
    /// # Errors
    /// A file-system operation failed.
    #[inline]
    pub fn at(&mut self, position: i64) -> io::Result<Option<i64>> {
        if position > self.block_end {
            self.advance(position)?;
        }
        Ok(self.arrival_us)
    }

    #[cold]
    fn advance(&mut self, position: i64) -> io::Result<()> {
        if position > self.segment_end {
            self.open(self.stream.segment_base(position - 1))?;
        }
        while position > self.block_end {
            match self.next_entry()? {
                Some(entry) => {
                    self.block_end = entry.end_position;
                    self.arrival_us = entry.arrival_us;
                }
                // A block begins where the previous block ends. After a damaged entry, the start of the next block is
                // unknown, so the later entries of the segment cannot be used.
                None => {
                    self.file = None;
                    self.block_end = self.segment_end;
                    self.arrival_us = None;
                }
            }
        }
        Ok(())
    }

    fn open(&mut self, base: i64) -> io::Result<()> {
        self.file = IndexFile::open(
            &self.storage,
            self.stream.recording_id(),
            base,
            Access::Read,
        )?;
        self.segment_end = base + self.stream.segment_length();
        self.next_number = 0;
        self.next = 0;
        self.filled = 0;
        Ok(())
    }

    fn next_entry(&mut self) -> io::Result<Option<IndexEntry>> {
        let Some(file) = &self.file else {
            return Ok(None);
        };
        if self.next == self.filled {
            let count = file.read(self.next_number, &mut self.bytes)?;
            self.next_number += count as u64;
            self.next = 0;
            self.filled = count * ENTRY_LENGTH;
        }
        let rest = &self.bytes[self.next..self.filled];
        let entry = rest.first_chunk().and_then(IndexEntry::decode);
        self.next += ENTRY_LENGTH.min(rest.len());
        Ok(entry.filter(|entry| entry.end_position <= self.segment_end))
    }
}
