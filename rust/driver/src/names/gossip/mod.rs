//! [`GossipNames`]: the driver name resolver. Drivers announce their names and addresses to each other, and relay the
//! names and addresses of other drivers.
//!
//! A driver announces itself to its bootstrap neighbours and to all drivers that it knows. To each driver that it
//! knows, it also sends all known names, within the [allowance](neighbors) of that driver. A name that is not announced
//! again within the timeout is removed. The native resource agent runs the resolver at most every 10 ms.

mod line;
mod name_key;
mod neighbors;
mod records;
mod round;
#[cfg(test)]
mod tests;

pub use self::neighbors::{MAX_BYTES_PER_BYTE, MAX_NEIGHBORS};
pub use self::records::MAX_NAMES;
pub use self::round::MAX_DATAGRAMS_PER_RUN;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use aeron_agent::NanoClock;
use aeron_memory::buffer::SharedBuffer;
use aeron_memory::counters::AtomicCounter;
use aeron_protocol::frame::resolution::{ResolutionEncoder, ResolutionEntry};

use self::line::{GossipInbox, Line};
use self::neighbors::Neighbors;
use self::records::NameRecords;
use self::round::Round;
use super::{NameResolver, resolve_address};
use crate::config::Context;
use crate::diagnostics::ErrorRecorder;
use crate::error::DriverError;
use crate::media::address::Family;
use crate::media::transport::Socket;

/// Settings of the resolver.
#[derive(Clone, Debug)]
pub struct GossipConfig {
    /// The driver's own name.
    pub name: String,
    /// Time without an announcement after which a name or a neighbour is removed.
    pub timeout_ms: i64,
    /// Interval at which the driver announces itself.
    pub self_interval_ms: i64,
    /// Interval at which the driver announces all known names.
    pub neighbor_interval_ms: i64,
    /// Interval of the resolutions of silent bootstrap neighbours.
    pub bootstrap_interval_ms: i64,
    /// Maximum length of a datagram in bytes.
    pub mtu_length: usize,
}

/// Counters of the resolver.
#[derive(Clone, Debug)]
pub struct GossipCounters {
    /// Number of known drivers.
    pub neighbors: AtomicCounter<SharedBuffer>,
    /// Number of known names.
    pub cache_entries: AtomicCounter<SharedBuffer>,
    /// Number of invalid datagrams.
    pub invalid_packets: AtomicCounter<SharedBuffer>,
    /// Number of datagrams that the socket did not accept.
    pub short_sends: AtomicCounter<SharedBuffer>,
}

/// Resolves the names of drivers, and passes all other names to another resolver; see the [module](self).
pub struct GossipNames {
    config: GossipConfig,
    own_address: SocketAddr,
    line: Line,
    /// Resolves bootstrap neighbours, and names that are not names of drivers.
    names: Box<dyn NameResolver>,
    records: NameRecords,
    bootstrap: Vec<BootstrapNeighbor>,
    /// Indexes of silent bootstrap neighbours. Their names are to be resolved again.
    silent: Vec<usize>,
    schedule: Schedule,
    round: Round,
    /// The datagram that announces the driver; empty if the name is too long for a datagram.
    announcement: Vec<u8>,
    clock: Arc<dyn NanoClock>,
    neighbors: AtomicCounter<SharedBuffer>,
    cache_entries: AtomicCounter<SharedBuffer>,
}

/// A bootstrap neighbour: an address from the configuration to which the driver announces itself first.
#[derive(Clone, Debug)]
pub struct BootstrapNeighbor {
    /// `host:port`.
    pub name: String,
    /// The address, once the name is resolved.
    pub address: Option<SocketAddr>,
    /// Counter: 1 while the address belongs to a neighbour, else 0.
    pub counter: AtomicCounter<SharedBuffer>,
}

/// The times of the next periodic actions, in milliseconds.
struct Schedule {
    next_work_ms: i64,
    next_self_ms: i64,
    next_neighbors_ms: i64,
    next_bootstrap_ms: i64,
}

const NANOS_PER_MILLI: i64 = 1_000_000;
/// Minimum time between two runs.
const WORK_INTERVAL_MS: i64 = 10;

impl GossipConfig {
    /// Reads the settings from the driver's configuration.
    pub fn new(context: &Context) -> Self {
        let milliseconds = |nanoseconds: i64| nanoseconds / NANOS_PER_MILLI;
        Self {
            name: context.resolver_name.clone(),
            timeout_ms: milliseconds(context.resolver_neighbor_timeout_ns),
            self_interval_ms: milliseconds(context.resolver_self_resolution_interval_ns),
            neighbor_interval_ms: milliseconds(context.resolver_neighbor_resolution_interval_ns),
            bootstrap_interval_ms: milliseconds(
                context.resolver_bootstrap_neighbor_resolution_interval_ns,
            ),
            mtu_length: context.mtu_length,
        }
    }
}

impl GossipNames {
    /// Creates a resolver that exchanges names over `socket` and resolves all other names with `names`.
    ///
    /// The socket must be bound to the address that the driver announces.
    pub fn new(
        config: GossipConfig,
        bootstrap: Vec<BootstrapNeighbor>,
        socket: Box<dyn Socket>,
        names: Box<dyn NameResolver>,
        clock: Arc<dyn NanoClock>,
        counters: GossipCounters,
        errors: ErrorRecorder,
    ) -> Self {
        let now_ms = milliseconds(&*clock);
        let own_address = socket.local_address();
        let announcement = announcement(&config, own_address);
        let mut neighbors = Neighbors::new(announcement.len());
        neighbors.set_configured(bootstrap.iter().filter_map(|known| known.address));
        Self {
            own_address,
            records: NameRecords::new(config.timeout_ms, neighbors),
            bootstrap,
            silent: Vec::new(),
            schedule: Schedule {
                next_work_ms: now_ms,
                next_self_ms: now_ms,
                next_neighbors_ms: now_ms + config.neighbor_interval_ms,
                next_bootstrap_ms: now_ms + config.bootstrap_interval_ms,
            },
            round: Round::new(config.mtu_length),
            announcement,
            config,
            line: Line {
                socket,
                invalid_packets: counters.invalid_packets,
                short_sends: counters.short_sends,
                errors,
            },
            names,
            clock,
            neighbors: counters.neighbors,
            cache_entries: counters.cache_entries,
        }
    }

    fn run(&mut self, now_ms: i64) -> usize {
        let mut work_count = self.receive(now_ms) + self.records.expire(now_ms);
        work_count += self.names.do_work();
        if now_ms >= self.schedule.next_self_ms {
            self.schedule.next_self_ms = now_ms + self.config.self_interval_ms;
            self.announce_self();
            work_count += 1;
        }
        if now_ms >= self.schedule.next_neighbors_ms {
            self.schedule.next_neighbors_ms = now_ms + self.config.neighbor_interval_ms;
            self.round.begin(&self.records);
        }
        let line = &mut self.line;
        let send = |to, datagram: &[u8]| line.send(to, datagram);
        work_count += self.round.go_on(&mut self.records, now_ms, send);
        if now_ms >= self.schedule.next_bootstrap_ms {
            self.schedule.next_bootstrap_ms = now_ms + self.config.bootstrap_interval_ms;
            self.silent = self.silent_bootstrap_neighbors();
            work_count += 1;
        }
        self.resolve_silent_bootstrap_neighbors();
        self.neighbors.set(self.records.neighbors.len() as i64);
        self.cache_entries.set(self.records.name_count() as i64);
        work_count
    }

    fn receive(&mut self, now_ms: i64) -> usize {
        let mut inbox = GossipInbox {
            own_name: self.config.name.as_bytes(),
            own_port: self.own_address.port(),
            records: &mut self.records,
            now_ms,
        };
        self.line
            .receive(|datagram, source| inbox.on_datagram(datagram, source))
    }

    fn announce_self(&mut self) {
        for neighbor in &self.bootstrap {
            neighbor
                .counter
                .set(neighbor.is_known(&self.records).into());
        }
        if self.announcement.is_empty() {
            return;
        }
        let neighbors = &mut self.records.neighbors;
        for address in neighbors.configured() {
            self.line.send(*address, &self.announcement);
        }
        let mut next = neighbors.next_after(None);
        while let Some(address) = next {
            if !neighbors.configured().contains(&address) && neighbors.take_announcement(address) {
                self.line.send(address, &self.announcement);
            }
            next = neighbors.next_after(Some(address));
        }
    }

    fn silent_bootstrap_neighbors(&self) -> Vec<usize> {
        (0..self.bootstrap.len())
            .filter(|index| !self.bootstrap[*index].is_known(&self.records))
            .collect()
    }

    /// Resolves the names of silent bootstrap neighbours. If a lookup takes long, the next run repeats it.
    fn resolve_silent_bootstrap_neighbors(&mut self) {
        for index in std::mem::take(&mut self.silent) {
            let neighbor = &mut self.bootstrap[index];
            match resolve_bootstrap(&mut *self.names, &neighbor.name, &self.line.errors) {
                Ok(address) => neighbor.address = Some(address),
                Err(error) if error.is_temporary() => self.silent.push(index),
                Err(_) => {}
            }
        }
        let addresses = self.bootstrap.iter().filter_map(|known| known.address);
        self.records.neighbors.set_configured(addresses);
    }
}

impl BootstrapNeighbor {
    fn is_known(&self, records: &NameRecords) -> bool {
        self.address
            .is_some_and(|address| records.neighbors.contains(address))
    }
}

impl NameResolver for GossipNames {
    fn resolve(&mut self, host: &str, family: Family) -> Result<IpAddr, DriverError> {
        if let Some(address) = self.records.find(host.as_bytes(), family) {
            return Ok(address);
        }
        let own_address = self.own_address.ip();
        if host == self.config.name && Family::of(own_address) == family {
            return Ok(own_address);
        }
        self.names.resolve(host, family)
    }

    fn do_work(&mut self) -> usize {
        let now_ms = milliseconds(&*self.clock);
        if now_ms < self.schedule.next_work_ms {
            return 0;
        }
        self.schedule.next_work_ms = now_ms + WORK_INTERVAL_MS;
        self.run(now_ms)
    }
}

/// Returns the address of a bootstrap neighbour.
///
/// If the name cannot be resolved now, records and returns an error. A later lookup may succeed.
pub(super) fn resolve_bootstrap(
    names: &mut dyn NameResolver,
    name: &str,
    errors: &ErrorRecorder,
) -> Result<SocketAddr, DriverError> {
    resolve_address(names, name)
        .map_err(|error| {
            error.context(format_args!(
                "Unresolved - bootstrap_neighbor={name}, name-and-port={name}"
            ))
        })
        .inspect_err(|error| errors.record(error))
}

/// Returns the datagram that announces a driver; empty if the name is too long for a datagram.
fn announcement(config: &GossipConfig, own_address: SocketAddr) -> Vec<u8> {
    let mut datagram = vec![0; config.mtu_length];
    let mut encoder = ResolutionEncoder::new(&mut datagram);
    let is_complete = encoder.push(&ResolutionEntry {
        is_self: true,
        address: own_address,
        age_ms: 0,
        name: config.name.as_bytes(),
    });
    match is_complete {
        true => encoder.finish().to_vec(),
        false => Vec::new(),
    }
}

fn milliseconds(clock: &dyn NanoClock) -> i64 {
    clock.nano_time() / NANOS_PER_MILLI
}
