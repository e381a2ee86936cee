//! The resolver of drivers: drivers tell each other their names and addresses, and pass on what they were told.
//!
//! A driver announces itself to its bootstrap neighbours and to all drivers it knows of, and tells those what it knows, as far as
//! their [allowance](neighbors) goes. What is not said again for the timeout is forgotten. All of it happens on the native resource
//! agent, every 10 ms at most.

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
use aeron_protocol::frame::resolution::{Encoder, Entry};

use self::line::{Inbox, Line};
use self::neighbors::Neighbors;
use self::records::Records;
use self::round::Round;
use super::{NameResolver, resolve_address};
use crate::config::Context;
use crate::diagnostics::ErrorRecorder;
use crate::error::DriverError;
use crate::media::address::Family;
use crate::media::transport::Socket;

/// How a driver takes part.
#[derive(Clone, Debug)]
pub struct GossipConfig {
    /// The driver's own name.
    pub name: String,
    /// What is not said again for this long is forgotten.
    pub timeout_ms: i64,
    /// Time between two announcements of the driver.
    pub self_interval_ms: i64,
    /// Time between two announcements of what the driver knows.
    pub neighbor_interval_ms: i64,
    /// Time between two resolutions of bootstrap neighbours that are silent.
    pub bootstrap_interval_ms: i64,
    /// Longest datagram in bytes.
    pub mtu_length: usize,
}

/// Counters of the resolver.
#[derive(Clone, Debug)]
pub struct GossipCounters {
    /// Drivers that are known.
    pub neighbors: AtomicCounter<SharedBuffer>,
    /// Names that are known.
    pub cache_entries: AtomicCounter<SharedBuffer>,
    /// Datagrams that make no sense.
    pub invalid_packets: AtomicCounter<SharedBuffer>,
    /// Datagrams that the socket did not take.
    pub short_sends: AtomicCounter<SharedBuffer>,
}

/// Knows the names of drivers, and asks another resolver for the rest. See the [module](self).
pub struct GossipNames {
    config: GossipConfig,
    own_address: SocketAddr,
    line: Line,
    /// For bootstrap neighbours, and for what no driver is called.
    names: Box<dyn NameResolver>,
    records: Records,
    bootstrap: Vec<BootstrapNeighbor>,
    /// Indexes of the bootstrap neighbours that are silent and whose names are to be looked up.
    silent: Vec<usize>,
    schedule: Schedule,
    round: Round,
    /// The datagram by which the driver announces itself; empty if the name does not fit into one.
    announcement: Vec<u8>,
    clock: Arc<dyn NanoClock>,
    neighbors: AtomicCounter<SharedBuffer>,
    cache_entries: AtomicCounter<SharedBuffer>,
}

/// A first contact.
#[derive(Clone, Debug)]
pub struct BootstrapNeighbor {
    /// `host:port`.
    pub name: String,
    /// Where that is, if it is known.
    pub address: Option<SocketAddr>,
    /// 1 while it is a neighbour.
    pub counter: AtomicCounter<SharedBuffer>,
}

/// When what is due next, in milliseconds.
struct Schedule {
    next_work_ms: i64,
    next_self_ms: i64,
    next_neighbors_ms: i64,
    next_bootstrap_ms: i64,
}

const NANOS_PER_MILLI: i64 = 1_000_000;
/// Shortest time between two runs.
const WORK_INTERVAL_MS: i64 = 10;

impl GossipConfig {
    /// What the driver's configuration says.
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
    /// A resolver that gossips over `socket`, which is bound to the driver's announced address, and asks `names` otherwise.
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
            records: Records::new(config.timeout_ms, neighbors),
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
        let mut inbox = Inbox {
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

    /// A name that takes long is asked for again in the next run.
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
    fn is_known(&self, records: &Records) -> bool {
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

/// The address of a bootstrap neighbour. That it cannot be found is written down, and no reason to fail: it may be later.
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

/// The datagram by which a driver announces itself; empty if the name does not fit into one.
fn announcement(config: &GossipConfig, own_address: SocketAddr) -> Vec<u8> {
    let mut datagram = vec![0; config.mtu_length];
    let mut encoder = Encoder::new(&mut datagram);
    let is_complete = encoder.push(&Entry {
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
