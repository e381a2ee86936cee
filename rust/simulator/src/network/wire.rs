//! The wire: connects the sockets and delivers the datagrams.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use aeron_driver::media::transport::SocketSpec;
use fastrand::Rng;

use super::weather::{Bursts, Corruption};
use super::{HostId, Weather, ipv4, ipv6};

const FIRST_EPHEMERAL_PORT: u16 = 40_000;

/// A datagram that a host has sent.
#[derive(Clone, Copy, Debug)]
pub struct SentDatagram<'a> {
    /// Source address.
    pub from: SocketAddr,
    /// Destination address.
    pub to: SocketAddr,
    /// Bytes of the datagram.
    pub bytes: &'a [u8],
}

/// Called for every sent datagram, even if the datagram is lost later.
pub type Observer = Box<dyn FnMut(i64, SentDatagram<'_>) + Send>;

/// Counts of network events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WireCounts {
    /// Datagrams sent.
    pub sent: u64,
    /// Copies lost. Each receiver gets one copy of a datagram.
    pub lost: u64,
    /// Copies delivered twice.
    pub duplicated: u64,
    /// Copies that were delayed.
    pub held_back: u64,
    /// Copies that were damaged.
    pub damaged: u64,
    /// Copies for which a receive buffer had no room.
    pub overflowed: u64,
    /// Copies dropped because the connection between the hosts is cut.
    pub cut: u64,
    /// Sends that accepted fewer datagrams than the caller passed.
    pub short: u64,
    /// GSO batches refused because their datagrams do not fit into the packets of the link.
    pub refused_gso_batches: u64,
}

impl WireCounts {
    /// Adds the counts of another network.
    pub fn add(&mut self, other: &Self) {
        self.sent += other.sent;
        self.lost += other.lost;
        self.duplicated += other.duplicated;
        self.held_back += other.held_back;
        self.damaged += other.damaged;
        self.overflowed += other.overflowed;
        self.cut += other.cut;
        self.short += other.short;
        self.refused_gso_batches += other.refused_gso_batches;
    }
}

/// All sockets, and all datagrams in transit.
pub struct Wire {
    now_ns: i64,
    random: Rng,
    weather: Weather,
    bursts: Bursts,
    /// A port at which no datagram arrives until a time.
    silent: Option<(u16, i64)>,
    next_id: u64,
    sockets: BTreeMap<u64, Bound>,
    /// Number of datagrams that wait in the sockets of each host.
    waiting: Vec<Arc<AtomicUsize>>,
    next_ports: Vec<u16>,
    under_way: BinaryHeap<Reverse<DatagramUnderWay>>,
    next_sequence: u64,
    observers: Vec<Observer>,
    counts: WireCounts,
}

/// The host and address that send a datagram.
#[derive(Clone, Copy)]
struct DatagramSource {
    host: HostId,
    from: SocketAddr,
}

/// A destination socket of a datagram.
#[derive(Clone, Copy)]
struct Target {
    host: HostId,
    socket: u64,
}

struct Bound {
    host: HostId,
    hears: SocketAddr,
    group: Option<IpAddr>,
    peer: Option<SocketAddr>,
    inbox: VecDeque<(SocketAddr, Vec<u8>)>,
    inbox_bytes: usize,
    inbox_limit: usize,
}

/// A datagram in transit, ordered by arrival.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct DatagramUnderWay {
    arrival_ns: i64,
    sequence: u64,
    socket: u64,
    from: SocketAddr,
    bytes: Vec<u8>,
}

impl Wire {
    /// Creates a wire between `hosts` hosts, at `now_ns`.
    pub fn new(hosts: usize, weather: Weather, seed: u64, now_ns: i64) -> Self {
        Self {
            now_ns,
            random: Rng::with_seed(seed),
            weather,
            bursts: Bursts::default(),
            silent: None,
            next_id: 0,
            sockets: BTreeMap::new(),
            waiting: (0..hosts).map(|_| Arc::default()).collect(),
            next_ports: vec![FIRST_EPHEMERAL_PORT; hosts],
            under_way: BinaryHeap::new(),
            next_sequence: 0,
            observers: Vec::new(),
            counts: WireCounts::default(),
        }
    }

    /// Adds an observer, which is called with the time and every sent datagram.
    pub fn observe(&mut self, observer: Observer) {
        self.observers.push(observer);
    }

    /// Returns the network conditions, so that the caller can change them.
    pub fn weather(&mut self) -> &mut Weather {
        &mut self.weather
    }

    /// Loses all datagrams to a port until a time.
    pub fn silence(&mut self, port: u16, until_ns: i64) {
        self.silent = Some((port, until_ns));
    }

    /// Returns the counts so far.
    pub fn counts(&self) -> WireCounts {
        self.counts
    }

    /// Returns the number of open sockets.
    pub fn socket_count(&self) -> usize {
        self.sockets.len()
    }

    /// Returns the arrival time of the next datagram.
    pub fn next_arrival_ns(&self) -> Option<i64> {
        self.under_way.peek().map(|Reverse(next)| next.arrival_ns)
    }

    /// Delivers all datagrams that are due. Returns their number.
    pub fn advance(&mut self, now_ns: i64) -> usize {
        self.now_ns = now_ns;
        let mut arrived = 0;
        while let Some(Reverse(next)) = self.under_way.peek()
            && next.arrival_ns <= now_ns
        {
            let Some(Reverse(next)) = self.under_way.pop() else {
                break;
            };
            self.arrive(next);
            arrived += 1;
        }
        arrived
    }

    fn arrive(&mut self, datagram: DatagramUnderWay) {
        let Some(socket) = self.sockets.get_mut(&datagram.socket) else {
            return;
        };
        if socket.inbox_bytes + datagram.bytes.len() > socket.inbox_limit {
            self.counts.overflowed += 1;
            return;
        }
        socket.inbox_bytes += datagram.bytes.len();
        socket.inbox.push_back((datagram.from, datagram.bytes));
        self.waiting[socket.host].fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn waiting(&self, host: HostId) -> Arc<AtomicUsize> {
        Arc::clone(&self.waiting[host])
    }

    pub(super) fn open(
        &mut self,
        host: HostId,
        spec: &SocketSpec,
        inbox_limit: usize,
    ) -> io::Result<(u64, SocketAddr)> {
        let hears = self.bind(host, spec)?;
        let id = self.next_id;
        self.next_id += 1;
        self.sockets.insert(
            id,
            Bound {
                host,
                hears,
                group: spec.multicast.map(|multicast| multicast.group),
                peer: spec.connect,
                inbox: VecDeque::new(),
                inbox_bytes: 0,
                inbox_limit,
            },
        );
        Ok((id, hears))
    }

    pub(super) fn close(&mut self, id: u64) {
        if let Some(socket) = self.sockets.remove(&id) {
            self.waiting[socket.host].fetch_sub(socket.inbox.len(), Ordering::Relaxed);
        }
    }

    fn bind(&mut self, host: HostId, spec: &SocketSpec) -> io::Result<SocketAddr> {
        let mut hears = spec.bind;
        if spec.multicast.is_some() {
            hears.set_ip(match hears {
                SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
                SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
            });
        }
        if !is_local(host, hears.ip()) {
            return Err(io::ErrorKind::AddrNotAvailable.into());
        }
        if hears.port() == 0 {
            hears.set_port(self.next_ports[host]);
            self.next_ports[host] += 1;
        }
        let is_taken = |other: &Bound| {
            let (a, b) = (other.hears.ip(), hears.ip());
            other.host == host
                && other.group.is_none()
                && other.hears.port() == hears.port()
                && a.is_ipv4() == b.is_ipv4()
                && (a == b || a.is_unspecified() || b.is_unspecified())
        };
        if spec.multicast.is_none() && self.sockets.values().any(is_taken) {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        Ok(hears)
    }

    pub(super) fn connect(&mut self, id: u64, to: SocketAddr) {
        if let Some(socket) = self.sockets.get_mut(&id) {
            socket.peer = Some(to);
        }
    }

    pub(super) fn peer(&self, id: u64) -> Option<SocketAddr> {
        self.sockets.get(&id).and_then(|socket| socket.peer)
    }

    /// Returns how many of `count` datagrams or GSO batches a socket accepts now.
    pub(super) fn room(&mut self, count: usize) -> usize {
        let is_short =
            self.weather.short_sends > 0.0 && self.random.f64() < self.weather.short_sends;
        if !is_short {
            return count;
        }
        self.counts.short += 1;
        self.random.usize(..count)
    }

    pub(super) fn on_gso_batch_refused(&mut self) {
        self.counts.refused_gso_batches += 1;
    }

    /// Sends a datagram from the socket of `host` that receives at the address `hears`.
    pub(super) fn send(&mut self, host: HostId, hears: SocketAddr, to: SocketAddr, bytes: &[u8]) {
        let from = source(host, hears, to);
        self.counts.sent += 1;
        for observer in &mut self.observers {
            let passing = SentDatagram { from, to, bytes };
            observer(self.now_ns, passing);
        }
        let is_silent = |(port, until_ns)| port == to.port() && self.now_ns < until_ns;
        if self.silent.is_some_and(is_silent) {
            self.counts.cut += 1;
            return;
        }
        let targets: Vec<Target> = self
            .sockets
            .iter()
            .filter(|(_, socket)| socket.is_addressed(host, from, to))
            .map(|(id, socket)| Target {
                host: socket.host,
                socket: *id,
            })
            .collect();
        for target in targets {
            self.carry(DatagramSource { host, from }, target, bytes);
        }
    }

    /// Sends a forged datagram to every socket.
    pub fn flood(&mut self, bytes: &[u8]) {
        let arrival_ns = self.now_ns;
        let stranger = SocketAddr::from((ipv4(self.waiting.len()), FIRST_EPHEMERAL_PORT));
        let sockets: Vec<u64> = self.sockets.keys().copied().collect();
        for socket in sockets {
            let sequence = self.next_sequence;
            self.next_sequence += 1;
            self.under_way.push(Reverse(DatagramUnderWay {
                arrival_ns,
                sequence,
                socket,
                from: stranger,
                bytes: bytes.to_vec(),
            }));
        }
    }

    fn carry(&mut self, departure: DatagramSource, target: Target, bytes: &[u8]) {
        let DatagramSource { host, from } = departure;
        if !self.weather.connects(host, target.host) {
            self.counts.cut += 1;
            return;
        }
        let is_too_long = bytes.len() > self.weather.longest_datagram;
        if host != target.host
            && (is_too_long || self.bursts.loses(&self.weather.loss, &mut self.random))
        {
            self.counts.lost += 1;
            return;
        }
        let mut copies = 1;
        if self.chance(self.weather.duplication) {
            self.counts.duplicated += 1;
            copies = 2;
        }
        for _ in 0..copies {
            let mut bytes = bytes.to_vec();
            if self.chance(self.weather.corruption) {
                self.counts.damaged += 1;
                Corruption::apply(&mut bytes, &mut self.random);
            }
            let arrival_ns = self.now_ns + self.travel_time_ns();
            let sequence = self.next_sequence;
            self.next_sequence += 1;
            self.under_way.push(Reverse(DatagramUnderWay {
                arrival_ns,
                sequence,
                socket: target.socket,
                from,
                bytes,
            }));
        }
    }

    fn travel_time_ns(&mut self) -> i64 {
        let mut time_ns = self.weather.delay_ns;
        if self.weather.jitter_ns > 0 {
            time_ns += self.random.i64(0..self.weather.jitter_ns);
        }
        if self.chance(self.weather.reordering) {
            self.counts.held_back += 1;
            time_ns += self.random.i64(0..=4 * self.weather.delay_ns + 100_000);
        }
        time_ns
    }

    fn chance(&mut self, probability: f64) -> bool {
        probability > 0.0 && self.random.f64() < probability
    }

    pub(super) fn receive(&mut self, id: u64) -> Option<(SocketAddr, Vec<u8>)> {
        let socket = self.sockets.get_mut(&id)?;
        let (from, bytes) = socket.inbox.pop_front()?;
        socket.inbox_bytes -= bytes.len();
        self.waiting[socket.host].fetch_sub(1, Ordering::Relaxed);
        Some((from, bytes))
    }
}

impl Bound {
    fn is_addressed(&self, host: HostId, from: SocketAddr, to: SocketAddr) -> bool {
        if self.hears.port() != to.port() || self.hears.is_ipv4() != to.is_ipv4() {
            return false;
        }
        let is_reached = match self.group {
            Some(group) if to.ip().is_multicast() => to.ip() == group,
            _ if to.ip().is_multicast() => false,
            _ if to.ip().is_loopback() => {
                self.host == host
                    && (self.hears.ip() == to.ip() || self.hears.ip().is_unspecified())
            }
            _ => {
                is_local(self.host, to.ip())
                    && (self.hears.ip() == to.ip() || self.hears.ip().is_unspecified())
            }
        };
        // A real multicast sender has a connected socket, and receives through a second socket that is not connected.
        // Here, one socket is both.
        is_reached && (self.group.is_some() || self.peer.is_none_or(|peer| peer == from))
    }
}

fn is_local(host: HostId, address: IpAddr) -> bool {
    address.is_unspecified()
        || address.is_loopback()
        || address == IpAddr::from(ipv4(host))
        || address == IpAddr::from(ipv6(host))
}

/// Returns the source address that receivers see for a host's datagram.
fn source(host: HostId, hears: SocketAddr, to: SocketAddr) -> SocketAddr {
    let mut source = hears;
    if hears.ip().is_unspecified() {
        source.set_ip(match to.ip() {
            to if to.is_loopback() => to,
            IpAddr::V4(_) => ipv4(host).into(),
            IpAddr::V6(_) => ipv6(host).into(),
        });
    }
    source
}
