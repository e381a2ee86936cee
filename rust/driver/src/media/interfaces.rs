//! The network interfaces of this machine, and the selection of an interface for a channel.

use std::net::{IpAddr, SocketAddr};
use std::{fmt, io};

use nix::ifaddrs::{InterfaceAddress as SystemAddress, getifaddrs};
use nix::net::if_::{InterfaceFlags, if_nametoindex};
use nix::sys::socket::SockaddrStorage;

use super::address::{Family, parse_port, split_brackets, without_scope};
use crate::error::DriverError;
use crate::names::{NameResolver, resolve_host};

/// The interface that a channel uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Index in the operating system. If the index is 0, the operating system chooses.
    pub index: u32,
    /// Address of the interface; the wildcard address if any interface may be used.
    pub address: IpAddr,
}

/// One address of one interface of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterfaceAddress {
    /// The interface's name.
    pub name: String,
    /// Index of the interface in the operating system.
    pub index: u32,
    /// The address.
    pub address: IpAddr,
    /// Number of bits of the address that identify its network.
    pub prefix_length: u8,
    /// Whether the interface is up.
    pub is_up: bool,
    /// Whether the interface is a loopback interface.
    pub is_loopback: bool,
    /// Whether the interface can send multicast.
    pub is_multicast: bool,
}

/// Lists the addresses of a machine.
pub trait Interfaces: Send {
    /// Returns all addresses of all interfaces, in the order of the operating system.
    ///
    /// # Errors
    /// The operating system returns an error.
    fn addresses(&mut self) -> io::Result<Vec<InterfaceAddress>>;
}

/// The interfaces of this machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemInterfaces;

/// The value of a channel's `interface`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InterfaceSpec<'a> {
    /// `{name}` or `{name}:port`: the interface with this name.
    Named {
        /// Name of the interface.
        name: &'a str,
        /// Local port.
        port: u16,
    },
    /// `host` or `host:port`, with or without `/prefix`: an interface with an address that begins with the bits of the
    /// host's address.
    Matching {
        /// A name or an address; an IPv6 address is without brackets and scope.
        host: &'a str,
        /// Whether the host was in brackets. It must then be an IPv6 address.
        is_bracketed: bool,
        /// Local port.
        port: u16,
        /// Number of bits that must be equal; `None` for all.
        prefix_length: Option<u8>,
    },
}

const MAX_NAME_LENGTH: usize = 15;
const MAX_PORT_TEXT_LENGTH: usize = 7;

impl<'a> InterfaceSpec<'a> {
    /// Parses the value of `interface`.
    ///
    /// # Errors
    /// Error code 11 with the reason.
    pub fn parse(text: &'a str) -> Result<Self, DriverError> {
        match text.strip_prefix('{') {
            Some(named) => parse_named(named),
            None => parse_matching(text),
        }
        .map_err(|error| error.context(format_args!("could not parse interface='{text}'")))
    }
}

fn parse_named(after_brace: &str) -> Result<InterfaceSpec<'_>, DriverError> {
    let end = after_brace.find('}');
    let name = &after_brace[..end.unwrap_or_default()];
    if end.is_none() || name.is_empty() || name.len() > MAX_NAME_LENGTH {
        let length = end.map_or(-1, |length| length as i64);
        return invalid(format_args!("name length {length} out of bounds"));
    }
    let port = match &after_brace[name.len() + 1..] {
        "" => 0,
        port => match port.strip_prefix(':') {
            Some(port) if (1..=MAX_PORT_TEXT_LENGTH).contains(&port.len()) => parse_port(port)?,
            Some(port) => {
                return invalid(format_args!("port length {} out of bounds", port.len()));
            }
            None => return invalid("unexpected character after name closing brace"),
        },
    };
    Ok(InterfaceSpec::Named { name, port })
}

fn parse_matching(text: &str) -> Result<InterfaceSpec<'_>, DriverError> {
    let (host_and_port, prefix_length) = match text.rsplit_once('/') {
        Some((before, prefix_length)) => (before, parse_prefix_length(prefix_length)?),
        None => (text, None),
    };
    let (host, port, is_bracketed) = match split_brackets(host_and_port) {
        Some((inside, "")) => (without_scope(inside), None, true),
        Some((inside, after)) => match after.strip_prefix(':') {
            Some(port) => (without_scope(inside), Some(port), true),
            None => return invalid("unexpected character after closing bracket"),
        },
        None if host_and_port.starts_with('[') => return invalid("closing bracket is missing"),
        None => match host_and_port.split_once(':') {
            Some((host, port)) => (host, Some(port), false),
            None => (host_and_port, None, false),
        },
    };
    Ok(InterfaceSpec::Matching {
        host,
        is_bracketed,
        port: port.map_or(Ok(0), parse_port)?,
        prefix_length,
    })
}

/// Parses the prefix length. An empty text after the slash means the full length.
fn parse_prefix_length(text: &str) -> Result<Option<u8>, DriverError> {
    if text.is_empty() {
        return Ok(None);
    }
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return invalid(format_args!("prefixlen invalid: {text}"));
    }
    // The limit of the actual family is checked later, when the family is known.
    match text.parse() {
        Ok(length) if length <= Family::V6.address_bits() => Ok(Some(length)),
        _ => invalid(format_args!("prefixlen out of range: {text}")),
    }
}

/// Returns the interface that `text` selects, and the local port in `text`.
///
/// For unicast, the wildcard address means that the operating system chooses the interface.
///
/// Only a name in braces is restricted to `family`. Otherwise the interface may be found by an address of the other
/// family. In this case, only the index of the interface is used.
///
/// # Errors
/// Error code 9 for an unknown host, error code 11 for invalid syntax and if no interface matches.
pub fn resolve_interface(
    names: &mut dyn NameResolver,
    interfaces: &mut dyn Interfaces,
    text: &str,
    family: Family,
    is_multicast: bool,
) -> Result<(Interface, u16), DriverError> {
    let mut list = || {
        interfaces
            .addresses()
            .map_err(|error| DriverError::io(&error, "failed to list the network interfaces"))
    };
    let (host, is_bracketed, port, prefix_length) = match InterfaceSpec::parse(text)? {
        InterfaceSpec::Named { name, port } => {
            return Ok((find_named(&list()?, name, family)?, port));
        }
        InterfaceSpec::Matching {
            host,
            is_bracketed,
            port,
            prefix_length,
        } => (host, is_bracketed, port, prefix_length),
    };
    let address = resolve_host(names, host, is_bracketed)?;
    if address.is_unspecified() && !is_multicast {
        return Ok((Interface { index: 0, address }, port));
    }
    let bits = significant_bits(prefix_length, address)
        .map_err(|error| error.context(format_args!("could not parse interface='{text}'")))?;
    match find_matching(&list()?, address, bits) {
        Some(interface) => Ok((interface, port)),
        None => invalid(format_args!("could not find matching interface='{text}'")),
    }
}

/// Returns the address that the socket of the name resolver binds.
///
/// An address without prefix is bound as it is, even if no interface has it: an example is another address of the
/// loopback network. The system refuses addresses of other hosts.
///
/// # Errors
/// As [`resolve_interface`].
pub fn resolve_bind_address(
    names: &mut dyn NameResolver,
    interfaces: &mut dyn Interfaces,
    text: &str,
) -> Result<SocketAddr, DriverError> {
    if let InterfaceSpec::Matching {
        host,
        is_bracketed,
        port,
        prefix_length: None,
    } = InterfaceSpec::parse(text)?
    {
        let address = resolve_host(names, host, is_bracketed)?;
        return Ok(SocketAddr::new(address, port));
    }
    let (interface, port) = resolve_interface(names, interfaces, text, Family::V4, false)?;
    Ok(SocketAddr::new(interface.address, port))
}

/// Returns how many bits of `address` must match: all, unless the channel sets a prefix length.
fn significant_bits(prefix_length: Option<u8>, address: IpAddr) -> Result<u8, DriverError> {
    let bits = Family::of(address).address_bits();
    match prefix_length {
        Some(length) if length > bits => invalid(format_args!("prefixlen out of range: {length}")),
        Some(length) => Ok(length),
        None => Ok(bits),
    }
}

/// Returns the interface with this name, with its first address of the family.
///
/// # Errors
/// Error code 11 if the interface does not exist, or has no address of the family.
pub fn find_named(
    addresses: &[InterfaceAddress],
    name: &str,
    family: Family,
) -> Result<Interface, DriverError> {
    let mut of_name = addresses
        .iter()
        .filter(|found| found.name == name)
        .peekable();
    if of_name.peek().is_none() {
        return invalid(format_args!("unknown interface {name}"));
    }
    match of_name.find(|found| Family::of(found.address) == family) {
        Some(found) => Ok(found.interface()),
        None => {
            let family = match family {
                Family::V4 => "INET",
                Family::V6 => "INET6",
            };
            invalid(format_args!(
                "no {family} addresses found on interface {name}"
            ))
        }
    }
}

/// Returns an interface that is up and has an address with the same first `prefix_length` bits as `address`.
///
/// Interfaces with multicast are preferred to the loopback interface. Among several interfaces with multicast, the
/// interface with the longest network prefix is chosen.
pub fn find_matching(
    addresses: &[InterfaceAddress],
    address: IpAddr,
    prefix_length: u8,
) -> Option<Interface> {
    let matching = || {
        addresses
            .iter()
            .filter(|found| found.is_up && has_prefix(found.address, address, prefix_length))
    };
    // `max_by_key` returns the last of equal elements; here the first is needed.
    let multicast = matching()
        .filter(|found| found.is_multicast)
        .reduce(|best, next| {
            if next.prefix_length > best.prefix_length {
                next
            } else {
                best
            }
        });
    multicast
        .or_else(|| matching().find(|found| found.is_loopback))
        .map(InterfaceAddress::interface)
}

fn has_prefix(address: IpAddr, other: IpAddr, prefix_length: u8) -> bool {
    let (address, other, bits) = match (address, other) {
        (IpAddr::V4(address), IpAddr::V4(other)) => (
            u128::from(address.to_bits()) << 96,
            u128::from(other.to_bits()) << 96,
            prefix_length,
        ),
        (IpAddr::V6(address), IpAddr::V6(other)) => {
            (address.to_bits(), other.to_bits(), prefix_length)
        }
        _ => return false,
    };
    let mask = u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0);
    (address ^ other) & mask == 0
}

impl Interface {
    /// Returns the value for any interface: the operating system chooses one.
    pub fn any(family: Family) -> Self {
        Self {
            index: 0,
            address: family.wildcard(),
        }
    }
}

impl InterfaceAddress {
    fn interface(&self) -> Interface {
        Interface {
            index: self.index,
            address: self.address,
        }
    }
}

impl Interfaces for SystemInterfaces {
    fn addresses(&mut self) -> io::Result<Vec<InterfaceAddress>> {
        Ok(getifaddrs()?.filter_map(|found| read(&found)).collect())
    }
}

/// Converts an address of the system; `None` if it is not an IP address, or if its interface has just been removed.
fn read(found: &SystemAddress) -> Option<InterfaceAddress> {
    let mask = ip_address(found.netmask.as_ref()?)?;
    let prefix_length = match mask {
        IpAddr::V4(mask) => mask.to_bits().leading_ones(),
        IpAddr::V6(mask) => mask.to_bits().leading_ones(),
    };
    Some(InterfaceAddress {
        index: if_nametoindex(found.interface_name.as_str()).ok()?,
        name: found.interface_name.clone(),
        address: ip_address(found.address.as_ref()?)?,
        prefix_length: prefix_length as u8,
        is_up: found.flags.contains(InterfaceFlags::IFF_UP),
        is_loopback: found.flags.contains(InterfaceFlags::IFF_LOOPBACK),
        is_multicast: found.flags.contains(InterfaceFlags::IFF_MULTICAST),
    })
}

fn ip_address(address: &SockaddrStorage) -> Option<IpAddr> {
    match (address.as_sockaddr_in(), address.as_sockaddr_in6()) {
        (Some(v4), _) => Some(v4.ip().into()),
        (_, Some(v6)) => Some(v6.ip().into()),
        _ => None,
    }
}

fn invalid<T>(message: impl fmt::Display) -> Result<T, DriverError> {
    Err(DriverError::invalid_argument(message))
}
