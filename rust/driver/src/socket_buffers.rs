//! What the operating system gives a socket that asks for nothing: every log tells it to those who inspect it.

use rustix::net::{AddressFamily, SocketType, socket, sockopt};

/// Lengths of the buffers of a fresh UDP socket, in bytes; 0 where the system does not say.
#[derive(Debug, Clone, Copy, Default)]
pub struct SocketBufferLengths {
    /// SO_SNDBUF.
    pub send: i32,
    /// SO_RCVBUF.
    pub receive: i32,
}

impl SocketBufferLengths {
    /// Asks the system, by a socket that is made for it.
    pub fn of_the_system() -> Self {
        let Ok(socket) = socket(AddressFamily::INET, SocketType::DGRAM, None) else {
            return Self::default();
        };
        let length = |bytes: usize| i32::try_from(bytes).unwrap_or(i32::MAX);
        Self {
            send: sockopt::socket_send_buffer_size(&socket).map_or(0, length),
            receive: sockopt::socket_recv_buffer_size(&socket).map_or(0, length),
        }
    }
}
