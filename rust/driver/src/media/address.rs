//! Parses the text `host:port` of a channel, and calculates multicast control groups.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use aeron_protocol::ErrorCode;

use crate::error::DriverError;

/// An address family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

/// A host and a port. The host is a name or an address, and is not resolved yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostAndPort<'a> {
    /// The host, without brackets and without the scope of an IPv6 address. If the text has no host, the host is
    /// [`LOOPBACK`].
    pub host: &'a str,
    /// The port.
    pub port: u16,
    /// Whether the host was in brackets. It must then be an IPv6 address.
    pub is_bracketed: bool,
}

/// The host of an address such as `:40134`, as in the Java driver.
const LOOPBACK: &str = "127.0.0.1";
const MAX_HOST_LENGTH: usize = 383;
const MAX_PORT_TEXT_LENGTH: usize = 7;

impl Family {
    /// Returns the family of an address.
    pub fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(_) => Self::V4,
            IpAddr::V6(_) => Self::V6,
        }
    }

    /// Returns the wildcard address.
    pub fn wildcard(self) -> IpAddr {
        match self {
            Self::V4 => Ipv4Addr::UNSPECIFIED.into(),
            Self::V6 => Ipv6Addr::UNSPECIFIED.into(),
        }
    }

    /// Returns the length of an address in bits.
    pub fn address_bits(self) -> u8 {
        match self {
            Self::V4 => 32,
            Self::V6 => 128,
        }
    }
}

impl<'a> HostAndPort<'a> {
    /// Parses `host:port` or `[IPv6 address]:port`.
    ///
    /// # Errors
    /// Error code 11 with the reason, usually an invalid port. Code 1 if the text has a character that separates
    /// something else, such as `&`.
    pub fn parse(text: &'a str) -> Result<Self, DriverError> {
        if let Some(separator) = text.chars().find(|c| matches!(c, '&' | ',')) {
            return Err(DriverError::coded(
                ErrorCode::InvalidChannel,
                format_args!(
                    "invalid format: {text}, '{separator}' is not part of an address, and '|' separates parameters"
                ),
            ));
        }
        let (host, port, is_bracketed) = match split_brackets(text) {
            Some((inside, after)) => (without_scope(inside), after.strip_prefix(':'), true),
            None => match text.rsplit_once(':') {
                Some((host, port)) => (host, Some(port), false),
                None => (text, None, false),
            },
        };
        let Some(port) = port else {
            return Err(DriverError::invalid_argument("port invalid: ''"));
        };
        if port.is_empty() || port.len() > MAX_PORT_TEXT_LENGTH {
            return Err(DriverError::invalid_argument(format_args!(
                "port invalid: {text}"
            )));
        }
        let port = parse_port(port)?;
        check_host(host, is_bracketed)?;
        Ok(Self {
            host: match host {
                "" if !is_bracketed => LOOPBACK,
                host => host,
            },
            port,
            is_bracketed,
        })
    }
}

/// Returns the text in the brackets at the beginning of `text`, and the text after them.
pub(super) fn split_brackets(text: &str) -> Option<(&str, &str)> {
    text.strip_prefix('[')?.split_once(']')
}

/// Returns an IPv6 address without its scope. The drivers for C and Java ignore the scope too.
pub(super) fn without_scope(address: &str) -> &str {
    address.split_once('%').map_or(address, |(plain, _)| plain)
}

/// Parses a decimal port.
pub(super) fn parse_port(text: &str) -> Result<u16, DriverError> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(DriverError::invalid_argument(format_args!(
            "port invalid: '{text}'"
        )));
    }
    text.parse()
        .map_err(|_| DriverError::invalid_argument(format_args!("port out of range: '{text}'")))
}

fn check_host(host: &str, is_bracketed: bool) -> Result<(), DriverError> {
    if host.len() > MAX_HOST_LENGTH {
        return Err(DriverError::invalid_argument(format_args!(
            "host name of {} bytes exceeds the limit of {MAX_HOST_LENGTH}",
            host.len()
        )));
    }
    // A bracket without its closing bracket counts as part of a name, which then cannot be resolved.
    if !is_bracketed && !host.starts_with('[') && host.contains(':') {
        return Err(DriverError::invalid_argument(format_args!(
            "an IPv6 address must be in brackets: {host}"
        )));
    }
    Ok(())
}

/// Returns the control group of a multicast channel: the data group with its last byte increased by one, without carry.
///
/// # Errors
/// Error code 11 if the last byte of the data group is even.
pub fn multicast_control_group(data: SocketAddr) -> Result<SocketAddr, DriverError> {
    let next = |last: u8| match last % 2 {
        1 => Ok(last.wrapping_add(1)),
        _ => Err(DriverError::invalid_argument(
            "Multicast data address must be odd",
        )),
    };
    let group = match data.ip() {
        IpAddr::V4(group) => {
            let mut octets = group.octets();
            octets[3] = next(octets[3])?;
            IpAddr::from(octets)
        }
        IpAddr::V6(group) => {
            let mut octets = group.octets();
            octets[15] = next(octets[15])?;
            IpAddr::from(octets)
        }
    };
    Ok(SocketAddr::new(group, data.port()))
}
