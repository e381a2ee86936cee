//! Setup frames: the properties of a stream. A receiver needs them before it can create an image of the stream.

use aeron_layout::frame::{ResponseSetupLayout, SetupLayout};

use super::data::check_term_offset;
use super::fixed::fixed_frame;
use super::{
    FRAME_ALIGNMENT, FrameError, MAX_TERM_LENGTH, MAX_UDP_PAYLOAD_LENGTH, MIN_TERM_LENGTH,
};

fixed_frame! {
    /// Properties of a stream, and the sender's position. A receiver joins at this position.
    pub struct Setup(SetupLayout) {
        flags {
            /// Whether the publisher expects a response stream for this stream.
            wants_response = 0x80,
            /// Whether the stream is sent to several receivers: by multicast or to several destinations.
            has_group_semantics = 0x40,
        }
        /// Term offset of the sender's position.
        pub term_offset: i32,
        /// Session id of the stream.
        pub session_id: i32,
        /// Stream id.
        pub stream_id: i32,
        /// Id of the stream's first term.
        pub initial_term_id: i32,
        /// Id of the term that contains the sender's position.
        pub active_term_id: i32,
        /// Length of the stream's terms in bytes.
        pub term_length: i32,
        /// Maximum length of a datagram of the stream, in bytes.
        pub mtu_length: i32,
        /// Time to live of multicast datagrams; 0 for the system's default.
        pub ttl: i32,
    }
}

fixed_frame! {
    /// The session id of a response stream, sent to the sender of the request stream.
    pub struct ResponseSetup(ResponseSetupLayout) {
        /// Session id of the request stream.
        pub session_id: i32,
        /// Stream id of the request stream.
        pub stream_id: i32,
        /// Session id of the response stream.
        pub response_session_id: i32,
    }
}

impl Setup {
    /// Validates the term length, the MTU, and that the position is not before the start of the stream.
    ///
    /// # Errors
    /// [`FrameError`] with the invalid value. The datagram then counts as an invalid packet.
    pub fn check(&self) -> Result<(), FrameError> {
        let term_length = usize::try_from(self.term_length)
            .ok()
            .filter(|length| (MIN_TERM_LENGTH..=MAX_TERM_LENGTH).contains(length))
            .filter(|length| length.is_power_of_two())
            .ok_or(FrameError::TermLength(self.term_length))?;
        usize::try_from(self.mtu_length)
            .ok()
            .filter(|length| (FRAME_ALIGNMENT..=MAX_UDP_PAYLOAD_LENGTH).contains(length))
            .filter(|length| length.is_multiple_of(FRAME_ALIGNMENT))
            .ok_or(FrameError::Mtu(self.mtu_length))?;
        check_term_offset(self.term_offset, term_length)?;
        if self.active_term_id.wrapping_sub(self.initial_term_id) < 0 {
            return Err(FrameError::TermBeforeInitial {
                active_term_id: self.active_term_id,
                initial_term_id: self.initial_term_id,
            });
        }
        Ok(())
    }
}
