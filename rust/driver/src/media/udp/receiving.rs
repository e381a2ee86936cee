//! Receives into memory of the socket, and cuts trains into datagrams.

use std::io;
use std::net::UdpSocket;

use super::{is_not_now, system};
use crate::media::transport::Datagram;

/// Memory for one batch of messages. What nothing was received into is not backed by memory of the machine.
#[derive(Debug)]
pub struct ReceiveBuffer {
    memory: Vec<u8>,
    capacity: usize,
    /// The last call received as many messages as it asked for: there may be more.
    was_full: bool,
}

impl ReceiveBuffer {
    /// Memory for messages of `capacity` bytes; what is longer is cut off there.
    pub fn new(capacity: usize) -> Self {
        ReceiveBuffer {
            memory: Vec::new(),
            capacity,
            was_full: false,
        }
    }

    /// Receives up to `limit` messages by one call; answers the number of bytes. See
    /// [`Socket::receive`](crate::media::transport::Socket::receive).
    ///
    /// The first message after none is received alone: to ask for a second one that is not there takes the kernel a tenth of a
    /// round trip.
    pub fn receive(
        &mut self,
        socket: &UdpSocket,
        limit: usize,
        on_datagram: &mut dyn FnMut(Datagram<'_>),
    ) -> io::Result<usize> {
        if self.memory.len() < limit * self.capacity {
            self.memory = vec![0; limit * self.capacity];
        }
        let wanted = if self.was_full { limit } else { limit.min(1) };
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
        self.was_full = result.as_ref().is_ok_and(|count| *count == wanted);
        match result {
            Ok(_) => Ok(bytes),
            Err(error) if is_not_now(&error) => Ok(0),
            Err(error) => Err(error),
        }
    }
}

/// Cuts a train into its datagrams: all of `segment_length` bytes, except that the last may be shorter.
fn split(message: &mut [u8], segment_length: Option<usize>, on_datagram: impl FnMut(&mut [u8])) {
    let length = segment_length.unwrap_or(message.len());
    if message.is_empty() {
        // An empty datagram is one too.
        return std::iter::once(message).for_each(on_datagram);
    }
    message.chunks_mut(length).for_each(on_datagram);
}
