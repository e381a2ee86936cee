//! [`Offload`]: tests which offloads the kernel supports.

use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

use aeron_memory::SharedBuffer;

use super::receiving::ReceiveBuffer;
use super::{MAX_TRAIN_LENGTH, system};
use crate::media::transport::GsoBatch;

const PROBE_DATAGRAM_LENGTH: usize = 64;
const PROBE_LENGTH: usize = 160;
const PROBE_ARRIVES: [usize; 3] = [64, 64, 32];

/// Maximum wait for the datagrams of the test. Datagrams over loopback arrive at once. If they arrive too late on a
/// very busy machine, the driver runs without offload.
const PROBE_TIMEOUT: Duration = Duration::from_millis(100);

/// The steps of sending and receiving that the kernel does instead of the driver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offload {
    /// The kernel cuts GSO batches into datagrams.
    pub segmentation: bool,
    /// The kernel delivers several datagrams in one buffer.
    pub coalescing: bool,
}

impl Offload {
    /// No offload: datagrams are sent and received one by one.
    pub const NONE: Offload = Offload {
        segmentation: false,
        coalescing: false,
    };

    /// Tries the offloads of this kernel on the loopback device.
    pub fn probe() -> Self {
        probe_on_loopback().unwrap_or(Offload::NONE)
    }

    /// Returns the offloads that are both in this value and set in the arguments.
    pub fn limited_to(self, segmentation: bool, coalescing: bool) -> Self {
        Offload {
            segmentation: self.segmentation && segmentation,
            coalescing: self.coalescing && coalescing,
        }
    }
}

fn probe_on_loopback() -> io::Result<Offload> {
    let from = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    let to = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    to.set_nonblocking(true)?;
    from.connect(to.local_addr()?)?;
    let coalescing = system::enable_coalescing(&to).is_ok();
    let memory = SharedBuffer::heap(PROBE_LENGTH);
    let batch = GsoBatch::new(&memory, 0..PROBE_LENGTH, PROBE_DATAGRAM_LENGTH);
    let segmentation = system::send(&from, None, &[batch]).is_ok() && arrive(&to) == PROBE_ARRIVES;
    Ok(Offload {
        segmentation,
        coalescing,
    })
}

/// Returns the lengths of the datagrams that arrive.
fn arrive(socket: &UdpSocket) -> Vec<usize> {
    let mut buffer = ReceiveBuffer::new(MAX_TRAIN_LENGTH);
    let mut lengths = Vec::new();
    let deadline = Instant::now() + PROBE_TIMEOUT;
    while lengths.len() < PROBE_ARRIVES.len() && Instant::now() < deadline {
        let received = buffer.receive(socket, 1, &mut |datagram| {
            lengths.push(datagram.bytes.len());
        });
        if !received.is_ok_and(|bytes| bytes > 0) {
            thread::sleep(Duration::from_millis(1));
        }
    }
    lengths
}
