//! Sockets of a host, for its driver.

use std::collections::HashSet;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use aeron_driver::media::transport::{
    Datagram, GsoBatch, MAX_GSO_BATCH_DATAGRAMS, Network, Poller, Socket, SocketKey, SocketSpec,
};
use aeron_driver::socket_buffers::SocketBufferLengths;
use aeron_memory::Words;

use super::{HostId, SharedWire};

/// Default buffer length of a socket, in bytes.
const SYSTEM_BUFFER_LENGTH: usize = 212_992;
/// Length of the IP and UDP headers, in bytes.
const PACKET_OVERHEAD: usize = 28;

/// The network of one host.
#[derive(Clone)]
pub struct HostNetwork {
    wire: SharedWire,
    host: HostId,
    has_segmentation: bool,
    link_mtu: usize,
}

impl HostNetwork {
    /// Creates the network of `host`. `has_segmentation` says whether its sockets have segmentation offload. A GSO
    /// batch is refused if its datagrams do not fit into packets of `link_mtu` bytes. Single datagrams of any length
    /// are sent, because IP fragments them.
    pub fn new(wire: SharedWire, host: HostId, has_segmentation: bool, link_mtu: usize) -> Self {
        Self {
            wire,
            host,
            has_segmentation,
            link_mtu,
        }
    }
}

impl Network for HostNetwork {
    fn open(&mut self, spec: &SocketSpec) -> io::Result<Box<dyn Socket>> {
        let granted = |length: usize| match length {
            0 => SYSTEM_BUFFER_LENGTH,
            length => length,
        };
        let receive = granted(spec.receive_buffer_length);
        let (id, local_address) = self.wire.lock().open(self.host, spec, receive)?;
        Ok(Box::new(VirtualSocket {
            network: self.clone(),
            id,
            local_address,
            buffer_lengths: SocketBufferLengths {
                send: granted(spec.send_buffer_length) as i32,
                receive: receive as i32,
            },
            without_segmentation: HashSet::new(),
        }))
    }

    fn poller(&mut self) -> Box<dyn Poller> {
        Box::new(VirtualPoller {
            keys: Vec::new(),
            waiting: self.wire.lock().waiting(self.host),
        })
    }
}

struct VirtualSocket {
    network: HostNetwork,
    id: u64,
    local_address: SocketAddr,
    buffer_lengths: SocketBufferLengths,
    /// Destinations of refused GSO batches.
    without_segmentation: HashSet<SocketAddr>,
}

impl VirtualSocket {
    fn destination(&self, to: Option<SocketAddr>) -> io::Result<SocketAddr> {
        to.or_else(|| self.network.wire.lock().peer(self.id))
            .ok_or_else(|| io::ErrorKind::NotConnected.into())
    }

    /// Handles a refusal in the same way as the production socket: sends this GSO batch and all later ones to this
    /// address as single datagrams.
    fn notice_refusal(&mut self, to: SocketAddr, batch: &GsoBatch<'_>) {
        let is_train = batch.datagram_count() > 1;
        let is_too_long = batch.datagram_length() + PACKET_OVERHEAD > self.network.link_mtu;
        if is_train && is_too_long && self.without_segmentation.insert(to) {
            self.network.wire.lock().on_gso_batch_refused();
        }
    }
}

impl Socket for VirtualSocket {
    fn local_address(&self) -> SocketAddr {
        self.local_address
    }

    fn buffer_lengths(&self) -> SocketBufferLengths {
        self.buffer_lengths
    }

    fn max_gso_batch_datagrams(&self, to: Option<SocketAddr>) -> usize {
        let is_refused = || {
            self.destination(to)
                .is_ok_and(|to| self.without_segmentation.contains(&to))
        };
        match self.network.has_segmentation && !is_refused() {
            true => MAX_GSO_BATCH_DATAGRAMS,
            false => 1,
        }
    }

    fn send_gso_batches(
        &mut self,
        to: Option<SocketAddr>,
        batches: &[GsoBatch<'_>],
    ) -> io::Result<usize> {
        let to = self.destination(to)?;
        for batch in batches {
            self.notice_refusal(to, batch);
        }
        let mut wire = self.network.wire.lock();
        let taken = wire.room(batches.len());
        let mut bytes = Vec::new();
        for datagram in batches[..taken].iter().flat_map(GsoBatch::datagrams) {
            bytes.resize(datagram.length(), 0);
            datagram.memory().copy_out(datagram.offset(), &mut bytes);
            wire.send(self.network.host, self.local_address, to, &bytes);
        }
        Ok(taken)
    }

    fn send(&mut self, to: Option<SocketAddr>, datagram: &[u8]) -> io::Result<bool> {
        let to = self.destination(to)?;
        let mut wire = self.network.wire.lock();
        let has_room = wire.room(1) == 1;
        if has_room {
            wire.send(self.network.host, self.local_address, to, datagram);
        }
        Ok(has_room)
    }

    fn receive(
        &mut self,
        limit: usize,
        on_datagram: &mut dyn FnMut(Datagram<'_>),
    ) -> io::Result<usize> {
        let mut received = 0;
        for _ in 0..limit {
            // The wire is not locked while the handler runs, because the handler may send.
            let next = self.network.wire.lock().receive(self.id);
            let Some((source, mut bytes)) = next else {
                break;
            };
            received += bytes.len();
            on_datagram(Datagram {
                bytes: &mut bytes,
                source,
                media_timestamp_ns: None,
            });
        }
        Ok(received)
    }

    fn connect(&mut self, to: SocketAddr) -> io::Result<()> {
        self.network.wire.lock().connect(self.id, to);
        Ok(())
    }
}

impl Drop for VirtualSocket {
    fn drop(&mut self) {
        self.network.wire.lock().close(self.id);
    }
}

/// Reports all its sockets as ready if any socket of the host has data.
struct VirtualPoller {
    keys: Vec<SocketKey>,
    waiting: Arc<AtomicUsize>,
}

impl Poller for VirtualPoller {
    fn add(&mut self, key: SocketKey, _socket: &dyn Socket) -> io::Result<()> {
        self.keys.push(key);
        Ok(())
    }

    fn remove(&mut self, key: SocketKey, _socket: &dyn Socket) {
        self.keys.retain(|known| *known != key);
    }

    fn ready(&mut self, on_ready: &mut dyn FnMut(SocketKey)) -> io::Result<()> {
        if self.waiting.load(Ordering::Relaxed) > 0 {
            self.keys.iter().copied().for_each(on_ready);
        }
        Ok(())
    }
}
