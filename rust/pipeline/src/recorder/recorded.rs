//! [`Recorded`]: an image and the writer of its recording.

use aeron_archive::storage::Directory;
use aeron_client::{Block, Image, SharedBuffer, TryPollError};
use aeron_memory::Words;

use crate::error::{LiveCode, LiveError};
use crate::private::{
    ImageDescription, MAX_BLOCK_LENGTH, PrivateError, RecordingWriter, SessionKey,
};

/// Identity of an image's session within one run of the query.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Session {
    stream_id: i32,
    session_id: i32,
    source_identity: String,
    initial_term_id: i32,
}

/// An image that is being recorded.
pub(super) struct Recorded {
    pub image: Image,
    pub key: SessionKey,
    pub writer: RecordingWriter<Directory>,
}

/// Reason why an image cannot be recorded any further.
#[derive(Debug, thiserror::Error)]
pub(super) enum PollError {
    #[error(transparent)]
    Record(#[from] PrivateError),
    #[error(transparent)]
    Image(#[from] aeron_client::Error),
}

/// Buffer for a copy of a block. The block is validated and written from the copy, because the log may change in
/// between.
pub(super) struct BlockBuffer(Vec<u8>);

impl BlockBuffer {
    pub fn new() -> Self {
        Self(vec![0; MAX_BLOCK_LENGTH])
    }

    /// Copies a block. Of padding, only the header is needed, so padding that is longer than the buffer is copied only
    /// in part.
    fn copy(&mut self, block: &Block<'_, SharedBuffer>) -> &[u8] {
        let length = block.length().min(self.0.len());
        let bytes = &mut self.0[..length];
        block.term().copy_out(block.offset(), bytes);
        bytes
    }
}

impl Session {
    pub fn of(image: &Image) -> Self {
        Self {
            stream_id: image.stream_id(),
            session_id: image.session_id(),
            source_identity: image.source_identity().to_owned(),
            initial_term_id: image.initial_term_id(),
        }
    }
}

impl Recorded {
    /// Records the next block of at most `limit` bytes. Returns the number of stream bytes that it covers. The image's
    /// position advances only over recorded bytes.
    pub fn poll(
        &mut self,
        limit: usize,
        buffer: &mut BlockBuffer,
        now_us: impl FnOnce() -> i64,
    ) -> Result<usize, PollError> {
        if limit == 0 {
            return Ok(0);
        }
        let writer = &mut self.writer;
        let polled = self.image.block_poll(
            |block| writer.append(block.begin_position(), buffer.copy(block), now_us()),
            limit,
        );
        polled.map_err(|error| match error {
            TryPollError::Poll(error) => error.into(),
            TryPollError::Handler(error) => error.into(),
        })
    }

    /// Returns the session of the image.
    pub fn session(&self) -> Session {
        Session::of(&self.image)
    }

    /// Whether the image will deliver no more data.
    pub fn is_over(&self) -> bool {
        self.image.is_closed() || self.image.is_end_of_stream()
    }
}

/// Returns the properties of an image that its recording needs.
pub(super) fn describe(
    image: &Image,
    original_channel: &str,
    stripped_channel: &str,
) -> Result<ImageDescription, LiveError> {
    let length = |value: usize| {
        i32::try_from(value).map_err(|_| {
            let reason = format!(
                "image of session {} has a length of {value}",
                image.session_id()
            );
            LiveError::new(LiveCode::Archive, reason)
        })
    };
    Ok(ImageDescription {
        original_channel: original_channel.to_owned(),
        stripped_channel: stripped_channel.to_owned(),
        stream_id: image.stream_id(),
        session_id: image.session_id(),
        source_identity: image.source_identity().to_owned(),
        initial_term_id: image.initial_term_id(),
        term_length: length(image.term_buffer_length())?,
        mtu_length: length(image.mtu_length())?,
        join_position: image.join_position(),
    })
}
