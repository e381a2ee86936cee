//! [`ConcurrentAppender`]: appends to a log that has any number of publishers.

use super::batch::{Appended, MessageBatch, Run, append_runs};
use super::claim::Claim;
use super::source::{MessageSource, Parts};
use super::writer::FrameWriter;
use super::{AppendError, AppendStop};
use crate::log::buffers::LogBuffers;
use crate::log::frame::{FRAME_ALIGNMENT, HEADER_LENGTH, aligned_length, flags, frame_type};
use crate::log::position::{RawTail, partition_of_count};
use crate::log::reader::LogFragment;
use crate::log::rotation::rotate;
use crate::words::Words;

/// Appends to a log to which other publishers of any process may also append. Usable from several threads.
#[derive(Debug, Clone)]
pub struct ConcurrentAppender<W> {
    log: LogBuffers<W>,
    max_position: i64,
}

/// The active term, as read before a claim.
struct ActiveTerm {
    partition: usize,
    tail: RawTail,
    /// Position of the tail.
    position: i64,
}

/// Bytes of a term that the caller has claimed.
struct Space<'a, W> {
    writer: FrameWriter<'a, W>,
    partition: usize,
    offset: usize,
    /// Position after the bytes.
    end: i64,
}

impl<W: Words> ConcurrentAppender<W> {
    /// Creates an appender to `log`.
    pub fn new(log: LogBuffers<W>) -> Self {
        let max_position = log.positions().max_position();
        Self { log, max_position }
    }

    /// Returns the log.
    #[inline]
    pub fn log(&self) -> &LogBuffers<W> {
        &self.log
    }

    /// Returns the position of the tail, up to which all publishers together have claimed the stream.
    #[inline]
    pub fn position(&self) -> i64 {
        self.log.producer_position()
    }

    /// Appends a message. Returns the stream position after the message.
    ///
    /// # Errors
    /// See [`AppendError`]; nothing was appended.
    #[inline]
    pub fn offer(&self, limit: i64, message: &[u8]) -> Result<i64, AppendError> {
        self.append(limit, message, None::<fn(LogFragment<'_, W>) -> i64>)
    }

    /// Like [`offer`](Self::offer), for a message in several parts.
    ///
    /// # Errors
    /// See [`AppendError`]; nothing was appended.
    pub fn offer_parts(&self, limit: i64, parts: &[&[u8]]) -> Result<i64, AppendError> {
        self.append(
            limit,
            Parts::new(parts),
            None::<fn(LogFragment<'_, W>) -> i64>,
        )
    }

    /// Like [`offer`](Self::offer), but takes the message from any source. Calls `reserved_value` for the value in the
    /// header of each fragment.
    ///
    /// # Errors
    /// See [`AppendError`]; nothing was appended.
    pub fn offer_with<S, R>(
        &self,
        limit: i64,
        source: S,
        reserved_value: R,
    ) -> Result<i64, AppendError>
    where
        S: MessageSource,
        R: FnMut(LogFragment<'_, W>) -> i64,
    {
        self.append(limit, source, Some(reserved_value))
    }

    /// Claims a frame with a payload of `length` bytes, which the caller then fills.
    ///
    /// # Errors
    /// See [`AppendError`]; a length above the maximum payload is refused before anything else.
    #[inline]
    pub fn try_claim(&self, limit: i64, length: usize) -> Result<Claim<'_, W>, AppendError> {
        let max = self.log.framing().max_payload_length();
        if length > max {
            return Err(AppendError::TooLong { length, max });
        }
        let term = self.active_term(limit, length)?;
        let space = self.claim(&term, aligned_length(length + HEADER_LENGTH))?;
        space.writer.open(
            space.offset,
            length + HEADER_LENGTH,
            flags::UNFRAGMENTED,
            frame_type::DATA,
        );
        Ok(Claim {
            log: &self.log,
            partition: space.partition,
            offset: space.offset,
            length,
            position: space.end,
        })
    }

    /// Appends messages from index `first` on, as many as the term and the limit allow. To continue, call this again
    /// with the index after the last appended message.
    ///
    /// # Errors
    /// See [`AppendError`]; no message was appended.
    #[inline]
    pub fn offer_batch<M: MessageBatch + ?Sized>(
        &self,
        limit: i64,
        messages: &M,
        first: usize,
    ) -> Result<Appended, AppendError> {
        append_runs(messages, first, self.position(), |next| {
            self.append_run(limit, messages, next)
        })
    }

    fn append_run<M: MessageBatch + ?Sized>(
        &self,
        limit: i64,
        messages: &M,
        first: usize,
    ) -> Result<Appended, AppendError> {
        let next_length = messages.message(first).len();
        let term = self.active_term(limit, next_length)?;
        let framing = self.log.framing();
        let room = self.log.term_length() - term.tail.offset(self.log.term_length());
        // Another publisher may claim bytes before this call does. Then the run begins after those bytes and may exceed
        // the limit. A single message may exceed the limit in the same way.
        let window = limit.abs_diff(term.position);
        let mut run = Run::plan(messages, first, framing, room, window);
        if run.messages == 0 {
            // No message fits. Appending the next message alone either ends the term or returns the error.
            run = Run {
                messages: 1,
                length: super::framed_length(framing, next_length)?,
            };
        }
        let space = self.claim(&term, run.length)?;
        let range = first..first + run.messages;
        space.writer.run(space.offset, run.length, messages, range);
        Ok(Appended {
            messages: run.messages,
            position: space.end,
        })
    }

    #[inline(always)]
    fn append<S, R>(&self, limit: i64, source: S, reserved: Option<R>) -> Result<i64, AppendError>
    where
        S: MessageSource,
        R: FnMut(LogFragment<'_, W>) -> i64,
    {
        let length = source.remaining();
        let term = self.active_term(limit, length)?;
        let space = self.claim(&term, super::framed_length(self.log.framing(), length)?)?;
        space.writer.message(space.offset, source, reserved);
        Ok(space.end)
    }

    /// Returns the active term if its tail is below the limit. `length` is the number of bytes to append.
    #[inline(always)]
    fn active_term(&self, limit: i64, length: usize) -> Result<ActiveTerm, AppendError> {
        let metadata = self.log.metadata();
        let positions = self.log.positions();
        let count = metadata.active_term_count();
        let partition = partition_of_count(count);
        let tail = metadata.tail(partition);
        if count != positions.term_count(tail.term_id()) {
            // After the load of `count`, other publishers rotated the log until a later term used this partition.
            return Err(AppendError::AdminAction);
        }
        let position = positions.position(tail.term_id(), tail.offset(positions.term_length()));
        // The limit may be after the end of the stream. Without the comparison with `max_position`, further additions
        // would overflow the tail of the last term.
        if position >= limit.min(self.max_position) {
            return Err(super::at_limit(&self.log, position, length).error(position, 0));
        }
        Ok(ActiveTerm {
            partition,
            tail,
            position,
        })
    }

    /// Claims `length` bytes, a multiple of 32, at the tail.
    #[inline(always)]
    fn claim(&self, term: &ActiveTerm, length: usize) -> Result<Space<'_, W>, AppendError> {
        debug_assert!(
            length > 0 && length.is_multiple_of(FRAME_ALIGNMENT),
            "a claim of {length} bytes would move the tail off the frame boundaries"
        );
        let positions = self.log.positions();
        let tail = self.log.metadata().advance_tail(term.partition, length);
        let offset = tail.offset(positions.term_length());
        let term_id = tail.term_id();
        let writer = FrameWriter {
            log: &self.log,
            term: self.log.term(term.partition),
            term_id,
            term_begin: positions.position(term_id, 0),
        };
        let aligned = offset.is_multiple_of(FRAME_ALIGNMENT);
        if !aligned || offset + length > positions.term_length() {
            let stop = self.end_of_term(writer, offset, length);
            return Err(stop.error(writer.term_begin, offset));
        }
        Ok(Space {
            end: writer.term_begin + (offset + length) as i64,
            writer,
            partition: term.partition,
            offset,
        })
    }

    /// Pads the rest of a term from `offset` on, if there is any, and rotates the log. The claim of `length` bytes at
    /// `offset` has moved the tail past the end of the term.
    #[cold]
    #[inline(never)]
    fn end_of_term(&self, writer: FrameWriter<'_, W>, offset: usize, length: usize) -> AppendStop {
        if !offset.is_multiple_of(FRAME_ALIGNMENT) {
            return AppendStop::MisalignedTail;
        }
        let term_length = self.log.term_length();
        debug_assert!(
            offset + length > term_length,
            "the claim of {length} bytes at {offset} fits into its term, which must not end then"
        );
        if offset < term_length {
            writer.padding(offset, term_length - offset);
        }
        if writer.term_begin + (offset + length) as i64 >= self.max_position {
            return AppendStop::MaxPositionExceeded;
        }
        let term_count = self.log.positions().term_count(writer.term_id);
        rotate(&self.log, term_count, writer.term_id);
        AppendStop::AdminAction
    }
}
