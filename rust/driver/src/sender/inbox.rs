//! [`Inbox`]: control datagrams on their way from a socket to the publications.

use std::net::SocketAddr;
use std::ops::Range;

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

    /// Hands out the datagrams in order, and is empty afterwards; answers how many they were.
    pub fn drain(&mut self, mut on_datagram: impl FnMut(SocketAddr, &[u8])) -> usize {
        for (source, range) in &self.datagrams {
            on_datagram(*source, &self.bytes[range.clone()]);
        }
        let count = self.datagrams.len();
        self.datagrams.clear();
        self.bytes.clear();
        count
    }
}
