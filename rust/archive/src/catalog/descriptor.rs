//! [`RecordingDescriptor`]: the catalog's data about one recording, and its bytes in an entry.

use std::collections::HashSet;
use std::sync::Arc;

use aeron_layout::catalog::{ENTRY_ALIGNMENT, EntryHeaderLayout, RecordingLayout};
use aeron_layout::{FromZeros, I32, I64, Layout, offset};
use aeron_memory::log::frame::FRAME_ALIGNMENT;
use aeron_memory::log::position::{MAX_TERM_LENGTH, MIN_TERM_LENGTH};

use crate::damage::{Damage, put_text, take_text};

/// A position or timestamp that is unknown or not set yet.
pub const NULL_VALUE: i64 = -1;

/// Number of bytes of an entry before its descriptor: length, state, checksum, and zeros.
pub(super) const ENTRY_HEADER_LENGTH: usize = EntryHeaderLayout::LENGTH;
/// Longest entry that is read or written, in bytes, with its header. An entry with two channels of maximum length and
/// a source identity is shorter.
pub const MAX_ENTRY_LENGTH: usize = 1 << 20;

pub(super) const LENGTH_OFFSET: usize = offset!(EntryHeaderLayout, length: I32);
pub(super) const STATE_OFFSET: usize = offset!(EntryHeaderLayout, state: I32);
pub(super) const CHECKSUM_OFFSET: usize = offset!(EntryHeaderLayout, checksum: I32);

// Offsets in the descriptor.
pub(super) const RECORDING_ID_OFFSET: usize = offset!(RecordingLayout, recording_id: I64);
pub(super) const STOP_TIMESTAMP_OFFSET: usize = offset!(RecordingLayout, stop_timestamp_ms: I64);
pub(super) const START_POSITION_OFFSET: usize = offset!(RecordingLayout, start_position: I64);
pub(super) const STOP_POSITION_OFFSET: usize = offset!(RecordingLayout, stop_position: I64);
pub(super) const SESSION_ID_OFFSET: usize = offset!(RecordingLayout, session_id: I32);
const SEGMENT_LENGTH_OFFSET: usize = offset!(RecordingLayout, segment_length: I32);
const TERM_LENGTH_OFFSET: usize = offset!(RecordingLayout, term_length: I32);

/// State of a recording in the catalog.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(i32)]
pub enum RecordingState {
    /// A tool has marked the recording as broken. Readers do not see the recording.
    Invalid = 0,
    /// The recording exists.
    Valid = 1,
    /// Purged as a whole. Its files are deleted, or are being deleted.
    Deleted = 2,
}

/// The catalog's data about a recording. Positions are bytes of the stream, timestamps are milliseconds since the
/// epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordingDescriptor {
    /// Control session of the request that extended the recording last; 0 if it was never extended.
    pub control_session_id: i64,
    /// Correlation id of the request that extended the recording last; 0 if it was never extended.
    pub correlation_id: i64,
    /// Id of the recording, assigned by the catalog. An id is never used twice.
    pub recording_id: i64,
    /// Time at which recording began.
    pub start_timestamp_ms: i64,
    /// Time at which recording ended; [`NULL_VALUE`] before that.
    pub stop_timestamp_ms: i64,
    /// Position of the first byte that is kept.
    pub start_position: i64,
    /// Position after the last byte; [`NULL_VALUE`] while the recording is active. After a kill,
    /// the value stays [`NULL_VALUE`] until the recovery of the recording.
    pub stop_position: i64,
    /// Term id of the stream's first term.
    pub initial_term_id: i32,
    /// Length of a segment file in bytes: a power of two, at least the term length.
    pub segment_length: i32,
    /// Length of a term of the stream, in bytes.
    pub term_length: i32,
    /// Length of the longest frame of the stream, in bytes.
    pub mtu_length: i32,
    /// Session id of the stream.
    pub session_id: i32,
    /// Stream id.
    pub stream_id: i32,
    /// The channel with only the parameters that [`stripped`](crate::channel::stripped) keeps.
    pub stripped_channel: Arc<str>,
    /// The channel of the request, unchanged.
    pub original_channel: Arc<str>,
    /// Source of the image: `aeron:ipc`, or address and port.
    pub source_identity: Arc<str>,
}

impl RecordingState {
    pub(super) fn from_value(value: i32) -> Option<Self> {
        [Self::Invalid, Self::Valid, Self::Deleted]
            .into_iter()
            .find(|&state| state as i32 == value)
    }
}

impl RecordingDescriptor {
    /// Returns whether the recording has no stop position: it is active, or its recorder was killed.
    #[must_use]
    pub const fn is_unfinished(&self) -> bool {
        self.stop_position == NULL_VALUE
    }

    /// Checks the conditions that all arithmetic on positions relies on. Lengths are powers of two in their ranges.
    /// Positions are aligned, in order, and within the 2^31 terms of a stream.
    ///
    /// # Errors
    /// The first field that fails its check. The offset in [`Damage`] is relative to the descriptor.
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
            let expected =
                "-1, or a multiple of 32 that is at least the start position and within the stream";
            return refuse(
                "stopPosition",
                STOP_POSITION_OFFSET,
                stop_position,
                expected,
            );
        }
        Ok(())
    }

    /// Returns the time at which a stopped recording ended, in milliseconds since the epoch. If the wall clock was set
    /// back, the entry of another archive may have a stop time before the start time. Then the start time is returned.
    #[must_use]
    pub fn ended_ms(&self) -> i64 {
        self.stop_timestamp_ms.max(self.start_timestamp_ms)
    }

    /// Reads the bytes of an entry after its header. Equal texts of several recordings are stored
    /// once, in `texts`.
    pub(super) fn decode(bytes: &[u8], texts: &mut SharedTexts) -> Result<Self, Damage> {
        let layout = RecordingLayout::first_in(bytes).ok_or(Damage {
            field: "length",
            offset: 0,
            value: bytes.len() as i64,
            expected: "at least 92",
        })?;
        let mut offset = RecordingLayout::LENGTH;
        let mut text = |field| Ok(texts.share(take_text(bytes, &mut offset, field)?));
        Ok(Self {
            control_session_id: layout.control_session_id.get(),
            correlation_id: layout.correlation_id.get(),
            recording_id: layout.recording_id.get(),
            start_timestamp_ms: layout.start_timestamp_ms.get(),
            stop_timestamp_ms: layout.stop_timestamp_ms.get(),
            start_position: layout.start_position.get(),
            stop_position: layout.stop_position.get(),
            initial_term_id: layout.initial_term_id.get(),
            segment_length: layout.segment_length.get(),
            term_length: layout.term_length.get(),
            mtu_length: layout.mtu_length.get(),
            session_id: layout.session_id.get(),
            stream_id: layout.stream_id.get(),
            stripped_channel: text("strippedChannel")?,
            original_channel: text("originalChannel")?,
            source_identity: text("sourceIdentity")?,
        })
    }

    /// Returns the whole entry without a checksum: header, descriptor, and padding. The length is aligned, and at least
    /// `least_length` bytes.
    pub(super) fn encode_entry(&self, state: RecordingState, least_length: usize) -> Vec<u8> {
        let mut entry = vec![0; ENTRY_HEADER_LENGTH];
        entry.extend(self.layout().to_bytes());
        put_text(&mut entry, &self.stripped_channel);
        put_text(&mut entry, &self.original_channel);
        put_text(&mut entry, &self.source_identity);
        entry.resize(
            entry
                .len()
                .next_multiple_of(ENTRY_ALIGNMENT)
                .max(least_length),
            0,
        );
        let length = i32::try_from(entry.len() - ENTRY_HEADER_LENGTH).unwrap_or(i32::MAX);
        let mut header = EntryHeaderLayout::new_zeroed();
        header.length = length.into();
        header.state = (state as i32).into();
        entry[..ENTRY_HEADER_LENGTH].copy_from_slice(&header.to_bytes());
        entry
    }

    fn layout(&self) -> RecordingLayout {
        RecordingLayout {
            control_session_id: self.control_session_id.into(),
            correlation_id: self.correlation_id.into(),
            recording_id: self.recording_id.into(),
            start_timestamp_ms: self.start_timestamp_ms.into(),
            stop_timestamp_ms: self.stop_timestamp_ms.into(),
            start_position: self.start_position.into(),
            stop_position: self.stop_position.into(),
            initial_term_id: self.initial_term_id.into(),
            segment_length: self.segment_length.into(),
            term_length: self.term_length.into(),
            mtu_length: self.mtu_length.into(),
            session_id: self.session_id.into(),
            stream_id: self.stream_id.into(),
        }
    }
}

/// The different texts of a catalog. Most recordings of an archive have the same channel as other
/// recordings. So a catalog of a hundred thousand recordings needs memory for only a few texts, and
/// not for three texts of each recording.
#[derive(Debug, Default)]
pub(super) struct SharedTexts(HashSet<Arc<str>>);

impl SharedTexts {
    /// Returns the shared copy of `text`.
    fn share(&mut self, text: &str) -> Arc<str> {
        if let Some(shared) = self.0.get(text) {
            return Arc::clone(shared);
        }
        let shared: Arc<str> = text.into();
        self.0.insert(Arc::clone(&shared));
        shared
    }
}

const fn is_power_of_two_within(length: i32, least: i32) -> bool {
    length >= least && length <= MAX_TERM_LENGTH as i32 && length & (length - 1) == 0
}

const fn is_position_within(position: i64, least: i64, most: i64) -> bool {
    position >= least && position <= most && position % FRAME_ALIGNMENT as i64 == 0
}
