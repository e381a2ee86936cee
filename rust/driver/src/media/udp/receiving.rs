//! [`ReceiveBuffer`]: receives messages into the socket's memory and splits trains into datagrams.
//!
//! A *train* is a message of several datagrams that the kernel delivers in one buffer.

use std::io;
use std::net::UdpSocket;

use super::{is_not_now, system};
use crate::media::transport::Datagram;

/// Approximate maximum length of a batch in bytes. The data of a batch of this length is still in the CPU cache when it
/// is copied into a log.
const BATCH_LENGTH: usize = 256 * 1024;

/// Memory for one batch of messages. The system allocates no pages for parts that are never used.
#[derive(Debug)]
pub struct ReceiveBuffer {
    memory: Vec<u8>,
    capacity: usize,
    /// Number of messages for the next call, within the limit of the call. After a pause, the number is one: if there
    /// is no second message, the kernel's search for it takes a tenth of the time of a round trip.
    wanted: usize,
}

impl ReceiveBuffer {
    /// Creates memory for messages of `capacity` bytes; longer messages are truncated.
    pub fn new(capacity: usize) -> Self {
        ReceiveBuffer {
            memory: Vec::new(),
            capacity,
            wanted: 1,
        }
    }

    /// Receives up to `limit` messages with one call.
    ///
    /// Returns the number of bytes. See [`Socket::receive`](crate::media::transport::Socket::receive).
    pub fn receive(
        &mut self,
        socket: &UdpSocket,
        limit: usize,
        on_datagram: &mut dyn FnMut(Datagram<'_>),
    ) -> io::Result<usize> {
        if self.memory.len() < limit * self.capacity {
            self.memory = vec![0; limit * self.capacity];
        }
        let wanted = self.wanted.min(limit);
        let mut bytes = 0;
        let result = system::receive(
            socket,
            wanted,
            &mut self.memory,
            self.capacity,
            |message, about| {
                bytes += message.len();
                split(message, about.segment_length, |datagram| {
                    on_datagram(Datagram {
                        bytes: datagram,
                        source: about.source,
                        media_timestamp_ns: about.timestamp_ns,
                    });
                });
            },
        );
        let count = *result.as_ref().unwrap_or(&0);
        self.wanted = match count {
            0 => 1,
            1 if wanted > 1 => 1,
            _ => (BATCH_LENGTH * count / bytes.max(1)).max(1),
        };
        match result {
            Ok(_) => Ok(bytes),
            Err(error) if is_not_now(&error) => Ok(0),
            Err(error) => Err(error),
        }
    }
}

/// Splits a train into its datagrams: all have `segment_length` bytes, except that the last may be shorter.
fn split(message: &mut [u8], segment_length: Option<usize>, on_datagram: impl FnMut(&mut [u8])) {
    let length = segment_length.unwrap_or(message.len());
    if message.is_empty() {
        // An empty message is one datagram too.
        return std::iter::once(message).for_each(on_datagram);
    }
    message.chunks_mut(length).for_each(on_datagram);
}
