//! Data frames, which are sent as a slice of the sender's term.

use aeron_layout::frame::DataHeaderLayout;
use aeron_layout::{IntoBytes, Layout};

use super::{FRAME_ALIGNMENT, FrameError, FrameHeader, FrameType, flags};

/// Header of a data frame: a fragment, padding or a heartbeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataHeader {
    /// Length in bytes with this header and without alignment; 0 in a heartbeat.
    pub frame_length: i32,
    /// See [`flags`].
    pub flags: u8,
    /// Whether the frame is padding. Padding covers `frame_length` bytes of the term, and only its header is sent.
    pub is_padding: bool,
    /// Offset of the frame in its term.
    pub term_offset: i32,
    /// Session id of the stream.
    pub session_id: i32,
    /// Stream id.
    pub stream_id: i32,
    /// Term id of the frame.
    pub term_id: i32,
    /// Application-defined value.
    pub reserved_value: i64,
}

/// Contents of a datagram of data frames, after all frames were validated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Walk {
    /// Number of bytes of the term that the frames cover, including the full length of padding; 0 for a heartbeat. The
    /// covered range never ends beyond the term.
    pub length: usize,
    /// Whether the datagram is a heartbeat: a frame without data.
    pub is_heartbeat: bool,
}

impl DataHeader {
    /// Length of the header in bytes.
    pub const LENGTH: usize = DataHeaderLayout::LENGTH;

    /// Reads the header of a datagram's first frame. Checks only the total length of the other frames; [`walk`]
    /// validates them.
    ///
    /// # Errors
    /// [`FrameError`] for a frame of another type, or a datagram that is shorter than the header or not aligned. Also
    /// for a frame length that is negative, or shorter than the header and not 0.
    pub fn decode(datagram: &[u8]) -> Result<Self, FrameError> {
        let header = FrameHeader::decode(datagram)?;
        let is_padding = match header.frame_type {
            FrameType::Data => false,
            FrameType::Pad => true,
            other => return Err(FrameError::Type(other.id())),
        };
        let layout = DataHeaderLayout::first_in(datagram).ok_or(FrameError::TooShort {
            length: datagram.len(),
            required: Self::LENGTH,
        })?;
        if !datagram.len().is_multiple_of(FRAME_ALIGNMENT) {
            return Err(FrameError::UnalignedDatagram(datagram.len()));
        }
        if header.frame_length != 0 {
            checked_frame_length(layout, datagram.len())?;
        }
        Ok(Self {
            frame_length: header.frame_length,
            flags: header.flags,
            is_padding,
            term_offset: layout.term_offset.get(),
            session_id: layout.session_id.get(),
            stream_id: layout.stream_id.get(),
            term_id: layout.term_id.get(),
            reserved_value: layout.reserved_value.get(),
        })
    }

    /// Writes the header at the start of `out` and returns its length.
    ///
    /// # Panics
    /// If `out` is shorter than the header.
    pub fn encode(&self, out: &mut [u8]) -> usize {
        let header = FrameHeader {
            frame_length: self.frame_length,
            flags: self.flags,
            frame_type: match self.is_padding {
                true => FrameType::Pad,
                false => FrameType::Data,
            },
        };
        let layout = DataHeaderLayout {
            header: header.layout(),
            term_offset: self.term_offset.into(),
            session_id: self.session_id.into(),
            stream_id: self.stream_id.into(),
            term_id: self.term_id.into(),
            reserved_value: self.reserved_value.into(),
        };
        out[..Self::LENGTH].copy_from_slice(layout.as_bytes());
        Self::LENGTH
    }

    /// Whether a datagram of `datagram_length` bytes with this header is a heartbeat without data.
    #[must_use]
    pub const fn is_heartbeat(&self, datagram_length: usize) -> bool {
        self.frame_length == 0 && !self.is_padding && datagram_length == Self::LENGTH
    }

    /// Whether the stream has ended. Only heartbeats use this flag.
    #[must_use]
    pub const fn is_end_of_stream(&self) -> bool {
        self.flags & flags::END_OF_STREAM != 0
    }

    /// Whether the stream was revoked. Only heartbeats that end the stream use this flag.
    #[must_use]
    pub const fn is_revoked(&self) -> bool {
        self.flags & flags::REVOKED != 0
    }
}

/// Validates all frames of a datagram before the receiver copies any byte into a term of `term_length` bytes. Each
/// frame must begin at the end of the previous one, be complete (except padding, which ends a datagram), and lie within
/// the term.
///
/// Does not check session, stream, term and version of the frames after the first: these fields are assumed to have the
/// same values as in the first frame.
///
/// # Errors
/// [`FrameError`] with the reason. After an error, no part of the datagram may be used, not even as a heartbeat.
pub fn walk(datagram: &[u8], term_length: usize) -> Result<Walk, FrameError> {
    walk_from(&DataHeader::decode(datagram)?, datagram, term_length)
}

/// Like [`walk`], for a caller that has already decoded the header of the first frame.
///
/// # Errors
/// The same errors as [`walk`].
pub fn walk_from(
    first: &DataHeader,
    datagram: &[u8],
    term_length: usize,
) -> Result<Walk, FrameError> {
    let begin = check_term_offset(first.term_offset, term_length)?;
    if first.is_heartbeat(datagram.len()) {
        return Ok(Walk {
            length: 0,
            is_heartbeat: true,
        });
    }
    let mut length = 0;
    while let Some(frame) = datagram.get(length..).filter(|rest| !rest.is_empty()) {
        length += match whole_message(frame, begin + length, term_length) {
            Some(covered) => covered,
            None => covered_length(frame, begin + length, term_length)?,
        };
    }
    Ok(Walk {
        length,
        is_heartbeat: false,
    })
}

/// Fast path of [`covered_length`] for a valid data frame. Returns `None` for padding and for an invalid frame. Most
/// datagrams contain only valid data frames, often many.
#[inline]
fn whole_message(frames: &[u8], term_offset: usize, term_length: usize) -> Option<usize> {
    let head = DataHeaderLayout::first_in(frames)?;
    let frame_length = head.header.frame_length.get();
    let covered = (frame_length as u32 as usize).next_multiple_of(FRAME_ALIGNMENT);
    let given = head.term_offset.get();
    let is_sound = frame_length >= DataHeader::LENGTH as i32
        && head.header.frame_type.get() == FrameType::Data.id()
        && covered <= frames.len()
        && given as u32 as usize == term_offset
        && term_offset + covered <= term_length;
    is_sound.then_some(covered)
}

/// Returns the number of bytes of the term that the first frame of `frames` covers. The offset in this frame must be
/// `term_offset`.
fn covered_length(
    frames: &[u8],
    term_offset: usize,
    term_length: usize,
) -> Result<usize, FrameError> {
    let head = DataHeaderLayout::first_in(frames).ok_or(FrameError::TooShort {
        length: frames.len(),
        required: DataHeader::LENGTH,
    })?;
    let frame_length = checked_frame_length(head, frames.len())?;
    let covered = frame_length.next_multiple_of(FRAME_ALIGNMENT);
    let is_whole = match head.header.frame_type.get() {
        id if id == FrameType::Pad.id() => true,
        id if id == FrameType::Data.id() => covered <= frames.len(),
        id => return Err(FrameError::Type(id)),
    };
    if !is_whole {
        return Err(FrameError::FrameLength {
            frame_length: head.header.frame_length.get(),
            available: frames.len(),
        });
    }
    let given = head.term_offset.get();
    if usize::try_from(given) != Ok(term_offset) {
        return Err(FrameError::OutOfPlace {
            term_offset: given,
            expected: term_offset,
        });
    }
    if covered > term_length.saturating_sub(term_offset) {
        return Err(FrameError::BeyondTerm {
            term_offset,
            frame_length,
            term_length,
        });
    }
    Ok(covered)
}

/// Returns the length of a frame, or an error if the frame is shorter than its header. The error contains `available`:
/// the number of bytes from the start of the frame to the end of the datagram.
fn checked_frame_length(head: &DataHeaderLayout, available: usize) -> Result<usize, FrameError> {
    let frame_length = head.header.frame_length.get();
    usize::try_from(frame_length)
        .ok()
        .filter(|length| *length >= DataHeader::LENGTH)
        .ok_or(FrameError::FrameLength {
            frame_length,
            available,
        })
}

/// Returns the offset as `usize` if a frame can begin at this offset in a term of `term_length` bytes.
pub(super) fn check_term_offset(term_offset: i32, term_length: usize) -> Result<usize, FrameError> {
    usize::try_from(term_offset)
        .ok()
        .filter(|offset| *offset < term_length && offset.is_multiple_of(FRAME_ALIGNMENT))
        .ok_or(FrameError::TermOffset {
            term_offset,
            term_length,
        })
}
