//! [`ReplayPublication`]: the functions of a publication that a replay session uses.

use aeron_client::{
    BlockSpace, ExclusivePublication, FillBlockError, FilledBlock, OfferError, SharedBuffer,
};

/// The publication of a replay session. The tests have an implementation without a driver.
pub(super) trait ReplayPublication {
    /// Returns the channel of the publication.
    fn channel(&self) -> &str;

    /// Returns the session id of the stream.
    fn session_id(&self) -> i32;

    /// Returns the stream id.
    fn stream_id(&self) -> i32;

    /// Returns the longest message, in bytes.
    fn max_message_length(&self) -> usize;

    /// Returns whether the stream has a subscriber.
    fn is_connected(&self) -> bool;

    /// Appends data frames that `fill` writes directly into the log: see
    /// [`ExclusivePublication::fill_block`].
    ///
    /// # Errors
    /// See [`OfferError`], or the error of `fill`. Then nothing was appended.
    fn fill_block<E>(
        &mut self,
        max_length: usize,
        fill: impl FnOnce(&BlockSpace<'_, SharedBuffer>) -> Result<FilledBlock, E>,
    ) -> Result<i64, FillBlockError<OfferError, E>>;

    /// Appends a padding frame with `length` bytes after its header.
    ///
    /// # Errors
    /// See [`OfferError`]. Then nothing was appended.
    fn append_padding(&mut self, length: usize) -> Result<i64, OfferError>;
}

impl ReplayPublication for ExclusivePublication {
    fn channel(&self) -> &str {
        self.channel()
    }

    fn session_id(&self) -> i32 {
        self.session_id()
    }

    fn stream_id(&self) -> i32 {
        self.stream_id()
    }

    fn max_message_length(&self) -> usize {
        self.max_message_length()
    }

    fn is_connected(&self) -> bool {
        self.is_connected()
    }

    fn fill_block<E>(
        &mut self,
        max_length: usize,
        fill: impl FnOnce(&BlockSpace<'_, SharedBuffer>) -> Result<FilledBlock, E>,
    ) -> Result<i64, FillBlockError<OfferError, E>> {
        ExclusivePublication::fill_block(self, max_length, fill)
    }

    fn append_padding(&mut self, length: usize) -> Result<i64, OfferError> {
        ExclusivePublication::append_padding(self, length)
    }
}
