//! The functions of the module `linux`, for other systems: one datagram for each system call.

use std::io;
use std::net::{SocketAddr, UdpSocket};

use aeron_memory::Words;

use super::MAX_TRAIN_LENGTH;
use crate::media::transport::GsoBatch;

/// Properties of a received message.
pub struct Received {
    /// Always `None`: the system never joins datagrams.
    pub segment_length: Option<usize>,
    /// Source address.
    pub source: SocketAddr,
    /// Always `None`: there are no timestamps.
    pub timestamp_ns: Option<i64>,
}

/// Sends the first GSO batch, which must be one datagram. Returns 1, or 0 if `batches` is empty.
///
/// For a longer batch, returns the error of a kernel without segmentation offload.
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

/// Receives up to `limit` datagrams one by one, each into the first `capacity` bytes of `memory`.
///
/// Returns the number of datagrams, at least one.
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

/// Returns an error: the system cannot join datagrams.
pub fn enable_coalescing(_socket: &UdpSocket) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Returns an error: there are no timestamps.
pub fn enable_timestamps(_socket: &UdpSocket) -> io::Result<()> {
    Err(io::Error::new(
        io::ErrorKind::Unsupported,
        "media timestamps are available on Linux only",
    ))
}

/// Does nothing: on these systems, a socket receives only groups that it joined.
pub fn receive_joined_groups_only(_socket: &UdpSocket, _address: &SocketAddr) {}
