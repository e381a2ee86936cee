//! [`SegmentReads`]: reads segment files, and measures the duration of the reads.

use std::io;
use std::sync::Arc;

use aeron_agent::NanoClock;
use aeron_layout::I64;
use aeron_layout::frame::FirstWord;
use aeron_memory::SharedBuffer;

use crate::storage::{Storage, StorageFile};
use crate::stream::RecordedStream;
use crate::window::{self, Segment};

/// Reads the segment files of recordings.
pub(super) struct SegmentReads<S: Storage> {
    storage: S,
    meter: Option<ReadMeter>,
}

/// Measures the time of reads.
struct ReadMeter {
    clock: Arc<dyn NanoClock>,
    /// Function that is called after each read, with the length in bytes and the duration in
    /// nanoseconds.
    on_read: Box<dyn FnMut(usize, i64) + Send>,
}

impl<S: Storage> SegmentReads<S> {
    /// Creates a reader of the files in `storage`.
    pub fn new(storage: S) -> Self {
        Self {
            storage,
            meter: None,
        }
    }

    /// Returns the directory of the files.
    pub fn storage(&self) -> &S {
        &self.storage
    }

    /// Makes the reader call `on_read` after each read, with the length in bytes and the duration
    /// in nanoseconds.
    pub fn measure(
        &mut self,
        clock: Arc<dyn NanoClock>,
        on_read: impl FnMut(usize, i64) + Send + 'static,
    ) {
        self.meter = Some(ReadMeter {
            clock,
            on_read: Box::new(on_read),
        });
    }

    /// Opens the segment that holds `position`, unless it is open.
    ///
    /// # Errors
    /// `NotFound` if the file does not exist, or the error of the storage.
    pub fn open<'a>(
        &self,
        segment: &'a mut Option<Segment<S::File>>,
        stream: &RecordedStream,
        position: i64,
    ) -> io::Result<&'a Segment<S::File>> {
        let base = stream.segment_base(position);
        window::open(segment, &self.storage, stream, base)
    }

    /// Reads the bytes from `position` on into `bytes`. The range must be in one segment.
    ///
    /// # Errors
    /// The same errors as [`open`](Self::open). `UnexpectedEof` if the file ends before the last
    /// byte.
    pub fn read(
        &self,
        segment: &mut Option<Segment<S::File>>,
        stream: &RecordedStream,
        position: i64,
        bytes: &mut [u8],
    ) -> io::Result<()> {
        let offset = (position - stream.segment_base(position)) as u64;
        self.open(segment, stream, position)?
            .file
            .read_exact_at(bytes, offset)
    }

    /// Reads `length` bytes from `position` on into `term` at offset `at`. The range must be in one segment.
    ///
    /// The first word is not written but returned. Readers of the term do not see the bytes until
    /// the caller writes this word.
    ///
    /// # Errors
    /// The same errors as [`read`](Self::read).
    pub fn read_into_term(
        &mut self,
        segment: &mut Option<Segment<S::File>>,
        stream: &RecordedStream,
        position: i64,
        (term, at, length): (&SharedBuffer, usize, usize),
    ) -> io::Result<FirstWord> {
        let offset = (position - stream.segment_base(position)) as u64;
        let file = &self.open(segment, stream, position)?.file;
        let read = || {
            let mut first_word = [0; size_of::<I64>()];
            file.read_exact_at(&mut first_word, offset)?;
            let rest = first_word.len();
            file.read_exact_shared_at(term, at + rest, length - rest, offset + rest as u64)?;
            Ok(FirstWord(I64::from_bytes(first_word).get()))
        };
        let Some(meter) = &mut self.meter else {
            return read();
        };
        let begin_ns = meter.clock.nano_time();
        let first_word = read()?;
        let duration_ns = meter.clock.nano_time().saturating_sub(begin_ns);
        (meter.on_read)(length, duration_ns);
        Ok(first_word)
    }
}
