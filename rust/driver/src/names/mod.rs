//! The addresses of hosts: from the operating system, from a table, or from what drivers tell each other.

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

/// Finds the addresses of hosts. It may block for as long as the network takes to answer, or say that it does not know yet.
pub trait NameResolver: Send {
    /// The address of a host, which is a name or an address itself.
    ///
    /// # Errors
    /// Code 9 when the host is not known or has no address of this family; a [temporary](DriverError::is_temporary) one while it is
    /// being looked up: ask again in the next duty cycle.
    fn resolve(&mut self, host: &str, family: Family) -> Result<IpAddr, DriverError>;

    /// What is to be done beside answering, once per duty cycle; answers how much it was.
    fn do_work(&mut self) -> usize {
        0
    }
}

/// The address of a host as channels write it: in brackets only IPv6 will do, else IPv4 comes first.
///
/// # Errors
/// Code 9 when there is none, or that it is being looked up.
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

/// The address of a `host:port`.
///
/// # Errors
/// Code 9 when the host is not known, code 11 for a bad port, or that the host is being looked up.
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
