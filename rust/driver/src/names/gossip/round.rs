//! [`Round`]: sends all names to all neighbors. The resolver runs a part of the round every 10 ms.

use std::net::SocketAddr;

use aeron_protocol::frame::resolution::{HEADER_LENGTH, ResolutionEncoder};

use super::records::NameRecords;

/// Maximum number of datagrams in a run, which permits 6,400 datagrams per second. With full tables, a round has 95,000
/// datagrams.
pub const MAX_DATAGRAMS_PER_RUN: usize = 64;

/// The progress of a round, which sends the names to one neighbor after the other.
///
/// If the allowance of a neighbor is too small for all names, the next round continues with the names that were not
/// sent.
pub struct Round {
    datagram: Vec<u8>,
    /// The neighbor to which names are being sent; `None` if the round is over.
    to: Option<SocketAddr>,
    /// Number of names that were sent to this neighbor in this round.
    told: usize,
}

impl Round {
    /// Creates a round that is over. A datagram has up to `mtu_length` bytes.
    pub fn new(mtu_length: usize) -> Self {
        Self {
            datagram: vec![0; mtu_length],
            to: None,
            told: 0,
        }
    }

    /// If the last round is over, begins a round with the first neighbor.
    pub fn begin(&mut self, records: &NameRecords) {
        if self.to.is_none() {
            self.go_to(records.neighbors.next_after(None));
        }
    }

    /// Sends the next datagrams with `send`. Returns their number.
    pub fn go_on(
        &mut self,
        records: &mut NameRecords,
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

    /// Writes as many names as the datagram and the neighbor's allowance permit. Returns the length of the datagram.
    ///
    /// Returns `None` if all names were sent to the neighbor, or if the neighbor's allowance is used up. A name that is
    /// longer than a datagram is skipped.
    fn write_next(
        &mut self,
        to: SocketAddr,
        records: &mut NameRecords,
        now_ms: i64,
    ) -> Option<usize> {
        let mtu_length = self.datagram.len();
        let limit = mtu_length.min(records.neighbors.allowance_for_names(to));
        if limit < HEADER_LENGTH {
            return None;
        }
        let mut encoder = ResolutionEncoder::new(&mut self.datagram[..limit]);
        let mut last = None;
        let untold = records.name_count().saturating_sub(self.told);
        let entries = records.entries_from(records.neighbors.last_sent_name(to), now_ms);
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
        debug_assert!(
            length <= limit,
            "a datagram of {length} bytes exceeds the limit of {limit} bytes"
        );
        records.neighbors.on_names_sent(to, length, last);
        Some(length)
    }
}
