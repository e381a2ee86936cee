//! Measures the throughput of the driver's sockets over loopback, with and without offload: datagrams per second and
//! per system call.
//!
//! The sender stays within a window of the receiver, as with flow control. Data that waits for the receiver is then
//! still in the CPU cache.
//!
//! `cargo run --release --example udp_rate -p aeron-driver [seconds per line]`

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use aeron_driver::media::transport::{GsoBatch, Network, Socket, SocketSide, SocketSpec};
use aeron_driver::media::udp::{Offload, UdpNetwork};
use aeron_memory::SharedBuffer;
use rustix::time::{ClockId, clock_gettime};

const MTU: usize = 1408;
const SOCKET_BUFFER_LENGTH: usize = 4 << 20;
const RECEIVE_VECTOR: usize = 4;
const TERM_LENGTH: usize = 1 << 20;
const WINDOW_LENGTH: u64 = 512 << 10;

/// The datagrams, bytes and system calls of one side.
#[derive(Clone, Copy, Default)]
struct Count {
    datagrams: u64,
    bytes: u64,
    /// Number of system calls that transferred data.
    calls: u64,
    /// CPU time in ns, without waiting. Other load on the machine has little effect on this time.
    cpu_ns: u64,
}

fn main() {
    let seconds = std::env::args()
        .nth(1)
        .map_or(0.5, |text| text.parse().expect("seconds"));
    let offload = Offload::probe();
    println!("this kernel: {offload:?}\n");
    println!(
        "| sent | GSO batch | received/s | GB/s | per send call | per receive call | sending | receiving |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for (name, sending, receiving) in [
        ("plain", Offload::NONE, Offload::NONE),
        ("GSO", offload, Offload::NONE),
        ("GSO + GRO", offload, offload),
    ] {
        for (datagram_count, datagram_length) in
            [(1, 1408), (4, 1408), (16, 1408), (46, 1408), (62, 1056)]
        {
            let networks = [sending, receiving].map(|offload| UdpNetwork::new(offload, MTU));
            let shape = BatchShape {
                datagram_count,
                datagram_length,
            };
            let (sent, received) = measure(networks, shape, Duration::from_secs_f64(seconds));
            println!(
                "| {name} | {datagram_count} x {datagram_length} B | {:.0} k | {:.2} | {:.1} | {:.1} | {} ns | {} ns |",
                received.datagrams as f64 / seconds / 1e3,
                received.bytes as f64 / seconds / 1e9,
                sent.datagrams as f64 / sent.calls as f64,
                received.datagrams as f64 / received.calls as f64,
                sent.cpu_ns / sent.datagrams,
                received.cpu_ns / received.datagrams,
            );
        }
    }
}

/// The shape of the batch that is sent repeatedly.
#[derive(Clone, Copy)]
struct BatchShape {
    datagram_count: usize,
    datagram_length: usize,
}

/// Sends GSO batches of one shape for a while. Returns the counts of both sides.
fn measure(
    [mut sending, mut receiving]: [UdpNetwork; 2],
    shape: BatchShape,
    duration: Duration,
) -> (Count, Count) {
    let spec = |connect: Option<SocketAddr>, side| SocketSpec {
        bind: SocketAddr::from(([127, 0, 0, 1], 0)),
        connect,
        multicast: None,
        send_buffer_length: SOCKET_BUFFER_LENGTH,
        receive_buffer_length: SOCKET_BUFFER_LENGTH,
        receive_timestamps: false,
        side,
    };
    let to = receiving
        .open(&spec(None, SocketSide::Receiver))
        .expect("a socket");
    let peer = Some(to.local_address());
    let from = sending
        .open(&spec(peer, SocketSide::Sender))
        .expect("a socket");
    let (is_over, consumed) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        let receiver = scope.spawn(|| receive(to, &is_over, &consumed));
        let sender = scope.spawn(|| send(from, shape, duration, &consumed));
        let sent = sender.join().expect("the sender ends");
        is_over.store(true, Ordering::Release);
        (sent, receiver.join().expect("the receiver ends"))
    })
}

fn send(
    mut socket: Box<dyn Socket>,
    shape: BatchShape,
    duration: Duration,
    consumed: &AtomicU64,
) -> Count {
    let memory = SharedBuffer::heap(TERM_LENGTH);
    let BatchShape {
        datagram_count: count,
        datagram_length: length,
    } = shape;
    let batch_length = count * length;
    let (mut sent, mut offset) = (Count::default(), 0);
    let mut started_ns = cpu_ns();
    let deadline = Instant::now() + duration;
    while Instant::now() < deadline {
        if sent.bytes - consumed.load(Ordering::Relaxed) > WINDOW_LENGTH {
            let waiting_ns = cpu_ns();
            thread::yield_now();
            started_ns += cpu_ns() - waiting_ns;
            continue;
        }
        let batch = GsoBatch::new(&memory, offset..offset + batch_length, length);
        if socket.send_gso_batches(None, &[batch]).expect("sends") == 1 {
            sent.datagrams += count as u64;
            sent.bytes += batch_length as u64;
            // Without segmentation, a call accepts up to 16 datagrams.
            sent.calls += match socket.max_gso_batch_datagrams(None) {
                1 => count.div_ceil(16) as u64,
                _ => 1,
            };
            offset = ((offset + batch_length) % (TERM_LENGTH - batch_length)) & !31;
        }
    }
    sent.cpu_ns = cpu_ns() - started_ns;
    sent
}

fn receive(mut socket: Box<dyn Socket>, is_over: &AtomicBool, consumed: &AtomicU64) -> Count {
    let mut received = Count::default();
    let mut started_ns = cpu_ns();
    loop {
        let before_ns = cpu_ns();
        let was_over = is_over.load(Ordering::Acquire);
        let datagrams = &mut received.datagrams;
        let bytes = socket
            .receive(RECEIVE_VECTOR, &mut |_| *datagrams += 1)
            .expect("receives");
        received.bytes += bytes as u64;
        consumed.store(received.bytes, Ordering::Relaxed);
        received.calls += u64::from(bytes > 0);
        match bytes {
            0 if was_over => return received,
            // The attempt to read an empty socket does not count as a cost of receiving.
            0 => {
                thread::yield_now();
                started_ns += cpu_ns() - before_ns;
            }
            _ => {}
        }
        received.cpu_ns = cpu_ns() - started_ns;
    }
}

/// Returns the CPU time of this thread.
fn cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
