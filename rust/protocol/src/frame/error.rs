//! Why a datagram is not taken.

/// What is wrong with a frame. The datagram is dropped as a whole, and counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The datagram ends before the fixed part of its frame does.
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
    /// A type id that is not known, or has no place there.
    #[error("frame type={0} is unknown or not expected here")]
    Type(i16),
    /// A frame length that is negative, shorter than a header, or longer than the bytes that came.
    #[error("frame_length={frame_length} does not fit in the {available} bytes that came")]
    FrameLength {
        /// Length that the frame gives itself.
        frame_length: i32,
        /// Bytes of the datagram from the frame's first one on.
        available: usize,
    },
    /// A datagram of data whose length is not a multiple of the frame alignment.
    #[error("datagram of {0} bytes of data is not a multiple of 32")]
    UnalignedDatagram(usize),
    /// An offset that is not that of a frame within its term.
    #[error("term_offset={term_offset} is not a multiple of 32 within term_length={term_length}")]
    TermOffset {
        /// Offset that the frame gives.
        term_offset: i32,
        /// Length of the stream's terms.
        term_length: usize,
    },
    /// A frame that does not stand where the one before it ends.
    #[error("term_offset={term_offset} of a frame that stands at {expected}")]
    OutOfPlace {
        /// Offset that the frame gives.
        term_offset: i32,
        /// Offset that follows from the datagram's first frame.
        expected: usize,
    },
    /// A frame that goes beyond the end of its term.
    #[error(
        "frame_length={frame_length} at offset {term_offset} exceeds term_length={term_length}"
    )]
    BeyondTerm {
        /// Offset of the frame.
        term_offset: usize,
        /// Length that the frame gives itself.
        frame_length: usize,
        /// Length of the stream's terms.
        term_length: usize,
    },
    /// A setup with a term length that no stream has.
    #[error("term_length={0} is not a power of two from 65536 to 1073741824")]
    TermLength(i32),
    /// A setup with an MTU that no stream has.
    #[error("mtu={0} is not a multiple of 32 from 32 to 65504")]
    Mtu(i32),
    /// A setup that begins before the stream does.
    #[error("active_term_id={active_term_id} is before initial_term_id={initial_term_id}")]
    TermBeforeInitial {
        /// Term of the sender's position.
        active_term_id: i32,
        /// First term of the stream.
        initial_term_id: i32,
    },
    /// A receiver window that cannot be.
    #[error("receiver_window={receiver_window} is not from 0 to half of term_length={term_length}")]
    Window {
        /// Window that the receiver gives.
        receiver_window: i32,
        /// Length of the stream's terms.
        term_length: usize,
    },
    /// A range of missing bytes that goes beyond its term.
    #[error("{length} bytes missing from offset {term_offset} exceed term_length={term_length}")]
    MissingRange {
        /// Offset of the first missing byte.
        term_offset: i32,
        /// Missing bytes.
        length: i32,
        /// Length of the stream's terms.
        term_length: usize,
    },
    /// A text that does not lie within its error frame, or is too long.
    #[error("error_length={error_length} is not from 0 to 1023 within frame_length={frame_length}")]
    ErrorLength {
        /// Length that the text is said to have.
        error_length: i32,
        /// Length of the frame.
        frame_length: i32,
    },
    /// An entry for a name whose address is of an unknown kind: an error for the log rather than an invalid packet.
    #[error("Invalid res type on entry: {0}")]
    ResolutionType(i8),
    /// A name that does not lie within its datagram.
    #[error("name_length={name_length} does not fit in the {available} bytes that came")]
    NameLength {
        /// Length that the name is said to have.
        name_length: i16,
        /// Bytes after the entry's fixed part.
        available: usize,
    },
}
