//! [`Inbox`]: control datagrams on their way from a socket to the publications.

use std::net::SocketAddr;
use std::ops::Range;

/// A datagram that came to an endpoint's socket.
#[derive(Clone, Copy, Debug)]
pub struct ControlDatagram<'a> {
    /// Address of the receiver that sent it.
    pub source: SocketAddr,
    pub bytes: &'a [u8],
}

/// A batch of datagrams, copied: what they ask for is sent through the socket that they came from, so that one must be free.
#[derive(Debug, Default)]
pub struct Inbox {
    bytes: Vec<u8>,
    datagrams: Vec<(SocketAddr, Range<usize>)>,
}

impl Inbox {
    /// Adds a datagram.
    pub fn push(&mut self, source: SocketAddr, datagram: &[u8]) {
        let begin = self.bytes.len();
        self.bytes.extend_from_slice(datagram);
        self.datagrams.push((source, begin..self.bytes.len()));
    }

    /// Calls `on_datagram` with each datagram, in order, and removes them all. Returns their number.
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
