//! Passing on what a driver knows: every name to every driver it knows of, a part of that at a time.

use std::net::SocketAddr;

use aeron_protocol::frame::resolution::Encoder;

use super::records::{NameKey, Records};

/// Datagrams that are passed on in one run at most, which are 6,400 a second: with full tables a round has 95,000.
pub const MAX_DATAGRAMS_PER_RUN: usize = 64;

/// Where a round is. Ages are written when a datagram is begun, which goes to all before the next one is.
pub struct Round {
    datagram: Vec<u8>,
    length: usize,
    /// Who the datagram has not gone to yet, the last one first.
    to: Vec<SocketAddr>,
    /// The last name that was written.
    last: Option<NameKey>,
    is_over: bool,
}

impl Round {
    /// Nothing to pass on; a datagram has up to `mtu_length` bytes.
    pub fn new(mtu_length: usize) -> Self {
        Self {
            datagram: vec![0; mtu_length],
            length: 0,
            to: Vec::new(),
            last: None,
            is_over: true,
        }
    }

    /// Begins with the first name, if the last round is over.
    pub fn begin(&mut self) {
        if self.is_over {
            self.is_over = false;
            self.last = None;
        }
    }

    /// Sends the next part by `send`; answers how many datagrams it had.
    pub fn go_on(
        &mut self,
        records: &Records,
        now_ms: i64,
        mut send: impl FnMut(SocketAddr, &[u8]),
    ) -> usize {
        let mut sent = 0;
        while sent < MAX_DATAGRAMS_PER_RUN && !self.is_over {
            match self.to.pop() {
                Some(to) => {
                    send(to, &self.datagram[..self.length]);
                    sent += 1;
                }
                None => self.write_next(records, now_ms),
            }
        }
        sent
    }

    /// Writes as many names as fit; a name that is longer than a datagram is left out.
    fn write_next(&mut self, records: &Records, now_ms: i64) {
        let mut encoder = Encoder::new(&mut self.datagram);
        let behind = self.last.clone();
        for (name, entry) in records.entries_after(behind.as_ref(), now_ms) {
            if !encoder.push(&entry) && !encoder.is_empty() {
                break;
            }
            self.last = Some(name.clone());
        }
        self.is_over = encoder.is_empty();
        if !self.is_over {
            self.length = encoder.finish().len();
            self.to = records.neighbors().collect();
            self.to.reverse();
        }
    }
}
