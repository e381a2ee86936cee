//! Invariants of the datagrams that drivers send.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use aeron_memory::log::Positions;
use aeron_memory::log::frame::aligned_length;
use aeron_protocol::frame::{DataFrame, DataHeader, Setup, StatusMessage, walk};

use crate::network::SentDatagram;
use crate::truth::{ChannelStream, Finding};

/// Identifies a receiver of a stream by the receiver's address, the receiver id and the stream.
type ReceiverKey = (SocketAddr, i64, ChannelStream);

/// Checks all datagrams and stores the first violation. Clones share the state.
#[derive(Clone, Default)]
pub struct DatagramChecks(Arc<Mutex<SeenDatagrams>>);

#[derive(Default)]
struct SeenDatagrams {
    streams: BTreeMap<ChannelStream, SeenStream>,
    /// Consumed positions from the last status messages of the receivers.
    consumed: BTreeMap<ReceiverKey, i64>,
    finding: Option<Finding>,
}

/// State of a stream, computed from the frames of its sender and its receivers.
struct SeenStream {
    positions: Positions,
    term_length: usize,
    /// The highest position to which any receiver allows the sender to send.
    limit: i64,
    /// End position of the sent frames, padding included.
    sent_end: i64,
    /// The frames sent in the last two term lengths: begin and end positions.
    frames: BTreeMap<i64, i64>,
}

impl SeenStream {
    /// Checks the range of a sent frame. It must be equal to the range of an earlier frame, or overlap no earlier
    /// frame.
    fn on_frame(&mut self, begin: i64, end: i64) -> Result<(), Finding> {
        let other = self.frames.range(..end).next_back();
        match other.map(|(begin, end)| (*begin, *end)) {
            Some(same) if same == (begin, end) => {}
            Some((other_begin, other_end)) if other_end > begin => {
                return Err(format!(
                    "a sent frame at {begin}..{end} overlaps the frame at {other_begin}..{other_end} \
                     that was sent before"
                ));
            }
            _ => {
                self.frames.insert(begin, end);
                let oldest = end - 2 * self.term_length as i64;
                while self
                    .frames
                    .first_key_value()
                    .is_some_and(|(begin, _)| *begin < oldest)
                {
                    self.frames.pop_first();
                }
            }
        }
        Ok(())
    }

    fn on_frames(&mut self, mut begin: i64, mut bytes: &[u8]) -> Result<(), Finding> {
        while let Ok(header) = DataHeader::decode(bytes) {
            let length = aligned_length(header.frame_length as usize);
            self.on_frame(begin, begin + length as i64)?;
            begin += length as i64;
            bytes = bytes.get(length..).unwrap_or_default();
        }
        Ok(())
    }

    fn on_sent_up_to(&mut self, position: i64) {
        self.sent_end = self.sent_end.max(position);
    }
}

impl DatagramChecks {
    /// Checks a datagram that a host sends.
    pub fn on_sent(&self, passing: SentDatagram<'_>) {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(finding) = seen.on_sent(passing) {
            seen.finding.get_or_insert(finding);
        }
    }

    /// Returns whether all datagrams since the last call were correct.
    ///
    /// # Errors
    /// The first violation of a rule. It is removed, so a later call does not return it again.
    pub fn result(&self) -> Result<(), Finding> {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        seen.finding.take().map_or(Ok(()), Err)
    }
}

impl SeenDatagrams {
    fn on_sent(&mut self, passing: SentDatagram<'_>) -> Result<(), Finding> {
        let SentDatagram { bytes, from, to } = passing;
        match DataFrame::decode(bytes) {
            Ok(Some(DataFrame::Setup(setup))) => self.on_setup(&setup),
            Ok(Some(DataFrame::Data(header))) => return self.on_data(&header, bytes, to),
            _ => {
                if let Ok(message) = StatusMessage::decode(bytes) {
                    return self.on_status_message(&message, from);
                }
            }
        }
        Ok(())
    }

    fn on_setup(&mut self, setup: &Setup) {
        let term_length = setup.term_length as usize;
        let Ok(positions) = Positions::new(term_length, setup.initial_term_id) else {
            return;
        };
        let key = ChannelStream {
            session_id: setup.session_id,
            stream_id: setup.stream_id,
        };
        let stream = self.streams.entry(key).or_insert(SeenStream {
            positions,
            term_length,
            limit: i64::MIN,
            sent_end: i64::MIN,
            frames: BTreeMap::new(),
        });
        let offset = setup.term_offset as usize;
        stream.on_sent_up_to(stream.positions.position(setup.active_term_id, offset));
    }

    /// Checks a status message. A receiver's window must not be negative, and must be at most half a term. The receiver
    /// must not consume more than was sent, and its position must never decrease.
    fn on_status_message(
        &mut self,
        message: &StatusMessage<'_>,
        from: SocketAddr,
    ) -> Result<(), Finding> {
        let key = ChannelStream {
            session_id: message.session_id,
            stream_id: message.stream_id,
        };
        let Some(stream) = self.streams.get_mut(&key).filter(|_| !message.wants_setup) else {
            return Ok(());
        };
        if message.receiver_window < 0 || message.receiver_window as usize > stream.term_length / 2
        {
            return Err(format!(
                "a receiver's window is negative or longer than half a term: {message:?}"
            ));
        }
        let offset = message.consumption_term_offset as usize;
        let position = stream
            .positions
            .position(message.consumption_term_id, offset);
        stream.limit = stream
            .limit
            .max(position + i64::from(message.receiver_window));
        if position > stream.sent_end {
            let sent_end = stream.sent_end;
            return Err(format!(
                "a receiver consumed more than {sent_end}, the end of what was sent: {message:?}"
            ));
        }
        let receiver = (from, message.receiver_id, key);
        let before = self.consumed.entry(receiver).or_insert(position);
        if position < *before {
            return Err(format!(
                "a receiver had consumed {before}, and less now: {message:?}"
            ));
        }
        *before = position;
        Ok(())
    }

    /// Checks that no data is sent beyond the receivers' limit. Padding does not count, because only the header of
    /// padding is sent.
    fn on_data(
        &mut self,
        header: &DataHeader,
        bytes: &[u8],
        to: SocketAddr,
    ) -> Result<(), Finding> {
        let key = ChannelStream {
            session_id: header.session_id,
            stream_id: header.stream_id,
        };
        let Some(stream) = self.streams.get_mut(&key) else {
            return Err(format!("data before any SETUP: {header:?} to {to}"));
        };
        let walked = walk(bytes, stream.term_length)
            .map_err(|error| format!("a sender sends {header:?} to {to}: {error}"))?;
        let begin = stream
            .positions
            .position(header.term_id, header.term_offset as usize);
        stream.on_sent_up_to(begin + walked.length as i64);
        if walked.is_heartbeat {
            return Ok(());
        }
        stream.on_frames(begin, bytes)?;
        let end = begin + bytes.len() as i64;
        match end <= stream.limit {
            true => Ok(()),
            false => Err(format!(
                "{header:?} to {to} ends at {end}, beyond the limit {}",
                stream.limit
            )),
        }
    }
}
