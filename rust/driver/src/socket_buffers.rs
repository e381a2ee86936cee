//! What the operating system grants sockets for buffers: checked at the start, and told by every log to those who inspect it.

use std::fmt;
use std::io;
use std::os::fd::AsFd;

use rustix::net::{AddressFamily, SocketType, socket, sockopt};

use crate::config::{ConfigurationError, Context};

/// Lengths of a socket's buffers in bytes; 0 where the system does not say.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SocketBufferLengths {
    /// SO_SNDBUF.
    pub send: i32,
    /// SO_RCVBUF.
    pub receive: i32,
}

impl SocketBufferLengths {
    /// Those of a UDP socket that asks for nothing, by a socket that is made for it.
    pub fn of_the_system() -> Self {
        match socket(AddressFamily::INET, SocketType::DGRAM, None) {
            Ok(socket) => Self::of(&socket, &socket),
            Err(_) => Self::default(),
        }
    }

    /// Asks for buffers of `send` and `receive` bytes, 0 for the system's default. The system may grant less.
    pub fn request(sending: impl AsFd, receiving: impl AsFd, send: usize, receive: usize) {
        // Some systems refuse what they do not grant, instead of granting less: the buffer is the default one then.
        if send > 0 {
            let _ = sockopt::set_socket_send_buffer_size(sending, send);
        }
        if receive > 0 {
            let _ = sockopt::set_socket_recv_buffer_size(receiving, receive);
        }
    }

    /// Those of a socket that sends and a socket that receives, which may be one.
    pub fn of(sending: impl AsFd, receiving: impl AsFd) -> Self {
        let length = |bytes: usize| i32::try_from(bytes).unwrap_or(i32::MAX);
        Self {
            send: sockopt::socket_send_buffer_size(sending).map_or(0, length),
            receive: sockopt::socket_recv_buffer_size(receiving).map_or(0, length),
        }
    }
}

/// The buffers of sockets, as the system has them by default and as it grants what the configuration asks for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SocketBufferProbe {
    /// Those of a socket that asks for nothing.
    pub system: SocketBufferLengths,
    /// Those of a socket that asks for what the configuration says.
    pub granted: SocketBufferLengths,
}

/// A buffer that the system grants shorter than the configuration asks for.
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
    /// Asks the system, by a socket that is made for it.
    ///
    /// # Errors
    /// The system has no UDP sockets.
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

    /// The buffers that are shorter than `context` asks for: a reason to warn, not to stop.
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

    /// Whether a datagram and a receiver's window fit into the buffers.
    ///
    /// # Errors
    /// They do not.
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
