//! A receiver says how far it is and how much more it can take.

use aeron_layout::frame::StatusMessageLayout;
use aeron_layout::{I64, IntoBytes};

use super::data::check_term_offset;
use super::fixed::{fixed_part, flag, header};
use super::{FrameError, FrameType};

/// Bytes before the feedback.
const HEADER_LENGTH: usize = StatusMessageLayout::LENGTH;

const SEND_SETUP: u8 = 0x80;
const END_OF_STREAM: u8 = 0x40;

/// What a receiver has consumed of a stream and can take beyond, or its wish for a setup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatusMessage<'a> {
    /// The receiver wants a setup; position and window mean nothing then.
    pub wants_setup: bool,
    /// The receiver has all of the stream, or is leaving.
    pub is_end_of_stream: bool,
    /// Session of the stream; 0, as the stream, asks all streams for a setup.
    pub session_id: i32,
    /// Stream.
    pub stream_id: i32,
    /// Term of the consumed position.
    pub consumption_term_id: i32,
    /// Offset of the consumed position in its term.
    pub consumption_term_offset: i32,
    /// Bytes that may be sent beyond the consumed position.
    pub receiver_window: i32,
    /// Names the receiver among all those of the stream.
    pub receiver_id: i64,
    /// For the sender's flow control: a [group tag](Self::group_tag), or what only another implementation knows.
    pub feedback: &'a [u8],
}

impl<'a> StatusMessage<'a> {
    /// Bytes of a status message with a group tag, the longest that a driver sends.
    pub const MAX_LENGTH: usize = HEADER_LENGTH + size_of::<I64>();

    /// Reads the frame, which is the whole datagram; bytes after it are ignored. Values are as they came.
    ///
    /// # Errors
    /// [`FrameError`] for a frame of another type, or one that is cut off.
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

    /// Writes the frame at the start of `out` and answers its length.
    ///
    /// # Panics
    /// When `out` is shorter than that.
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

    /// The tag of the group that the receiver belongs to: feedback of exactly 8 bytes, little-endian.
    #[must_use]
    pub fn group_tag(&self) -> Option<i64> {
        let tag: [u8; size_of::<I64>()] = self.feedback.try_into().ok()?;
        Some(I64::from_bytes(tag).get())
    }

    /// Checks position and window against the stream's `term_length`, or [`MAX_TERM_LENGTH`](super::MAX_TERM_LENGTH) where
    /// the stream is not known.
    ///
    /// # Errors
    /// [`FrameError::TermOffset`] or [`FrameError::Window`]: an invalid packet, which does not count as received.
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
