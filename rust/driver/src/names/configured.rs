//! Creates the configured name resolver, with its socket and its counters.

use std::sync::Arc;

use aeron_agent::NanoClock;
use aeron_memory::buffer::SharedBuffer;
use aeron_memory::counters::system::{SystemCounter, SystemCounters};
use aeron_memory::counters::{AtomicCounter, CountersManager, NewCounter, types};

use super::csv_table::{NameRow, parse_rows};
use super::gossip::{BootstrapNeighbor, GossipConfig, GossipCounters, resolve_bootstrap};
use super::{BackgroundNames, CsvTableNames, GossipNames, NameResolver, SystemNames, TimedNames};
use crate::config::Context;
use crate::diagnostics::ErrorRecorder;
use crate::duty_cycle::StallTracker;
use crate::error::DriverError;
use crate::media::interfaces::{Interfaces, resolve_bind_address};
use crate::media::transport::{Network, Socket, SocketSide, SocketSpec};

/// The parts of a resolver that do not come from the configuration.
pub struct NameParts<'a> {
    /// Allocates the resolver's counters.
    pub counters: &'a mut CountersManager<SharedBuffer>,
    /// The driver's system counters.
    pub system: &'a SystemCounters<SharedBuffer>,
    /// Records failures.
    pub errors: &'a ErrorRecorder,
    /// The clock that measures resolutions and determines the times of announcements.
    pub clock: Arc<dyn NanoClock>,
    /// The current epoch time in milliseconds.
    pub now_ms: i64,
}

/// The first source of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameSupplier {
    /// The operating system.
    System,
    /// A fixed table.
    CsvTable,
    /// The other drivers.
    Gossip,
}

impl NameSupplier {
    /// Returns the supplier with this name: a short name, or the name of the C driver's function.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "default"
            | "aeron_default_name_resolver_supplier"
            | "io.aeron.driver.DefaultNameResolver" => Some(Self::System),
            "csv_table" | "aeron_csv_table_name_resolver_supplier" => Some(Self::CsvTable),
            "driver"
            | "aeron_driver_name_resolver_supplier"
            | "io.aeron.driver.DriverNameResolver" => Some(Self::Gossip),
            _ => None,
        }
    }

    fn of(context: &Context) -> Option<Self> {
        Self::from_name(&context.name_resolver_supplier)
    }
}

/// Opens the socket for the exchange of names between drivers, if the configuration asks for it.
///
/// # Errors
/// The interface or the host does not exist, or the system cannot open the socket.
pub fn open_gossip_socket(
    context: &Context,
    network: &mut dyn Network,
    interfaces: &mut dyn Interfaces,
) -> Result<Option<Box<dyn Socket>>, DriverError> {
    if NameSupplier::of(context) != Some(NameSupplier::Gossip) {
        return Ok(None);
    }
    let text = &context.resolver_interface;
    let bind = resolve_bind_address(&mut SystemNames, interfaces, text)
        .map_err(|error| error.context(format_args!("failed to parse interface: {text}")))?;
    let spec = SocketSpec {
        bind,
        connect: None,
        multicast: None,
        send_buffer_length: context.socket_sndbuf,
        receive_buffer_length: context.socket_rcvbuf,
        receive_timestamps: false,
        // A receiver's socket accepts packets that are longer than this driver's MTU. Other drivers may send such
        // packets.
        side: SocketSide::Receiver,
    };
    network.open(&spec).map(Some).map_err(|error| {
        DriverError::io(
            &error,
            format_args!("failed to bind name resolver to {bind}"),
        )
    })
}

/// Returns the configured resolver. If `gossip_socket` is set, the resolver exchanges names with other drivers.
///
/// # Errors
/// There is no room for the counters of the resolver.
pub fn configured_names(
    context: &Context,
    gossip_socket: Option<Box<dyn Socket>>,
    mut parts: NameParts<'_>,
) -> Result<Box<dyn NameResolver>, DriverError> {
    let names: Box<dyn NameResolver> = match gossip_socket {
        Some(socket) => {
            let others = Box::new(BackgroundNames::new(SystemNames));
            Box::new(parts.gossip(context, socket, others)?)
        }
        None if NameSupplier::of(context) == Some(NameSupplier::CsvTable) => {
            Box::new(parts.csv_table(&context.name_resolver_init_args)?)
        }
        None => Box::new(BackgroundNames::new(SystemNames)),
    };
    let stalls = StallTracker::new(
        context.name_resolver_threshold_ns,
        parts.system.get(SystemCounter::NameResolverMaxTime).clone(),
        parts
            .system
            .get(SystemCounter::NameResolverTimeExceeded)
            .clone(),
        parts.clock.nano_time(),
    );
    Ok(Box::new(TimedNames::new(names, stalls, parts.clock)))
}

impl NameParts<'_> {
    fn csv_table(&mut self, table: &str) -> Result<CsvTableNames, DriverError> {
        let rows = parse_rows(table)
            .into_iter()
            .map(|row| {
                let mut key = (row.name.len() as i32).to_le_bytes().to_vec();
                key.extend(row.name.as_bytes());
                let counter = self.allocate(types::NAME_ENTRY, &key, &row_label(&row))?;
                Ok((row, counter))
            })
            .collect::<Result<_, DriverError>>()?;
        Ok(CsvTableNames::new(
            rows,
            Box::new(BackgroundNames::new(SystemNames)),
        ))
    }

    /// Returns a resolver that exchanges names with other drivers. `others` resolves all other names.
    ///
    /// # Errors
    /// There is no room for the counters of the resolver.
    pub fn gossip(
        &mut self,
        context: &Context,
        socket: Box<dyn Socket>,
        others: Box<dyn NameResolver>,
    ) -> Result<GossipNames, DriverError> {
        let mut names = SystemNames;
        let bootstrap = context
            .bootstrap_neighbors()
            .enumerate()
            .map(|(index, name)| {
                let address = resolve_bootstrap(&mut names, name, self.errors).ok();
                let resolved = address.map_or_else(String::new, |address| address.to_string());
                let label = format!("Bootstrap neighbor: name={name} resolved={resolved}");
                let key = (index as i32).to_le_bytes();
                Ok(BootstrapNeighbor {
                    name: name.to_owned(),
                    address,
                    counter: self.allocate(types::BOOTSTRAP_NEIGHBOR, &key, &label)?,
                })
            })
            .collect::<Result<_, DriverError>>()?;
        let name = &context.resolver_name;
        let bound = format!("Resolver neighbors: bound {}", socket.local_address());
        let entries = format!("Resolver cache entries: name={name}");
        let counters = GossipCounters {
            neighbors: self.allocate(types::RESOLVER_NEIGHBORS, &[], &bound)?,
            cache_entries: self.allocate(types::RESOLVER_CACHE_ENTRIES, &[], &entries)?,
            invalid_packets: self.system.get(SystemCounter::InvalidPackets).clone(),
            short_sends: self.system.get(SystemCounter::ShortSends).clone(),
        };
        Ok(GossipNames::new(
            GossipConfig::new(context),
            bootstrap,
            socket,
            others,
            self.clock.clone(),
            counters,
            self.errors.clone(),
        ))
    }

    fn allocate(
        &mut self,
        type_id: i32,
        key: &[u8],
        label: &str,
    ) -> Result<AtomicCounter<SharedBuffer>, DriverError> {
        let new = NewCounter {
            type_id,
            key,
            label: label.as_bytes(),
            registration_id: 0,
            owner_id: 0,
            reference_id: 0,
            value: 0,
        };
        self.counters
            .allocate(&new, self.now_ms)
            .map_err(DriverError::invalid_argument)
    }
}

fn row_label(row: &NameRow) -> String {
    let NameRow {
        name,
        initial_host,
        re_resolution_host,
    } = row;
    format!(
        "NameEntry{{name='{name}', initialResolutionHost='{initial_host}', reResolutionHost='{re_resolution_host}'}}"
    )
}
