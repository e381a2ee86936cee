//! [`ExclusivePublication`]: a stream with one writer.

use std::sync::Arc;

use aeron_memory::buffer::SharedBuffer;
use aeron_memory::log::append::{Appended, BlockSpace, FillBlockError, FilledBlock, MessageBatch};
use aeron_memory::log::{AppendError, Claim, ExclusiveAppender, LogFragment};
use spin::mutex::SpinMutexGuard;

use super::claim::BufferClaim;
use super::core::{ExclusiveCore, PublicationBase, Writing};
use super::offer_error::OfferError;
use crate::lifetime::Lifetime;

/// A publication that is the only writer of its stream.
///
/// One thread at a time may append; the object may move between threads. All other methods may be called from any
/// thread. While one thread appends, the appending methods return [`OfferError::InUse`] to other threads. A loop that
/// appends often should acquire a [`writer`](Self::writer) once, so that not every call checks for other threads.
#[derive(Clone)]
pub struct ExclusivePublication {
    pub(super) core: Arc<ExclusiveCore>,
    pub(super) lifetime: Arc<Lifetime>,
}

/// The exclusive right to append, until it is dropped.
///
/// A client that reconnects cannot give a publication its next log while a writer exists. If a call returns
/// [`AppendError::NotConnected`] for long, drop the writer and acquire another one.
pub struct ExclusiveWriter<'a> {
    base: &'a PublicationBase,
    writing: SpinMutexGuard<'a, Writing<ExclusiveAppender<SharedBuffer>>>,
}

impl ExclusivePublication {
    pub(crate) fn new(core: Arc<ExclusiveCore>, lifetime: Arc<Lifetime>) -> Self {
        Self { core, lifetime }
    }

    /// Acquires the right to append.
    ///
    /// # Errors
    /// [`OfferError::InUse`] while another writer exists.
    #[inline]
    pub fn writer(&self) -> std::result::Result<ExclusiveWriter<'_>, OfferError> {
        match self.core.writing.try_lock() {
            Some(writing) => Ok(ExclusiveWriter {
                base: &self.core.base,
                writing,
            }),
            None => Err(self.not_available()),
        }
    }

    /// The lock is held by another call, or for an instant by a conductor that has found the next driver.
    #[cold]
    fn not_available(&self) -> OfferError {
        match self.core.base.check_open() {
            Ok(()) => OfferError::InUse,
            Err(reason) => reason.into(),
        }
    }

    /// Appends a message. Returns the stream position after the message.
    ///
    /// # Errors
    /// See [`OfferError`]; nothing was appended.
    #[inline]
    pub fn offer(&self, message: &[u8]) -> std::result::Result<i64, OfferError> {
        Ok(self.writer()?.offer(message)?)
    }

    /// Appends a message that is given in several parts.
    ///
    /// # Errors
    /// The same errors as [`offer`](Self::offer).
    #[inline]
    pub fn offer_parts(&self, parts: &[&[u8]]) -> std::result::Result<i64, OfferError> {
        Ok(self.writer()?.offer_parts(parts)?)
    }

    /// Like [`offer`](Self::offer). Calls `reserved_value` for the value in the header of each fragment.
    ///
    /// # Errors
    /// The same errors as [`offer`](Self::offer).
    #[inline]
    pub fn offer_with_reserved_value(
        &self,
        message: &[u8],
        reserved_value: impl FnMut(LogFragment<'_, SharedBuffer>) -> i64,
    ) -> std::result::Result<i64, OfferError> {
        Ok(self
            .writer()?
            .offer_with_reserved_value(message, reserved_value)?)
    }

    /// Appends as many of `messages` as fit now, from index `first` on. To append the rest, call again with the index
    /// after the last appended message.
    ///
    /// # Errors
    /// The same errors as [`offer`](Self::offer). An error means that no message was appended.
    #[inline]
    pub fn offer_batch<M: MessageBatch + ?Sized>(
        &self,
        messages: &M,
        first: usize,
    ) -> std::result::Result<Appended, OfferError> {
        Ok(self.writer()?.offer_batch(messages, first)?)
    }

    /// Claims a frame with a payload of `length` bytes. Fill and commit the frame soon: subscribers wait for it.
    /// Further messages may be appended after a claim.
    ///
    /// # Errors
    /// The same errors as [`offer`](Self::offer). A length above [`max_payload_length`](Self::max_payload_length) is
    /// refused even if the publication is closed.
    #[inline]
    pub fn try_claim(&self, length: usize) -> std::result::Result<BufferClaim, OfferError> {
        let mut writer = self.writer()?;
        let frame = writer.try_claim(length)?.detach();
        Ok(BufferClaim::new(&writer.writing.parts, frame))
    }

    /// Appends a frame of `length` payload bytes that subscribers skip. Returns the stream position after the frame.
    ///
    /// # Errors
    /// The same errors as [`offer`](Self::offer).
    pub fn append_padding(&self, length: usize) -> std::result::Result<i64, OfferError> {
        Ok(self.writer()?.append_padding(length)?)
    }

    /// Appends ready-made frames that continue the stream, such as a part of a recording of the stream.
    ///
    /// # Errors
    /// The same errors as [`offer`](Self::offer), or the frames do not continue the stream.
    pub fn offer_block(&self, block: &[u8]) -> std::result::Result<i64, OfferError> {
        Ok(self.writer()?.offer_block(block)?)
    }

    /// Appends frames that `fill` writes directly into the log, in a space of at most `max_length` bytes.
    ///
    /// Returns the position after the frames. [`BlockSpace`] and [`FilledBlock`] describe what `fill` must write.
    ///
    /// # Errors
    /// The same errors as [`offer`](Self::offer), or the error of `fill`. Nothing was appended.
    pub fn fill_block<E>(
        &self,
        max_length: usize,
        fill: impl FnOnce(&BlockSpace<'_, SharedBuffer>) -> std::result::Result<FilledBlock, E>,
    ) -> std::result::Result<i64, FillBlockError<OfferError, E>> {
        let mut writer = self.writer().map_err(FillBlockError::Append)?;
        let limit = writer.limit().map_err(OfferError::from);
        let limit = limit.map_err(FillBlockError::Append)?;
        writer
            .writing
            .appender
            .fill_block(limit, max_length, fill)
            .map_err(FillBlockError::map_append)
    }

    /// Returns the id of the active term.
    ///
    /// # Errors
    /// [`OfferError::InUse`] while a writer exists.
    pub fn term_id(&self) -> std::result::Result<i32, OfferError> {
        Ok(self.writer()?.writing.appender.term_id())
    }

    /// Returns the offset of the next frame in the active term.
    ///
    /// # Errors
    /// [`OfferError::InUse`] while a writer exists.
    pub fn term_offset(&self) -> std::result::Result<usize, OfferError> {
        Ok(self.writer()?.writing.appender.term_offset())
    }
}

impl ExclusiveWriter<'_> {
    /// Returns the position limit of an open publication.
    #[inline(always)]
    fn limit(&self) -> std::result::Result<i64, AppendError> {
        self.base.check_open()?;
        Ok(self.writing.limit.get())
    }

    /// See [`ExclusivePublication::offer`].
    ///
    /// # Errors
    /// See [`AppendError`]; nothing was appended.
    #[inline(always)]
    pub fn offer(&mut self, message: &[u8]) -> std::result::Result<i64, AppendError> {
        let limit = self.limit()?;
        self.base
            .counted(self.writing.appender.offer(limit, message))
    }

    /// See [`ExclusivePublication::offer_parts`].
    ///
    /// # Errors
    /// See [`AppendError`]; nothing was appended.
    #[inline]
    pub fn offer_parts(&mut self, parts: &[&[u8]]) -> std::result::Result<i64, AppendError> {
        let limit = self.limit()?;
        self.base
            .counted(self.writing.appender.offer_parts(limit, parts))
    }

    /// See [`ExclusivePublication::offer_with_reserved_value`].
    ///
    /// # Errors
    /// See [`AppendError`]; nothing was appended.
    #[inline]
    pub fn offer_with_reserved_value(
        &mut self,
        message: &[u8],
        reserved_value: impl FnMut(LogFragment<'_, SharedBuffer>) -> i64,
    ) -> std::result::Result<i64, AppendError> {
        let limit = self.limit()?;
        self.base.counted(
            self.writing
                .appender
                .offer_with(limit, message, reserved_value),
        )
    }

    /// See [`ExclusivePublication::offer_batch`].
    ///
    /// # Errors
    /// See [`AppendError`]; nothing was appended.
    #[inline]
    pub fn offer_batch<M: MessageBatch + ?Sized>(
        &mut self,
        messages: &M,
        first: usize,
    ) -> std::result::Result<Appended, AppendError> {
        let limit = self.limit()?;
        self.base
            .counted(self.writing.appender.offer_batch(limit, messages, first))
    }

    /// Claims a frame in the log; fill and commit it.
    ///
    /// # Errors
    /// See [`AppendError`]; nothing was claimed.
    #[inline]
    pub fn try_claim(
        &mut self,
        length: usize,
    ) -> std::result::Result<Claim<'_, SharedBuffer>, AppendError> {
        let max = self.writing.appender.log().framing().max_payload_length();
        if length > max {
            return Err(AppendError::TooLong { length, max });
        }
        let limit = self.limit()?;
        self.base
            .counted(self.writing.appender.try_claim(limit, length))
    }

    /// See [`ExclusivePublication::append_padding`].
    ///
    /// # Errors
    /// See [`AppendError`]; nothing was appended.
    pub fn append_padding(&mut self, length: usize) -> std::result::Result<i64, AppendError> {
        let limit = self.limit()?;
        self.base
            .counted(self.writing.appender.append_padding(limit, length))
    }

    /// See [`ExclusivePublication::offer_block`].
    ///
    /// # Errors
    /// See [`AppendError`]; nothing was appended.
    pub fn offer_block(&mut self, block: &[u8]) -> std::result::Result<i64, AppendError> {
        let limit = self.limit()?;
        self.base
            .counted(self.writing.appender.offer_block(limit, block))
    }
}
