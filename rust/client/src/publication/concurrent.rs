//! [`Publication`]: a stream to which several threads and several clients of the driver may write.

use std::sync::Arc;

use aeron_memory::buffer::SharedBuffer;
use aeron_memory::log::append::{Appended, ClaimedFrame, MessageBatch};
use aeron_memory::log::{AppendError, Claim, LogFragment};

use super::core::ConcurrentCore;
use crate::lifetime::Lifetime;

/// A publication that any number of threads may use at once, without locks.
#[derive(Clone)]
pub struct Publication {
    pub(super) core: Arc<ConcurrentCore>,
    pub(super) lifetime: Arc<Lifetime>,
}

impl Publication {
    pub(crate) fn new(core: Arc<ConcurrentCore>, lifetime: Arc<Lifetime>) -> Self {
        Self { core, lifetime }
    }

    /// Appends a message. Returns the stream position after the message.
    ///
    /// # Errors
    /// See [`AppendError`]; nothing was appended.
    #[inline]
    pub fn offer(&self, message: &[u8]) -> Result<i64, AppendError> {
        let limit = self.core.base.limit()?;
        self.core
            .base
            .counted(self.core.appender.offer(limit, message))
    }

    /// Appends a message that is given in several parts.
    ///
    /// # Errors
    /// The same errors as [`offer`](Self::offer).
    #[inline]
    pub fn offer_parts(&self, parts: &[&[u8]]) -> Result<i64, AppendError> {
        let limit = self.core.base.limit()?;
        let appended = self.core.appender.offer_parts(limit, parts);
        self.core.base.counted(appended)
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
    ) -> Result<i64, AppendError> {
        let limit = self.core.base.limit()?;
        let appended = self
            .core
            .appender
            .offer_with(limit, message, reserved_value);
        self.core.base.counted(appended)
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
    ) -> Result<Appended, AppendError> {
        let limit = self.core.base.limit()?;
        let appended = self.core.appender.offer_batch(limit, messages, first);
        self.core.base.counted(appended)
    }

    /// Claims a frame with a payload of `length` bytes. Fill and commit the frame soon: subscribers wait for it.
    ///
    /// # Errors
    /// The same errors as [`offer`](Self::offer). A length above [`max_payload_length`](Self::max_payload_length) is
    /// refused even if the publication is closed.
    #[inline]
    pub fn try_claim(&self, length: usize) -> Result<Claim<'_, SharedBuffer>, AppendError> {
        let max = self.max_payload_length();
        if length > max {
            return Err(AppendError::TooLong { length, max });
        }
        let limit = self.core.base.limit()?;
        let appended = self.core.appender.try_claim(limit, length);
        self.core.base.counted(appended)
    }

    /// Attaches a detached claim of this publication again, so that the caller can fill and finish the claim.
    #[inline]
    pub fn attach(&self, frame: ClaimedFrame) -> Claim<'_, SharedBuffer> {
        frame.attach(self.core.base.log())
    }
}
