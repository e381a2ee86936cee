//! Status messages: a receiver reports its position and its window.

use aeron_layout::frame::StatusMessageLayout;
use aeron_layout::{I64, IntoBytes};

use super::data::check_term_offset;
use super::fixed::{fixed_part, flag, header};
use super::{FrameError, FrameType};

/// Length of the part before the feedback, in bytes.
const HEADER_LENGTH: usize = StatusMessageLayout::LENGTH;

const SEND_SETUP: u8 = 0x80;
const END_OF_STREAM: u8 = 0x40;

/// Position and window of a receiver, or its request for a setup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatusMessage<'a> {
    /// Whether the receiver requests a setup. In such a request, position and window have no meaning.
    pub wants_setup: bool,
    /// Whether the receiver has received the whole stream, or leaves the stream.
    pub is_end_of_stream: bool,
    /// Session id. If session id and stream id are both 0, the request for a setup is for all streams.
    pub session_id: i32,
    /// Stream id.
    pub stream_id: i32,
    /// Id of the term that contains the consumed position.
    pub consumption_term_id: i32,
    /// Term offset of the consumed position.
    pub consumption_term_offset: i32,
    /// Number of bytes that may be sent beyond the consumed position.
    pub receiver_window: i32,
    /// Id of the receiver, unique among all receivers of the stream.
    pub receiver_id: i64,
    /// Data for the sender's flow control: a [group tag](Self::group_tag), or data of another implementation.
    pub feedback: &'a [u8],
}

impl<'a> StatusMessage<'a> {
    /// Length of a status message with a group tag, the longest that a driver sends, in bytes.
    pub const MAX_LENGTH: usize = HEADER_LENGTH + size_of::<I64>();

    /// Reads the frame. The frame is alone in its datagram: bytes after the frame are ignored. Does not validate the
    /// values.
    ///
    /// # Errors
    /// [`FrameError`] for a frame of another type, or a truncated frame.
    pub fn decode(datagram: &'a [u8]) -> Result<Self, FrameError> {
        let (header, fixed) =
            fixed_part::<StatusMessageLayout>(datagram, FrameType::StatusMessage)?;
        Ok(Self {
            wants_setup: header.flags & SEND_SETUP != 0,
            is_end_of_stream: header.flags & END_OF_STREAM != 0,
            session_id: fixed.session_id.get(),
            stream_id: fixed.stream_id.get(),
            consumption_term_id: fixed.consumption_term_id.get(),
            consumption_term_offset: fixed.consumption_term_offset.get(),
            receiver_window: fixed.receiver_window.get(),
            receiver_id: fixed.receiver_id.get(),
            feedback: datagram
                .get(HEADER_LENGTH..header.frame_length as usize)
                .unwrap_or_default(),
        })
    }

    /// Writes the frame at the start of `out`. Returns its length.
    ///
    /// # Panics
    /// If `out` is shorter than the frame.
    pub fn encode(&self, out: &mut [u8]) -> usize {
        let length = HEADER_LENGTH + self.feedback.len();
        let flags = flag(self.wants_setup, SEND_SETUP) | flag(self.is_end_of_stream, END_OF_STREAM);
        let fixed = StatusMessageLayout {
            header: header(FrameType::StatusMessage, flags, length),
            session_id: self.session_id.into(),
            stream_id: self.stream_id.into(),
            consumption_term_id: self.consumption_term_id.into(),
            consumption_term_offset: self.consumption_term_offset.into(),
            receiver_window: self.receiver_window.into(),
            receiver_id: self.receiver_id.into(),
        };
        let (begin, feedback) = out[..length].split_at_mut(HEADER_LENGTH);
        begin.copy_from_slice(fixed.as_bytes());
        feedback.copy_from_slice(self.feedback);
        length
    }

    /// Returns the group tag of the receiver. Feedback of exactly 8 bytes is a group tag; other feedback returns
    /// `None`.
    #[must_use]
    pub fn group_tag(&self) -> Option<i64> {
        let tag: [u8; size_of::<I64>()] = self.feedback.try_into().ok()?;
        Some(I64::from_bytes(tag).get())
    }

    /// Validates position and window against the stream's `term_length`, or [`MAX_TERM_LENGTH`](super::MAX_TERM_LENGTH)
    /// if the stream is unknown.
    ///
    /// # Errors
    /// [`FrameError::TermOffset`] or [`FrameError::Window`]: the frame is invalid and must be ignored.
    pub fn check(&self, term_length: usize) -> Result<(), FrameError> {
        check_term_offset(self.consumption_term_offset, term_length)?;
        match usize::try_from(self.receiver_window) {
            Ok(window) if window <= term_length / 2 => Ok(()),
            _ => Err(FrameError::Window {
                receiver_window: self.receiver_window,
                term_length,
            }),
        }
    }
}
