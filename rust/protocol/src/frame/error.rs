//! [`FrameError`]: the reason why a datagram is dropped.

/// Reason why a frame is invalid. The whole datagram is dropped and counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The datagram ends before the end of the fixed part of a frame or entry.
    #[error("{length} bytes are left for a frame or entry of at least {required} bytes")]
    TooShort {
        /// Number of bytes from the start of the frame or entry to the end of the datagram.
        length: usize,
        /// Number of bytes that are required.
        required: usize,
    },
    /// A version of the protocol other than 0.
    #[error("version={0} of the protocol is not 0")]
    Version(u8),
    /// An unknown type id, or a type id that is invalid at this place.
    #[error("frame type={0} is unknown or not expected here")]
    Type(i16),
    /// A frame length that is negative, shorter than a header, or longer than the received bytes.
    #[error(
        "frame_length={frame_length} is less than a header, or exceeds the {available} received bytes"
    )]
    FrameLength {
        /// Frame length in the frame.
        frame_length: i32,
        /// Number of bytes from the start of the frame to the end of the datagram.
        available: usize,
    },
    /// A data datagram whose length is not a multiple of the frame alignment.
    #[error("the length of a data datagram, {0} bytes, is not a multiple of 32")]
    UnalignedDatagram(usize),
    /// No frame of the term can begin at this offset.
    #[error("term_offset={term_offset} is not a multiple of 32 within term_length={term_length}")]
    TermOffset {
        /// Term offset in the header of the frame.
        term_offset: i32,
        /// Length of the stream's terms in bytes.
        term_length: usize,
    },
    /// A frame that does not begin at the end of the previous frame.
    #[error("term_offset={term_offset} of a frame at offset {expected}")]
    OutOfPlace {
        /// Term offset in the header of the frame.
        term_offset: i32,
        /// Term offset that follows from the previous frames of the datagram.
        expected: usize,
    },
    /// A frame that exceeds its term.
    #[error(
        "frame_length={frame_length} at offset {term_offset} exceeds term_length={term_length}"
    )]
    BeyondTerm {
        /// Term offset of the frame.
        term_offset: usize,
        /// Frame length in the frame.
        frame_length: usize,
        /// Length of the stream's terms in bytes.
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
        /// Id of the term that contains the sender's position.
        active_term_id: i32,
        /// Id of the stream's first term.
        initial_term_id: i32,
    },
    /// An invalid receiver window.
    #[error("receiver_window={receiver_window} is not from 0 to half of term_length={term_length}")]
    Window {
        /// Receiver window in the frame, in bytes.
        receiver_window: i32,
        /// Length of the stream's terms in bytes.
        term_length: usize,
    },
    /// A range of missing bytes that has a negative length or exceeds its term.
    #[error(
        "missing range: length={length} at offset {term_offset} is negative, or exceeds term_length={term_length}"
    )]
    MissingRange {
        /// Term offset of the first missing byte.
        term_offset: i32,
        /// Number of missing bytes.
        length: i32,
        /// Length of the stream's terms in bytes.
        term_length: usize,
    },
    /// A text that exceeds its error frame, or is too long.
    #[error(
        "error_length={error_length} is not from 0 to 1023, or exceeds frame_length={frame_length}"
    )]
    ErrorLength {
        /// Declared length of the text in bytes.
        error_length: i32,
        /// Length of the frame in bytes.
        frame_length: i32,
    },
    /// An entry with an unknown address type. It is logged as an error and not counted as an invalid packet.
    #[error("Invalid res type on entry: {0}")]
    ResolutionType(i8),
    /// A name length that is negative or exceeds the datagram.
    #[error("name_length={name_length} is negative, or exceeds the {available} received bytes")]
    NameLength {
        /// Declared length of the name in bytes.
        name_length: i16,
        /// Number of bytes after the entry's fixed part.
        available: usize,
    },
}
