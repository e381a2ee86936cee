//! [`FrameError`]: the reason why a datagram is dropped.

/// Reason why a frame is invalid. The whole datagram is dropped and counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The datagram ends before the fixed part of its frame.
    #[error("datagram of {length} bytes is shorter than the {required} of its frame's fixed part")]
    TooShort {
        /// Bytes of the datagram.
        length: usize,
        /// Bytes of the fixed part.
        required: usize,
    },
    /// A version of the protocol other than 0.
    #[error("version={0} of the protocol is not 0")]
    Version(u8),
    /// An unknown type id, or one that is invalid at this place.
    #[error("frame type={0} is unknown or not expected here")]
    Type(i16),
    /// A frame length that is negative, shorter than a header, or longer than the received bytes.
    #[error("frame_length={frame_length} does not fit in the {available} received bytes")]
    FrameLength {
        /// Frame length in the frame.
        frame_length: i32,
        /// Bytes of the datagram from the start of the frame.
        available: usize,
    },
    /// A data datagram whose length is not a multiple of the frame alignment.
    #[error("datagram of {0} bytes of data is not a multiple of 32")]
    UnalignedDatagram(usize),
    /// No frame of the term can begin at this offset.
    #[error("term_offset={term_offset} is not a multiple of 32 within term_length={term_length}")]
    TermOffset {
        /// Offset in the frame.
        term_offset: i32,
        /// Length of the stream's terms.
        term_length: usize,
    },
    /// A frame that does not begin at the end of the previous one.
    #[error("term_offset={term_offset} of a frame at offset {expected}")]
    OutOfPlace {
        /// Offset in the frame.
        term_offset: i32,
        /// Offset that follows from the datagram's first frame.
        expected: usize,
    },
    /// A frame that exceeds its term.
    #[error(
        "frame_length={frame_length} at offset {term_offset} exceeds term_length={term_length}"
    )]
    BeyondTerm {
        /// Offset of the frame.
        term_offset: usize,
        /// Frame length in the frame.
        frame_length: usize,
        /// Length of the stream's terms.
        term_length: usize,
    },
    /// A setup with an invalid term length.
    #[error("term_length={0} is not a power of two from 65536 to 1073741824")]
    TermLength(i32),
    /// A setup with an invalid MTU.
    #[error("mtu={0} is not a multiple of 32 from 32 to 65504")]
    Mtu(i32),
    /// A setup with a position before the start of the stream.
    #[error("active_term_id={active_term_id} is before initial_term_id={initial_term_id}")]
    TermBeforeInitial {
        /// Term of the sender's position.
        active_term_id: i32,
        /// First term of the stream.
        initial_term_id: i32,
    },
    /// An invalid receiver window.
    #[error("receiver_window={receiver_window} is not from 0 to half of term_length={term_length}")]
    Window {
        /// Window in the frame.
        receiver_window: i32,
        /// Length of the stream's terms.
        term_length: usize,
    },
    /// A range of missing bytes that exceeds its term.
    #[error("{length} bytes missing from offset {term_offset} exceed term_length={term_length}")]
    MissingRange {
        /// Offset of the first missing byte.
        term_offset: i32,
        /// Missing bytes.
        length: i32,
        /// Length of the stream's terms.
        term_length: usize,
    },
    /// A text that exceeds its error frame, or is too long.
    #[error("error_length={error_length} is not from 0 to 1023 within frame_length={frame_length}")]
    ErrorLength {
        /// Length of the text in the frame.
        error_length: i32,
        /// Length of the frame.
        frame_length: i32,
    },
    /// An entry for a name with an unknown address type. It is logged as an error and not counted as an invalid packet.
    #[error("Invalid res type on entry: {0}")]
    ResolutionType(i8),
    /// A name that exceeds its datagram.
    #[error("name_length={name_length} does not fit in the {available} received bytes")]
    NameLength {
        /// Length of the name in the frame.
        name_length: i16,
        /// Bytes after the entry's fixed part.
        available: usize,
    },
}
