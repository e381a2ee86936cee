//! What loss by position needs to know of a datagram, and of what came before it.

use std::collections::HashMap;
use std::ops::Range;

use aeron_layout::Layout;
use aeron_layout::frame::{DataHeaderLayout, FrameHeaderLayout, frame_type::DATA};

/// Streams of sessions that are told apart; of others nothing is lost.
const MAX_STREAMS: usize = 4_096;

/// A stream of a session.
pub type StreamKey = (i32, i32);

/// A datagram of data frames.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataDatagram {
    /// Session and stream.
    pub stream: StreamKey,
    /// The term.
    pub term_id: i32,
    /// The bytes of the term that it carries.
    pub range: Range<i64>,
}

impl DataDatagram {
    /// Reads the header of the first frame; `None` for anything but data. A heartbeat is a datagram of data as well.
    pub fn parse(datagram: &[u8]) -> Option<Self> {
        let header = DataHeaderLayout::first_in(datagram)?;
        if frame_type(datagram) != Some(DATA) {
            return None;
        }
        let begin = i64::from(header.term_offset.get());
        Some(DataDatagram {
            stream: (header.session_id.get(), header.stream_id.get()),
            term_id: header.term_id.get(),
            range: begin..begin + datagram.len() as i64,
        })
    }
}

/// The type of the first frame, `None` for a datagram that has none.
pub fn frame_type(datagram: &[u8]) -> Option<u16> {
    let header = FrameHeaderLayout::first_in(datagram)?;
    Some(header.frame_type.get() as u16)
}

/// How far each stream was lost, so that what is sent again passes.
#[derive(Debug, Default)]
pub struct LostOnce {
    next_offsets: HashMap<StreamKey, i64>,
}

impl LostOnce {
    /// Whether `datagram` is lost, which `is_chosen` decides from the offset up to which its stream was lost. That is at first
    /// the offset of the first datagram seen.
    pub fn loses(&mut self, datagram: &DataDatagram, is_chosen: impl FnOnce(i64) -> bool) -> bool {
        let is_known = self.next_offsets.contains_key(&datagram.stream);
        if !is_known && self.next_offsets.len() == MAX_STREAMS {
            return false;
        }
        let next_offset = self
            .next_offsets
            .entry(datagram.stream)
            .or_insert(datagram.range.start);
        let is_lost = is_chosen(*next_offset);
        if is_lost {
            *next_offset = datagram.range.end;
        }
        is_lost
    }
}
