//! Error frames: a receiver reports an error of a stream to its sender.

use aeron_layout::IntoBytes;
use aeron_layout::frame::ErrorFrameLayout;

use super::fixed::{fixed_part, flag, header};
use super::{FrameError, FrameType};

/// Maximum length of the text of an error frame, in bytes.
pub const MAX_ERROR_TEXT_LENGTH: usize = 1023;

/// Maximum length in bytes of a frame that is alone in its datagram, except resolution frames: an error frame with the
/// longest text.
pub const MAX_CONTROL_FRAME_LENGTH: usize = HEADER_LENGTH + MAX_ERROR_TEXT_LENGTH;

/// Length of the part before the text, in bytes.
const HEADER_LENGTH: usize = ErrorFrameLayout::LENGTH;

const HAS_GROUP_TAG: u8 = 0x08;

/// Value of the group tag field if the receiver has no group tag.
const NO_GROUP_TAG: i64 = -1;

/// An error that a receiver reports: it has rejected the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorFrame<'a> {
    /// Session id of the stream.
    pub session_id: i32,
    /// Stream id.
    pub stream_id: i32,
    /// Id of the receiver that sends the frame.
    pub receiver_id: i64,
    /// Group tag of the receiver, if it has one.
    pub group_tag: Option<i64>,
    /// Error code as in responses to clients; any value is possible.
    pub error_code: i32,
    /// Error text in ASCII, not terminated. Bytes after [`MAX_ERROR_TEXT_LENGTH`] are not sent.
    pub error_text: &'a [u8],
}

impl<'a> ErrorFrame<'a> {
    /// Reads the frame. The frame is alone in its datagram: bytes after the frame are ignored.
    ///
    /// # Errors
    /// [`FrameError`] for a frame of another type, a truncated frame, or a text that exceeds the frame.
    pub fn decode(datagram: &'a [u8]) -> Result<Self, FrameError> {
        let (header, fixed) = fixed_part::<ErrorFrameLayout>(datagram, FrameType::Error)?;
        let error_length = fixed.error_length.get();
        let error_text = usize::try_from(error_length)
            .ok()
            .filter(|length| *length <= MAX_ERROR_TEXT_LENGTH)
            .and_then(|length| {
                datagram[..header.frame_length as usize]
                    .get(HEADER_LENGTH..)?
                    .get(..length)
            })
            .ok_or(FrameError::ErrorLength {
                error_length,
                frame_length: header.frame_length,
            })?;
        Ok(Self {
            session_id: fixed.session_id.get(),
            stream_id: fixed.stream_id.get(),
            receiver_id: fixed.receiver_id.get(),
            group_tag: (header.flags & HAS_GROUP_TAG != 0).then(|| fixed.group_tag.get()),
            error_code: fixed.error_code.get(),
            error_text,
        })
    }

    /// Writes the frame at the start of `out`. Returns its length, at most [`MAX_CONTROL_FRAME_LENGTH`].
    ///
    /// # Panics
    /// If `out` is shorter than the frame.
    pub fn encode(&self, out: &mut [u8]) -> usize {
        let text = &self.error_text[..self.error_text.len().min(MAX_ERROR_TEXT_LENGTH)];
        let length = HEADER_LENGTH + text.len();
        let flags = flag(self.group_tag.is_some(), HAS_GROUP_TAG);
        let fixed = ErrorFrameLayout {
            header: header(FrameType::Error, flags, length),
            session_id: self.session_id.into(),
            stream_id: self.stream_id.into(),
            receiver_id: self.receiver_id.into(),
            group_tag: self.group_tag.unwrap_or(NO_GROUP_TAG).into(),
            error_code: self.error_code.into(),
            error_length: (text.len() as i32).into(),
        };
        let (begin, place) = out[..length].split_at_mut(HEADER_LENGTH);
        begin.copy_from_slice(fixed.as_bytes());
        place.copy_from_slice(text);
        length
    }
}
