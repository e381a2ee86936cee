//! UDP sockets of the operating system.
//!
//! On Linux, the kernel cuts a GSO batch into datagrams (segmentation offload, UDP_SEGMENT), if the kernel and the path
//! support it. The kernel may deliver several datagrams in one buffer (a *train*, UDP_GRO), which is then split. On
//! other systems, datagrams are sent and received one by one. The kernel is probed once. The path is tested for each
//! destination: a batch that is refused is sent again without offload, and nothing is lost. The datagrams on the
//! network are the same with and without offload.
//!
//! This is the only module of the driver that may contain unsafe code, and only [`linux`] does.

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

/// Maximum length of a datagram, and of a train.
const MAX_TRAIN_LENGTH: usize = 65_536;

/// Opens UDP sockets.
#[derive(Clone, Debug)]
pub struct UdpNetwork {
    offload: Offload,
    max_control_length: usize,
}

impl UdpNetwork {
    /// Creates a network. Its sockets use `offload`.
    ///
    /// A sender's socket truncates received control frames to `max_control_length` bytes.
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

/// Returns whether the error only means that nothing can be sent or received now.
///
/// The reasons are a full or empty buffer, a signal, or a message in which the peer's machine reports a closed port.
fn is_not_now(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::ConnectionRefused | io::ErrorKind::Interrupted
    )
}
