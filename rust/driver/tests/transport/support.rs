//! Socket specifications, and functions that wait for datagrams.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use aeron_driver::media::transport::{GsoBatch, Network, Socket, SocketSide, SocketSpec};
use aeron_driver::media::udp::{Offload, UdpNetwork};
use aeron_memory::SharedBuffer;

pub const MTU: usize = 1408;
pub const FULL: Offload = Offload {
    segmentation: true,
    coalescing: true,
};

/// Timeout for datagrams. Datagrams over loopback arrive at once, but a busy machine may delay them.
const PATIENCE: Duration = Duration::from_secs(5);

/// Time without a datagram after which a socket counts as silent.
const SILENCE: Duration = Duration::from_millis(30);

pub fn address(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

/// Returns the specification of a receiver's socket, bound to `bind`.
pub fn receiver(bind: &str) -> SocketSpec {
    SocketSpec {
        bind: address(bind),
        connect: None,
        multicast: None,
        send_buffer_length: 0,
        receive_buffer_length: 0,
        receive_timestamps: false,
        side: SocketSide::Receiver,
    }
}

/// Returns the specification of a sender's socket, bound to `bind` and connected to `to`.
pub fn sender(bind: &str, to: SocketAddr) -> SocketSpec {
    SocketSpec {
        connect: Some(to),
        side: SocketSide::Sender,
        ..receiver(bind)
    }
}

pub fn open(spec: &SocketSpec) -> Box<dyn Socket> {
    open_with(FULL, spec)
}

pub fn open_with(offload: Offload, spec: &SocketSpec) -> Box<dyn Socket> {
    let offload = Offload::probe().limited_to(offload.segmentation, offload.coalescing);
    UdpNetwork::new(offload, MTU).open(spec).unwrap()
}

/// A datagram and its source address.
pub type Arrival = (Vec<u8>, SocketAddr);

/// Receives until there are `count` datagrams.
pub fn receive(socket: &mut dyn Socket, count: usize) -> Vec<Arrival> {
    let mut arrivals = Vec::new();
    let deadline = Instant::now() + PATIENCE;
    while arrivals.len() < count {
        let more = receive_once(socket);
        assert!(
            !more.is_empty() || Instant::now() < deadline,
            "{} of {count} datagrams arrived",
            arrivals.len()
        );
        arrivals.extend(more);
    }
    arrivals
}

/// Returns the datagrams of one receive call.
pub fn receive_once(socket: &mut dyn Socket) -> Vec<Arrival> {
    let mut arrivals = Vec::new();
    let bytes = socket
        .receive(4, &mut |datagram| {
            arrivals.push((datagram.bytes.to_vec(), datagram.source));
        })
        .unwrap();
    let arrived: usize = arrivals.iter().map(|(bytes, _)| bytes.len()).sum();
    assert!(
        bytes >= arrived,
        "expected the bytes of all datagrams, also of those that an interceptor loses"
    );
    arrivals
}

/// Receives `count` datagrams and returns them without their source addresses.
pub fn payloads(socket: &mut dyn Socket, count: usize) -> Vec<Vec<u8>> {
    receive(socket, count)
        .into_iter()
        .map(|(bytes, _)| bytes)
        .collect()
}

/// Asserts that no datagram arrives within `SILENCE`.
pub fn assert_silent(socket: &mut dyn Socket) {
    std::thread::sleep(SILENCE);
    assert_eq!(receive_once(socket), []);
}

/// Returns a GSO batch at the start of `memory`: `count` datagrams of `datagram_length` bytes and one of `rest` bytes.
pub fn batch(
    memory: &SharedBuffer,
    count: usize,
    datagram_length: usize,
    rest: usize,
) -> GsoBatch<'_> {
    GsoBatch::new(memory, 0..count * datagram_length + rest, datagram_length)
}

/// Returns memory with random bytes, so that datagrams from different offsets differ.
pub fn distinct_memory() -> SharedBuffer {
    let mut random = fastrand::Rng::with_seed(7);
    let bytes: Vec<u8> = (0..1 << 17).map(|_| random.u8(..)).collect();
    SharedBuffer::copy_of(&bytes)
}
