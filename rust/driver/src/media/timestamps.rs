//! Writes timestamps into messages: eight bytes, nanoseconds since 1970, little-endian.
//!
//! The channel sets the place: an offset in the payload, or the reserved value of the header. Only data frames that
//! begin a message have a timestamp, and only if the frame is long enough. Heartbeats, padding and continuation
//! fragments are not changed.

use aeron_layout::Layout;
use aeron_layout::frame::{FRAME_ALIGNMENT, FrameHeaderLayout, flags::BEGIN, frame_type::DATA};
use aeron_memory::log::frame::{HEADER_LENGTH, offset as field};
use aeron_memory::{SharedBuffer, Words};
use aeron_protocol::uri::RESERVED_VALUE_TIMESTAMP_OFFSET;

use super::transport::GsoBatch;

const TIME_LENGTH: usize = 8;

/// Reads the wall clock in ns since 1970.
pub type EpochNanos = Box<dyn Fn() -> i64 + Send>;

/// Writes the receive time into each message that begins in `datagram`. `offset` is the timestamp offset of the
/// channel.
pub fn stamp_received(datagram: &mut [u8], offset: i32, time_ns: i64) {
    let mut at = 0;
    while let Some(frame) = datagram
        .get_mut(at..)
        .filter(|rest| rest.len() >= HEADER_LENGTH)
    {
        let Some(header) = FrameHeader::of_bytes(frame) else {
            return;
        };
        let Some(length) = header.length() else {
            return;
        };
        let place = header.time_position(offset);
        if let Some(position) = place.filter(|_| length <= frame.len()) {
            frame[position..position + TIME_LENGTH].copy_from_slice(&time_ns.to_le_bytes());
        }
        at += length.next_multiple_of(FRAME_ALIGNMENT);
    }
}

/// Writes the send time into each message that begins in a GSO batch. `offset` is the timestamp offset of the channel.
pub fn stamp_sent(batch: &GsoBatch<'_>, offset: i32, time_ns: i64) {
    for datagram in batch.datagrams() {
        let end = datagram.offset() + datagram.length();
        let mut at = datagram.offset();
        while at + HEADER_LENGTH <= end {
            let header = FrameHeader::of_memory(batch.memory(), at);
            let Some(length) = header.length() else {
                break;
            };
            let place = header.time_position(offset);
            if let Some(position) = place.filter(|_| at + length <= end) {
                batch
                    .memory()
                    .copy_in(at + position, &time_ns.to_le_bytes());
            }
            at += length.next_multiple_of(FRAME_ALIGNMENT);
        }
    }
}

/// The fields that decide whether a frame gets a timestamp.
struct FrameHeader {
    frame_length: i32,
    flags: u8,
    frame_type: u16,
}

impl FrameHeader {
    fn of_bytes(frame: &[u8]) -> Option<Self> {
        let header = FrameHeaderLayout::first_in(frame)?;
        Some(FrameHeader {
            frame_length: header.frame_length.get(),
            flags: header.flags,
            frame_type: header.frame_type.get() as u16,
        })
    }

    fn of_memory(memory: &SharedBuffer, at: usize) -> Self {
        FrameHeader {
            frame_length: memory.load_i32_relaxed(at + field::FRAME_LENGTH),
            flags: memory.load_u8_relaxed(at + field::FLAGS),
            frame_type: memory.load_u16_relaxed(at + field::TYPE),
        }
    }

    /// Returns the length of the frame in bytes; `None` for heartbeats and invalid frames.
    fn length(&self) -> Option<usize> {
        usize::try_from(self.frame_length)
            .ok()
            .filter(|length| *length > 0)
    }

    /// Returns the offset of the timestamp in the frame; `None` if the frame has no timestamp.
    fn time_position(&self, offset: i32) -> Option<usize> {
        let length = self.length()?;
        if self.frame_type != DATA || self.flags & BEGIN == 0 {
            return None;
        }
        let position = match offset {
            RESERVED_VALUE_TIMESTAMP_OFFSET => field::RESERVED_VALUE,
            offset => HEADER_LENGTH + usize::try_from(offset).ok()?,
        };
        (position + TIME_LENGTH <= length).then_some(position)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIME_NS: i64 = 0x0102_0304_0506_0708;
    const STAMP: [u8; 8] = [8, 7, 6, 5, 4, 3, 2, 1];
    const PAD: u16 = 0;

    /// Returns a frame with its padding up to the alignment.
    fn frame(payload_length: usize, flags: u8, frame_type: u16) -> Vec<u8> {
        let length = HEADER_LENGTH + payload_length;
        let mut bytes = vec![0xEE; length.next_multiple_of(FRAME_ALIGNMENT)];
        bytes[..4].copy_from_slice(&(length as i32).to_le_bytes());
        bytes[field::FLAGS] = flags;
        bytes[field::TYPE..field::TYPE + 2].copy_from_slice(&frame_type.to_le_bytes());
        bytes
    }

    fn stamped(mut datagram: Vec<u8>, offset: i32) -> Vec<usize> {
        let before = datagram.clone();
        stamp_received(&mut datagram, offset, TIME_NS);
        let places = (0..datagram.len().saturating_sub(7))
            .filter(|at| datagram[*at..at + 8] == STAMP)
            .collect::<Vec<_>>();
        let changed = (0..datagram.len()).filter(|at| datagram[*at] != before[*at]);
        assert_eq!(changed.count(), 8 * places.len());
        places
    }

    /// 02-99, 02-101
    #[test]
    fn every_message_that_begins_in_a_received_datagram_gets_the_receive_time() {
        let messages = [frame(16, 0xC0, DATA), frame(40, 0x80, DATA)].concat();
        assert_eq!(stamped(messages.clone(), 0), [32, 64 + 32]);
        assert_eq!(stamped(messages.clone(), 5), [37, 64 + 37]);
        assert_eq!(
            stamped(messages, RESERVED_VALUE_TIMESTAMP_OFFSET),
            [24, 64 + 24]
        );
    }

    /// 02-100
    #[test]
    fn heartbeats_padding_continuations_and_short_messages_are_not_changed() {
        let mut heartbeat = frame(0, 0xC0, DATA);
        heartbeat[..4].fill(0);
        for offset in [0, RESERVED_VALUE_TIMESTAMP_OFFSET] {
            assert_eq!(stamped(heartbeat.clone(), offset), []);
            assert_eq!(stamped(frame(64, 0xC0, PAD), offset), []);
            assert_eq!(stamped(frame(64, 0x00, DATA), offset), []);
            assert_eq!(stamped(frame(64, 0x40, DATA), offset), []);
        }
        assert_eq!(stamped(frame(15, 0xC0, DATA), 8), []);
        assert_eq!(stamped(frame(16, 0xC0, DATA), 8), [40]);
        assert_eq!(stamped(frame(16, 0xC0, DATA), i32::MAX), []);
        assert_eq!(stamped(frame(16, 0xC0, DATA), -2), []);
    }

    #[test]
    fn a_datagram_with_invalid_frame_lengths_gets_no_timestamp() {
        let mut cut = frame(64, 0xC0, DATA);
        cut.truncate(64);
        assert_eq!(stamped(cut, 0), []);
        assert_eq!(stamped(vec![0xFF; 31], 0), []);
        assert_eq!(stamped(vec![0xFF; 64], 0), []);
        assert_eq!(stamped(Vec::new(), 0), []);
    }

    /// 02-99, 02-101: the sender writes the time into the publication's log.
    #[test]
    fn every_message_that_begins_in_a_sent_datagram_gets_the_send_time() {
        let datagram = [frame(16, 0xC0, DATA), frame(16, 0xC0, DATA)].concat();
        let continuation = [frame(0, 0x40, DATA), frame(40, 0x80, DATA)].concat();
        // The length of the padding extends beyond its datagram, and beyond the log.
        let mut padding = frame(0, 0xC0, PAD);
        padding[..4].copy_from_slice(&i32::MAX.to_le_bytes());
        let bytes = [datagram.clone(), datagram, continuation, padding].concat();
        let memory = SharedBuffer::copy_of(&bytes);
        let batch = GsoBatch::new(&memory, 0..bytes.len(), 128);
        stamp_sent(&batch, 8, TIME_NS);
        let mut after = vec![0; bytes.len()];
        memory.copy_out(0, &mut after);
        let places: Vec<usize> = (0..after.len() - 7)
            .filter(|at| after[*at..at + 8] == STAMP)
            .collect();
        assert_eq!(places, [40, 64 + 40, 128 + 40, 192 + 40, 256 + 32 + 40]);
    }
}
