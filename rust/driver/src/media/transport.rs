//! The network traits of the sender and the receiver: sockets that send [`GsoBatch`]es of datagrams and receive single
//! datagrams.
//!
//! The sender and the receiver get implementations of these traits from their caller. [`udp`](super::udp) uses the
//! sockets of the operating system, and [`interceptors`](super::interceptors) drops datagrams on purpose. Tests and the
//! simulator have their own implementations. The same protocol code runs on all implementations.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::ops::Range;
#[cfg(unix)]
use std::os::fd::BorrowedFd;

use aeron_memory::{SharedBuffer, Words};

use crate::socket_buffers::SocketBufferLengths;

/// Maximum number of datagrams in a [`GsoBatch`]. Every kernel with segmentation offload accepts this number.
pub const MAX_GSO_BATCH_DATAGRAMS: usize = 64;

/// Maximum number of bytes in a [`GsoBatch`]: the longest payload of UDP over IPv4.
pub const MAX_GSO_BATCH_LENGTH: usize = 65_507;

/// Maximum number of messages in one receive call. Each message is a datagram or a train: several datagrams that the
/// kernel delivers in one buffer.
pub const MAX_RECEIVE_VECTOR: usize = 16;

/// The half of a channel that a socket serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SocketSide {
    /// Sends data and receives control frames.
    Sender,
    /// Receives data and sends control frames.
    Receiver,
}

/// Parameters of a new socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SocketSpec {
    /// Local address; port 0 lets the system choose the port.
    ///
    /// For a multicast socket, only family and port are used, because the socket receives at the wildcard address.
    pub bind: SocketAddr,
    /// The only peer of the socket. If it is set, `None` as the target of [`Socket::send`] stands for the peer.
    pub connect: Option<SocketAddr>,
    /// The multicast group that the socket joins.
    pub multicast: Option<MulticastSpec>,
    /// SO_SNDBUF in bytes; 0 for the system's default.
    pub send_buffer_length: usize,
    /// SO_RCVBUF in bytes; 0 for the system's default.
    pub receive_buffer_length: usize,
    /// Whether the kernel adds the receive time to each datagram. Datagrams are then received one by one, never in
    /// trains.
    pub receive_timestamps: bool,
    /// The half of a channel that the socket serves.
    pub side: SocketSide,
}

/// A multicast group and the interface for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MulticastSpec {
    /// The group to receive from: the control group for senders, the data group for receivers.
    pub group: IpAddr,
    /// Address of the network interface; the wildcard address leaves the choice to the system.
    pub interface: IpAddr,
    /// Index of the network interface, which IPv6 uses; 0 leaves the choice to the system.
    pub interface_index: u32,
    /// Time to live of datagrams, in hops; 0 for the system's default.
    pub ttl: u8,
}

/// Opens sockets and creates pollers.
pub trait Network: Send {
    /// Opens a socket.
    ///
    /// # Errors
    /// The error of the system, for example if another unicast socket uses the address, or if the address is not local.
    fn open(&mut self, spec: &SocketSpec) -> io::Result<Box<dyn Socket>>;

    /// Returns an empty poller.
    fn poller(&mut self) -> Box<dyn Poller>;
}

/// A socket, owned by one agent. No call blocks.
pub trait Socket: Send {
    /// Returns the local address, with the port that the system chose.
    fn local_address(&self) -> SocketAddr;

    /// Returns the lengths of the socket's buffers that the system granted.
    fn buffer_lengths(&self) -> SocketBufferLengths;

    /// Returns the maximum number of datagrams for the next GSO batch to `to`.
    ///
    /// The maximum is 1 if the datagrams of a batch would be sent one by one.
    fn max_gso_batch_datagrams(&self, to: Option<SocketAddr>) -> usize;

    /// Sends batches in order. Returns the number of batches that were accepted completely.
    ///
    /// If a batch was accepted in part, some of its datagrams may have been sent. Fewer batches, or none, are accepted
    /// if the socket cannot accept more now. The reasons are a full buffer, a signal, or a message in which the peer's
    /// machine reports a closed port.
    ///
    /// # Errors
    /// Any other error of the system, if no batch was accepted.
    fn send_gso_batches(
        &mut self,
        to: Option<SocketAddr>,
        batches: &[GsoBatch<'_>],
    ) -> io::Result<usize>;

    /// Sends one datagram. Returns whether the socket accepted the datagram.
    ///
    /// # Errors
    /// The same errors as [`send_gso_batches`](Self::send_gso_batches).
    fn send(&mut self, to: Option<SocketAddr>, datagram: &[u8]) -> io::Result<bool>;

    /// Receives one batch of up to `limit` messages (1 to [`MAX_RECEIVE_VECTOR`]). Returns the number of bytes.
    ///
    /// Each message is a datagram or a train of datagrams. Trains are split before they reach the handler.
    ///
    /// # Errors
    /// The operating system returns an error. An empty socket is not an error.
    fn receive(
        &mut self,
        limit: usize,
        on_datagram: &mut dyn FnMut(Datagram<'_>),
    ) -> io::Result<usize>;

    /// Makes `to` the only peer. It replaces the previous peer.
    ///
    /// # Errors
    /// The operating system returns an error; the previous peer remains.
    fn connect(&mut self, to: SocketAddr) -> io::Result<()>;

    /// Returns the descriptor for polling; `None` if the operating system does not know the socket.
    #[cfg(unix)]
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

/// A batch of datagrams for one address, sent by one call. The kernel may cut it (generic segmentation offload).
///
/// The batch is a contiguous range of memory, usually of a term, that is cut every `datagram_length` bytes. Only the
/// last datagram may be shorter. The range is fixed when the batch is created, so all bytes from its first to its last
/// datagram are sent.
#[derive(Clone, Copy, Debug)]
pub struct GsoBatch<'a> {
    memory: &'a SharedBuffer,
    offset: usize,
    length: usize,
    datagram_length: usize,
}

impl<'a> GsoBatch<'a> {
    /// Creates a batch of datagrams of `datagram_length` bytes in the range `bytes` of `memory`.
    ///
    /// The bytes must not change until they are sent.
    ///
    /// # Panics
    /// The range is empty, longer than [`MAX_GSO_BATCH_LENGTH`] or not inside the memory, or `datagram_length` is 0.
    pub fn new(memory: &'a SharedBuffer, bytes: Range<usize>, datagram_length: usize) -> Self {
        assert!(
            bytes.start < bytes.end && bytes.end <= memory.len(),
            "a GSO batch must have bytes and lie inside its memory"
        );
        assert!(bytes.len() <= MAX_GSO_BATCH_LENGTH && datagram_length > 0);
        GsoBatch {
            memory,
            offset: bytes.start,
            length: bytes.len(),
            datagram_length,
        }
    }

    /// Creates a batch of one datagram.
    ///
    /// # Panics
    /// The same as [`new`](Self::new).
    pub fn single(memory: &'a SharedBuffer, bytes: Range<usize>) -> Self {
        let length = bytes.len();
        Self::new(memory, bytes, length)
    }

    /// Returns the memory that contains the range.
    pub fn memory(&self) -> &'a SharedBuffer {
        self.memory
    }

    /// Returns the offset of the first datagram in the memory.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// Returns the total length of the datagrams in bytes, 1 to [`MAX_GSO_BATCH_LENGTH`].
    pub fn length(&self) -> usize {
        self.length
    }

    /// Returns the length of each datagram except the last.
    pub fn datagram_length(&self) -> usize {
        self.datagram_length
    }

    /// Returns the number of datagrams.
    pub fn datagram_count(&self) -> usize {
        self.length().div_ceil(self.datagram_length)
    }

    /// Returns whether the batch is one datagram.
    pub fn is_single(&self) -> bool {
        self.length() <= self.datagram_length
    }

    /// Returns the batch of the first whole datagrams within `length` bytes; `None` if the first datagram is longer.
    pub fn first_datagrams(&self, length: usize) -> Option<Self> {
        let length = match length >= self.length {
            true => self.length,
            false => length - length % self.datagram_length,
        };
        debug_assert!(
            length <= self.length,
            "a part of {length} bytes is longer than its batch of {} bytes",
            self.length
        );
        (length > 0).then_some(GsoBatch { length, ..*self })
    }

    /// Returns each datagram as a batch of its own.
    pub fn datagrams(&self) -> impl Iterator<Item = GsoBatch<'a>> + use<'a> {
        let (memory, length) = (self.memory, self.datagram_length);
        let end = self.offset + self.length;
        let begins = (self.offset..end).step_by(length);
        begins.map(move |begin| GsoBatch::single(memory, begin..end.min(begin + length)))
    }
}

/// A received datagram.
#[derive(Debug)]
pub struct Datagram<'a> {
    /// Content of the datagram. The receiver may change it, to write timestamps.
    pub bytes: &'a mut [u8],
    /// Source address.
    pub source: SocketAddr,
    /// Time at which the kernel received the datagram, in ns since 1970, for sockets with
    /// [`SocketSpec::receive_timestamps`].
    pub media_timestamp_ns: Option<i64>,
}

/// Identifies a socket in a poller. The owner of the socket chooses it.
pub type SocketKey = u64;

/// Finds the sockets of an agent that may be readable.
pub trait Poller: Send {
    /// Adds `socket` with the key `key`, which must be unique in the poller.
    ///
    /// # Errors
    /// The system cannot poll the socket. The socket is not added.
    fn add(&mut self, key: SocketKey, socket: &dyn Socket) -> io::Result<()>;

    /// Removes `socket`. Must be called before the socket is dropped.
    fn remove(&mut self, key: SocketKey, socket: &dyn Socket);

    /// Calls `on_ready` with the key of each readable socket. Other sockets may be reported too.
    ///
    /// # Errors
    /// The operating system returns an error.
    fn ready(&mut self, on_ready: &mut dyn FnMut(SocketKey)) -> io::Result<()>;
}
