//! A receiver tells the sender what went wrong with its stream.

use super::layout::{At, Flag, Place, begin, fixed_part};
use super::{FrameError, FrameType};

/// Longest text of an error frame, in bytes.
pub const MAX_ERROR_TEXT_LENGTH: usize = 1023;

/// Longest frame that travels alone, in bytes, entries for names apart: an error frame with the longest text.
pub const MAX_CONTROL_FRAME_LENGTH: usize = HEADER_LENGTH + MAX_ERROR_TEXT_LENGTH;

/// Bytes before the text.
const HEADER_LENGTH: usize = 40;

const HAS_GROUP_TAG: Flag = Flag(0x08);
const SESSION_ID: At = At(8);
const STREAM_ID: At = At(12);
const RECEIVER_ID: At = At(16);
const GROUP_TAG: At = At(24);
const ERROR_CODE: At = At(32);
const ERROR_LENGTH: At = At(36);

/// What the field of the group tag holds when there is none.
const NO_GROUP_TAG: i64 = -1;

/// An error of a receiver: it has rejected the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorFrame<'a> {
    /// Session of the stream.
    pub session_id: i32,
    /// Stream.
    pub stream_id: i32,
    /// The receiver that speaks.
    pub receiver_id: i64,
    /// Tag of the group that the receiver belongs to.
    pub group_tag: Option<i64>,
    /// Code of the error as in answers to clients; any value, as it came.
    pub error_code: i32,
    /// ASCII, not terminated; what goes beyond [`MAX_ERROR_TEXT_LENGTH`] is not sent.
    pub error_text: &'a [u8],
}

impl<'a> ErrorFrame<'a> {
    /// Reads the frame, which is the whole datagram; bytes after it are ignored.
    ///
    /// # Errors
    /// [`FrameError`] for a frame of another type, one that is cut off, or a text that does not lie within it.
    pub fn decode(datagram: &'a [u8]) -> Result<Self, FrameError> {
        let (header, fixed) = fixed_part::<HEADER_LENGTH>(datagram, FrameType::Error)?;
        let error_length: i32 = ERROR_LENGTH.read(fixed);
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
            session_id: SESSION_ID.read(fixed),
            stream_id: STREAM_ID.read(fixed),
            receiver_id: RECEIVER_ID.read(fixed),
            group_tag: HAS_GROUP_TAG.read(fixed).then(|| GROUP_TAG.read(fixed)),
            error_code: ERROR_CODE.read(fixed),
            error_text,
        })
    }

    /// Writes the frame at the start of `out` and answers its length, at most
    /// [`MAX_CONTROL_FRAME_LENGTH`].
    ///
    /// # Panics
    /// When `out` is shorter than that.
    pub fn encode(&self, out: &mut [u8]) -> usize {
        let text = &self.error_text[..self.error_text.len().min(MAX_ERROR_TEXT_LENGTH)];
        let length = HEADER_LENGTH + text.len();
        let frame = begin(out, FrameType::Error, length);
        HAS_GROUP_TAG.write(frame, self.group_tag.is_some());
        SESSION_ID.write(frame, self.session_id);
        STREAM_ID.write(frame, self.stream_id);
        RECEIVER_ID.write(frame, self.receiver_id);
        GROUP_TAG.write(frame, self.group_tag.unwrap_or(NO_GROUP_TAG));
        ERROR_CODE.write(frame, self.error_code);
        ERROR_LENGTH.write(frame, text.len() as i32);
        frame[HEADER_LENGTH..].copy_from_slice(text);
        length
    }
}
