//! Reads the lengths of the socket buffers that the system grants. The driver checks the lengths at its start and
//! writes them into the metadata of every log.

use std::fmt;
use std::io;
use std::os::fd::AsFd;

use rustix::net::{AddressFamily, SocketType, socket, sockopt};

use crate::config::{ConfigurationError, Context};

/// Lengths of a socket's buffers in bytes; 0 if the system does not report them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SocketBufferLengths {
    /// Length of the send buffer, SO_SNDBUF.
    pub send: i32,
    /// Length of the receive buffer, SO_RCVBUF.
    pub receive: i32,
}

impl SocketBufferLengths {
    /// Opens a UDP socket and returns the default lengths of its buffers.
    pub fn of_the_system() -> Self {
        match socket(AddressFamily::INET, SocketType::DGRAM, None) {
            Ok(socket) => Self::of(&socket, &socket),
            Err(_) => Self::default(),
        }
    }

    /// Requests buffers of `send` and `receive` bytes; 0 requests nothing. The system may grant less.
    pub fn request(sending: impl AsFd, receiving: impl AsFd, send: usize, receive: usize) {
        // If the length is too large, some systems fail instead of granting less. The socket then keeps the default
        // buffer.
        if send > 0 {
            let _ = sockopt::set_socket_send_buffer_size(sending, send);
        }
        if receive > 0 {
            let _ = sockopt::set_socket_recv_buffer_size(receiving, receive);
        }
    }

    /// Returns the lengths of a sending and a receiving socket, which may be the same socket.
    pub fn of(sending: impl AsFd, receiving: impl AsFd) -> Self {
        let length = |bytes: usize| i32::try_from(bytes).unwrap_or(i32::MAX);
        Self {
            send: sockopt::socket_send_buffer_size(sending).map_or(0, length),
            receive: sockopt::socket_recv_buffer_size(receiving).map_or(0, length),
        }
    }
}

/// The system's default buffer lengths, and the lengths that the system grants for the configuration.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SocketBufferProbe {
    /// Lengths for a socket without a request.
    pub system: SocketBufferLengths,
    /// Lengths for a socket that requests the configured lengths.
    pub granted: SocketBufferLengths,
}

/// A buffer that the system grants shorter than the configuration requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShortBuffer {
    option: &'static str,
    attempted: usize,
    actual: i32,
}

impl fmt::Display for ShortBuffer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ShortBuffer {
            option,
            attempted,
            actual,
        } = self;
        write!(
            formatter,
            "WARNING: Could not get desired {option}, adjust OS buffer to match AERON_SOCKET_{option}: attempted={attempted}, actual={actual}"
        )
    }
}

impl SocketBufferProbe {
    /// Opens a UDP socket to find the lengths that the system grants.
    ///
    /// # Errors
    /// The system cannot open a UDP socket.
    pub fn new(context: &Context) -> io::Result<Self> {
        let socket = socket(AddressFamily::INET, SocketType::DGRAM, None)?;
        let system = SocketBufferLengths::of(&socket, &socket);
        SocketBufferLengths::request(
            &socket,
            &socket,
            context.socket_sndbuf,
            context.socket_rcvbuf,
        );
        let granted = SocketBufferLengths::of(&socket, &socket);
        Ok(Self { system, granted })
    }

    /// Returns the buffers that are shorter than `context` requests. The driver warns about these buffers and
    /// continues.
    pub fn short_buffers(&self, context: &Context) -> Vec<ShortBuffer> {
        [
            ("SO_RCVBUF", context.socket_rcvbuf, self.granted.receive),
            ("SO_SNDBUF", context.socket_sndbuf, self.granted.send),
        ]
        .into_iter()
        .filter(|(_, attempted, actual)| *attempted > *actual as usize)
        .map(|(option, attempted, actual)| ShortBuffer {
            option,
            attempted,
            actual,
        })
        .collect()
    }

    /// Checks that a datagram fits into the send buffer, and a receiver's window into the receive buffer.
    ///
    /// # Errors
    /// The datagram or the window does not fit.
    pub fn check(&self, context: &Context) -> Result<(), ConfigurationError> {
        let (mtu, window) = (context.mtu_length, context.initial_window_length);
        let SocketBufferLengths { send, receive } = self.granted;
        if mtu > send as usize {
            return Err(ConfigurationError(format!(
                "MTU greater than socket SO_SNDBUF, increase AERON_SOCKET_SO_SNDBUF to match MTU: mtuLength={mtu}, SO_SNDBUF={send}"
            )));
        }
        if window > receive as usize {
            return Err(ConfigurationError(format!(
                "Window length greater than socket SO_RCVBUF, increase AERON_SOCKET_SO_RCVBUF to match window: windowLength={window}, SO_RCVBUF={receive}"
            )));
        }
        Ok(())
    }
}
