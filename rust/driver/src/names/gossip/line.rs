//! [`Line`]: sends and receives the datagrams between the name resolvers of drivers.

use std::net::SocketAddr;

use aeron_memory::buffer::SharedBuffer;
use aeron_memory::counters::AtomicCounter;
use aeron_protocol::frame::FrameError;
use aeron_protocol::frame::resolution::{ResolutionEntry, entries};

use super::neighbors::DriverMention;
use super::neighbors::Refusal;
use super::records::NameRecords;
use crate::diagnostics::ErrorRecorder;
use crate::error::DriverError;
use crate::media::transport::Socket;

/// The socket, and the counters and the recorder of its failures.
pub struct Line {
    pub socket: Box<dyn Socket>,
    pub invalid_packets: AtomicCounter<SharedBuffer>,
    pub short_sends: AtomicCounter<SharedBuffer>,
    pub errors: ErrorRecorder,
}

/// Adds the entries of received datagrams to the records.
pub struct GossipInbox<'a> {
    pub own_name: &'a [u8],
    pub own_port: u16,
    pub records: &'a mut NameRecords,
    pub now_ms: i64,
}

/// The reason why a datagram was not processed completely.
pub enum GossipFault {
    /// The format of the datagram is invalid.
    Invalid(FrameError),
    /// There is no room for one of the datagram's entries.
    Refused(Refusal),
}

/// Maximum number of messages in one receive call.
const RECEIVE_LIMIT: usize = 16;

impl Line {
    /// Calls `on_datagram` with each received datagram. Returns the number of datagrams.
    pub fn receive(
        &mut self,
        mut on_datagram: impl FnMut(&[u8], SocketAddr) -> Result<(), GossipFault>,
    ) -> usize {
        let mut datagrams = 0;
        let result = self.socket.receive(RECEIVE_LIMIT, &mut |datagram| {
            datagrams += 1;
            match on_datagram(datagram.bytes, datagram.source) {
                Ok(()) => {}
                Err(GossipFault::Invalid(error @ FrameError::ResolutionType(_))) => {
                    self.errors.record(&DriverError::invalid_argument(error));
                }
                Err(GossipFault::Invalid(_)) => drop(self.invalid_packets.fetch_add(1)),
                Err(GossipFault::Refused(Refusal(what))) => {
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

    /// Sends a datagram. A datagram that the socket does not accept is lost.
    pub fn send(&mut self, to: SocketAddr, datagram: &[u8]) {
        match self.socket.send(Some(to), datagram) {
            Ok(true) => {}
            Ok(false) => drop(self.short_sends.fetch_add(1)),
            // The text does not contain the address. Other drivers choose the addresses, and each address would add an
            // entry to the error log.
            Err(error) => self.errors.record(&DriverError::io(
                &error,
                "name resolver failed to send to a neighbor",
            )),
        }
    }
}

impl GossipInbox<'_> {
    /// Adds the entries of a datagram, up to the first entry that is invalid or refused. Then increases the allowance
    /// of the source.
    pub fn on_datagram(&mut self, datagram: &[u8], source: SocketAddr) -> Result<(), GossipFault> {
        let result = self.on_entries(datagram, source);
        self.records.neighbors.on_datagram(source, datagram.len());
        result
    }

    fn on_entries(&mut self, datagram: &[u8], source: SocketAddr) -> Result<(), GossipFault> {
        for entry in entries(datagram).map_err(GossipFault::Invalid)? {
            let entry = entry.map_err(GossipFault::Invalid)?;
            self.on_entry(&entry, source)
                .map_err(GossipFault::Refused)?;
        }
        Ok(())
    }

    fn on_entry(&mut self, entry: &ResolutionEntry<'_>, source: SocketAddr) -> Result<(), Refusal> {
        let address = if entry.is_self && entry.address.ip().is_unspecified() {
            source
        } else {
            entry.address
        };
        if address.port() == self.own_port && entry.name == self.own_name {
            return Ok(());
        }
        let mention = DriverMention {
            address,
            source,
            is_self: entry.is_self,
            length: entry.length(),
            time_ms: self.now_ms.saturating_sub(entry.age_ms.into()),
        };
        self.records.on_mention(entry.name, &mention)
    }
}
