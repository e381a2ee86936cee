//! Parses data datagrams for the interceptors that drop datagrams at chosen term offsets. Stores the offset up to which
//! each stream was already dropped.

use std::collections::HashMap;
use std::ops::Range;

use aeron_layout::Layout;
use aeron_layout::frame::{DataHeaderLayout, FrameHeaderLayout, frame_type::DATA};

/// Maximum number of streams for which loss is tracked. Other streams lose no datagrams.
const MAX_STREAMS: usize = 4_096;

/// Session id and stream id.
pub type SessionStream = (i32, i32);

/// A datagram of data frames.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataDatagram {
    /// Session id and stream id.
    pub stream: SessionStream,
    /// Id of the term.
    pub term_id: i32,
    /// Offsets of the datagram's bytes in the term.
    pub range: Range<i64>,
}

impl DataDatagram {
    /// Parses the header of the first frame; `None` if it is not a data frame. A heartbeat is a data frame too.
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

/// Returns the type of the first frame; `None` if the datagram is too short.
pub fn frame_type(datagram: &[u8]) -> Option<u16> {
    let header = FrameHeaderLayout::first_in(datagram)?;
    Some(header.frame_type.get() as u16)
}

/// Stores the offset up to which each stream was dropped, so that retransmits of the dropped data pass.
#[derive(Debug, Default)]
pub struct LostOnce {
    next_offsets: HashMap<SessionStream, i64>,
}

impl LostOnce {
    /// Returns whether `datagram` is lost.
    ///
    /// The argument of `is_chosen` is the offset up to which the stream was already dropped. At first, it is the offset
    /// of the stream's first datagram. The datagram is lost if `is_chosen` returns `true`.
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
