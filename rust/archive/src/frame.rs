//! Frames as they lie in segment files and blocks, each checked completely before it is handed out.
//!
//! A frame's place decides its term id and term offset, and its recording decides session and stream; so of the 32 header bytes
//! only length, type, flags and reserved value are the frame's own. Bytes of a file are hostile: checking is total.

use aeron_layout::U64;
use aeron_layout::frame::{FirstWord, place_word, stream_word};
use aeron_memory::log::frame::{
    HEADER_LENGTH, MAX_MTU_LENGTH, aligned_length, flags, frame_type, offset,
};
use aeron_memory::log::position::Positions;
use thiserror::Error;

/// A checked frame, on loan from where it was read.
#[derive(Debug, Clone, Copy)]
pub struct Frame<'a> {
    position: i64,
    header: Header,
    bytes: &'a [u8],
}

/// What is wrong with bytes that should be a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum FrameFault {
    /// Nothing was written here.
    #[error("no frame")]
    Nothing,
    /// Less than a header, more than the largest MTU, or over the end of the term.
    #[error("frame of {length} bytes, {limit} are possible")]
    Length {
        /// As found.
        length: i32,
        /// What the MTU or the rest of the term allows.
        limit: usize,
    },
    /// Its bytes end before it does.
    #[error("frame of {length} bytes, {available} are there")]
    Incomplete {
        /// With header, without alignment.
        length: i32,
        /// Bytes that follow its beginning.
        available: usize,
    },
    /// A header field is not what it must be at this place of this stream.
    #[error("{field} {found}, expected {expected}")]
    Field {
        /// Name of the field.
        field: &'static str,
        /// As found.
        found: i32,
        /// What it must be.
        expected: i32,
    },
}

/// What the frames of one stream must look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameRules {
    positions: Positions,
    session_id: i32,
    stream_id: i32,
    /// All ones, or zero where the session id is not looked at.
    session_mask: u32,
}

/// The frames of a block of memory, one after the other; ends with the block, or with the first fault.
#[derive(Debug, Clone)]
pub struct Frames<'a> {
    rules: FrameRules,
    position: i64,
    bytes: &'a [u8],
}

/// A header's first word, whose value is a frame's own; the rest of the header follows from its place.
#[derive(Debug, Clone, Copy)]
struct Header(FirstWord);

impl<'a> Frame<'a> {
    /// Where it begins.
    #[inline(always)]
    pub fn position(&self) -> i64 {
        self.position
    }

    /// Where the next one begins.
    #[inline(always)]
    pub fn end_position(&self) -> i64 {
        self.position + self.header.aligned_length() as i64
    }

    /// Whether it fills space and carries nothing.
    #[inline(always)]
    pub fn is_padding(&self) -> bool {
        self.header.0.frame_type() == frame_type::PADDING
    }

    /// The flags byte: see [`aeron_memory::log::frame::flags`].
    #[inline(always)]
    pub fn flags(&self) -> u8 {
        self.header.0.flags()
    }

    /// Whether a message begins with it.
    #[inline(always)]
    pub fn is_begin(&self) -> bool {
        !self.is_padding() && self.flags() & flags::BEGIN != 0
    }

    /// Whether a message ends with it.
    #[inline(always)]
    pub fn is_end(&self) -> bool {
        !self.is_padding() && self.flags() & flags::END != 0
    }

    /// Session id of the stream; in an archive that writes checksums, the checksum of a data frame.
    #[inline(always)]
    pub fn session_id(&self) -> i32 {
        (word(self.bytes, offset::TERM_OFFSET) >> 32) as i32
    }

    /// The application's own value.
    #[inline(always)]
    pub fn reserved_value(&self) -> i64 {
        word(self.bytes, offset::RESERVED_VALUE) as i64
    }

    /// What it carries; nothing if it is padding.
    #[inline(always)]
    pub fn payload(&self) -> &'a [u8] {
        let end = self.bytes.len().min(self.header.length() as usize);
        &self.bytes[HEADER_LENGTH..end]
    }

    /// All its bytes, with header and alignment; of padding the header alone.
    #[inline(always)]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }
}

impl FrameRules {
    pub(crate) fn new(positions: Positions, session_id: i32, stream_id: i32) -> Self {
        Self {
            positions,
            session_id,
            stream_id,
            session_mask: u32::MAX,
        }
    }

    pub(crate) fn any_session(mut self) -> Self {
        self.session_mask = 0;
        self
    }

    /// Terms and positions of the stream.
    #[inline(always)]
    pub fn positions(self) -> Positions {
        self.positions
    }

    /// The frames of `bytes`, the first of which begins at `position`. A block of the log holds whole frames; of padding the
    /// header is enough.
    pub fn frames(self, position: i64, bytes: &[u8]) -> Frames<'_> {
        Frames {
            rules: self,
            position,
            bytes,
        }
    }

    /// The frame that begins at `position`, whose bytes and those behind it are `bytes`.
    ///
    /// # Errors
    /// [`FrameFault`] says what is wrong with it.
    #[inline(always)]
    pub fn check<'a>(self, position: i64, bytes: &'a [u8]) -> Result<Frame<'a>, FrameFault> {
        let Some(head) = bytes.first_chunk::<HEADER_LENGTH>() else {
            return Err(FrameFault::Incomplete {
                length: HEADER_LENGTH as i32,
                available: bytes.len(),
            });
        };
        let header = Header(FirstWord(word(head, offset::FRAME_LENGTH) as i64));
        if !self.is_sound(position, header, head) {
            return Err(self.fault(position, header, head));
        }
        let length = match header.0.frame_type() {
            frame_type::PADDING => HEADER_LENGTH,
            _ => header.aligned_length(),
        };
        match bytes.get(..length) {
            Some(bytes) => Ok(Frame {
                position,
                header,
                bytes,
            }),
            None => Err(FrameFault::Incomplete {
                length: header.length() as i32,
                available: bytes.len(),
            }),
        }
    }

    /// Whether nothing is wrong with a header, without finding out what.
    #[inline(always)]
    fn is_sound(self, position: i64, header: Header, head: &[u8; HEADER_LENGTH]) -> bool {
        let term_offset = self.positions.term_offset(position);
        let left = self.positions.term_length() - term_offset;
        let place = place_word(term_offset, self.session_id);
        let place_mask = place_word(u32::MAX as usize, self.session_mask as i32);
        let stream = stream_word(self.stream_id, self.positions.term_id(position));
        let length = header.length();
        let is_data =
            header.0.version_and_type() == Header::DATA && length <= MAX_MTU_LENGTH as u32;
        let is_padding = header.0.version_and_type() == Header::PADDING;
        length >= HEADER_LENGTH as u32
            && length as usize <= left
            && (is_data || is_padding)
            && (word(head, offset::TERM_OFFSET) ^ place) & place_mask == 0
            && word(head, offset::STREAM_ID) == stream
    }

    /// What is wrong with a header that is not sound.
    #[cold]
    fn fault(self, position: i64, header: Header, head: &[u8; HEADER_LENGTH]) -> FrameFault {
        let length = header.length() as i32;
        if length == 0 {
            return FrameFault::Nothing;
        }
        let term_offset = self.positions.term_offset(position);
        let place = word(head, offset::TERM_OFFSET);
        let stream = word(head, offset::STREAM_ID);
        let found_type = header.0.frame_type();
        let expected_session = match self.session_mask {
            0 => (place >> 32) as i32,
            _ => self.session_id,
        };
        let fields = [
            ("version", i32::from(header.0.version()), 0),
            (
                "type",
                i32::from(found_type),
                i32::from(found_type.min(frame_type::DATA)),
            ),
            ("term offset", place as i32, term_offset as i32),
            ("session id", (place >> 32) as i32, expected_session),
            ("stream id", stream as i32, self.stream_id),
            (
                "term id",
                (stream >> 32) as i32,
                self.positions.term_id(position),
            ),
        ];
        match fields
            .into_iter()
            .find(|(_, found, expected)| found != expected)
        {
            Some((field, found, expected)) => FrameFault::Field {
                field,
                found,
                expected,
            },
            None => FrameFault::Length {
                length,
                limit: self.limit(found_type, term_offset),
            },
        }
    }

    /// Longest frame of this type that can begin at this offset.
    fn limit(self, frame_type: u16, term_offset: usize) -> usize {
        let left = self.positions.term_length() - term_offset;
        match frame_type {
            frame_type::PADDING => left,
            _ => left.min(MAX_MTU_LENGTH),
        }
    }
}

impl<'a> Frames<'a> {
    /// Where the next frame begins.
    pub fn position(&self) -> i64 {
        self.position
    }
}

impl<'a> Iterator for Frames<'a> {
    type Item = Result<Frame<'a>, FrameFault>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.bytes.is_empty() {
            return None;
        }
        let checked = self.rules.check(self.position, self.bytes);
        match &checked {
            Ok(frame) => {
                self.position = frame.end_position();
                let covered = frame.header.aligned_length().min(self.bytes.len());
                self.bytes = &self.bytes[covered..];
            }
            Err(_) => self.bytes = &[],
        }
        Some(checked)
    }
}

impl Header {
    const DATA: u64 = FirstWord::of_type(frame_type::DATA);
    const PADDING: u64 = FirstWord::of_type(frame_type::PADDING);

    /// Negative lengths are unsigned here, and so too long.
    #[inline(always)]
    fn length(self) -> u32 {
        self.0.frame_length() as u32
    }

    /// Of a sound header.
    #[inline(always)]
    fn aligned_length(self) -> usize {
        aligned_length(self.length() as usize)
    }
}

/// The eight bytes at `at` of a header.
#[inline(always)]
fn word(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; size_of::<U64>()];
    word.copy_from_slice(&bytes[at..at + size_of::<U64>()]);
    U64::from_bytes(word).get()
}
