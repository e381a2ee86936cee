//! [`ExclusiveAppender`]: appends to a log that has one publisher.

use super::batch::{Appended, MessageBatch, Run, append_runs};
use super::claim::Claim;
use super::source::{MessageSource, Parts};
use super::writer::FrameWriter;
use super::{AppendError, AppendStop};
use crate::log::buffers::LogBuffers;
use crate::log::frame::{FRAME_ALIGNMENT, HEADER_LENGTH, aligned_length, flags, frame_type};
use crate::log::position::{PARTITION_COUNT, RawTail, partition_of_count};
use crate::log::reader::{CorruptLog, LogFragment};
use crate::words::Words;

/// Appends to a log that has no other publisher. Keeps the tail in private memory, and stores a copy in the metadata
/// for the driver.
#[derive(Debug)]
pub struct ExclusiveAppender<W> {
    log: LogBuffers<W>,
    max_position: i64,
    partition: usize,
    term_id: i32,
    term_offset: usize,
    /// Position of the active term's first byte.
    term_begin: i64,
}

impl<W: Words> ExclusiveAppender<W> {
    /// Creates an appender that continues at the tail of `log`.
    ///
    /// # Errors
    /// The tail is not on a frame boundary, or the active term precedes the first term.
    pub fn new(log: LogBuffers<W>) -> Result<Self, CorruptLog> {
        let positions = log.positions();
        let partition = partition_of_count(log.metadata().active_term_count());
        let tail = log.metadata().tail(partition);
        let term_offset = tail.offset(positions.term_length());
        let term_begin = positions.position(tail.term_id(), 0);
        if !term_offset.is_multiple_of(FRAME_ALIGNMENT) || term_begin < 0 {
            return Err(CorruptLog::misaligned_tail(term_begin, term_offset));
        }
        Ok(Self {
            max_position: positions.max_position(),
            partition,
            term_id: tail.term_id(),
            term_offset,
            term_begin,
            log,
        })
    }

    /// Returns the log.
    #[inline]
    pub fn log(&self) -> &LogBuffers<W> {
        &self.log
    }

    /// Returns the stream position up to which this publisher has appended.
    #[inline]
    pub fn position(&self) -> i64 {
        self.term_begin + self.term_offset as i64
    }

    /// Returns the id of the active term.
    #[inline]
    pub fn term_id(&self) -> i32 {
        self.term_id
    }

    /// Returns the offset of the next frame in the active term.
    #[inline]
    pub fn term_offset(&self) -> usize {
        self.term_offset
    }

    /// Appends a message. Returns the stream position after the message.
    ///
    /// # Errors
    /// See [`AppendError`]; nothing was appended.
    #[inline(always)]
    pub fn offer(&mut self, limit: i64, message: &[u8]) -> Result<i64, AppendError> {
        self.append(limit, message, None::<fn(LogFragment<'_, W>) -> i64>)
    }

    /// Like [`offer`](Self::offer), for a message in several parts.
    ///
    /// # Errors
    /// See [`AppendError`]; nothing was appended.
    pub fn offer_parts(&mut self, limit: i64, parts: &[&[u8]]) -> Result<i64, AppendError> {
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
        &mut self,
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
    pub fn try_claim(&mut self, limit: i64, length: usize) -> Result<Claim<'_, W>, AppendError> {
        let max = self.log.framing().max_payload_length();
        if length > max {
            return Err(AppendError::TooLong { length, max });
        }
        self.check_limit(limit, length)?;
        let offset = self.claim(aligned_length(length + HEADER_LENGTH))?;
        self.writer().open(
            offset,
            length + HEADER_LENGTH,
            flags::UNFRAGMENTED,
            frame_type::DATA,
        );
        Ok(Claim {
            log: &self.log,
            partition: self.partition,
            offset,
            length,
            position: self.position(),
        })
    }

    /// Appends a padding frame of a header and `length` bytes, which subscribers skip. Returns the stream position
    /// after the frame.
    ///
    /// # Errors
    /// See [`AppendError`]. A `length` above the maximum message length is refused.
    pub fn append_padding(&mut self, limit: i64, length: usize) -> Result<i64, AppendError> {
        let max = self.log.framing().max_message_length();
        if length > max {
            return Err(AppendError::TooLong { length, max });
        }
        self.check_limit(limit, length)?;
        let offset = self.claim(aligned_length(length + HEADER_LENGTH))?;
        self.writer().padding(offset, length + HEADER_LENGTH);
        Ok(self.position())
    }

    /// Appends messages from index `first` on, as many as the term and the limit allow. To continue, call this again
    /// with the index after the last appended message.
    ///
    /// # Errors
    /// See [`AppendError`]; no message was appended.
    #[inline]
    pub fn offer_batch<M: MessageBatch + ?Sized>(
        &mut self,
        limit: i64,
        messages: &M,
        first: usize,
    ) -> Result<Appended, AppendError> {
        append_runs(messages, first, self.position(), |next| {
            self.append_run(limit, messages, next)
        })
    }

    fn append_run<M: MessageBatch + ?Sized>(
        &mut self,
        limit: i64,
        messages: &M,
        first: usize,
    ) -> Result<Appended, AppendError> {
        let next_length = messages.message(first).len();
        self.check_limit(limit, next_length)?;
        let framing = self.log.framing();
        let room = self.log.term_length() - self.term_offset;
        let window = limit.abs_diff(self.position());
        let run = Run::plan(messages, first, framing, room, window);
        if run.messages == 0 {
            // No message fits. Appending the next message alone either ends the term or returns the error.
            let needed = super::framed_length(framing, next_length)?;
            let stop = self.end_of_term(needed);
            return Err(stop.error(self.term_begin, self.term_offset));
        }
        let offset = self.claim(run.length)?;
        let range = first..first + run.messages;
        self.writer().run(offset, run.length, messages, range);
        Ok(Appended {
            messages: run.messages,
            position: self.position(),
        })
    }

    #[inline(always)]
    fn append<S, R>(
        &mut self,
        limit: i64,
        source: S,
        reserved: Option<R>,
    ) -> Result<i64, AppendError>
    where
        S: MessageSource,
        R: FnMut(LogFragment<'_, W>) -> i64,
    {
        let length = source.remaining();
        self.check_limit(limit, length)?;
        let offset = self.claim(super::framed_length(self.log.framing(), length)?)?;
        self.writer().message(offset, source, reserved);
        Ok(self.position())
    }

    #[inline(always)]
    pub(super) fn check_limit(&self, limit: i64, length: usize) -> Result<(), AppendError> {
        let position = self.position();
        if position >= limit {
            return Err(super::at_limit(&self.log, position, length).error(position, 0));
        }
        Ok(())
    }

    /// Claims `length` bytes, a multiple of 32, at the tail. Returns their offset.
    #[inline(always)]
    pub(super) fn claim(&mut self, length: usize) -> Result<usize, AppendError> {
        debug_assert!(
            length > 0 && length.is_multiple_of(FRAME_ALIGNMENT),
            "a claim of {length} bytes would move the tail off the frame boundaries"
        );
        let offset = self.term_offset;
        let end = offset + length;
        if end > self.log.term_length() {
            let stop = self.end_of_term(length);
            return Err(stop.error(self.term_begin, end));
        }
        self.publish_tail(end);
        self.term_offset = end;
        Ok(offset)
    }

    #[inline(always)]
    fn publish_tail(&self, end: usize) {
        self.log
            .metadata()
            .set_tail_release(self.partition, RawTail::new(self.term_id, end));
    }

    #[inline(always)]
    pub(super) fn writer(&self) -> FrameWriter<'_, W> {
        FrameWriter {
            log: &self.log,
            term: self.log.term(self.partition),
            term_id: self.term_id,
            term_begin: self.term_begin,
        }
    }

    /// Pads the rest of the term because `length` bytes do not fit into it, and rotates the log.
    #[cold]
    #[inline(never)]
    fn end_of_term(&mut self, length: usize) -> AppendStop {
        debug_assert!(
            self.term_offset + length > self.log.term_length(),
            "{length} bytes at {} fit into their term, which must not end then",
            self.term_offset
        );
        // As in a log with concurrent publishers, the tail of a full term is after the end of the term.
        self.publish_tail(self.term_offset + length);
        let remaining = self.log.term_length() - self.term_offset;
        if remaining > 0 {
            self.writer().padding(self.term_offset, remaining);
            self.term_offset = self.log.term_length();
        }
        if self.next_term() {
            AppendStop::AdminAction
        } else {
            AppendStop::MaxPositionExceeded
        }
    }

    /// Makes the next term active. Returns `false` at the end of the stream. Stores the tail of the next term before
    /// the count that activates the term.
    pub(super) fn next_term(&mut self) -> bool {
        debug_assert_eq!(
            self.term_offset,
            self.log.term_length(),
            "a term ends only after its last byte is appended"
        );
        if self.term_begin + self.log.term_length() as i64 >= self.max_position {
            return false;
        }
        self.partition = (self.partition + 1) % PARTITION_COUNT;
        self.term_id = self.term_id.wrapping_add(1);
        self.term_begin += self.log.term_length() as i64;
        self.term_offset = 0;
        debug_assert!(
            self.log.positions().term_count(self.term_id) > 0,
            "the term {} follows no other term of its stream",
            self.term_id
        );
        let metadata = self.log.metadata();
        metadata.set_tail_relaxed(self.partition, RawTail::new(self.term_id, 0));
        metadata.set_active_term_count_release(self.log.positions().term_count(self.term_id));
        true
    }
}
