//! A receiver says how far it is and how much more it can take.

use super::data::check_term_offset;
use super::layout::{At, Flag, Place, begin, fixed_part};
use super::{FrameError, FrameType};

/// Bytes before the feedback.
const HEADER_LENGTH: usize = 36;

const SEND_SETUP: Flag = Flag(0x80);
const END_OF_STREAM: Flag = Flag(0x40);
const SESSION_ID: At = At(8);
const STREAM_ID: At = At(12);
const CONSUMPTION_TERM_ID: At = At(16);
const CONSUMPTION_TERM_OFFSET: At = At(20);
const RECEIVER_WINDOW: At = At(24);
const RECEIVER_ID: At = At(28);

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
    pub const MAX_LENGTH: usize = HEADER_LENGTH + size_of::<i64>();

    /// Reads the frame, which is the whole datagram; bytes after it are ignored. Values are as they came.
    ///
    /// # Errors
    /// [`FrameError`] for a frame of another type, or one that is cut off.
    pub fn decode(datagram: &'a [u8]) -> Result<Self, FrameError> {
        let (header, fixed) = fixed_part::<HEADER_LENGTH>(datagram, FrameType::StatusMessage)?;
        Ok(Self {
            wants_setup: SEND_SETUP.read(fixed),
            is_end_of_stream: END_OF_STREAM.read(fixed),
            session_id: SESSION_ID.read(fixed),
            stream_id: STREAM_ID.read(fixed),
            consumption_term_id: CONSUMPTION_TERM_ID.read(fixed),
            consumption_term_offset: CONSUMPTION_TERM_OFFSET.read(fixed),
            receiver_window: RECEIVER_WINDOW.read(fixed),
            receiver_id: RECEIVER_ID.read(fixed),
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
        let frame = begin(out, FrameType::StatusMessage, length);
        SEND_SETUP.write(frame, self.wants_setup);
        END_OF_STREAM.write(frame, self.is_end_of_stream);
        SESSION_ID.write(frame, self.session_id);
        STREAM_ID.write(frame, self.stream_id);
        CONSUMPTION_TERM_ID.write(frame, self.consumption_term_id);
        CONSUMPTION_TERM_OFFSET.write(frame, self.consumption_term_offset);
        RECEIVER_WINDOW.write(frame, self.receiver_window);
        RECEIVER_ID.write(frame, self.receiver_id);
        frame[HEADER_LENGTH..].copy_from_slice(self.feedback);
        length
    }

    /// The tag of the group that the receiver belongs to: feedback of exactly 8 bytes, little-endian.
    #[must_use]
    pub fn group_tag(&self) -> Option<i64> {
        self.feedback.try_into().ok().map(i64::from_le_bytes)
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
