//! [`ExclusivePublication`]: a stream with one writer.

use std::sync::Arc;

use aeron_memory::buffer::SharedBuffer;
use aeron_memory::log::append::{Appended, ClaimedFrame, Messages};
use aeron_memory::log::{AppendError, Claim, ExclusiveAppender, Fragment};
use spin::mutex::SpinMutexGuard;

use super::core::{ExclusiveCore, PublicationBase};
use super::offer_error::OfferError;
use crate::lifetime::Lifetime;

/// A publication that is the only writer of its stream.
///
/// It serves one thread at a time. It may be handed from thread to thread, and every method but those that append may be
/// called from any thread; a second thread inside an appending method gets [`OfferError::InUse`]. A loop that appends much
/// takes a [`writer`](Self::writer) once and saves that check.
#[derive(Clone)]
pub struct ExclusivePublication {
    pub(super) core: Arc<ExclusiveCore>,
    pub(super) lifetime: Arc<Lifetime>,
}

/// The exclusive right to append, until it is dropped.
pub struct ExclusiveWriter<'a> {
    base: &'a PublicationBase,
    appender: SpinMutexGuard<'a, ExclusiveAppender<SharedBuffer>>,
}

impl ExclusivePublication {
    pub(crate) fn new(core: Arc<ExclusiveCore>, lifetime: Arc<Lifetime>) -> Self {
        Self { core, lifetime }
    }

    /// Takes the right to append.
    ///
    /// # Errors
    /// [`OfferError::InUse`] as long as another writer lives.
    #[inline]
    pub fn writer(&self) -> std::result::Result<ExclusiveWriter<'_>, OfferError> {
        let appender = self.core.appender.try_lock().ok_or(OfferError::InUse)?;
        Ok(ExclusiveWriter {
            base: &self.core.base,
            appender,
        })
    }

    /// Appends a message; answers the stream position after it.
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
    /// As [`offer`](Self::offer).
    #[inline]
    pub fn offer_parts(&self, parts: &[&[u8]]) -> std::result::Result<i64, OfferError> {
        Ok(self.writer()?.offer_parts(parts)?)
    }

    /// As [`offer`](Self::offer), asking `reserved_value` for the value in the header of each fragment.
    ///
    /// # Errors
    /// As [`offer`](Self::offer).
    #[inline]
    pub fn offer_with_reserved_value(
        &self,
        message: &[u8],
        reserved_value: impl FnMut(Fragment<'_, SharedBuffer>) -> i64,
    ) -> std::result::Result<i64, OfferError> {
        Ok(self
            .writer()?
            .offer_with_reserved_value(message, reserved_value)?)
    }

    /// Appends the messages from index `first` on, as many as fit now; resume behind them.
    ///
    /// # Errors
    /// As [`offer`](Self::offer); not even the first of them was appended.
    #[inline]
    pub fn offer_batch<M: Messages + ?Sized>(
        &self,
        messages: &M,
        first: usize,
    ) -> std::result::Result<Appended, OfferError> {
        Ok(self.writer()?.offer_batch(messages, first)?)
    }

    /// Claims a frame with a payload of `length` bytes, to be filled in place and committed soon: subscribers wait for it.
    /// More may be appended behind a claim.
    ///
    /// # Errors
    /// As [`offer`](Self::offer); a length above [`max_payload_length`](Self::max_payload_length) is refused even when
    /// the publication is closed.
    #[inline]
    pub fn try_claim(
        &self,
        length: usize,
    ) -> std::result::Result<Claim<'_, SharedBuffer>, OfferError> {
        let frame = self.writer()?.try_claim(length)?;
        Ok(frame.attach(self.core.base.log()))
    }

    /// Appends a frame of `length` payload bytes that subscribers skip; answers the stream position after it.
    ///
    /// # Errors
    /// As [`offer`](Self::offer).
    pub fn append_padding(&self, length: usize) -> std::result::Result<i64, OfferError> {
        Ok(self.writer()?.append_padding(length)?)
    }

    /// Appends ready-made frames that continue the stream, such as a part of a recording of it.
    ///
    /// # Errors
    /// As [`offer`](Self::offer), and when the frames do not fit the stream.
    pub fn offer_block(&self, block: &[u8]) -> std::result::Result<i64, OfferError> {
        Ok(self.writer()?.offer_block(block)?)
    }

    /// Id of the active term.
    ///
    /// # Errors
    /// [`OfferError::InUse`].
    pub fn term_id(&self) -> std::result::Result<i32, OfferError> {
        Ok(self.writer()?.appender.term_id())
    }

    /// Offset of the next frame in the active term.
    ///
    /// # Errors
    /// [`OfferError::InUse`].
    pub fn term_offset(&self) -> std::result::Result<usize, OfferError> {
        Ok(self.writer()?.appender.term_offset())
    }

    /// The claimed frame of [`ExclusiveWriter::try_claim`], to be filled.
    #[inline]
    pub fn attach(&self, frame: ClaimedFrame) -> Claim<'_, SharedBuffer> {
        frame.attach(self.core.base.log())
    }
}

impl ExclusiveWriter<'_> {
    /// See [`ExclusivePublication::offer`].
    ///
    /// # Errors
    /// See [`AppendError`]; nothing was appended.
    #[inline(always)]
    pub fn offer(&mut self, message: &[u8]) -> std::result::Result<i64, AppendError> {
        self.appender.offer(self.base.limit()?, message)
    }

    /// See [`ExclusivePublication::offer_parts`].
    ///
    /// # Errors
    /// See [`AppendError`]; nothing was appended.
    #[inline]
    pub fn offer_parts(&mut self, parts: &[&[u8]]) -> std::result::Result<i64, AppendError> {
        self.appender.offer_parts(self.base.limit()?, parts)
    }

    /// See [`ExclusivePublication::offer_with_reserved_value`].
    ///
    /// # Errors
    /// See [`AppendError`]; nothing was appended.
    #[inline]
    pub fn offer_with_reserved_value(
        &mut self,
        message: &[u8],
        reserved_value: impl FnMut(Fragment<'_, SharedBuffer>) -> i64,
    ) -> std::result::Result<i64, AppendError> {
        self.appender
            .offer_with(self.base.limit()?, message, reserved_value)
    }

    /// See [`ExclusivePublication::offer_batch`].
    ///
    /// # Errors
    /// See [`AppendError`]; nothing was appended.
    #[inline]
    pub fn offer_batch<M: Messages + ?Sized>(
        &mut self,
        messages: &M,
        first: usize,
    ) -> std::result::Result<Appended, AppendError> {
        self.appender
            .offer_batch(self.base.limit()?, messages, first)
    }

    /// Claims a frame; attach it with [`ExclusivePublication::attach`] to fill and finish it.
    ///
    /// # Errors
    /// See [`AppendError`]; nothing was claimed.
    #[inline]
    pub fn try_claim(&mut self, length: usize) -> std::result::Result<ClaimedFrame, AppendError> {
        let max = self.appender.log().framing().max_payload_length();
        if length > max {
            return Err(AppendError::TooLong { length, max });
        }
        Ok(self
            .appender
            .try_claim(self.base.limit()?, length)?
            .detach())
    }

    /// See [`ExclusivePublication::append_padding`].
    ///
    /// # Errors
    /// See [`AppendError`]; nothing was appended.
    pub fn append_padding(&mut self, length: usize) -> std::result::Result<i64, AppendError> {
        self.appender.append_padding(self.base.limit()?, length)
    }

    /// See [`ExclusivePublication::offer_block`].
    ///
    /// # Errors
    /// See [`AppendError`]; nothing was appended.
    pub fn offer_block(&mut self, block: &[u8]) -> std::result::Result<i64, AppendError> {
        self.appender.offer_block(self.base.limit()?, block)
    }
}
