//! [`MemoryNetwork`]: a network in memory for unit tests. It delivers datagrams at once and keeps sent datagrams. A
//! test can make sends fail.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard};

use aeron_memory::Words;

use super::transport::{
    Datagram, GsoBatch, MAX_GSO_BATCH_DATAGRAMS, Network, Poller, Socket, SocketKey, SocketSpec,
};
use crate::socket_buffers::SocketBufferLengths;

const FIRST_EPHEMERAL_PORT: u16 = 40_000;
const SYSTEM_BUFFER_LENGTH: usize = 212_992;

/// A network that connects its sockets. A test can observe the network and inject datagrams. Clones share the network.
#[derive(Clone)]
pub(crate) struct MemoryNetwork {
    wire: Arc<Mutex<Wire>>,
}

/// A datagram that a socket has sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sent {
    pub from: SocketAddr,
    pub to: SocketAddr,
    pub bytes: Vec<u8>,
}

struct Wire {
    next_port: u16,
    next_id: u64,
    sockets: HashMap<u64, Bound>,
    sent: Vec<Sent>,
    gso_batch_sizes: Vec<usize>,
    max_gso_batch_datagrams: usize,
    room: Option<usize>,
    error: Option<io::ErrorKind>,
}

struct Bound {
    hears: SocketAddr,
    group: Option<IpAddr>,
    peer: Option<SocketAddr>,
    media_timestamp_ns: Option<i64>,
    inbox: VecDeque<(SocketAddr, Vec<u8>)>,
}

impl MemoryNetwork {
    pub fn new() -> Self {
        let wire = Wire {
            next_port: FIRST_EPHEMERAL_PORT,
            next_id: 0,
            sockets: HashMap::new(),
            sent: Vec::new(),
            gso_batch_sizes: Vec::new(),
            max_gso_batch_datagrams: MAX_GSO_BATCH_DATAGRAMS,
            room: None,
            error: None,
        };
        MemoryNetwork {
            wire: Arc::new(Mutex::new(wire)),
        }
    }

    /// Returns all datagrams that were sent since the last call, in order.
    pub fn take_sent(&self) -> Vec<Sent> {
        std::mem::take(&mut self.wire().sent)
    }

    /// Returns the number of datagrams in each GSO batch that was sent since the last call, in order.
    pub fn take_gso_batch_sizes(&self) -> Vec<usize> {
        std::mem::take(&mut self.wire().gso_batch_sizes)
    }

    /// Delivers a datagram to the sockets at `to`, as if `from` had sent it.
    pub fn deliver(&self, from: SocketAddr, to: SocketAddr, bytes: &[u8]) {
        self.wire().deliver(from, to, bytes);
    }

    /// Sets the maximum number of datagrams in a GSO batch. 1 turns segmentation offload off.
    pub fn set_max_gso_batch_datagrams(&self, max_gso_batch_datagrams: usize) {
        self.wire().max_gso_batch_datagrams = max_gso_batch_datagrams;
    }

    /// Sets how many more datagrams sockets accept; `None` for no limit.
    pub fn set_room(&self, room: Option<usize>) {
        self.wire().room = room;
    }

    /// Sets the error of every send; `None` for no error.
    pub fn fail_sends(&self, error: Option<io::ErrorKind>) {
        self.wire().error = error;
    }

    fn wire(&self) -> MutexGuard<'_, Wire> {
        self.wire.lock().expect("no test panics while sending")
    }
}

impl Network for MemoryNetwork {
    fn open(&mut self, spec: &SocketSpec) -> io::Result<Box<dyn Socket>> {
        let mut wire = self.wire();
        let hears = wire.bind(spec)?;
        let id = wire.next_id;
        wire.next_id += 1;
        wire.sockets.insert(
            id,
            Bound {
                hears,
                group: spec.multicast.map(|multicast| multicast.group),
                peer: spec.connect,
                media_timestamp_ns: spec.receive_timestamps.then_some(0),
                inbox: VecDeque::new(),
            },
        );
        let granted = |length: usize| match length {
            0 => SYSTEM_BUFFER_LENGTH as i32,
            length => length as i32,
        };
        Ok(Box::new(MemorySocket {
            network: self.clone(),
            id,
            local_address: hears,
            buffer_lengths: SocketBufferLengths {
                send: granted(spec.send_buffer_length),
                receive: granted(spec.receive_buffer_length),
            },
        }))
    }

    fn poller(&mut self) -> Box<dyn Poller> {
        Box::new(MemoryPoller(Vec::new()))
    }
}

impl Wire {
    fn bind(&mut self, spec: &SocketSpec) -> io::Result<SocketAddr> {
        let mut hears = spec.bind;
        if spec.multicast.is_some() {
            hears.set_ip(match hears {
                SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
                SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
            });
        }
        if hears.port() == 0 {
            hears.set_port(self.next_port);
            self.next_port += 1;
        }
        let is_taken = |other: &Bound| other.group.is_none() && other.hears == hears;
        if spec.multicast.is_none() && self.sockets.values().any(is_taken) {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        Ok(hears)
    }

    fn deliver(&mut self, from: SocketAddr, to: SocketAddr, bytes: &[u8]) {
        for socket in self.sockets.values_mut() {
            let hears = socket.hears;
            let is_addressed = hears.port() == to.port()
                && match socket.group {
                    Some(group) => to.ip() == group || to.ip() == hears.ip(),
                    None => to.ip() == hears.ip() || hears.ip().is_unspecified(),
                };
            // A connected multicast sender receives with a second socket, which is not connected.
            let is_peer = socket.group.is_some() || socket.peer.is_none_or(|peer| peer == from);
            if is_addressed && is_peer {
                socket.inbox.push_back((from, bytes.to_vec()));
            }
        }
    }

    fn send(&mut self, from: SocketAddr, to: SocketAddr, bytes: Vec<u8>) -> io::Result<bool> {
        if let Some(error) = self.error {
            return Err(error.into());
        }
        match &mut self.room {
            Some(0) => return Ok(false),
            Some(room) => *room -= 1,
            None => {}
        }
        self.deliver(from, to, &bytes);
        self.sent.push(Sent { from, to, bytes });
        Ok(true)
    }
}

struct MemorySocket {
    network: MemoryNetwork,
    id: u64,
    local_address: SocketAddr,
    buffer_lengths: SocketBufferLengths,
}

impl MemorySocket {
    fn with_bound<R>(&self, action: impl FnOnce(&mut Bound) -> R) -> R {
        let mut wire = self.network.wire();
        action(wire.sockets.get_mut(&self.id).expect("open"))
    }

    fn destination(&self, to: Option<SocketAddr>) -> io::Result<SocketAddr> {
        to.or_else(|| self.with_bound(|bound| bound.peer))
            .ok_or_else(|| io::ErrorKind::NotConnected.into())
    }

    /// Returns the source address that other sockets see.
    fn source(&self) -> SocketAddr {
        let mut source = self.local_address;
        if source.ip().is_unspecified() {
            source.set_ip(match source {
                SocketAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
                SocketAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
            });
        }
        source
    }
}

impl Socket for MemorySocket {
    fn local_address(&self) -> SocketAddr {
        self.local_address
    }

    fn buffer_lengths(&self) -> SocketBufferLengths {
        self.buffer_lengths
    }

    fn max_gso_batch_datagrams(&self, _to: Option<SocketAddr>) -> usize {
        self.network.wire().max_gso_batch_datagrams
    }

    fn send_gso_batches(
        &mut self,
        to: Option<SocketAddr>,
        batches: &[GsoBatch<'_>],
    ) -> io::Result<usize> {
        let (from, to) = (self.source(), self.destination(to)?);
        let mut wire = self.network.wire();
        for (taken, batch) in batches.iter().enumerate() {
            for datagram in batch.datagrams() {
                let mut bytes = vec![0; datagram.length()];
                datagram.memory().copy_out(datagram.offset(), &mut bytes);
                match wire.send(from, to, bytes) {
                    Ok(true) => {}
                    Err(error) if taken == 0 => return Err(error),
                    Ok(false) | Err(_) => return Ok(taken),
                }
            }
            wire.gso_batch_sizes.push(batch.datagram_count());
        }
        Ok(batches.len())
    }

    fn send(&mut self, to: Option<SocketAddr>, datagram: &[u8]) -> io::Result<bool> {
        let (from, to) = (self.source(), self.destination(to)?);
        self.network.wire().send(from, to, datagram.to_vec())
    }

    fn receive(
        &mut self,
        limit: usize,
        on_datagram: &mut dyn FnMut(Datagram<'_>),
    ) -> io::Result<usize> {
        let mut received = 0;
        for _ in 0..limit {
            // The handler may send, so the network must not be locked while it runs.
            let Some((source, mut bytes)) = self.with_bound(|bound| bound.inbox.pop_front()) else {
                break;
            };
            received += bytes.len();
            on_datagram(Datagram {
                bytes: &mut bytes,
                source,
                media_timestamp_ns: self.with_bound(|bound| bound.media_timestamp_ns),
            });
        }
        Ok(received)
    }

    fn connect(&mut self, to: SocketAddr) -> io::Result<()> {
        self.with_bound(|bound| bound.peer = Some(to));
        Ok(())
    }
}

impl Drop for MemorySocket {
    fn drop(&mut self) {
        self.network.wire().sockets.remove(&self.id);
    }
}

/// Always reports all sockets as ready.
struct MemoryPoller(Vec<SocketKey>);

impl Poller for MemoryPoller {
    fn add(&mut self, key: SocketKey, _socket: &dyn Socket) -> io::Result<()> {
        self.0.push(key);
        Ok(())
    }

    fn remove(&mut self, key: SocketKey, _socket: &dyn Socket) {
        self.0.retain(|known| *known != key);
    }

    fn ready(&mut self, on_ready: &mut dyn FnMut(SocketKey)) -> io::Result<()> {
        self.0.iter().copied().for_each(on_ready);
        Ok(())
    }
}

mod tests {
    use super::super::transport::{MulticastSpec, SocketSide};
    use super::*;
    use aeron_memory::SharedBuffer;

    fn spec(bind: &str, connect: Option<&str>) -> SocketSpec {
        SocketSpec {
            bind: bind.parse().unwrap(),
            connect: connect.map(|address| address.parse().unwrap()),
            multicast: None,
            send_buffer_length: 0,
            receive_buffer_length: 0,
            receive_timestamps: false,
            side: SocketSide::Receiver,
        }
    }

    fn received(socket: &mut dyn Socket) -> Vec<Vec<u8>> {
        let mut datagrams = Vec::new();
        socket
            .receive(16, &mut |datagram| datagrams.push(datagram.bytes.to_vec()))
            .unwrap();
        datagrams
    }

    #[test]
    fn gso_batches_arrive_as_datagrams_and_only_batches_that_are_sent_completely_are_counted() {
        let mut network = MemoryNetwork::new();
        let mut to = network.open(&spec("127.0.0.1:5000", None)).unwrap();
        let mut from = network
            .open(&spec("0.0.0.0:0", Some("127.0.0.1:5000")))
            .unwrap();
        let memory = SharedBuffer::copy_of(&[7; 1024]);
        let batch = GsoBatch::new(&memory, 32..282, 100);
        assert_eq!(from.send_gso_batches(None, &[batch, batch]).unwrap(), 2);
        let lengths: Vec<usize> = received(to.as_mut()).iter().map(Vec::len).collect();
        assert_eq!(lengths, [100, 100, 50, 100, 100, 50]);
        network.set_room(Some(4));
        assert_eq!(from.send_gso_batches(None, &[batch, batch]).unwrap(), 1);
        assert_eq!(network.take_gso_batch_sizes(), [3, 3, 3]);
        assert_eq!(network.take_sent().len(), 10);
        network.fail_sends(Some(io::ErrorKind::PermissionDenied));
        assert!(from.send(None, b"x").is_err());
        network.set_max_gso_batch_datagrams(1);
        assert_eq!(from.max_gso_batch_datagrams(None), 1);
    }

    #[test]
    fn a_group_reaches_its_members_and_a_connected_socket_receives_only_from_its_peer() {
        let mut network = MemoryNetwork::new();
        let group = MulticastSpec {
            group: "224.20.30.39".parse().unwrap(),
            interface: "0.0.0.0".parse().unwrap(),
            interface_index: 0,
            ttl: 0,
        };
        let member = SocketSpec {
            multicast: Some(group),
            ..spec("224.20.30.39:5000", None)
        };
        let (mut a, mut b) = (
            network.open(&member).unwrap(),
            network.open(&member).unwrap(),
        );
        let mut sender = network
            .open(&spec("127.0.0.1:0", Some("127.0.0.1:6000")))
            .unwrap();
        sender
            .send(Some("224.20.30.39:5000".parse().unwrap()), b"x")
            .unwrap();
        assert_eq!(received(a.as_mut()), [b"x"]);
        assert_eq!(received(b.as_mut()), [b"x"]);
        let local = sender.local_address();
        network.deliver("127.0.0.1:6001".parse().unwrap(), local, b"stranger");
        network.deliver("127.0.0.1:6000".parse().unwrap(), local, b"peer");
        assert_eq!(received(sender.as_mut()), [b"peer"]);
        assert!(network.open(&spec(&local.to_string(), None)).is_err());
    }
}
