//! [`SegmentReads`]: reads of segment files, and how long they take.

use std::io;
use std::sync::Arc;

use aeron_agent::NanoClock;

use crate::storage::{Storage, StorageFile};
use crate::stream::RecordedStream;
use crate::window::{self, Segment};

/// Reads the segment files of recordings.
pub(super) struct SegmentReads<S: Storage> {
    storage: S,
    meter: Option<ReadMeter>,
}

/// Measures reads.
struct ReadMeter {
    clock: Arc<dyn NanoClock>,
    /// Takes the bytes of a read and its nanoseconds.
    on_read: Box<dyn FnMut(usize, i64) + Send>,
}

impl<S: Storage> SegmentReads<S> {
    /// Reads the files in `storage`.
    pub fn new(storage: S) -> Self {
        Self {
            storage,
            meter: None,
        }
    }

    /// Calls `on_read` with the bytes of each read and the nanoseconds that it took.
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

    /// Makes `segment` the one that holds `position`.
    ///
    /// # Errors
    /// `NotFound` if there is no such file, or the error of the storage.
    pub fn open<'a>(
        &self,
        segment: &'a mut Option<Segment<S::File>>,
        stream: &RecordedStream,
        position: i64,
    ) -> io::Result<&'a Segment<S::File>> {
        let base = stream.segment_base(position);
        window::open(segment, &self.storage, stream, base)
    }

    /// Fills `bytes` from `position` on, which are all in one segment.
    ///
    /// # Errors
    /// As [`open`](Self::open); `UnexpectedEof` if the file ends before.
    pub fn read(
        &mut self,
        segment: &mut Option<Segment<S::File>>,
        stream: &RecordedStream,
        position: i64,
        bytes: &mut [u8],
    ) -> io::Result<()> {
        let offset = (position - stream.segment_base(position)) as u64;
        let file = &self.open(segment, stream, position)?.file;
        let Some(meter) = &mut self.meter else {
            return file.read_exact_at(bytes, offset);
        };
        let begin_ns = meter.clock.nano_time();
        file.read_exact_at(bytes, offset)?;
        let duration_ns = meter.clock.nano_time().saturating_sub(begin_ns);
        (meter.on_read)(bytes.len(), duration_ns);
        Ok(())
    }
}
