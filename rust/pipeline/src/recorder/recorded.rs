//! [`Recorded`]: one image on its way into a recording.

use aeron_archive::storage::Directory;
use aeron_client::{Block, Image, SharedBuffer, TryPollError};
use aeron_memory::Words;

use crate::error::{LiveCode, LiveError};
use crate::private::{
    ImageDescription, MAX_BLOCK_LENGTH, PrivateError, RecordingWriter, SessionKey,
};

/// What makes an image the continuation of another one, within one run.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Session {
    stream_id: i32,
    session_id: i32,
    source_identity: String,
    initial_term_id: i32,
}

/// An image that is recorded.
pub(super) struct Recorded {
    pub image: Image,
    pub key: SessionKey,
    pub writer: RecordingWriter<Directory>,
}

/// Why nothing more can be recorded of an image.
#[derive(Debug, thiserror::Error)]
pub(super) enum PollError {
    #[error(transparent)]
    Record(#[from] PrivateError),
    #[error(transparent)]
    Image(#[from] aeron_client::Error),
}

/// Where a block is copied to, so that what is checked is what is written.
pub(super) struct BlockBuffer(Vec<u8>);

impl BlockBuffer {
    pub fn new() -> Self {
        Self(vec![0; MAX_BLOCK_LENGTH])
    }

    /// Of padding, which may be longer than any block, the first part: only its header counts.
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
    /// Records the next block, at most `limit` bytes; answers the bytes of stream that it covers. The image's position moves
    /// only over what is recorded.
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

    /// The session of the image.
    pub fn session(&self) -> Session {
        Session::of(&self.image)
    }

    /// Whether nothing more will come.
    pub fn is_over(&self) -> bool {
        self.image.is_closed() || self.image.is_end_of_stream()
    }
}

/// What a recording is told of its image.
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
