//! [`Publication`]: a stream to which several threads and several clients of the driver may write.

use std::sync::Arc;

use aeron_memory::buffer::SharedBuffer;
use aeron_memory::log::append::{Appended, MessageBatch};
use aeron_memory::log::{AppendError, LogFragment};

use super::claim::BufferClaim;
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
        self.core
            .append(|writing, limit| writing.appender.offer(limit, message))
    }

    /// Appends a message that is given in several parts.
    ///
    /// # Errors
    /// The same errors as [`offer`](Self::offer).
    #[inline]
    pub fn offer_parts(&self, parts: &[&[u8]]) -> Result<i64, AppendError> {
        self.core
            .append(|writing, limit| writing.appender.offer_parts(limit, parts))
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
        self.core
            .append(|writing, limit| writing.appender.offer_with(limit, message, reserved_value))
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
        self.core
            .append(|writing, limit| writing.appender.offer_batch(limit, messages, first))
    }

    /// Claims a frame with a payload of `length` bytes. Fill and commit the frame soon: subscribers wait for it.
    ///
    /// # Errors
    /// The same errors as [`offer`](Self::offer). A length above [`max_payload_length`](Self::max_payload_length) is
    /// refused even if the publication is closed.
    #[inline]
    pub fn try_claim(&self, length: usize) -> Result<BufferClaim, AppendError> {
        let max = self.max_payload_length();
        if length > max {
            return Err(AppendError::TooLong { length, max });
        }
        self.core.append(|writing, limit| {
            let claim = writing.appender.try_claim(limit, length)?;
            Ok(BufferClaim::new(&writing.parts, claim.detach()))
        })
    }
}
