//! [`DatagramInbox`]: buffers control datagrams between a socket and the publications.

use std::net::SocketAddr;
use std::ops::Range;

/// A datagram that arrived at an endpoint's socket.
#[derive(Clone, Copy, Debug)]
pub struct ControlDatagram<'a> {
    /// Address of the receiver that sent the datagram.
    pub source: SocketAddr,
    pub bytes: &'a [u8],
}

/// A batch of datagrams. They are copies, so the socket can send replies while the datagrams are handled.
#[derive(Debug, Default)]
pub struct DatagramInbox {
    bytes: Vec<u8>,
    datagrams: Vec<(SocketAddr, Range<usize>)>,
}

impl DatagramInbox {
    pub fn push(&mut self, source: SocketAddr, datagram: &[u8]) {
        let begin = self.bytes.len();
        self.bytes.extend_from_slice(datagram);
        self.datagrams.push((source, begin..self.bytes.len()));
    }

    /// Calls `on_datagram` with each datagram, in order, and removes all datagrams. Returns the number of datagrams.
    pub fn drain(&mut self, mut on_datagram: impl FnMut(ControlDatagram<'_>)) -> usize {
        for (source, range) in &self.datagrams {
            on_datagram(ControlDatagram {
                source: *source,
                bytes: &self.bytes[range.clone()],
            });
        }
        let count = self.datagrams.len();
        self.datagrams.clear();
        self.bytes.clear();
        count
    }
}
