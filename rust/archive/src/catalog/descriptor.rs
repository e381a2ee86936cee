//! [`RecordingDescriptor`]: what the catalog says of one recording, and its bytes in an entry.

use aeron_memory::log::frame::FRAME_ALIGNMENT;
use aeron_memory::log::position::{MAX_TERM_LENGTH, MIN_TERM_LENGTH};

use crate::bytes::{get_i32, get_i64, put_i32, put_i64};
use crate::damage::{Damage, put_text, take_text};

/// A position or timestamp that is not there (yet).
pub const NULL_VALUE: i64 = -1;

/// Bytes of an entry before its descriptor: length, state, checksum, and zeros.
pub(super) const ENTRY_HEADER_LENGTH: usize = 32;
/// Entries stand at multiples of this behind the catalog's header.
pub(super) const ENTRY_ALIGNMENT: usize = 64;
/// Longest entry that is read or written, with its header; the texts are three channels' worth.
pub const MAX_ENTRY_LENGTH: usize = 1 << 20;

pub(super) const LENGTH_OFFSET: usize = 0;
pub(super) const STATE_OFFSET: usize = 4;

/// Bytes of the descriptor before its texts.
const BLOCK_LENGTH: usize = 80;
const CONTROL_SESSION_ID_OFFSET: usize = 0;
const CORRELATION_ID_OFFSET: usize = 8;
pub(super) const RECORDING_ID_OFFSET: usize = 16;
const START_TIMESTAMP_OFFSET: usize = 24;
pub(super) const STOP_TIMESTAMP_OFFSET: usize = 32;
pub(super) const START_POSITION_OFFSET: usize = 40;
pub(super) const STOP_POSITION_OFFSET: usize = 48;
const INITIAL_TERM_ID_OFFSET: usize = 56;
const SEGMENT_LENGTH_OFFSET: usize = 60;
const TERM_LENGTH_OFFSET: usize = 64;
const MTU_LENGTH_OFFSET: usize = 68;
const SESSION_ID_OFFSET: usize = 72;
const STREAM_ID_OFFSET: usize = 76;

/// Whether a recording is there for those who ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(i32)]
pub enum RecordingState {
    /// Marked as broken, by a tool.
    Invalid = 0,
    /// It exists.
    Valid = 1,
    /// Purged as a whole; its files are gone or going.
    Deleted = 2,
}

/// What is known of a recording. Positions are bytes of the stream, timestamps epoch milliseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordingDescriptor {
    /// Control session of the request that extended it last; 0 when it never was.
    pub control_session_id: i64,
    /// That request's correlation id; 0 when it never was.
    pub correlation_id: i64,
    /// Given by the catalog, never twice.
    pub recording_id: i64,
    /// When recording began.
    pub start_timestamp_ms: i64,
    /// When it ended; [`NULL_VALUE`] before.
    pub stop_timestamp_ms: i64,
    /// Position of the first byte that is kept.
    pub start_position: i64,
    /// Position behind the last byte; [`NULL_VALUE`] while it is recorded, and after a kill until it is recovered.
    pub stop_position: i64,
    /// Term id of the stream's first term.
    pub initial_term_id: i32,
    /// Length of a segment file: a power of two, at least a term.
    pub segment_length: i32,
    /// Length of the stream's terms.
    pub term_length: i32,
    /// Longest frame of the stream.
    pub mtu_length: i32,
    /// Session of the stream.
    pub session_id: i32,
    /// Stream id.
    pub stream_id: i32,
    /// The channel without what does not identify it.
    pub stripped_channel: String,
    /// The channel as it was asked for.
    pub original_channel: String,
    /// Where the image came from: `aeron:ipc`, or address and port.
    pub source_identity: String,
}

impl RecordingState {
    pub(super) fn from_value(value: i32) -> Option<Self> {
        [Self::Invalid, Self::Valid, Self::Deleted]
            .into_iter()
            .find(|&state| state as i32 == value)
    }
}

impl RecordingDescriptor {
    /// Whether a writer may still append to it, or was killed before it could say where it ends.
    #[must_use]
    pub const fn is_unfinished(&self) -> bool {
        self.stop_position == NULL_VALUE
    }

    /// Checks what all arithmetic on positions relies on: lengths are powers of two in their ranges, positions are aligned, in order,
    /// and within the 2^31 terms of a stream.
    ///
    /// # Errors
    /// The first field that is none; its offset is that in the descriptor.
    pub fn check(&self) -> Result<(), Damage> {
        let refuse = |field, offset: usize, value, expected| {
            Err(Damage {
                field,
                offset: offset as u64,
                value,
                expected,
            })
        };
        let term_length = self.term_length;
        if !is_power_of_two_within(term_length, MIN_TERM_LENGTH as i32) {
            let expected = "a power of two from 64 KiB to 1 GiB";
            return refuse(
                "termBufferLength",
                TERM_LENGTH_OFFSET,
                term_length.into(),
                expected,
            );
        }
        if !is_power_of_two_within(self.segment_length, term_length) {
            let expected = "a power of two from the term length to 1 GiB";
            let value = self.segment_length.into();
            return refuse("segmentFileLength", SEGMENT_LENGTH_OFFSET, value, expected);
        }
        let last_position = i64::from(term_length) << 31;
        if !is_position_within(self.start_position, 0, last_position) {
            let expected = "a multiple of 32 within the stream";
            return refuse(
                "startPosition",
                START_POSITION_OFFSET,
                self.start_position,
                expected,
            );
        }
        let stop_position = self.stop_position;
        if !self.is_unfinished()
            && !is_position_within(stop_position, self.start_position, last_position)
        {
            let expected = "-1, or a multiple of 32 from the start position on within the stream";
            return refuse(
                "stopPosition",
                STOP_POSITION_OFFSET,
                stop_position,
                expected,
            );
        }
        Ok(())
    }

    /// Reads what stands behind an entry's header.
    pub(super) fn decode(bytes: &[u8]) -> Result<Self, Damage> {
        if bytes.len() < BLOCK_LENGTH {
            return Err(Damage {
                field: "length",
                offset: 0,
                value: bytes.len() as i64,
                expected: "at least 92",
            });
        }
        let mut offset = BLOCK_LENGTH;
        let mut text = |field| take_text(bytes, &mut offset, field);
        Ok(Self {
            control_session_id: get_i64(bytes, CONTROL_SESSION_ID_OFFSET),
            correlation_id: get_i64(bytes, CORRELATION_ID_OFFSET),
            recording_id: get_i64(bytes, RECORDING_ID_OFFSET),
            start_timestamp_ms: get_i64(bytes, START_TIMESTAMP_OFFSET),
            stop_timestamp_ms: get_i64(bytes, STOP_TIMESTAMP_OFFSET),
            start_position: get_i64(bytes, START_POSITION_OFFSET),
            stop_position: get_i64(bytes, STOP_POSITION_OFFSET),
            initial_term_id: get_i32(bytes, INITIAL_TERM_ID_OFFSET),
            segment_length: get_i32(bytes, SEGMENT_LENGTH_OFFSET),
            term_length: get_i32(bytes, TERM_LENGTH_OFFSET),
            mtu_length: get_i32(bytes, MTU_LENGTH_OFFSET),
            session_id: get_i32(bytes, SESSION_ID_OFFSET),
            stream_id: get_i32(bytes, STREAM_ID_OFFSET),
            stripped_channel: text("strippedChannel")?,
            original_channel: text("originalChannel")?,
            source_identity: text("sourceIdentity")?,
        })
    }

    /// The whole entry: header, descriptor, padding.
    pub(super) fn encode_entry(&self, state: RecordingState) -> Vec<u8> {
        let mut entry = vec![0; ENTRY_HEADER_LENGTH + BLOCK_LENGTH];
        self.encode_block(&mut entry[ENTRY_HEADER_LENGTH..]);
        put_text(&mut entry, &self.stripped_channel);
        put_text(&mut entry, &self.original_channel);
        put_text(&mut entry, &self.source_identity);
        entry.resize(entry.len().next_multiple_of(ENTRY_ALIGNMENT), 0);
        let length = i32::try_from(entry.len() - ENTRY_HEADER_LENGTH).unwrap_or(i32::MAX);
        put_i32(&mut entry, LENGTH_OFFSET, length);
        put_i32(&mut entry, STATE_OFFSET, state as i32);
        entry
    }

    fn encode_block(&self, block: &mut [u8]) {
        put_i64(block, CONTROL_SESSION_ID_OFFSET, self.control_session_id);
        put_i64(block, CORRELATION_ID_OFFSET, self.correlation_id);
        put_i64(block, RECORDING_ID_OFFSET, self.recording_id);
        put_i64(block, START_TIMESTAMP_OFFSET, self.start_timestamp_ms);
        put_i64(block, STOP_TIMESTAMP_OFFSET, self.stop_timestamp_ms);
        put_i64(block, START_POSITION_OFFSET, self.start_position);
        put_i64(block, STOP_POSITION_OFFSET, self.stop_position);
        put_i32(block, INITIAL_TERM_ID_OFFSET, self.initial_term_id);
        put_i32(block, SEGMENT_LENGTH_OFFSET, self.segment_length);
        put_i32(block, TERM_LENGTH_OFFSET, self.term_length);
        put_i32(block, MTU_LENGTH_OFFSET, self.mtu_length);
        put_i32(block, SESSION_ID_OFFSET, self.session_id);
        put_i32(block, STREAM_ID_OFFSET, self.stream_id);
    }
}

const fn is_power_of_two_within(length: i32, least: i32) -> bool {
    length >= least && length <= MAX_TERM_LENGTH as i32 && length & (length - 1) == 0
}

const fn is_position_within(position: i64, least: i64, most: i64) -> bool {
    position >= least && position <= most && position % FRAME_ALIGNMENT as i64 == 0
}
