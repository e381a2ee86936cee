//! Name resolution: from the operating system, from a table, or from other drivers.

mod background;
mod configured;
mod csv_table;
mod gossip;
mod system;
mod timed;

pub use background::BackgroundNames;
pub use configured::{NameParts, NameSupplier, configured_names, open_gossip_socket};
pub use csv_table::{CsvTableNames, NameRow, parse_rows};
pub use gossip::{
    BootstrapNeighbor, GossipConfig, GossipCounters, GossipNames, MAX_BYTES_PER_BYTE,
    MAX_DATAGRAMS_PER_RUN, MAX_NAMES, MAX_NEIGHBORS,
};
pub use system::SystemNames;
pub use timed::TimedNames;

use std::net::{IpAddr, SocketAddr};

use crate::error::DriverError;
use crate::media::address::{Family, HostAndPort};

/// Finds the addresses of hosts. A call may block during a network request, or return a temporary error.
pub trait NameResolver: Send {
    /// Returns the address of a host, which is a name or an address.
    ///
    /// # Errors
    /// Error code 9 if the host is unknown or has no address of this family. A [temporary](DriverError::is_temporary)
    /// error while the host is being looked up: repeat the call in the next duty cycle.
    fn resolve(&mut self, host: &str, family: Family) -> Result<IpAddr, DriverError>;

    /// Runs the periodic work, once in each duty cycle. Returns the amount of work done.
    fn do_work(&mut self) -> usize {
        0
    }
}

/// Returns the address of a host in a channel. A host in brackets must have an IPv6 address. For other hosts, IPv4 is
/// preferred.
///
/// # Errors
/// Error code 9 if there is no address, or a temporary error while the host is being looked up.
pub fn resolve_host(
    names: &mut dyn NameResolver,
    host: &str,
    is_bracketed: bool,
) -> Result<IpAddr, DriverError> {
    if is_bracketed {
        return names.resolve(host, Family::V6);
    }
    match names.resolve(host, Family::V4) {
        Err(error) if !error.is_temporary() => {
            names
                .resolve(host, Family::V6)
                .map_err(|of_v6| match of_v6.is_temporary() {
                    true => of_v6,
                    false => error,
                })
        }
        result => result,
    }
}

/// Returns the address of a `host:port`.
///
/// # Errors
/// Error code 9 for an unknown host, error code 11 for an invalid port, or a temporary error while the host is being
/// looked up.
pub fn resolve_address(
    names: &mut dyn NameResolver,
    text: &str,
) -> Result<SocketAddr, DriverError> {
    let HostAndPort {
        host,
        port,
        is_bracketed,
    } = HostAndPort::parse(text)?;
    let address = resolve_host(names, host, is_bracketed)?;
    Ok(SocketAddr::new(address, port))
}
