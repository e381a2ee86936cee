//! [`ReadImage`]: an image and the position up to which it was read. This position stays correct if the image is closed
//! during a poll, or if the driver moves the position counter of the image.

use aeron_client::{Action, Batch, BatchLimits, Fragment, Image, Result};

/// An image and the position up to which it was read.
///
/// If an image is closed while a handler runs, the position of the image stays at the begin of that
/// poll. A replay from that position would deliver the messages of the poll twice. So the end of
/// the last delivered frame is stored here.
///
/// If an untethered subscription is not read for a long time, the driver removes its image, and later lets the
/// subscription join again. Then the driver moves the position counter. If the process of the client was suspended in
/// the meantime, the client does not know that its image has ended, and would skip the bytes between the old and the
/// new position. So the position after each poll is stored here too.
#[derive(Clone)]
pub(super) struct ReadImage {
    image: Image,
    /// End of the last delivered frame.
    taken: i64,
    /// Position of the image after the last poll.
    read: i64,
}

impl ReadImage {
    pub(super) fn new(image: Image) -> Self {
        let position = image.position();
        Self {
            image,
            taken: position,
            read: position,
        }
    }

    /// Returns the position up to which the image was read.
    pub(super) fn position(&self) -> i64 {
        self.read.max(self.taken)
    }

    /// Returns the position at the end of the term that is read next. One poll does not read beyond it.
    pub(super) fn term_end(&self) -> i64 {
        let length = self.image.term_buffer_length() as i64;
        self.position() - self.position() % length + length
    }

    pub(super) fn is_closed(&self) -> bool {
        self.image.is_closed() || self.is_moved()
    }

    /// Returns whether the driver has moved the position counter of the image. If so, the image has ended.
    fn is_moved(&self) -> bool {
        self.image.position() != self.read
    }

    /// Adds messages to `batch` until a limit is reached, or a message has more than one fragment. Returns the number
    /// of added messages.
    pub(super) fn poll_unfragmented(
        &mut self,
        batch: &mut Batch,
        limits: BatchLimits,
    ) -> Result<usize> {
        if self.is_closed() {
            return Ok(0);
        }
        let before = batch.len();
        let polled = batch.poll_unfragmented(&self.image, limits);
        if let Some(end) = batch.positions()[before..].last() {
            self.taken = *end;
        }
        if !self.image.is_closed() {
            self.read = self.image.position();
        }
        polled
    }

    /// Calls `handler` with up to `limit` fragments. Returns their number.
    pub(super) fn poll(
        &mut self,
        mut handler: impl FnMut(Fragment<'_>) -> Action,
        limit: usize,
    ) -> Result<usize> {
        if self.is_closed() {
            return Ok(0);
        }
        let taken = &mut self.taken;
        let polled = self.image.poll(
            |fragment| {
                // Set before the handler is called: a frame counts as delivered even if the handler panics.
                let before = std::mem::replace(taken, fragment.header().position());
                let action = handler(fragment);
                if action == Action::Abort {
                    *taken = before;
                }
                action
            },
            limit,
        );
        if !self.image.is_closed() {
            self.read = self.image.position();
        }
        polled
    }
}
