//! What must hold for the datagrams that drivers send.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use aeron_memory::log::Positions;
use aeron_protocol::frame::{DataFrame, DataHeader, Setup, StatusMessage, walk};

use crate::network::Passing;
use crate::truth::Finding;

/// Session and stream.
type StreamKey = (i32, i32);

/// Sees all datagrams, and finds those that must not be. Clones see the same.
#[derive(Clone, Default)]
pub struct DatagramChecks(Arc<Mutex<Seen>>);

#[derive(Default)]
struct Seen {
    streams: BTreeMap<StreamKey, Stream>,
    finding: Option<Finding>,
}

/// What a sender has said of a stream, and its receivers of themselves.
struct Stream {
    positions: Positions,
    term_length: usize,
    /// The highest position up to which any receiver lets the sender send.
    limit: i64,
}

impl DatagramChecks {
    /// A host sends a datagram.
    pub fn on_sent(&self, passing: Passing<'_>) {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(finding) = seen.on_sent(passing) {
            seen.finding.get_or_insert(finding);
        }
    }

    /// What was found first.
    ///
    /// # Errors
    /// A datagram that must not be.
    pub fn result(&self) -> Result<(), Finding> {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        seen.finding.take().map_or(Ok(()), Err)
    }
}

impl Seen {
    fn on_sent(&mut self, passing: Passing<'_>) -> Result<(), Finding> {
        let Passing { bytes, to, .. } = passing;
        match DataFrame::decode(bytes) {
            Ok(Some(DataFrame::Setup(setup))) => self.on_setup(&setup),
            Ok(Some(DataFrame::Data(header))) => return self.on_data(&header, bytes, to),
            _ => {
                if let Ok(message) = StatusMessage::decode(bytes) {
                    return self.on_status_message(&message);
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
        let key = (setup.session_id, setup.stream_id);
        self.streams.entry(key).or_insert(Stream {
            positions,
            term_length,
            limit: i64::MIN,
        });
    }

    /// Receivers promise no more than half a term.
    fn on_status_message(&mut self, message: &StatusMessage<'_>) -> Result<(), Finding> {
        let key = (message.session_id, message.stream_id);
        let Some(stream) = self.streams.get_mut(&key).filter(|_| !message.wants_setup) else {
            return Ok(());
        };
        if message.receiver_window < 0 || message.receiver_window as usize > stream.term_length / 2
        {
            return Err(format!("a receiver promises too much: {message:?}"));
        }
        let offset = message.consumption_term_offset as usize;
        let position = stream
            .positions
            .position(message.consumption_term_id, offset);
        stream.limit = stream
            .limit
            .max(position + i64::from(message.receiver_window));
        Ok(())
    }

    /// Nothing is sent beyond what a receiver asked for. Padding takes no room: only its header travels.
    fn on_data(&self, header: &DataHeader, bytes: &[u8], to: SocketAddr) -> Result<(), Finding> {
        let key = (header.session_id, header.stream_id);
        let Some(stream) = self.streams.get(&key) else {
            return Err(format!("data before any SETUP: {header:?} to {to}"));
        };
        let walked = walk(bytes, stream.term_length)
            .map_err(|error| format!("a sender sends {header:?} to {to}: {error}"))?;
        if walked.is_heartbeat {
            return Ok(());
        }
        let offset = header.term_offset as usize;
        let end = stream.positions.position(header.term_id, offset) + bytes.len() as i64;
        match end <= stream.limit {
            true => Ok(()),
            false => Err(format!(
                "{header:?} to {to} ends at {end}, beyond the limit {}",
                stream.limit
            )),
        }
    }
}
