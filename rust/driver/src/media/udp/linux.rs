//! The system calls of Linux that move many datagrams at once, and the socket options that no crate knows.

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

/// Most GSO batches that one system call takes.
const MAX_SEND_VECTOR: usize = 16;

/// Not in every C library's headers.
const IPV6_MULTICAST_ALL: c_int = 29;

/// Enough for a length of segments and a time, with their headers; aligned as `cmsghdr` is.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
struct Control([u8; 64]);

/// What the kernel says of one received message.
pub struct Received {
    /// Bytes of each datagram of a train but the last; `None` for a single datagram.
    pub segment_length: Option<usize>,
    /// Who sent it.
    pub source: SocketAddr,
    /// When it was received, in ns since 1970, if the socket asked for it.
    pub timestamp_ns: Option<i64>,
}

/// Sends GSO batches in order by one system call. Returns how many were taken, at least one.
///
/// A batch of several datagrams is left to the kernel to cut.
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
    let mut controls = [const { MaybeUninit::<Control>::uninit() }; MAX_SEND_VECTOR];
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
            let control = controls[i].write(Control([0; 64]));
            put_segment_length(&mut header, control, batch.datagram_length());
        }
        messages[i].write(mmsghdr {
            msg_hdr: header,
            msg_len: 0,
        });
    }
    // SAFETY: the first `batches.len()` messages are initialized; they point at pieces, controls and a name that outlive the
    // call, and each piece at bytes of a buffer that `batch` borrows, which the kernel only reads.
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

/// Sends a single datagram, for which the kernel need not read a vector of messages.
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
    // SAFETY: the piece lies inside a buffer that `batch` borrows, which the kernel only reads; the name outlives the call and has
    // the length stated.
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

/// Receives up to `limit` messages by one system call, each into `capacity` bytes of `memory`; calls `on_message` with the piece of
/// memory that belongs to each. Answers the number of messages, at least one.
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
    let mut controls = [const { MaybeUninit::<Control>::uninit() }; MAX_RECEIVE_VECTOR];
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
        header.msg_controllen = size_of::<Control>() as _;
        messages[i].write(mmsghdr {
            msg_hdr: header,
            msg_len: 0,
        });
        count = i + 1;
    }
    // SAFETY: the first `count` messages are initialized; they point at pieces, names and controls that outlive the call, of the
    // lengths they state, and each piece at `capacity` bytes of `memory`, which is borrowed exclusively.
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
        // SAFETY: initialized above, as are all messages that the kernel could fill.
        let message = unsafe { messages[i].assume_init_ref() };
        // SAFETY: the kernel has filled this message.
        if let Some(about) = unsafe { describe(message, names[i]) } {
            let length = capacity.min(message.msg_len as usize);
            on_message(&mut piece[..length], about);
        }
    }
    Ok(received)
}

/// Sets an option of `socket` that is a number.
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

/// Trains of datagrams are received whole from now on.
pub fn enable_coalescing(socket: &UdpSocket) -> io::Result<()> {
    set_option(socket, libc::SOL_UDP, libc::UDP_GRO, 1)
}

/// Datagrams arrive with the time at which the kernel received them from now on.
pub fn enable_timestamps(socket: &UdpSocket) -> io::Result<()> {
    set_option(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1)
}

/// Only datagrams to groups that this socket joined arrive, not those to groups that other sockets joined. Old kernels cannot.
pub fn hear_own_groups_only(socket: &UdpSocket, address: &SocketAddr) {
    let _ = match address {
        SocketAddr::V4(_) => set_option(socket, libc::IPPROTO_IP, libc::IP_MULTICAST_ALL, 0),
        SocketAddr::V6(_) => set_option(socket, libc::IPPROTO_IPV6, IPV6_MULTICAST_ALL, 0),
    };
}

fn empty_message() -> msghdr {
    // SAFETY: null pointers and lengths of zero are a valid message.
    unsafe { mem::zeroed() }
}

/// The bytes of a batch, which lie inside its memory.
fn piece_of(batch: &GsoBatch<'_>) -> iovec {
    // SAFETY: `GsoBatch::new` checked that the batch lies inside its memory, and nothing changes either afterwards.
    let start = unsafe { batch.memory().as_ptr().add(batch.offset()) };
    iovec {
        iov_base: start.cast(),
        iov_len: batch.length(),
    }
}

/// Tells the kernel to cut the message into datagrams of `length` bytes.
fn put_segment_length(header: &mut msghdr, control: &mut Control, length: usize) {
    let segment_length = length as u16;
    header.msg_control = (&raw mut *control).cast();
    // SAFETY: only computes lengths.
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

/// Reads what came with a message; `None` without a source that has an address.
///
/// # Safety
/// The kernel has filled `message`, its control data, and as much of `name` as it says.
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
        // SAFETY: not null, so it lies inside the control data; its type says what it holds.
        unsafe {
            read_control(control, &mut received);
            control = libc::CMSG_NXTHDR(header, control);
        }
    }
    Some(received)
}

/// Takes over what one piece of control data says.
///
/// # Safety
/// `control` was written by the kernel.
unsafe fn read_control(control: *const cmsghdr, received: &mut Received) {
    // SAFETY: the kernel wrote the header and, behind it, what belongs to the type.
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
