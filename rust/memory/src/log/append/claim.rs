//! [`Claim`]: a frame that its publisher fills in place. Both appenders create claims.

use std::mem::ManuallyDrop;

use crate::log::buffers::LogBuffers;
use crate::log::frame::{HEADER_LENGTH, frame_type, offset as field};
use crate::words::Words;

/// A claimed frame of a log. Subscribers wait for the frame, so finish the claim soon: [`commit`](Self::commit) makes
/// the frame readable. [`abort`](Self::abort) or dropping the claim turns the frame into padding.
#[derive(Debug)]
pub struct Claim<'a, W: Words> {
    pub(super) log: &'a LogBuffers<W>,
    pub(super) partition: usize,
    pub(super) offset: usize,
    pub(super) length: usize,
    pub(super) position: i64,
}

/// Location of a claimed frame: a claim without its log, for code that cannot borrow the log.
///
/// Dropping this value does not finish the claim. To finish the claim, [`attach`](Self::attach) it to its log.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "subscribers wait for the claim to be committed or aborted"]
pub struct ClaimedFrame {
    partition: usize,
    offset: usize,
    length: usize,
    position: i64,
}

impl ClaimedFrame {
    /// Returns the claim in its log. `log` must be the log in which the frame was claimed.
    #[inline]
    pub fn attach<W: Words>(self, log: &LogBuffers<W>) -> Claim<'_, W> {
        debug_assert!(
            self.offset + HEADER_LENGTH + self.length <= log.term_length(),
            "the claim of {} bytes at {} is from a log with longer terms",
            self.length,
            self.offset
        );
        Claim {
            log,
            partition: self.partition,
            offset: self.offset,
            length: self.length,
            position: self.position,
        }
    }
}

impl<'a, W: Words> Claim<'a, W> {
    /// Returns the term that contains the frame.
    #[inline]
    pub fn term(&self) -> &'a W {
        self.log.term(self.partition)
    }

    /// Returns the offset of the payload in the term.
    #[inline]
    pub fn payload_offset(&self) -> usize {
        self.offset + HEADER_LENGTH
    }

    /// Returns the length of the payload in bytes.
    #[inline]
    pub fn payload_length(&self) -> usize {
        self.length
    }

    /// Returns the stream position after the frame.
    #[inline]
    pub fn position(&self) -> i64 {
        self.position
    }

    /// Copies `bytes` into the payload from `offset` on.
    ///
    /// # Panics
    /// If `bytes` do not fit into the payload.
    #[inline]
    pub fn put(&self, offset: usize, bytes: &[u8]) {
        let within = offset <= self.length && bytes.len() <= self.length - offset;
        assert!(
            within,
            "{} bytes at {offset} are outside a claim of {} bytes",
            bytes.len(),
            self.length
        );
        self.term().copy_in(self.payload_offset() + offset, bytes);
    }

    /// Sets the flags of the frame. The initial flags mean that the message is not fragmented.
    pub fn set_flags(&self, flags: u8) {
        self.term()
            .store_u8_relaxed(self.offset + field::FLAGS, flags);
    }

    /// Sets the type of the frame. The initial type is DATA.
    pub fn set_frame_type(&self, frame_type: u16) {
        self.term()
            .store_u16_relaxed(self.offset + field::TYPE, frame_type);
    }

    /// Sets the frame's reserved value. The initial value is 0.
    pub fn set_reserved_value(&self, value: i64) {
        self.term()
            .store_i64_relaxed(self.offset + field::RESERVED_VALUE, value);
    }

    /// Makes the frame readable. Returns the stream position after the frame.
    #[inline]
    pub fn commit(self) -> i64 {
        let claim = ManuallyDrop::new(self);
        claim.publish();
        claim.position
    }

    /// Turns the frame into padding, which readers skip.
    pub fn abort(self) {
        drop(self);
    }

    /// Releases the borrow of the log; the claim stays unfinished.
    #[inline]
    pub fn detach(self) -> ClaimedFrame {
        let claim = ManuallyDrop::new(self);
        ClaimedFrame {
            partition: claim.partition,
            offset: claim.offset,
            length: claim.length,
            position: claim.position,
        }
    }

    #[inline]
    fn publish(&self) {
        let frame_length = (self.length + HEADER_LENGTH) as i32;
        self.term()
            .store_i32_release(self.offset + field::FRAME_LENGTH, frame_length);
    }
}

impl<W: Words> Drop for Claim<'_, W> {
    fn drop(&mut self) {
        self.set_frame_type(frame_type::PADDING);
        self.publish();
    }
}
