//! UDP sockets of the operating system.
//!
//! On Linux, a GSO batch is one `sendmsg` with segmentation offload (UDP_SEGMENT, "GSO") where kernel and path can do it,
//! and trains of datagrams are received whole (UDP_GRO) and split here; elsewhere, datagrams go one by one. Whether the kernel can is
//! probed once, whether the path can is found out for each destination: a batch that is refused is sent again plain, and nothing is
//! lost. With and without offload the same datagrams travel.
//!
//! This is the only module of the driver that may be unsafe, and only [`linux`] is.

mod creation;
#[cfg(target_os = "linux")]
#[allow(unsafe_code)]
mod linux;
mod poller;
#[cfg(not(target_os = "linux"))]
mod portable;
mod probe;
mod receiving;
mod sending;
mod socket;

#[cfg(target_os = "linux")]
use linux as system;
#[cfg(not(target_os = "linux"))]
use portable as system;

use std::io;

pub use probe::Offload;

use super::transport::{Network, Poller, Socket, SocketSide, SocketSpec};
use socket::UdpSocket;

/// Longest datagram there is, and longest train of them.
const MAX_TRAIN_LENGTH: usize = 65_536;

/// Makes UDP sockets.
#[derive(Clone, Debug)]
pub struct UdpNetwork {
    offload: Offload,
    max_control_length: usize,
}

impl UdpNetwork {
    /// A network whose sockets use `offload`, as far as it goes. Senders cut control frames longer than `max_control_length` bytes off there.
    pub fn new(offload: Offload, max_control_length: usize) -> Self {
        UdpNetwork {
            offload,
            max_control_length,
        }
    }
}

impl Network for UdpNetwork {
    fn open(&mut self, spec: &SocketSpec) -> io::Result<Box<dyn Socket>> {
        let datagram_capacity = match spec.side {
            SocketSide::Sender => self.max_control_length,
            SocketSide::Receiver => MAX_TRAIN_LENGTH,
        };
        let socket = UdpSocket::open(spec, self.offload, datagram_capacity)?;
        Ok(Box::new(socket))
    }

    fn poller(&mut self) -> Box<dyn Poller> {
        Box::new(poller::UdpPoller::default())
    }
}

/// Whether the error only says that nothing can be sent or received now: the buffer is full or empty, a signal came, or the peer's
/// machine said that nobody hears there.
fn is_not_now(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::ConnectionRefused | io::ErrorKind::Interrupted
    )
}
