//! [`BufferClaim`]: a claimed frame that outlives the call that claimed it.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use aeron_memory::buffer::SharedBuffer;
use aeron_memory::log::Claim;
use aeron_memory::log::append::ClaimedFrame;

use super::core::PublicationParts;

/// A claimed frame of a publication's log. Subscribers wait for it: [`commit`](Self::commit) or
/// [`abort`](Self::abort) it soon. Dropping a claim aborts it.
///
/// If the client loses its driver, the claim is aborted: the log that it is in has ended.
#[must_use = "a claim that is dropped is aborted"]
pub struct BufferClaim {
    parts: Arc<PublicationParts>,
    /// `None` after the end of the claim.
    frame: Option<ClaimedFrame>,
}

/// The claim was not committed, because the client has lost the driver of its log. The message was not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the claim was aborted: its driver has ended, and the message was not sent; claim again and send it again"
)]
pub struct ClaimAborted;

impl BufferClaim {
    pub(super) fn new(parts: &Arc<PublicationParts>, frame: ClaimedFrame) -> Self {
        Self {
            parts: Arc::clone(parts),
            frame: Some(frame),
        }
    }

    /// Calls `f` with the claim in its log, to fill it or to set fields of its header.
    pub fn with<R>(&self, f: impl FnOnce(&Claim<'_, SharedBuffer>) -> R) -> R {
        let frame = self.frame.clone().expect("the claim has not ended");
        let claim = frame.attach(&self.parts.log);
        let result = f(&claim);
        // The claim goes on.
        let _ = claim.detach();
        result
    }

    /// Returns the length of the payload, in bytes.
    pub fn payload_length(&self) -> usize {
        self.with(|claim| claim.payload_length())
    }

    /// Returns the stream position after the frame.
    pub fn position(&self) -> i64 {
        self.with(|claim| claim.position())
    }

    /// Sets the flags of the frame. The initial flags mean that the message is not fragmented.
    pub fn set_flags(&self, flags: u8) {
        self.with(|claim| claim.set_flags(flags));
    }

    /// Sets the frame's reserved value. The initial value is 0.
    pub fn set_reserved_value(&self, value: i64) {
        self.with(|claim| claim.set_reserved_value(value));
    }

    /// Copies `bytes` into the payload from `offset` on.
    ///
    /// # Panics
    /// If `bytes` do not fit into the payload.
    pub fn put(&self, offset: usize, bytes: &[u8]) {
        self.with(|claim| claim.put(offset, bytes));
    }

    /// Makes the message readable. Returns the stream position after the message.
    ///
    /// # Errors
    /// [`ClaimAborted`] if the client has lost its driver since the claim.
    pub fn commit(mut self) -> Result<i64, ClaimAborted> {
        if self.parts.has_ended.load(Ordering::Acquire) {
            return Err(ClaimAborted);
        }
        let frame = self.frame.take().expect("the claim has not ended");
        Ok(frame.attach(&self.parts.log).commit())
    }

    /// Leaves the frame unfinished, as a process does that is killed. Only the driver can finish it then.
    pub fn abandon(mut self) {
        self.frame = None;
    }

    /// Turns the frame into padding, which subscribers skip.
    pub fn abort(self) {
        drop(self);
    }
}

impl Drop for BufferClaim {
    fn drop(&mut self) {
        if let Some(frame) = self.frame.take() {
            frame.attach(&self.parts.log).abort();
        }
    }
}
