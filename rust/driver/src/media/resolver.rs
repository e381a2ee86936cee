//! [`ChannelResolver`]: turns the text of a channel into a [`UdpChannel`], with the addresses of its names and its
//! interface.
//!
//! A lookup can block, so only the native resource agent uses the resolver.

use std::net::SocketAddr;

use aeron_protocol::ErrorCode;
use aeron_protocol::uri::{ChannelUri, ControlMode, Media, NetworkParams, SPY_PREFIX, key};

use super::address::{Family, multicast_control_group};
use super::channel::{ChannelRole, NamedAddress, UdpChannel};
use super::destination::check_destination_keys;
use super::interfaces::{Interface, Interfaces, resolve_interface};
use crate::error::DriverError;
use crate::names::{NameResolver, resolve_address};

/// Resolves channels and names, with the name resolver and the interfaces of one machine.
pub struct ChannelResolver {
    names: Box<dyn NameResolver>,
    interfaces: Box<dyn Interfaces>,
    /// Number for the canonical form of the next channel that leaves a port to the system. The number makes the form
    /// unique.
    next_unique_number: u64,
}

/// The resolved addresses of a channel.
struct Addresses {
    endpoint: Option<NamedAddress>,
    control: Option<NamedAddress>,
    is_multicast: bool,
    interface: Interface,
    /// The local port in the value of `interface`.
    interface_port: u16,
}

impl ChannelResolver {
    /// Creates a resolver that uses `names` and `interfaces`.
    pub fn new(names: Box<dyn NameResolver>, interfaces: Box<dyn Interfaces>) -> Self {
        Self {
            names,
            interfaces,
            next_unique_number: 0,
        }
    }

    /// Resolves the names of a channel.
    ///
    /// # Errors
    /// Error code 1 for invalid syntax and for a channel without anything that identifies it, error code 9 for an
    /// unknown host, error code 11 for all other errors.
    pub fn resolve(
        &mut self,
        channel: &[u8],
        role: ChannelRole,
    ) -> Result<UdpChannel, DriverError> {
        self.resolve_channel(channel, role).map_err(|error| {
            let text = String::from_utf8_lossy(channel);
            error.context(format_args!("failed to parse channel: {text}"))
        })
    }

    /// Resolves the `host:port` that is the value of `parameter` in a channel.
    ///
    /// # Errors
    /// Error code 9 for an unknown host, error code 11 for an invalid port.
    pub fn resolve_name(&mut self, name: &str, parameter: &str) -> Result<SocketAddr, DriverError> {
        resolve_address(&mut *self.names, name).map_err(|error| {
            error.context(format_args!(
                "Unresolved - {parameter}={name}, name-and-port={name}"
            ))
        })
    }

    /// Runs the periodic work of the name resolver. Returns the amount of work done.
    pub fn do_work(&mut self) -> usize {
        self.names.do_work()
    }

    fn resolve_channel(
        &mut self,
        channel: &[u8],
        role: ChannelRole,
    ) -> Result<UdpChannel, DriverError> {
        let text = String::from_utf8_lossy(channel);
        let text = text.strip_prefix(SPY_PREFIX).unwrap_or(&text);
        let uri = parse_uri(channel, role)?;
        let params = NetworkParams::parse(&uri)?;
        let addresses = self.resolve_addresses(&uri)?;
        check_ports(text, &params, role, &addresses)?;
        check_control(text, &uri, role)?;
        let suffix = if role == ChannelRole::ReceiveDestination {
            check_destination_keys(&uri)?;
            String::new()
        } else {
            self.unique_suffix(&params, &addresses)
        };
        addresses.into_channel(text.to_owned(), uri, params, &suffix)
    }

    fn resolve_addresses(&mut self, uri: &ChannelUri) -> Result<Addresses, DriverError> {
        let endpoint = self.resolve_parameter(uri, key::ENDPOINT)?;
        let control = self.resolve_parameter(uri, key::CONTROL)?;
        let is_multicast = endpoint
            .as_ref()
            .is_some_and(|endpoint| endpoint.address.ip().is_multicast());
        // Multicast does not use the control address, but the address must be valid.
        let control = control.filter(|_| !is_multicast);
        let family = family_of(control.as_ref().or(endpoint.as_ref()));
        let every_interface = match family {
            Family::V4 => "0.0.0.0/0",
            Family::V6 => "[0::]/0",
        };
        let stated = uri.get(key::INTERFACE);
        let (interface, interface_port) = match stated.or(is_multicast.then_some(every_interface)) {
            Some(text) => resolve_interface(
                &mut *self.names,
                &mut *self.interfaces,
                text,
                family,
                is_multicast,
            )?,
            None => (Interface::any(family), 0),
        };
        Ok(Addresses {
            endpoint,
            control,
            is_multicast,
            interface,
            interface_port,
        })
    }

    fn resolve_parameter(
        &mut self,
        uri: &ChannelUri,
        parameter: &str,
    ) -> Result<Option<NamedAddress>, DriverError> {
        let Some(name) = uri.get(parameter) else {
            return Ok(None);
        };
        Ok(Some(NamedAddress {
            name: name.to_owned(),
            address: self.resolve_name(name, parameter)?,
        }))
    }

    /// Returns the end of the canonical form. If the channel leaves a port to the system, this end makes the form
    /// unique.
    fn unique_suffix(&mut self, params: &NetworkParams, addresses: &Addresses) -> String {
        let is_open = addresses.says_nothing()
            || addresses.has_open_endpoint()
            || addresses.has_open_control();
        if !is_open || addresses.is_multicast {
            return String::new();
        }
        match params.channel_tag {
            Some(tag) => format!("#{tag}"),
            None => {
                self.next_unique_number += 1;
                format!("-{}", self.next_unique_number - 1)
            }
        }
    }
}

impl Addresses {
    /// Creates the channel. `text` is the channel's text, and `suffix` is the end of its canonical form.
    fn into_channel(
        self,
        text: String,
        uri: ChannelUri,
        params: NetworkParams,
        suffix: &str,
    ) -> Result<UdpChannel, DriverError> {
        let (local, local_text) = match &self.control {
            Some(control) => (control.address, control.name.clone()),
            None => {
                let local = SocketAddr::new(self.interface.address, self.interface_port);
                (local, local.to_string())
            }
        };
        let (remote, remote_text) = match &self.endpoint {
            Some(endpoint) if self.is_multicast => (endpoint.address, endpoint.address.to_string()),
            Some(endpoint) => (endpoint.address, endpoint.name.clone()),
            None => {
                let any = SocketAddr::new(family_of(self.control.as_ref()).wildcard(), 0);
                (any, any.to_string())
            }
        };
        let remote_control = if self.is_multicast {
            multicast_control_group(remote)?
        } else {
            remote
        };
        Ok(UdpChannel {
            text,
            uri,
            params,
            canonical_form: format!("UDP-{local_text}-{remote_text}{suffix}"),
            endpoint: self.endpoint,
            control: self.control,
            is_multicast: self.is_multicast,
            interface: self.interface,
            remote_data: remote,
            local_data: local,
            remote_control,
            local_control: local,
        })
    }

    fn has_open_endpoint(&self) -> bool {
        has_port_zero(&self.endpoint)
    }

    fn has_open_control(&self) -> bool {
        has_port_zero(&self.control)
    }

    fn says_nothing(&self) -> bool {
        self.endpoint.is_none() && self.control.is_none()
    }
}

fn parse_uri(channel: &[u8], role: ChannelRole) -> Result<ChannelUri, DriverError> {
    let uri = ChannelUri::from_bytes(channel)?;
    if uri.media() != Media::Udp {
        return Err(DriverError::coded(
            ErrorCode::InvalidChannel,
            "UDP channels must use UDP URIs",
        ));
    }
    if uri.is_spy() != (role == ChannelRole::Spy) {
        return Err(DriverError::coded(
            ErrorCode::InvalidChannel,
            format_args!("invalid URI scheme or transport: {uri}"),
        ));
    }
    Ok(uri.with_spy(false))
}

fn check_ports(
    text: &str,
    params: &NetworkParams,
    role: ChannelRole,
    addresses: &Addresses,
) -> Result<(), DriverError> {
    let learns_destinations = matches!(
        params.control_mode,
        ControlMode::Dynamic | ControlMode::Manual
    );
    match role {
        ChannelRole::Publication if addresses.has_open_endpoint() && !learns_destinations => {
            invalid(format_args!(
                "endpoint has port=0 for publication: channel={text}"
            ))
        }
        ChannelRole::Subscription | ChannelRole::ReceiveDestination
            if addresses.has_open_control() =>
        {
            invalid(format_args!(
                "control has port=0 for subscription: channel={text}"
            ))
        }
        _ => Ok(()),
    }
}

/// Checks that a publication with only a control address also has a control mode.
///
/// Otherwise the publication would have no destination.
fn check_control(text: &str, uri: &ChannelUri, role: ChannelRole) -> Result<(), DriverError> {
    let is_alone = uri.get(key::CONTROL).is_some()
        && uri.get(key::ENDPOINT).is_none()
        && uri.get(key::CONTROL_MODE).is_none();
    if role != ChannelRole::Publication || !is_alone {
        return Ok(());
    }
    invalid(format_args!(
        "'control' parameter requires that either 'endpoint' or 'control-mode' is specified, channel={text}"
    ))
}

fn has_port_zero(named: &Option<NamedAddress>) -> bool {
    named
        .as_ref()
        .is_some_and(|named| named.address.port() == 0)
}

fn family_of(named: Option<&NamedAddress>) -> Family {
    named.map_or(Family::V4, |named| Family::of(named.address.ip()))
}

fn invalid<T>(message: std::fmt::Arguments<'_>) -> Result<T, DriverError> {
    Err(DriverError::invalid_argument(message))
}
