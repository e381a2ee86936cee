//! [`UdpSocket`]: a socket of a channel, which sends by [`GsoSender`] and receives by [`ReceiveBuffer`].

use std::io;
use std::net::{self, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use super::creation::Sockets;
use super::receiving::ReceiveBuffer;
use super::sending::{GsoSender, SendCall};
use super::{Offload, is_not_now, system};
use crate::media::transport::{Datagram, GsoBatch, Socket, SocketSide, SocketSpec};
use crate::socket_buffers::SocketBufferLengths;

/// After the sender has found a socket empty, it reads the socket again only after this time. Reading is the most
/// expensive step of an idle sender, and control frames can wait for this time.
const REST: Duration = Duration::from_micros(3);

/// A UDP socket of the system. For a multicast sender, it may consist of two sockets of the system.
#[derive(Debug)]
pub struct UdpSocket {
    sockets: Sockets,
    local_address: SocketAddr,
    sender: GsoSender,
    buffer: ReceiveBuffer,
    side: SocketSide,
    rests_since: Option<Instant>,
}

impl UdpSocket {
    /// Opens a socket for `spec`. Received messages longer than `capacity` are truncated.
    pub fn open(spec: &SocketSpec, offload: Offload, capacity: usize) -> io::Result<Self> {
        let sockets = Sockets::open(spec)?;
        let receives_trains = spec.side == SocketSide::Receiver && !spec.receive_timestamps;
        if offload.coalescing && receives_trains {
            system::enable_coalescing(&sockets.receive)?;
        }
        Ok(UdpSocket {
            local_address: sockets.receive.local_addr()?,
            sockets,
            sender: GsoSender::new(offload.segmentation),
            buffer: ReceiveBuffer::new(capacity),
            side: spec.side,
            rests_since: None,
        })
    }
}

impl Socket for UdpSocket {
    fn local_address(&self) -> SocketAddr {
        self.local_address
    }

    fn buffer_lengths(&self) -> SocketBufferLengths {
        SocketBufferLengths::of(self.sockets.sending(), &self.sockets.receive)
    }

    fn max_gso_batch_datagrams(&self, to: Option<SocketAddr>) -> usize {
        self.sender.max_gso_batch_datagrams(to)
    }

    fn send_gso_batches(
        &mut self,
        to: Option<SocketAddr>,
        batches: &[GsoBatch<'_>],
    ) -> io::Result<usize> {
        self.sender.send(self.sockets.sending(), to, batches)
    }

    fn send(&mut self, to: Option<SocketAddr>, datagram: &[u8]) -> io::Result<bool> {
        let socket = self.sockets.sending();
        let result = match to {
            Some(to) => socket.send_to(datagram, to),
            None => socket.send(datagram),
        };
        match result {
            Ok(_) => Ok(true),
            Err(error) if is_not_now(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn receive(
        &mut self,
        limit: usize,
        on_datagram: &mut dyn FnMut(Datagram<'_>),
    ) -> io::Result<usize> {
        if self.rests_since.is_some_and(|time| time.elapsed() < REST) {
            return Ok(0);
        }
        let buffer = &mut self.buffer;
        let bytes = buffer.receive(&self.sockets.receive, limit, on_datagram)?;
        let rests = bytes == 0 && self.side == SocketSide::Sender;
        self.rests_since = rests.then(Instant::now);
        Ok(bytes)
    }

    fn connect(&mut self, to: SocketAddr) -> io::Result<()> {
        self.sockets.sending().connect(to)?;
        self.sender.forget_peer();
        Ok(())
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.sockets.receive.as_fd())
    }
}

impl SendCall for net::UdpSocket {
    fn send(&self, to: Option<SocketAddr>, batches: &[GsoBatch<'_>]) -> io::Result<usize> {
        system::send(self, to, batches)
    }
}
