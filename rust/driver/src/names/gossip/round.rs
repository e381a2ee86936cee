//! Passing on what a driver knows: every name to every driver it knows of, a part of that at a time.

use std::net::SocketAddr;

use aeron_protocol::frame::resolution::{Encoder, HEADER_LENGTH};

use super::records::Records;

/// Datagrams that are passed on in one run at most, which are 6,400 a second: with full tables a round has 95,000.
pub const MAX_DATAGRAMS_PER_RUN: usize = 64;

/// The position of a round, which sends the names to one neighbor after the other. If the allowance of a neighbor ends before the
/// names do, the next round sends it the following names.
pub struct Round {
    datagram: Vec<u8>,
    /// The neighbor that gets names now; there is none if the round is over.
    to: Option<SocketAddr>,
    /// Number of names that this neighbor got in this round.
    told: usize,
}

impl Round {
    /// Nothing to pass on; a datagram has up to `mtu_length` bytes.
    pub fn new(mtu_length: usize) -> Self {
        Self {
            datagram: vec![0; mtu_length],
            to: None,
            told: 0,
        }
    }

    /// Begins with the first neighbor, if the last round is over.
    pub fn begin(&mut self, records: &Records) {
        if self.to.is_none() {
            self.go_to(records.neighbors.next_after(None));
        }
    }

    /// Sends the next part by `send`. Returns the number of datagrams.
    pub fn go_on(
        &mut self,
        records: &mut Records,
        now_ms: i64,
        mut send: impl FnMut(SocketAddr, &[u8]),
    ) -> usize {
        let mut sent = 0;
        while let Some(to) = self.to.filter(|_| sent < MAX_DATAGRAMS_PER_RUN) {
            match self.write_next(to, records, now_ms) {
                Some(length) => {
                    send(to, &self.datagram[..length]);
                    sent += 1;
                }
                None => self.go_to(records.neighbors.next_after(Some(to))),
            }
        }
        sent
    }

    fn go_to(&mut self, neighbor: Option<SocketAddr>) {
        self.to = neighbor;
        self.told = 0;
    }

    /// Writes as many names as fit and as the neighbor may be sent. Returns the datagram's length, or nothing if the neighbor was
    /// told all that it can be told in this round. A name that is longer than a datagram is left out.
    fn write_next(&mut self, to: SocketAddr, records: &mut Records, now_ms: i64) -> Option<usize> {
        let mtu_length = self.datagram.len();
        let limit = mtu_length.min(records.neighbors.allowance_for_names(to));
        if limit < HEADER_LENGTH {
            return None;
        }
        let mut encoder = Encoder::new(&mut self.datagram[..limit]);
        let mut last = None;
        let untold = records.name_count().saturating_sub(self.told);
        let entries = records.entries_from(records.neighbors.last_told(to), now_ms);
        for (name, entry) in entries.take(untold) {
            let is_left_out = HEADER_LENGTH + entry.length() > mtu_length;
            if !is_left_out && !encoder.push(&entry) {
                break;
            }
            last = Some(name);
            self.told += 1;
        }
        if encoder.is_empty() {
            return None;
        }
        let last = last.cloned()?;
        let length = encoder.finish().len();
        records.neighbors.on_told(to, length, last);
        Some(length)
    }
}
