//! Reads the frames in segment files and blocks. Each frame is checked completely before it is returned.
//!
//! The position of a frame determines the term id and the term offset. The recording determines the session id and the
//! stream id. So of the 32 header bytes only length, type, flags and reserved value are not known in advance. A file
//! may contain any bytes, so every field is checked.

use aeron_layout::U64;
use aeron_layout::frame::{FirstWord, place_word, stream_word};
use aeron_memory::Words;
use aeron_memory::log::frame::{
    HEADER_LENGTH, MAX_MTU_LENGTH, aligned_length, flags, frame_type, offset,
};
use aeron_memory::log::position::Positions;
use thiserror::Error;

use crate::checksum::{Checksum, ChecksumMismatch};

/// A checked frame, borrowed from the buffer that it was read into.
#[derive(Debug, Clone, Copy)]
pub struct CheckedFrame<'a> {
    position: i64,
    header: Header,
    bytes: &'a [u8],
}

/// Why bytes are not a valid frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum FrameFault {
    /// The length is 0: nothing was written here.
    #[error("no frame")]
    Nothing,
    /// The length is less than a header or more than the largest MTU, or the frame would end after the end of the term.
    #[error("frame of {length} bytes, at most {limit} are possible")]
    Length {
        /// The value that was found.
        length: i32,
        /// Longest length that the MTU and the rest of the term allow.
        limit: usize,
    },
    /// The buffer or file ends before the frame does.
    #[error("frame of {length} bytes, of which only {available} are available")]
    Incomplete {
        /// Length with header, without alignment.
        length: i32,
        /// Number of available bytes from the frame's beginning on.
        available: usize,
    },
    /// A header field differs from its only valid value at this position of this stream.
    #[error("{field} {found}, expected {expected}")]
    Field {
        /// Name of the field.
        field: &'static str,
        /// The value that was found.
        found: i32,
        /// The only valid value.
        expected: i32,
    },
    /// The frame does not have the checksum of its bytes.
    #[error(
        "checksum {found}, but the {checksum} of the bytes is {computed}: the frame is damaged, or has a session id among frames with checksums"
    )]
    Checksum {
        /// The algorithm.
        checksum: Checksum,
        /// The value that was found.
        found: i32,
        /// The checksum of the bytes.
        computed: i32,
    },
}

/// The header values that every frame of one stream has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameRules {
    positions: Positions,
    session_id: i32,
    stream_id: i32,
    /// Mask for the session id: all ones, or zero if the session id is not checked.
    session_mask: u32,
}

/// The header values that every frame in one term of a stream has.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TermRules {
    term_length: usize,
    session_id: i32,
    session_mask: u32,
    term_id: i32,
    stream_id: i32,
}

/// Iterates over the frames of a buffer. Ends at the end of the buffer, or after the first fault.
#[derive(Debug, Clone)]
pub struct CheckedFrames<'a> {
    rules: FrameRules,
    position: i64,
    bytes: &'a [u8],
}

/// The words of a header that are checked: all except the reserved value.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HeaderWords {
    /// Length, version, flags and type.
    pub first: FirstWord,
    /// Term offset and session id.
    pub place: u64,
    /// Stream id and term id.
    pub stream: u64,
}

/// A frame's header that is valid at its position of the stream.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CheckedHeader(Header);

/// The first word of a frame's header, with the fields that cannot be derived from the frame's position.
#[derive(Debug, Clone, Copy)]
struct Header(FirstWord);

impl<'a> CheckedFrame<'a> {
    /// Returns the position of the frame in the stream.
    #[inline(always)]
    pub fn position(&self) -> i64 {
        self.position
    }

    /// Returns the position of the next frame.
    #[inline(always)]
    pub fn end_position(&self) -> i64 {
        self.position + self.header.aligned_length() as i64
    }

    /// Returns whether the frame is padding, which has no payload.
    #[inline(always)]
    pub fn is_padding(&self) -> bool {
        self.header.0.frame_type() == frame_type::PADDING
    }

    /// Returns the flags byte: see [`aeron_memory::log::frame::flags`].
    #[inline(always)]
    pub fn flags(&self) -> u8 {
        self.header.0.flags()
    }

    /// Returns whether a message begins with this frame.
    #[inline(always)]
    pub fn is_begin(&self) -> bool {
        !self.is_padding() && self.flags() & flags::BEGIN != 0
    }

    /// Returns whether a message ends with this frame.
    #[inline(always)]
    pub fn is_end(&self) -> bool {
        !self.is_padding() && self.flags() & flags::END != 0
    }

    /// Returns the session id of the stream. If the archive writes checksums, returns the checksum of a data frame
    /// instead.
    #[inline(always)]
    pub fn session_id(&self) -> i32 {
        (word(self.bytes, offset::TERM_OFFSET) >> 32) as i32
    }

    /// Returns the reserved value, which the application sets.
    #[inline(always)]
    pub fn reserved_value(&self) -> i64 {
        word(self.bytes, offset::RESERVED_VALUE) as i64
    }

    /// Returns the payload; empty if the frame is padding.
    #[inline(always)]
    pub fn payload(&self) -> &'a [u8] {
        let end = self.bytes.len().min(self.header.length() as usize);
        &self.bytes[HEADER_LENGTH..end]
    }

    /// Returns all bytes of the frame, with header and alignment. If the frame is padding, returns only the header.
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

    pub(crate) fn session_id(self) -> i32 {
        self.session_id
    }

    pub(crate) fn any_session(mut self) -> Self {
        self.session_mask = 0;
        self
    }

    /// Returns the geometry of the stream's terms and positions.
    #[inline(always)]
    pub fn positions(self) -> Positions {
        self.positions
    }

    /// Returns the frames in `bytes`. The first frame begins at `position`. `bytes` contains whole
    /// frames. For a padding frame, the header is sufficient.
    pub fn frames(self, position: i64, bytes: &[u8]) -> CheckedFrames<'_> {
        CheckedFrames {
            rules: self,
            position,
            bytes,
        }
    }

    /// Checks the frame at the start of `bytes`, which begins at `position` of the stream. More
    /// bytes may follow the frame.
    ///
    /// # Errors
    /// [`FrameFault`] says why the bytes are not a valid frame.
    #[inline(always)]
    pub fn check<'a>(self, position: i64, bytes: &'a [u8]) -> Result<CheckedFrame<'a>, FrameFault> {
        let Some(head) = bytes.first_chunk::<HEADER_LENGTH>() else {
            return Err(FrameFault::Incomplete {
                length: HEADER_LENGTH as i32,
                available: bytes.len(),
            });
        };
        let header = self.check_header(position, HeaderWords::of(head))?.0;
        let length = match header.0.frame_type() {
            frame_type::PADDING => HEADER_LENGTH,
            _ => header.aligned_length(),
        };
        match bytes.get(..length) {
            Some(bytes) => Ok(CheckedFrame {
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

    /// Checks the header of a frame that begins at `position`.
    ///
    /// # Errors
    /// [`FrameFault`] says why the header is invalid. Missing bytes after the header are no error.
    #[inline(always)]
    pub(crate) fn check_header(
        self,
        position: i64,
        words: HeaderWords,
    ) -> Result<CheckedHeader, FrameFault> {
        let header = Header(words.first);
        match self.is_sound(position, header, words) {
            true => Ok(CheckedHeader(header)),
            false => Err(self.fault(position, header, words)),
        }
    }

    /// Returns the rules for the frames in the term that contains `position`.
    #[inline(always)]
    pub(crate) fn of_term(self, position: i64) -> TermRules {
        TermRules {
            term_length: self.positions.term_length(),
            session_id: self.session_id,
            session_mask: self.session_mask,
            term_id: self.positions.term_id(position),
            stream_id: self.stream_id,
        }
    }

    /// Returns whether a header is valid. This is the fast check: it does not identify the fault.
    #[inline(always)]
    fn is_sound(self, position: i64, header: Header, words: HeaderWords) -> bool {
        let term_offset = self.positions.term_offset(position);
        self.of_term(position).is_sound(term_offset, header, words)
    }

    /// Returns the fault of a header that is not valid.
    #[cold]
    fn fault(self, position: i64, header: Header, words: HeaderWords) -> FrameFault {
        let length = header.length() as i32;
        if length == 0 {
            return FrameFault::Nothing;
        }
        let term_offset = self.positions.term_offset(position);
        let HeaderWords { place, stream, .. } = words;
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

    /// Returns the longest frame of this type that can begin at this offset.
    fn limit(self, frame_type: u16, term_offset: usize) -> usize {
        let left = self.positions.term_length() - term_offset;
        match frame_type {
            frame_type::PADDING => left,
            _ => left.min(MAX_MTU_LENGTH),
        }
    }
}

impl TermRules {
    /// Returns the header of the frame at a term offset, if the header is valid.
    #[inline(always)]
    pub(crate) fn header(self, term_offset: usize, words: HeaderWords) -> Option<CheckedHeader> {
        let header = Header(words.first);
        let is_sound = self.is_sound(term_offset, header, words);
        is_sound.then_some(CheckedHeader(header))
    }

    /// Returns the rules for a stream with these ids.
    pub(crate) fn with_ids(self, session_id: i32, stream_id: i32) -> Self {
        Self {
            session_id,
            stream_id,
            ..self
        }
    }

    /// Returns the words at offsets 8 and 16 of the header of the frame at a term offset.
    #[inline(always)]
    pub(crate) fn place_words(self, term_offset: usize) -> [i64; 2] {
        [
            place_word(term_offset, self.session_id) as i64,
            stream_word(self.stream_id, self.term_id) as i64,
        ]
    }

    #[inline(always)]
    fn is_sound(self, term_offset: usize, header: Header, words: HeaderWords) -> bool {
        let [place, stream] = self.place_words(term_offset).map(|word| word as u64);
        let place_mask = place_word(u32::MAX as usize, self.session_mask as i32);
        let length = header.length();
        let is_data =
            header.0.version_and_type() == Header::DATA && length <= MAX_MTU_LENGTH as u32;
        let is_padding = header.0.version_and_type() == Header::PADDING;
        length >= HEADER_LENGTH as u32
            && length as usize <= self.term_length - term_offset
            && (is_data || is_padding)
            && (words.place ^ place) & place_mask == 0
            && words.stream == stream
    }
}

impl<'a> CheckedFrames<'a> {
    /// Returns the position of the next frame.
    pub fn position(&self) -> i64 {
        self.position
    }
}

impl<'a> Iterator for CheckedFrames<'a> {
    type Item = Result<CheckedFrame<'a>, FrameFault>;

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

impl HeaderWords {
    #[inline(always)]
    fn of(head: &[u8; HEADER_LENGTH]) -> Self {
        Self {
            first: FirstWord(word(head, offset::FRAME_LENGTH) as i64),
            place: word(head, offset::TERM_OFFSET),
            stream: word(head, offset::STREAM_ID),
        }
    }

    /// Reads the words of a header in shared memory, except for the first word, which the caller
    /// has read.
    #[inline(always)]
    pub(crate) fn in_term<W: Words>(first: FirstWord, term: &W, at: usize) -> Self {
        Self {
            first,
            place: term.load_i64_relaxed(at + offset::TERM_OFFSET) as u64,
            stream: term.load_i64_relaxed(at + offset::STREAM_ID) as u64,
        }
    }
}

impl Checksum {
    /// Computes the checksum of a frame.
    #[inline(always)]
    pub(crate) fn of(self, frame: &CheckedFrame<'_>) -> i32 {
        self.compute(&frame.bytes()[HEADER_LENGTH..])
    }

    /// Checks a recorded frame against the checksum in its session id field. A padding frame has no checksum and always
    /// passes.
    ///
    /// # Errors
    /// [`ChecksumMismatch`] if the session id field is not the checksum of the frame's bytes.
    pub fn verify(self, frame: &CheckedFrame<'_>) -> Result<(), ChecksumMismatch> {
        let found = frame.session_id();
        let computed = self.of(frame);
        if frame.is_padding() || found == computed {
            return Ok(());
        }
        Err(ChecksumMismatch {
            position: frame.position(),
            computed,
            found,
        })
    }
}

impl CheckedHeader {
    /// Returns whether the frame is padding, which has no payload.
    #[inline(always)]
    pub(crate) fn is_padding(self) -> bool {
        self.0.0.frame_type() == frame_type::PADDING
    }

    /// Returns the length of the frame with its header, without alignment.
    #[inline(always)]
    pub(crate) fn frame_length(self) -> usize {
        self.0.length() as usize
    }

    /// Returns the number of stream bytes that the frame covers.
    #[inline(always)]
    pub(crate) fn aligned_length(self) -> usize {
        self.0.aligned_length()
    }
}

impl Header {
    const DATA: u64 = FirstWord::of_type(frame_type::DATA);
    const PADDING: u64 = FirstWord::of_type(frame_type::PADDING);

    /// Returns the frame length as unsigned, so that a negative length is too long.
    #[inline(always)]
    fn length(self) -> u32 {
        self.0.frame_length() as u32
    }

    /// Returns the length of the frame with alignment. The header is valid.
    #[inline(always)]
    fn aligned_length(self) -> usize {
        aligned_length(self.length() as usize)
    }
}

/// Returns the eight bytes at `at` of a header.
#[inline(always)]
fn word(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; size_of::<U64>()];
    word.copy_from_slice(&bytes[at..at + size_of::<U64>()]);
    U64::from_bytes(word).get()
}
