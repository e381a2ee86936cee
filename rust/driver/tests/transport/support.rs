//! Sockets, and waiting for what they receive.

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

/// Datagrams over loopback need no time; a busy machine may.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long to wait before saying that nothing came.
const SILENCE: Duration = Duration::from_millis(30);

pub fn address(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

/// A receiver's socket, bound to `bind`.
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

/// A sender's socket, bound to any port of `bind` and connected to `to`.
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

/// A datagram with its sender.
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

/// What one call receives.
pub fn receive_once(socket: &mut dyn Socket) -> Vec<Arrival> {
    let mut arrivals = Vec::new();
    let bytes = socket
        .receive(4, &mut |datagram| {
            arrivals.push((datagram.bytes.to_vec(), datagram.source));
        })
        .unwrap();
    let arrived: usize = arrivals.iter().map(|(bytes, _)| bytes.len()).sum();
    assert!(bytes >= arrived, "lost bytes count too");
    arrivals
}

/// What arrives, without the senders.
pub fn payloads(socket: &mut dyn Socket, count: usize) -> Vec<Vec<u8>> {
    receive(socket, count)
        .into_iter()
        .map(|(bytes, _)| bytes)
        .collect()
}

/// Nothing arrives for a while.
pub fn assert_silent(socket: &mut dyn Socket) {
    std::thread::sleep(SILENCE);
    assert_eq!(receive_once(socket), []);
}

/// A GSO batch of `count` datagrams of `datagram_length` bytes and one of `rest` bytes, at the start of `memory`.
pub fn batch(
    memory: &SharedBuffer,
    count: usize,
    datagram_length: usize,
    rest: usize,
) -> GsoBatch<'_> {
    GsoBatch::new(memory, 0..count * datagram_length + rest, datagram_length)
}

/// Memory in which every datagram of up to 1408 bytes differs from all others.
pub fn distinct_memory() -> SharedBuffer {
    let mut random = fastrand::Rng::with_seed(7);
    let bytes: Vec<u8> = (0..1 << 17).map(|_| random.u8(..)).collect();
    SharedBuffer::copy_of(&bytes)
}
