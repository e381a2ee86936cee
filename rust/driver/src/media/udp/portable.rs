//! What [`linux`](super) has, by the calls that every system has: datagram by datagram.

use std::io;
use std::net::{SocketAddr, UdpSocket};

use aeron_memory::Words;

use super::MAX_TRAIN_LENGTH;
use crate::media::transport::GsoBatch;

/// What the system says of one received message.
pub struct Received {
    /// Trains do not exist.
    pub segment_length: Option<usize>,
    /// Who sent it.
    pub source: SocketAddr,
    /// Times do not exist.
    pub timestamp_ns: Option<i64>,
}

/// Sends the first GSO batch, which is one datagram. Returns that it was taken.
///
/// A longer batch is refused as a kernel without segmentation offload does.
pub fn send(
    socket: &UdpSocket,
    to: Option<SocketAddr>,
    batches: &[GsoBatch<'_>],
) -> io::Result<usize> {
    let Some(batch) = batches.first() else {
        return Ok(0);
    };
    if !batch.is_single() || batch.length() > MAX_TRAIN_LENGTH {
        return Err(rustix::io::Errno::INVAL.into());
    }
    let mut bytes = [0; MAX_TRAIN_LENGTH];
    let datagram = &mut bytes[..batch.length()];
    batch.memory().copy_out(batch.offset(), datagram);
    match to {
        Some(to) => socket.send_to(datagram, to)?,
        None => socket.send(datagram)?,
    };
    Ok(1)
}

/// Receives up to `limit` datagrams into `capacity` bytes of `memory`, one after the other; answers their number, at least one.
pub fn receive(
    socket: &UdpSocket,
    limit: usize,
    memory: &mut [u8],
    capacity: usize,
    mut on_message: impl FnMut(&mut [u8], Received),
) -> io::Result<usize> {
    for count in 0..limit {
        let piece = &mut memory[..capacity];
        match socket.recv_from(piece) {
            Ok((length, source)) => on_message(
                &mut piece[..length],
                Received {
                    segment_length: None,
                    source,
                    timestamp_ns: None,
                },
            ),
            Err(_) if count > 0 => return Ok(count),
            Err(error) => return Err(error),
        }
    }
    Ok(limit)
}

/// Trains do not exist here.
pub fn enable_coalescing(_socket: &UdpSocket) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Times do not exist here.
pub fn enable_timestamps(_socket: &UdpSocket) -> io::Result<()> {
    Err(io::Error::new(
        io::ErrorKind::Unsupported,
        "media timestamps are available on Linux only",
    ))
}

/// No system but Linux lets a socket hear groups that it did not join.
pub fn hear_own_groups_only(_socket: &UdpSocket, _address: &SocketAddr) {}
