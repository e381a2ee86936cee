//! [`ReplayPublication`]: the publication of a replay, as a session uses it.

use aeron_client::{AppendError, ExclusivePublication, OfferError};

/// The publication of a replay session. Tests have one without a driver.
pub(super) trait ReplayPublication {
    /// Channel of the publication.
    fn channel(&self) -> &str;

    /// Session of the stream.
    fn session_id(&self) -> i32;

    /// Stream.
    fn stream_id(&self) -> i32;

    /// Longest message, in bytes.
    fn max_message_length(&self) -> usize;

    /// Whether anybody receives the stream.
    fn is_connected(&self) -> bool;

    /// Position up to which the stream may grow.
    ///
    /// # Errors
    /// The publication is closed.
    fn position_limit(&self) -> Result<i64, AppendError>;

    /// Appends whole frames of data.
    ///
    /// # Errors
    /// See [`OfferError`]; nothing was appended.
    fn offer_block(&mut self, block: &[u8]) -> Result<i64, OfferError>;

    /// Appends a frame of padding with `length` bytes after its header.
    ///
    /// # Errors
    /// See [`OfferError`]; nothing was appended.
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

    fn position_limit(&self) -> Result<i64, AppendError> {
        self.position_limit()
    }

    fn offer_block(&mut self, block: &[u8]) -> Result<i64, OfferError> {
        ExclusivePublication::offer_block(self, block)
    }

    fn append_padding(&mut self, length: usize) -> Result<i64, OfferError> {
        ExclusivePublication::append_padding(self, length)
    }
}
