//! Rules for both send and receive endpoints. They decide which endpoint a channel uses, and which parameters must
//! match.

use std::net::{IpAddr, SocketAddr};

use aeron_protocol::ErrorCode;
use aeron_protocol::uri::{TimestampOffsets, key};

use crate::config::Context;
use crate::error::DriverError;
use crate::media::transport::{MulticastSpec, SocketSpec};
use crate::media::{DataAddresses, UdpChannel};

/// State of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EndpointState {
    Active,
    /// The endpoint is unused. Its agent is closing the sockets. After that, the conductor deletes the endpoint.
    Closing,
}

/// The parts of an endpoint that decide whether a channel shares it.
pub(super) trait Endpoint {
    fn channel(&self) -> &UdpChannel;

    fn state(&self) -> EndpointState;

    /// Returns the current addresses of the data.
    fn data_addresses(&self) -> DataAddresses;
}

/// Returns the endpoint that a channel shares: by tag, else by canonical form.
///
/// # Errors
/// Error code 11 if another channel has the same tag, error code 10 if the endpoint is closing.
pub(super) fn find_shared<'a, E: Endpoint>(
    endpoints: &'a [E],
    channel: &UdpChannel,
) -> Result<Option<&'a E>, DriverError> {
    let mut found = None;
    for endpoint in endpoints {
        if channel.matches_tag(endpoint.channel(), endpoint.data_addresses())? {
            found = Some(endpoint);
            break;
        }
    }
    let found = found.or_else(|| {
        endpoints
            .iter()
            .find(|endpoint| channel.matches_canonical_form(endpoint.channel()))
    });
    match found {
        Some(endpoint) if endpoint.state() != EndpointState::Active => Err(closing(channel)),
        found => Ok(found),
    }
}

/// Creates the error for a closing endpoint. The error asks the client to try again.
pub(super) fn closing(channel: &UdpChannel) -> DriverError {
    DriverError::coded(
        ErrorCode::ResourceTemporarilyUnavailable,
        format_args!(
            "channel endpoint {} found in CLOSING state, please retry",
            channel.canonical_form
        ),
    )
}

/// The channel that an endpoint was created for, and another channel that shares the endpoint.
#[derive(Clone, Copy)]
pub(super) struct ChannelPair<'a> {
    pub(super) existing: &'a UdpChannel,
    pub(super) requested: &'a UdpChannel,
}

impl ChannelPair<'_> {
    /// Checks the offset of a timestamp in messages: it must be the same for all channels of an endpoint.
    pub(super) fn check_timestamp_offset(
        self,
        key: &str,
        offset: impl Fn(&TimestampOffsets) -> Option<i32>,
    ) -> Result<(), DriverError> {
        const NOWHERE: i32 = -1;
        let requested = offset(&self.requested.params.timestamp_offsets);
        if requested == offset(&self.existing.params.timestamp_offsets) {
            return Ok(());
        }
        Err(DriverError::invalid_argument(format_args!(
            "option conflicts with existing subscription: {key}={} existingChannel={} channel={}",
            requested.unwrap_or(NOWHERE),
            self.existing.text,
            self.requested.text
        )))
    }

    /// Checks the length of a socket buffer.
    ///
    /// A granted length of 0 is the operating system's default. If the requested length is 0, the channel accepts every
    /// granted length.
    pub(super) fn check_buffer_length(
        self,
        key: &str,
        granted: i64,
        requested: i64,
    ) -> Result<(), DriverError> {
        if requested == 0 || granted == requested {
            return Ok(());
        }
        let text = |length: i64| match length {
            0 => "OS default".to_owned(),
            length => length.to_string(),
        };
        Err(DriverError::invalid_argument(format_args!(
            "{key}={} does not match existing value of {}: existingChannel={} channel={}",
            text(requested),
            text(granted),
            self.existing.text,
            self.requested.text
        )))
    }
}

/// Lengths of socket buffers that a channel or the configuration requests; 0 is the operating system's default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BufferLengths {
    pub(super) send: i64,
    pub(super) receive: i64,
}

impl BufferLengths {
    pub(super) fn of(channel: &UdpChannel, context: &Context) -> Self {
        let params = &channel.params;
        Self {
            send: params
                .socket_sndbuf_length
                .unwrap_or(context.socket_sndbuf as i64),
            receive: params
                .socket_rcvbuf_length
                .unwrap_or(context.socket_rcvbuf as i64),
        }
    }
}

/// Returns the group that a multicast socket joins, with its interface and TTL; `None` for a unicast channel.
pub(super) fn multicast_spec(
    channel: &UdpChannel,
    group: SocketAddr,
    context: &Context,
) -> Option<MulticastSpec> {
    channel.is_multicast.then(|| MulticastSpec {
        group: group.ip(),
        interface: channel.interface.address,
        interface_index: channel.interface.index,
        ttl: channel.params.ttl.unwrap_or(context.multicast_ttl as u8),
    })
}

/// Creates the error for a socket that could not be opened.
pub(super) fn socket_error(error: &std::io::Error, spec: &SocketSpec) -> DriverError {
    let bind = spec.bind;
    let is_link_local = |address: SocketAddr| match address.ip() {
        IpAddr::V6(address) => address.is_unicast_link_local(),
        IpAddr::V4(_) => false,
    };
    // The system refuses these addresses with `Invalid argument`, which does not name the reason.
    let hint = match is_link_local(bind) || spec.connect.is_some_and(is_link_local) {
        true => ": a link-local address needs its scope, which drivers ignore: use another address",
        false => "",
    };
    match spec.connect {
        Some(peer) => DriverError::io(
            error,
            format!("failed to bind({bind}) or failed to connect to address: {peer}{hint}"),
        ),
        None => DriverError::io(error, format!("failed to bind({bind}){hint}")),
    }
}

/// Checks that the longest datagram of a publication fits into the send buffer of its socket, which may not be open
/// yet.
pub(super) fn check_mtu(
    mtu_length: i32,
    existing: Option<&UdpChannel>,
    channel: &UdpChannel,
    context: &Context,
    system_send_buffer: i32,
) -> Result<(), DriverError> {
    let granted = |existing| BufferLengths::of(existing, context).send;
    let known = [
        ("endpoint", existing.map_or(0, granted)),
        ("channel", channel.params.socket_sndbuf_length.unwrap_or(0)),
        ("context", context.socket_sndbuf as i64),
        ("os default", system_send_buffer.into()),
    ];
    match known.iter().find(|(_, length)| *length != 0) {
        Some((source, length)) if i64::from(mtu_length) > *length => {
            Err(DriverError::invalid_argument(format_args!(
                "MTU greater than SO_SNDBUF for {source}: mtu={mtu_length} {}={length}",
                key::SOCKET_SNDBUF
            )))
        }
        _ => Ok(()),
    }
}
