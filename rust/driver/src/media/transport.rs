//! What sender and receiver know of a network: sockets that take [`GsoBatch`]es of datagrams and hand out single ones.
//!
//! Sender and receiver are handed these traits. Production ([`udp`](super::udp)), loss injection
//! ([`interceptors`](super::interceptors)), tests and the simulator implement them, so that the same protocol code runs on all.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::ops::Range;
#[cfg(unix)]
use std::os::fd::BorrowedFd;

use aeron_memory::{SharedBuffer, Words};

use crate::socket_buffers::SocketBufferLengths;

/// Most datagrams in one [`GsoBatch`]: what every kernel with segmentation offload takes.
pub const MAX_GSO_BATCH_DATAGRAMS: usize = 64;

/// Most bytes in one [`GsoBatch`]: the longest payload of UDP over IPv4.
pub const MAX_GSO_BATCH_LENGTH: usize = 65_507;

/// Most messages that one system call receives, each a datagram or a train of them.
pub const MAX_RECEIVE_VECTOR: usize = 16;

/// Which half of a channel a socket serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SocketSide {
    /// Sends data, receives control frames.
    Sender,
    /// Receives data, sends control frames.
    Receiver,
}

/// What a socket should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SocketSpec {
    /// Where the socket hears; port 0 lets the system choose. Of a multicast socket only family and port count: it hears at the
    /// wildcard address.
    pub bind: SocketAddr,
    /// The only peer of the socket: `None` in [`Socket::send`] means it.
    pub connect: Option<SocketAddr>,
    /// The group that the socket joins.
    pub multicast: Option<MulticastSpec>,
    /// SO_SNDBUF in bytes; 0 leaves it to the system.
    pub send_buffer_length: usize,
    /// SO_RCVBUF in bytes; 0 leaves it to the system.
    pub receive_buffer_length: usize,
    /// Whether the kernel says when it received a datagram. Datagrams are then received one by one, never in trains.
    pub receive_timestamps: bool,
    /// Which half of a channel the socket serves.
    pub side: SocketSide,
}

/// A multicast group and the way to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MulticastSpec {
    /// The group to hear: of senders the one for control, of receivers the one for data.
    pub group: IpAddr,
    /// Address of the network interface; the unspecified address leaves the choice to the system.
    pub interface: IpAddr,
    /// Index of the network interface, which IPv6 goes by; 0 leaves the choice to the system.
    pub interface_index: u32,
    /// How many networks a datagram may cross; 0 is the system's default.
    pub ttl: u8,
}

/// Makes sockets, and what tells which of them have something to read.
pub trait Network: Send {
    /// Opens a socket.
    ///
    /// # Errors
    /// As the system says: the address is in use (another unicast socket has it), not one of this machine's, not permitted, ...
    fn open(&mut self, spec: &SocketSpec) -> io::Result<Box<dyn Socket>>;

    /// An empty poller.
    fn poller(&mut self) -> Box<dyn Poller>;
}

/// A socket, owned by one agent. No call ever waits.
pub trait Socket: Send {
    /// Where the socket hears, with the port that the system chose.
    fn local_address(&self) -> SocketAddr;

    /// The socket's buffers, as long as the system granted them.
    fn buffer_lengths(&self) -> SocketBufferLengths;

    /// How many datagrams the next GSO batch to `to` should have at most: 1 where batches would be sent datagram by datagram.
    fn max_gso_batch_datagrams(&self, to: Option<SocketAddr>) -> usize;

    /// Sends batches in order. Returns how many of them were taken as a whole; the datagrams of a batch that was taken in part may
    /// have been sent.
    ///
    /// Fewer, or none, are taken when the socket cannot take more now: its buffer is full, a signal came, or the peer's machine
    /// says that nobody hears there.
    ///
    /// # Errors
    /// What else the system says, when no batch was taken.
    fn send_gso_batches(
        &mut self,
        to: Option<SocketAddr>,
        batches: &[GsoBatch<'_>],
    ) -> io::Result<usize>;

    /// Sends one datagram; answers whether it was taken.
    ///
    /// # Errors
    /// As [`send_gso_batches`](Self::send_gso_batches).
    fn send(&mut self, to: Option<SocketAddr>, datagram: &[u8]) -> io::Result<bool>;

    /// Receives one batch of up to `limit` messages (1 to [`MAX_RECEIVE_VECTOR`]), each a datagram or a train of them; answers the
    /// number of bytes. Trains arrive split.
    ///
    /// # Errors
    /// What the system says, except that there is nothing to receive.
    fn receive(
        &mut self,
        limit: usize,
        on_datagram: &mut dyn FnMut(Datagram<'_>),
    ) -> io::Result<usize>;

    /// Makes `to` the only peer, in place of the one before.
    ///
    /// # Errors
    /// What the system says; the peer is the one before then.
    fn connect(&mut self, to: SocketAddr) -> io::Result<()>;

    /// What the system can wait for to read from this socket; `None` where the system knows nothing of it.
    #[cfg(unix)]
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

/// A batch of datagrams for one address that one call sends, and that the kernel may cut (generic segmentation offload): one
/// contiguous range of memory, usually of a term, cut every `datagram_length` bytes. Only the last datagram may be shorter.
///
/// A batch is made of its range and cannot grow afterwards, so the bytes between its first and its last datagram are all sent.
#[derive(Clone, Copy, Debug)]
pub struct GsoBatch<'a> {
    memory: &'a SharedBuffer,
    offset: usize,
    length: usize,
    datagram_length: usize,
}

impl<'a> GsoBatch<'a> {
    /// The datagrams of `datagram_length` bytes in the range `bytes` of `memory`. Nobody may change those bytes until they are
    /// sent.
    ///
    /// # Panics
    /// The range is empty, longer than [`MAX_GSO_BATCH_LENGTH`] or not inside the memory, or `datagram_length` is 0.
    pub fn new(memory: &'a SharedBuffer, bytes: Range<usize>, datagram_length: usize) -> Self {
        assert!(
            bytes.start < bytes.end && bytes.end <= memory.len(),
            "a GSO batch lies inside its memory"
        );
        assert!(bytes.len() <= MAX_GSO_BATCH_LENGTH && datagram_length > 0);
        GsoBatch {
            memory,
            offset: bytes.start,
            length: bytes.len(),
            datagram_length,
        }
    }

    /// A batch of one datagram.
    ///
    /// # Panics
    /// As [`new`](Self::new).
    pub fn single(memory: &'a SharedBuffer, bytes: Range<usize>) -> Self {
        let length = bytes.len();
        Self::new(memory, bytes, length)
    }

    /// The memory of which the batch is a range.
    pub fn memory(&self) -> &'a SharedBuffer {
        self.memory
    }

    /// First byte of the first datagram in the memory.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// Bytes of all datagrams, 1 to [`MAX_GSO_BATCH_LENGTH`].
    pub fn length(&self) -> usize {
        self.length
    }

    /// Bytes of each datagram but the last.
    pub fn datagram_length(&self) -> usize {
        self.datagram_length
    }

    /// Number of datagrams.
    pub fn datagram_count(&self) -> usize {
        self.length().div_ceil(self.datagram_length)
    }

    /// Whether the batch is one datagram.
    pub fn is_single(&self) -> bool {
        self.length() <= self.datagram_length
    }

    /// As many whole datagrams from the first on as `length` bytes hold; `None` if they hold none.
    pub fn first_datagrams(&self, length: usize) -> Option<Self> {
        let length = match length >= self.length {
            true => self.length,
            false => length - length % self.datagram_length,
        };
        (length > 0).then_some(GsoBatch { length, ..*self })
    }

    /// The datagrams, as batches of one.
    pub fn datagrams(&self) -> impl Iterator<Item = GsoBatch<'a>> + use<'a> {
        let (memory, length) = (self.memory, self.datagram_length);
        let end = self.offset + self.length;
        let begins = (self.offset..end).step_by(length);
        begins.map(move |begin| GsoBatch::single(memory, begin..end.min(begin + length)))
    }
}

/// A datagram that arrived.
#[derive(Debug)]
pub struct Datagram<'a> {
    /// Its bytes, which the receiver may change (to write times into them).
    pub bytes: &'a mut [u8],
    /// Who sent it.
    pub source: SocketAddr,
    /// When the kernel received it, in ns since 1970, for sockets with [`SocketSpec::receive_timestamps`].
    pub media_timestamp_ns: Option<i64>,
}

/// The owner's name for a socket in a poller.
pub type SocketKey = u64;

/// Tells which of an agent's sockets may have something to read.
pub trait Poller: Send {
    /// Watches `socket` under the name `key`, which no other watched socket has.
    ///
    /// # Errors
    /// The system cannot watch it; then it is not watched.
    fn add(&mut self, key: SocketKey, socket: &dyn Socket) -> io::Result<()>;

    /// Watches `socket` no longer. Must be called before the socket is dropped.
    fn remove(&mut self, key: SocketKey, socket: &dyn Socket);

    /// Calls `on_ready` with the keys of the sockets to read from: those with datagrams, and maybe others.
    ///
    /// # Errors
    /// What the system says.
    fn ready(&mut self, on_ready: &mut dyn FnMut(SocketKey)) -> io::Result<()>;
}
