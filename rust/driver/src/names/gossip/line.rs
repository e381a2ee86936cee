//! Datagrams of other drivers, and to them.

use std::net::SocketAddr;

use aeron_memory::buffer::SharedBuffer;
use aeron_memory::counters::AtomicCounter;
use aeron_protocol::frame::FrameError;
use aeron_protocol::frame::resolution::{Entry, entries};

use super::neighbors::Mention;
use super::neighbors::Refusal;
use super::records::Records;
use crate::diagnostics::ErrorRecorder;
use crate::error::DriverError;
use crate::media::transport::Socket;

/// The socket, and who is told of what goes wrong there.
pub struct Line {
    pub socket: Box<dyn Socket>,
    pub invalid_packets: AtomicCounter<SharedBuffer>,
    pub short_sends: AtomicCounter<SharedBuffer>,
    pub errors: ErrorRecorder,
}

/// Takes over what other drivers say.
pub struct Inbox<'a> {
    pub own_name: &'a [u8],
    pub own_port: u16,
    pub records: &'a mut Records,
    pub now_ms: i64,
}

/// What is wrong with a datagram.
pub enum Complaint {
    /// It makes no sense.
    Invalid(FrameError),
    /// There is no room for what it says.
    Refused(Refusal),
}

/// Datagrams that are read at a time.
const RECEIVE_LIMIT: usize = 16;

impl Line {
    /// Hands what arrived to `on_datagram`; answers the number of datagrams.
    pub fn receive(
        &mut self,
        mut on_datagram: impl FnMut(&[u8], SocketAddr) -> Result<(), Complaint>,
    ) -> usize {
        let mut datagrams = 0;
        let result = self.socket.receive(RECEIVE_LIMIT, &mut |datagram| {
            datagrams += 1;
            match on_datagram(datagram.bytes, datagram.source) {
                Ok(()) => {}
                Err(Complaint::Invalid(error @ FrameError::ResolutionType(_))) => {
                    self.errors.record(&DriverError::invalid_argument(error));
                }
                Err(Complaint::Invalid(_)) => drop(self.invalid_packets.fetch_add(1)),
                Err(Complaint::Refused(Refusal(what))) => {
                    self.errors.note(&format!("name resolver: {what}\n"));
                }
            }
        });
        if let Err(error) = result {
            self.errors
                .record(&DriverError::io(&error, "name resolver failed to receive"));
        }
        datagrams
    }

    /// Sends a datagram; what the socket does not take is lost.
    pub fn send(&mut self, to: SocketAddr, datagram: &[u8]) {
        match self.socket.send(Some(to), datagram) {
            Ok(true) => {}
            Ok(false) => drop(self.short_sends.fetch_add(1)),
            // Neighbors come by gossip: one entry for each address would fill the error log.
            Err(error) => self.errors.record(&DriverError::io(
                &error,
                "name resolver failed to send to a neighbor",
            )),
        }
    }
}

impl Inbox<'_> {
    /// Takes over the entries of a datagram, up to the first that is wrong.
    pub fn on_datagram(&mut self, datagram: &[u8], source: SocketAddr) -> Result<(), Complaint> {
        let result = self.on_entries(datagram, source);
        self.records.neighbors.on_datagram(source, datagram.len());
        result
    }

    fn on_entries(&mut self, datagram: &[u8], source: SocketAddr) -> Result<(), Complaint> {
        for entry in entries(datagram).map_err(Complaint::Invalid)? {
            let entry = entry.map_err(Complaint::Invalid)?;
            self.on_entry(&entry, source).map_err(Complaint::Refused)?;
        }
        Ok(())
    }

    fn on_entry(&mut self, entry: &Entry<'_>, source: SocketAddr) -> Result<(), Refusal> {
        let address = if entry.is_self && entry.address.ip().is_unspecified() {
            source
        } else {
            entry.address
        };
        if address.port() == self.own_port && entry.name == self.own_name {
            return Ok(());
        }
        let mention = Mention {
            address,
            source,
            is_self: entry.is_self,
            length: entry.length(),
            time_ms: self.now_ms.saturating_sub(entry.age_ms.into()),
        };
        self.records.on_mention(entry.name, &mention)
    }
}
