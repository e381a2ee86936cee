//! What send and receive endpoints have in common: which channel shares which endpoint, what must agree then, and their counters.

use std::net::SocketAddr;

use aeron_memory::buffer::SharedBuffer;
use aeron_memory::counters::{AtomicCounter, NewCounter, keys, types};
use aeron_protocol::ErrorCode;
use aeron_protocol::uri::key;

use super::outlets::Outlets;
use crate::config::Context;
use crate::error::DriverError;
use crate::media::UdpChannel;
use crate::media::transport::MulticastSpec;

/// Where an endpoint is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EndpointState {
    Active,
    /// Unused: the agent that owns its sockets is closing them, and the record goes when they are closed.
    Closing,
}

/// An endpoint as channels find it.
pub(super) trait Endpoint {
    fn channel(&self) -> &UdpChannel;

    fn state(&self) -> EndpointState;
}

/// The endpoint that a channel shares: by tag, else by canonical form.
///
/// # Errors
/// Code 11 when a tag is used for different channels, 10 when the endpoint is closing.
pub(super) fn find_shared<'a, E: Endpoint>(
    endpoints: &'a [E],
    channel: &UdpChannel,
) -> Result<Option<&'a E>, DriverError> {
    let mut found = None;
    for endpoint in endpoints {
        if channel.matches_tag(endpoint.channel())? {
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

/// Clients are asked to try again.
pub(super) fn closing(channel: &UdpChannel) -> DriverError {
    DriverError::coded(
        ErrorCode::ResourceTemporarilyUnavailable,
        format_args!(
            "channel endpoint {} found in CLOSING state, please retry",
            channel.canonical_form
        ),
    )
}

/// Checks where times are written, which all channels of an endpoint have in common.
pub(super) fn check_timestamp_offset(
    key: &str,
    (existing, requested): (Option<i32>, Option<i32>),
    existing_channel: &UdpChannel,
    channel: &UdpChannel,
) -> Result<(), DriverError> {
    const NOWHERE: i32 = -1;
    if existing == requested {
        return Ok(());
    }
    Err(DriverError::invalid_argument(format_args!(
        "option conflicts with existing subscription: {key}={} existingChannel={} channel={}",
        requested.unwrap_or(NOWHERE),
        existing_channel.text,
        channel.text
    )))
}

/// Checks a length of a socket buffer. An existing length of 0 is the operating system's default; a requested length of 0
/// asks for nothing and fits every endpoint.
pub(super) fn check_buffer_length(
    key: &str,
    (existing, requested): (i64, i64),
    existing_channel: &UdpChannel,
    channel: &UdpChannel,
) -> Result<(), DriverError> {
    if requested == 0 || existing == requested {
        return Ok(());
    }
    let text = |length: i64| match length {
        0 => "OS default".to_owned(),
        length => length.to_string(),
    };
    Err(DriverError::invalid_argument(format_args!(
        "{key}={} does not match existing value of {}: existingChannel={} channel={}",
        text(requested),
        text(existing),
        existing_channel.text,
        channel.text
    )))
}

/// Lengths of socket buffers as a channel or the driver's settings ask for them; 0 is the operating system's default.
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

/// The group that a multicast socket joins, with the way to it.
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

/// Fails like the socket that could not be opened.
pub(super) fn socket_error(
    error: &std::io::Error,
    (bind, connect): (SocketAddr, Option<SocketAddr>),
) -> DriverError {
    match connect {
        Some(peer) => DriverError::io(
            error,
            format!("failed to bind({bind}) or failed to connect to address: {peer}"),
        ),
        None => DriverError::io(error, format!("failed to bind({bind})")),
    }
}

/// The counters that show what an endpoint is bound to.
#[derive(Clone, Copy, Debug)]
pub(super) enum ChannelKind {
    Send,
    Receive,
}

impl ChannelKind {
    fn status(self) -> (i32, &'static str) {
        match self {
            Self::Send => (types::SEND_CHANNEL_STATUS, "snd-channel"),
            Self::Receive => (types::RECEIVE_CHANNEL_STATUS, "rcv-channel"),
        }
    }

    fn local_address(self) -> &'static str {
        match self {
            Self::Send => "snd-local-sockaddr",
            Self::Receive => "rcv-local-sockaddr",
        }
    }
}

impl Outlets {
    /// The status of a channel, bound to `address` if it has only one.
    pub(super) fn allocate_channel_status(
        &mut self,
        kind: ChannelKind,
        channel: &str,
        address: Option<SocketAddr>,
        registration_id: i64,
    ) -> Result<AtomicCounter<SharedBuffer>, DriverError> {
        let (type_id, name) = kind.status();
        let address = address.map(|address| address.to_string());
        let label = format!("{name}: {channel} {}", address.unwrap_or_default());
        self.allocate_counter(&NewCounter {
            type_id,
            key: &keys::channel_key(channel),
            label: label.as_bytes(),
            registration_id,
            owner_id: 0,
            reference_id: 0,
            value: types::CHANNEL_ACTIVE,
        })
    }

    /// An address that a channel is bound to.
    pub(super) fn allocate_local_address(
        &mut self,
        kind: ChannelKind,
        channel_status_id: i32,
        address: SocketAddr,
        registration_id: i64,
    ) -> Result<AtomicCounter<SharedBuffer>, DriverError> {
        let address = address.to_string();
        let label = keys::local_address_label(kind.local_address(), channel_status_id, &address);
        self.allocate_counter(&NewCounter {
            type_id: types::LOCAL_SOCKET_ADDRESS,
            key: &keys::local_address_key(channel_status_id, &address),
            label: label.as_bytes(),
            registration_id,
            owner_id: 0,
            reference_id: 0,
            value: types::CHANNEL_ACTIVE,
        })
    }

    /// How many destinations a channel has.
    pub(super) fn allocate_destination_count(
        &mut self,
        channel: &str,
        registration_id: i64,
    ) -> Result<AtomicCounter<SharedBuffer>, DriverError> {
        self.allocate_counter(&NewCounter {
            type_id: types::MDC_DESTINATIONS,
            key: &keys::channel_key(channel),
            label: format!("mdc-num-dest: {channel}").as_bytes(),
            registration_id,
            owner_id: 0,
            reference_id: 0,
            value: 0,
        })
    }
}

/// Checks that the longest datagram of a publication fits the buffer that its socket has or will have.
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
        Some((whose, length)) if i64::from(mtu_length) > *length => {
            Err(DriverError::invalid_argument(format_args!(
                "MTU greater than SO_SNDBUF for {whose}: mtu={mtu_length} {}={length}",
                key::SOCKET_SNDBUF
            )))
        }
        _ => Ok(()),
    }
}
