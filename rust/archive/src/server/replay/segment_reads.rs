//! [`SegmentReads`]: reads segment files, and measures the duration of the reads.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use aeron_agent::NanoClock;
use aeron_layout::I64;
use aeron_layout::frame::FirstWord;
use aeron_memory::SharedBuffer;

use crate::objects::{FetchProgress, SegmentFetcher, fetched_name};
use crate::storage::{Access, Storage, StorageFile};
use crate::stream::RecordedStream;
use crate::window::{self, Segment};

/// Reads the segment files of recordings.
pub(super) struct SegmentReads<S: Storage> {
    storage: S,
    /// `None` if no segment is in object storage.
    fetcher: Option<Box<dyn SegmentFetcher>>,
    meter: Option<ReadMeter>,
}

/// The segment file that a replay has open.
#[derive(Debug)]
pub(super) struct OpenSegment<F> {
    file: Option<Segment<F>>,
    /// Segments before this position are in object storage, if their files do not exist. The conductor increases this
    /// position before it deletes files.
    local_start: Arc<AtomicI64>,
}

impl<F> OpenSegment<F> {
    /// Creates the state without an open file. Segments before `local_start` may be in object storage.
    pub fn new(local_start: Arc<AtomicI64>) -> Self {
        Self {
            file: None,
            local_start,
        }
    }
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
            fetcher: None,
            meter: None,
        }
    }

    /// Sets the fetcher of segments that are only in object storage.
    pub fn fetch_by(&mut self, fetcher: Box<dyn SegmentFetcher>) {
        self.fetcher = Some(fetcher);
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
    /// `NotFound` if the file does not exist. `WouldBlock` while the segment is being fetched. Otherwise the error of
    /// the storage.
    pub fn open<'a>(
        &mut self,
        segment: &'a mut OpenSegment<S::File>,
        stream: &RecordedStream,
        position: i64,
    ) -> io::Result<&'a Segment<S::File>> {
        let base = stream.segment_base(position);
        let OpenSegment { file, local_start } = segment;
        let is_open = file.as_ref().is_some_and(|open| open.base == base);
        if !is_open && self.fetcher.is_some() {
            *file = Some(self.open_or_fetch(stream, base, local_start)?);
        }
        window::open(file, &self.storage, stream, base)
    }

    /// Opens a segment that may be in object storage.
    #[cold]
    fn open_or_fetch(
        &mut self,
        stream: &RecordedStream,
        base: i64,
        local_start: &AtomicI64,
    ) -> io::Result<Segment<S::File>> {
        let local = self.storage.open(&stream.segment_name(base), Access::Read);
        let fetcher = match (local, &mut self.fetcher) {
            // The start is read after the file was not found, because it is moved before the file is deleted.
            (Err(error), Some(fetcher))
                if error.kind() == io::ErrorKind::NotFound
                    && base < local_start.load(Ordering::Acquire) =>
            {
                fetcher
            }
            (opened, _) => return opened.map(|file| Segment { base, file }),
        };
        let id = stream.recording_id();
        match fetcher.fetch(id, base) {
            FetchProgress::Waiting => Err(io::ErrorKind::WouldBlock.into()),
            FetchProgress::Failed(reason) => Err(io::Error::other(reason)),
            FetchProgress::Ready => {
                match self.storage.open(&fetched_name(id, base), Access::Read) {
                    // The file was deleted to make room for later fetches. The next call requests the segment again.
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {
                        Err(io::ErrorKind::WouldBlock.into())
                    }
                    opened => opened.map(|file| Segment { base, file }),
                }
            }
        }
    }

    /// Reads the bytes from `position` on into `bytes`. The range must be in one segment.
    ///
    /// # Errors
    /// The same errors as [`open`](Self::open). `UnexpectedEof` if the file ends before the last
    /// byte.
    pub fn read(
        &mut self,
        segment: &mut OpenSegment<S::File>,
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
        segment: &mut OpenSegment<S::File>,
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
