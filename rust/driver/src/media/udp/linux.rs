//! Linux system calls that send or receive many datagrams at once, and socket options that no crate provides.

use std::ffi::c_int;
use std::io;
use std::mem::{self, MaybeUninit};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::ptr;

use libc::{cmsghdr, iovec, mmsghdr, msghdr};
use rustix::net::SocketAddrAny;
use rustix::net::addr::SocketAddrStorage;

use crate::media::transport::{GsoBatch, MAX_RECEIVE_VECTOR};

/// Maximum number of GSO batches in one system call.
const MAX_SEND_VECTOR: usize = 16;

/// Number of the socket option. The headers of some C libraries do not define it.
const IPV6_MULTICAST_ALL: c_int = 29;

/// Control data: room for a segment length and a timestamp with their headers; aligned like `cmsghdr`.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
struct ControlBuffer([u8; 64]);

/// Properties of a received message: a datagram, or a train, which is several datagrams that the kernel delivers in one
/// buffer.
pub struct Received {
    /// Length of each datagram of a train except the last; `None` for a single datagram.
    pub segment_length: Option<usize>,
    /// Source address.
    pub source: SocketAddr,
    /// Receive time in ns since 1970, if the socket has timestamps enabled.
    pub timestamp_ns: Option<i64>,
}

/// Sends GSO batches in order with one system call. Returns the number of accepted batches, at least one.
///
/// The kernel cuts a batch of several datagrams.
pub fn send(
    socket: &UdpSocket,
    to: Option<SocketAddr>,
    batches: &[GsoBatch<'_>],
) -> io::Result<usize> {
    let batches = &batches[..batches.len().min(MAX_SEND_VECTOR)];
    let name = to.map(SocketAddrAny::from);
    if let [batch] = batches
        && batch.is_single()
    {
        return send_one(socket, name.as_ref(), batch);
    }
    let mut pieces = [const { MaybeUninit::<iovec>::uninit() }; MAX_SEND_VECTOR];
    let mut controls = [const { MaybeUninit::<ControlBuffer>::uninit() }; MAX_SEND_VECTOR];
    let mut messages = [const { MaybeUninit::<mmsghdr>::uninit() }; MAX_SEND_VECTOR];
    for (i, batch) in batches.iter().enumerate() {
        let mut header = empty_message();
        if let Some(name) = &name {
            header.msg_name = name.as_ptr().cast_mut().cast();
            header.msg_namelen = name.addr_len();
        }
        header.msg_iov = pieces[i].write(piece_of(batch));
        header.msg_iovlen = 1;
        if !batch.is_single() {
            let control = controls[i].write(ControlBuffer([0; 64]));
            put_segment_length(&mut header, control, batch.datagram_length());
        }
        messages[i].write(mmsghdr {
            msg_hdr: header,
            msg_len: 0,
        });
    }
    // SAFETY: the first `batches.len()` messages are initialized. They point at pieces, controls and a name that
    // outlive the call. Each piece points at bytes of a buffer that `batch` borrows, which the kernel only reads.
    let sent = unsafe {
        libc::sendmmsg(
            socket.as_raw_fd(),
            messages.as_mut_ptr().cast(),
            batches.len() as u32,
            0,
        )
    };
    usize::try_from(sent).map_err(|_| io::Error::last_os_error())
}

/// Sends a single datagram by a simpler call, without a vector of messages.
fn send_one(
    socket: &UdpSocket,
    to: Option<&SocketAddrAny>,
    batch: &GsoBatch<'_>,
) -> io::Result<usize> {
    let piece = piece_of(batch);
    let (name, name_length) = match to {
        Some(to) => (to.as_ptr().cast(), to.addr_len()),
        None => (ptr::null(), 0),
    };
    // SAFETY: the piece lies inside a buffer that `batch` borrows, which the kernel only reads; the name outlives the
    // call and has the length stated.
    let sent = unsafe {
        libc::sendto(
            socket.as_raw_fd(),
            piece.iov_base,
            piece.iov_len,
            0,
            name,
            name_length,
        )
    };
    match sent {
        0.. => Ok(1),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Receives up to `limit` messages with one system call, each into `capacity` bytes of `memory`.
///
/// Calls `on_message` with each message's part of the memory. Returns the number of messages, at least one.
pub fn receive(
    socket: &UdpSocket,
    limit: usize,
    memory: &mut [u8],
    capacity: usize,
    mut on_message: impl FnMut(&mut [u8], Received),
) -> io::Result<usize> {
    let limit = limit.min(MAX_RECEIVE_VECTOR);
    let mut names = [const { MaybeUninit::<SocketAddrStorage>::uninit() }; MAX_RECEIVE_VECTOR];
    let mut pieces = [const { MaybeUninit::<iovec>::uninit() }; MAX_RECEIVE_VECTOR];
    let mut controls = [const { MaybeUninit::<ControlBuffer>::uninit() }; MAX_RECEIVE_VECTOR];
    let mut messages = [const { MaybeUninit::<mmsghdr>::uninit() }; MAX_RECEIVE_VECTOR];
    let mut count = 0;
    for (i, piece) in memory.chunks_exact_mut(capacity).take(limit).enumerate() {
        let mut header = empty_message();
        header.msg_name = names[i].as_mut_ptr().cast();
        header.msg_namelen = size_of::<SocketAddrStorage>() as u32;
        header.msg_iov = pieces[i].write(iovec {
            iov_base: piece.as_mut_ptr().cast(),
            iov_len: capacity,
        });
        header.msg_iovlen = 1;
        header.msg_control = controls[i].as_mut_ptr().cast();
        header.msg_controllen = size_of::<ControlBuffer>() as _;
        messages[i].write(mmsghdr {
            msg_hdr: header,
            msg_len: 0,
        });
        count = i + 1;
    }
    // SAFETY: the first `count` messages are initialized. They point at pieces, names and controls of the stated
    // lengths that outlive the call. Each piece points at `capacity` bytes of `memory`, which is borrowed exclusively.
    let received = unsafe {
        libc::recvmmsg(
            socket.as_raw_fd(),
            messages.as_mut_ptr().cast(),
            count as u32,
            libc::MSG_DONTWAIT as _,
            ptr::null_mut(),
        )
    };
    let received = usize::try_from(received).map_err(|_| io::Error::last_os_error())?;
    for (i, piece) in memory.chunks_exact_mut(capacity).take(received).enumerate() {
        // SAFETY: the message was initialized above, as were all messages that the kernel could fill.
        let message = unsafe { messages[i].assume_init_ref() };
        // SAFETY: the kernel has filled this message.
        if let Some(about) = unsafe { describe(message, names[i]) } {
            let length = capacity.min(message.msg_len as usize);
            on_message(&mut piece[..length], about);
        }
    }
    Ok(received)
}

/// Sets an integer option of `socket`.
fn set_option(socket: &UdpSocket, level: c_int, name: c_int, value: c_int) -> io::Result<()> {
    // SAFETY: the kernel reads one `c_int` at the address of `value`.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            name,
            (&raw const value).cast(),
            size_of::<c_int>() as u32,
        )
    };
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Makes the kernel deliver trains of datagrams as a whole.
pub fn enable_coalescing(socket: &UdpSocket) -> io::Result<()> {
    set_option(socket, libc::SOL_UDP, libc::UDP_GRO, 1)
}

/// Makes the kernel add the receive time to each datagram.
pub fn enable_timestamps(socket: &UdpSocket) -> io::Result<()> {
    set_option(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1)
}

/// Limits multicast to the groups that this socket has joined.
///
/// Without the option, the socket also receives groups that other sockets have joined. Old kernels do not support the
/// option.
pub fn receive_joined_groups_only(socket: &UdpSocket, address: &SocketAddr) {
    let _ = match address {
        SocketAddr::V4(_) => set_option(socket, libc::IPPROTO_IP, libc::IP_MULTICAST_ALL, 0),
        SocketAddr::V6(_) => set_option(socket, libc::IPPROTO_IPV6, IPV6_MULTICAST_ALL, 0),
    };
}

fn empty_message() -> msghdr {
    // SAFETY: null pointers and lengths of zero are a valid message.
    unsafe { mem::zeroed() }
}

/// Returns the address and length of a batch's bytes.
fn piece_of(batch: &GsoBatch<'_>) -> iovec {
    // SAFETY: `GsoBatch::new` checked that the batch lies inside its memory, and neither of the two can change.
    let start = unsafe { batch.memory().as_ptr().add(batch.offset()) };
    iovec {
        iov_base: start.cast(),
        iov_len: batch.length(),
    }
}

/// Adds control data that makes the kernel cut the message into datagrams of `length` bytes.
fn put_segment_length(header: &mut msghdr, control: &mut ControlBuffer, length: usize) {
    let segment_length = length as u16;
    header.msg_control = (&raw mut *control).cast();
    // SAFETY: both functions only compute lengths.
    let (space, control_length) = unsafe {
        let size = size_of::<u16>() as u32;
        (libc::CMSG_SPACE(size), libc::CMSG_LEN(size))
    };
    header.msg_controllen = space as _;
    // SAFETY: `control` is zeroed, aligned as the header is, and longer than `space`.
    unsafe {
        let first = libc::CMSG_FIRSTHDR(header);
        (*first).cmsg_level = libc::SOL_UDP;
        (*first).cmsg_type = libc::UDP_SEGMENT;
        (*first).cmsg_len = control_length as _;
        ptr::write_unaligned(libc::CMSG_DATA(first).cast(), segment_length);
    }
}

/// Returns the properties of a message; `None` if its source has no address.
///
/// # Safety
/// The kernel must have written `message`, its control data, and as many bytes of `name` as the message says.
unsafe fn describe(message: &mmsghdr, name: MaybeUninit<SocketAddrStorage>) -> Option<Received> {
    let header = &message.msg_hdr;
    if header.msg_namelen == 0 {
        return None;
    }
    // SAFETY: the kernel wrote an address of this length.
    let source = unsafe { SocketAddrAny::new(name, header.msg_namelen) };
    let mut received = Received {
        segment_length: None,
        source: SocketAddr::try_from(source).ok()?,
        timestamp_ns: None,
    };
    // SAFETY: the kernel wrote `msg_controllen` bytes of control data.
    let mut control = unsafe { libc::CMSG_FIRSTHDR(header) };
    while !control.is_null() {
        // SAFETY: not null, so it is inside the control data, and its type determines its content.
        unsafe {
            read_control(control, &mut received);
            control = libc::CMSG_NXTHDR(header, control);
        }
    }
    Some(received)
}

/// Reads one item of control data.
///
/// # Safety
/// The kernel must have written `control`.
unsafe fn read_control(control: *const cmsghdr, received: &mut Received) {
    // SAFETY: the kernel wrote the header and, after it, the data of this type.
    unsafe {
        match ((*control).cmsg_level, (*control).cmsg_type) {
            (libc::SOL_UDP, libc::UDP_GRO) => {
                let length: c_int = ptr::read_unaligned(libc::CMSG_DATA(control).cast());
                received.segment_length = usize::try_from(length).ok().filter(|length| *length > 0);
            }
            (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) => {
                let time: libc::timespec = ptr::read_unaligned(libc::CMSG_DATA(control).cast());
                let seconds_ns = time.tv_sec.wrapping_mul(1_000_000_000);
                received.timestamp_ns = Some(seconds_ns.wrapping_add(time.tv_nsec));
            }
            _ => {}
        }
    }
}
