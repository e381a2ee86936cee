//! [`Fragment`] and [`Header`]: the arguments of a fragment handler.
//!
//! Both are valid only during the call of the handler; the borrow checker enforces this.

use std::ops::BitOr;

use aeron_memory::buffer::SharedBuffer;
use aeron_memory::log::frame::{HEADER_LENGTH, aligned_length, flags};
use aeron_memory::log::reader::LogFragment;
use aeron_memory::words::Words;

use crate::image::Image;

/// A fragment of a message, a whole message in one fragment, or a message that an assembler has joined.
#[derive(Clone, Copy)]
pub struct Fragment<'a> {
    /// Memory of the term or of an assembler.
    memory: &'a SharedBuffer,
    /// Start of the payload in the memory.
    offset: usize,
    length: usize,
    header: Header<'a>,
}

/// The header of a fragment or of an assembled message.
#[derive(Clone, Copy)]
pub struct Header<'a> {
    values: Values<'a>,
    image: &'a Image,
}

#[derive(Clone, Copy)]
enum Values<'a> {
    Log(LogFragment<'a, SharedBuffer>),
    Assembled(&'a AssembledHeader),
}

/// Header of a message in several fragments: it begins as the header of the first fragment, and the last fragment
/// completes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct AssembledHeader {
    pub(crate) session_id: i32,
    pub(crate) stream_id: i32,
    pub(crate) term_id: i32,
    pub(crate) term_offset: i32,
    pub(crate) reserved_value: i64,
    pub(crate) frame_type: u16,
    pub(crate) flags: u8,
    /// Length of the header and the whole payload, in bytes.
    pub(crate) frame_length: i32,
    /// Length of all fragments in the log, in bytes.
    pub(crate) framed_length: i32,
    /// Stream position after the last fragment.
    pub(crate) position: i64,
}

impl AssembledHeader {
    /// Creates the header of a message with this first fragment.
    pub(crate) fn first(fragment: &Fragment<'_>) -> Self {
        let header = fragment.header();
        Self {
            session_id: header.session_id(),
            stream_id: header.stream_id(),
            term_id: header.term_id(),
            term_offset: header.term_offset(),
            reserved_value: header.reserved_value(),
            frame_type: header.frame_type(),
            flags: header.flags(),
            frame_length: header.frame_length(),
            framed_length: 0,
            position: header.position(),
        }
    }

    /// Completes the header with the last fragment of a message with `payload_length` bytes.
    pub(crate) fn complete(&mut self, last: &Header<'_>, payload_length: usize) {
        self.flags = self.flags.bitor(last.flags());
        self.frame_length = (HEADER_LENGTH + payload_length) as i32;
        self.framed_length = last.next_term_offset().wrapping_sub(self.term_offset);
        self.position = last.position();
    }
}

impl<'a> Fragment<'a> {
    #[inline(always)]
    pub(crate) fn in_log(fragment: LogFragment<'a, SharedBuffer>, image: &'a Image) -> Self {
        Self {
            memory: fragment.term(),
            offset: fragment.payload_offset(),
            length: fragment.payload_length(),
            header: Header {
                values: Values::Log(fragment),
                image,
            },
        }
    }

    /// Creates a message whose payload is the first `length` bytes of `memory`.
    pub(crate) fn assembled(
        memory: &'a SharedBuffer,
        length: usize,
        header: &'a AssembledHeader,
        image: &'a Image,
    ) -> Self {
        Self {
            memory,
            offset: 0,
            length,
            header: Header {
                values: Values::Assembled(header),
                image,
            },
        }
    }

    /// Returns the header.
    #[inline]
    pub fn header(&self) -> &Header<'a> {
        &self.header
    }

    /// Returns the length of the payload in bytes.
    #[inline]
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether the payload has no bytes.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Copies the first bytes of the payload into `bytes`, which is at most as long as the payload.
    ///
    /// # Panics
    /// If `bytes` is longer than the payload.
    #[inline]
    pub fn copy_to(&self, bytes: &mut [u8]) {
        self.copy_from(0, bytes);
    }

    /// Copies the bytes of the payload from `start` on into `bytes`.
    ///
    /// # Panics
    /// If the payload ends before `bytes` is full.
    #[inline]
    pub fn copy_from(&self, start: usize, bytes: &mut [u8]) {
        assert!(
            start <= self.len() && bytes.len() <= self.len() - start,
            "copy beyond the payload"
        );
        self.memory.copy_out(self.offset + start, bytes);
    }

    /// Returns a copy of the payload.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.len()];
        self.copy_to(&mut bytes);
        bytes
    }

    /// Returns the memory that contains the payload (a term or an assembler's buffer), and the payload's offset.
    /// Bindings return views of a clone of the memory: a clone keeps the memory alive, and an assembler does not reuse
    /// the memory while a clone exists.
    #[inline]
    pub fn memory(&self) -> (&'a SharedBuffer, usize) {
        (self.memory, self.offset)
    }

    /// Returns the address of the payload, valid during the call of the handler. For bindings that return views.
    ///
    /// The bytes of a fragment are in shared memory, and other processes can change them at any time.
    #[inline]
    pub fn as_ptr(&self) -> *const u8 {
        self.memory.as_ptr().wrapping_add(self.offset)
    }
}

impl<'a> Header<'a> {
    /// Returns the image that the fragment came from.
    #[inline]
    pub fn image(&self) -> &'a Image {
        self.image
    }

    /// Returns the stream position after the fragment, or after the last fragment of an assembled message.
    #[inline]
    pub fn position(&self) -> i64 {
        match &self.values {
            Values::Log(fragment) => fragment.position(),
            Values::Assembled(header) => header.position,
        }
    }

    /// Returns the stream position of the fragment's first byte.
    #[inline]
    pub(crate) fn begin_position(&self) -> i64 {
        match &self.values {
            Values::Log(fragment) => fragment.begin_position(),
            Values::Assembled(header) => header.position - i64::from(header.framed_length),
        }
    }

    /// Returns the length of header and payload, in bytes.
    #[inline]
    pub fn frame_length(&self) -> i32 {
        match &self.values {
            Values::Log(fragment) => fragment.frame_length() as i32,
            Values::Assembled(header) => header.frame_length,
        }
    }

    /// Returns the length of all fragments of an assembled message in the log, in bytes. −1 if no assembler has joined
    /// fragments.
    pub fn fragmented_frame_length(&self) -> i32 {
        match &self.values {
            Values::Log(_) => -1,
            Values::Assembled(header) => header.framed_length,
        }
    }

    /// Returns the version of the header, which is always 0.
    pub fn version(&self) -> u8 {
        0
    }

    /// Returns the flags: 0x80 begin, 0x40 end; 0xC0 for a whole message.
    #[inline]
    pub fn flags(&self) -> u8 {
        match &self.values {
            Values::Log(fragment) => fragment.flags(),
            Values::Assembled(header) => header.flags,
        }
    }

    /// Returns the type of the frame; 1 = data.
    pub fn frame_type(&self) -> u16 {
        match &self.values {
            Values::Log(fragment) => fragment.frame_type(),
            Values::Assembled(header) => header.frame_type,
        }
    }

    /// Returns the offset of the (first) frame in its term.
    #[inline]
    pub fn term_offset(&self) -> i32 {
        match &self.values {
            Values::Log(fragment) => fragment.offset() as i32,
            Values::Assembled(header) => header.term_offset,
        }
    }

    /// Returns the offset in the term after the frame, or after the last one of an assembled message.
    #[inline]
    pub fn next_term_offset(&self) -> i32 {
        match &self.values {
            Values::Log(fragment) => {
                (fragment.offset() + aligned_length(fragment.frame_length())) as i32
            }
            Values::Assembled(header) => header.term_offset.wrapping_add(header.framed_length),
        }
    }

    /// Returns the session id of the stream.
    #[inline]
    pub fn session_id(&self) -> i32 {
        match &self.values {
            Values::Log(fragment) => fragment.session_id(),
            Values::Assembled(header) => header.session_id,
        }
    }

    /// Returns the stream id.
    #[inline]
    pub fn stream_id(&self) -> i32 {
        match &self.values {
            Values::Log(fragment) => fragment.stream_id(),
            Values::Assembled(header) => header.stream_id,
        }
    }

    /// Returns the id of the term that holds the (first) frame.
    #[inline]
    pub fn term_id(&self) -> i32 {
        match &self.values {
            Values::Log(fragment) => fragment.term_id(),
            Values::Assembled(header) => header.term_id,
        }
    }

    /// Returns the application-defined value in the (first) frame's header; 0 unless the publisher set it.
    #[inline]
    pub fn reserved_value(&self) -> i64 {
        match &self.values {
            Values::Log(fragment) => fragment.reserved_value(),
            Values::Assembled(header) => header.reserved_value,
        }
    }

    /// Returns the id of the stream's first term.
    pub fn initial_term_id(&self) -> i32 {
        self.image.initial_term_id()
    }

    /// Returns the base-two logarithm of the term length.
    pub fn position_bits_to_shift(&self) -> u32 {
        self.image.position_bits_to_shift()
    }

    /// Whether the message begins here.
    #[inline]
    pub(crate) fn is_begin(&self) -> bool {
        self.flags() & flags::BEGIN != 0
    }

    /// Whether the message ends here.
    #[inline]
    pub(crate) fn is_end(&self) -> bool {
        self.flags() & flags::END != 0
    }
}
