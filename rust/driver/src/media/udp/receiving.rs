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
}

impl ReceiveBuffer {
    /// Memory for messages of `capacity` bytes; what is longer is cut off there.
    pub fn new(capacity: usize) -> Self {
        ReceiveBuffer {
            memory: Vec::new(),
            capacity,
        }
    }

    /// Receives up to `limit` messages by one call; answers the number of bytes. See
    /// [`Socket::receive`](crate::media::transport::Socket::receive).
    pub fn receive(
        &mut self,
        socket: &UdpSocket,
        limit: usize,
        on_datagram: &mut dyn FnMut(Datagram<'_>),
    ) -> io::Result<usize> {
        if self.memory.len() < limit * self.capacity {
            self.memory = vec![0; limit * self.capacity];
        }
        let mut bytes = 0;
        let result = system::receive(
            socket,
            limit,
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
