//! The send endpoints: sockets that publications share.

use std::net::SocketAddr;
use std::sync::Arc;

use aeron_memory::buffer::SharedBuffer;
use aeron_memory::counters::{AtomicCounter, types};
use aeron_protocol::ErrorCode;
use aeron_protocol::uri::{ControlMode, key};

use super::Endpoints;
use super::agreement::{
    BufferLengths, ChannelPair, Endpoint, EndpointState, check_mtu, closing, find_shared,
    multicast_spec, socket_error,
};
use super::channel_counters::ChannelKind;
use crate::conductor::outlets::ConductorOutlets;
use crate::config::Context;
use crate::error::DriverError;
use crate::media::transport::{Socket, SocketSide, SocketSpec};
use crate::media::{DataAddresses, UdpChannel};
use crate::sender::{
    DestinationControl, DestinationTracker, Destinations, Peer, SendEndpoint, SendEndpointConfig,
    SendEndpointId, SenderCommand,
};

/// The conductor's record of a send endpoint.
#[derive(Debug)]
pub(super) struct SendEndpointRecord {
    id: SendEndpointId,
    channel: Arc<UdpChannel>,
    /// The current addresses of the data. A name of the channel may have got another address.
    addresses: DataAddresses,
    state: EndpointState,
    /// Number of publications that use the endpoint.
    publication_count: usize,
    status: AtomicCounter<SharedBuffer>,
    counter_ids: Vec<i32>,
    /// The local address. Its port is returned to the port manager when the socket is closed.
    lease: Option<SocketAddr>,
}

impl Endpoint for SendEndpointRecord {
    fn channel(&self) -> &UdpChannel {
        &self.channel
    }

    fn state(&self) -> EndpointState {
        self.state
    }

    fn data_addresses(&self) -> DataAddresses {
        self.addresses
    }
}

/// A sending socket and its local address. The port of the address is returned to the port manager later.
struct LeasedSendSocket {
    socket: Box<dyn Socket>,
    lease: Option<SocketAddr>,
}

/// The counters of a send endpoint.
struct SendEndpointCounters {
    status: AtomicCounter<SharedBuffer>,
    /// The number of destinations, for an endpoint that may have several.
    destination_count: Option<AtomicCounter<SharedBuffer>>,
    /// The ids of all counters.
    ids: Vec<i32>,
}

/// Checks that the socket buffer lengths in a publication's channel are equal to the lengths of the endpoint.
///
/// The endpoint has the lengths of its first channel, or else the lengths of the configuration. Lengths that the
/// channel does not set cannot conflict.
fn check_stated_buffer_lengths(
    channels: ChannelPair<'_>,
    context: &Context,
) -> Result<(), DriverError> {
    let granted = BufferLengths::of(channels.existing, context);
    let stated = &channels.requested.params;
    let rcvbuf = stated.socket_rcvbuf_length.unwrap_or(0);
    channels.check_buffer_length(key::SOCKET_RCVBUF, granted.receive, rcvbuf)?;
    let sndbuf = stated.socket_sndbuf_length.unwrap_or(0);
    channels.check_buffer_length(key::SOCKET_SNDBUF, granted.send, sndbuf)
}

impl Endpoints {
    fn send_endpoint(&self, id: SendEndpointId) -> Option<&SendEndpointRecord> {
        self.send.iter().find(|endpoint| endpoint.id == id)
    }

    fn send_endpoint_mut(&mut self, id: SendEndpointId) -> Option<&mut SendEndpointRecord> {
        self.send.iter_mut().find(|endpoint| endpoint.id == id)
    }

    /// Records the new address of a name, if it is the name of the endpoint and not of a destination.
    pub(super) fn move_send(&mut self, id: SendEndpointId, name: &str, address: SocketAddr) {
        if let Some(endpoint) = self.send_endpoint_mut(id)
            && let Some(own) = &endpoint.channel.endpoint
            && own.name == name
        {
            endpoint.addresses.remote = address;
        }
    }

    /// Returns the channel that a send endpoint was opened for.
    pub fn sent_channel(&self, id: SendEndpointId) -> Option<&UdpChannel> {
        self.send_endpoint(id).map(|endpoint| &*endpoint.channel)
    }

    /// Returns the id of the channel status counter of a send endpoint.
    pub fn send_status_counter_id(&self, id: SendEndpointId) -> Option<i32> {
        self.send_endpoint(id).map(|endpoint| endpoint.status.id())
    }

    /// Returns the existing send endpoint of a publication's channel, after checking that the parameters match.
    pub fn find_send(
        &self,
        channel: &UdpChannel,
        mtu_length: i32,
    ) -> Result<Option<SendEndpointId>, DriverError> {
        let endpoint = find_shared(&self.send, channel)?;
        let channels = endpoint.map(|endpoint| ChannelPair {
            existing: &endpoint.channel,
            requested: channel,
        });
        match channels {
            Some(channels) => channels
                .check_timestamp_offset(key::CHANNEL_SND_TIMESTAMP_OFFSET, |it| it.channel_send)?,
            None => channel.check_original_publication()?,
        }
        check_mtu(
            mtu_length,
            channels.map(|channels| channels.existing),
            channel,
            &self.context,
            self.system_socket_buffers.send,
        )?;
        if let Some(channels) = channels {
            check_stated_buffer_lengths(channels, &self.context)?;
        }
        Ok(endpoint.map(|endpoint| endpoint.id))
    }

    /// Returns the endpoint of a publication with manual control, unless the endpoint is closing.
    ///
    /// `id` is `None` if there is no such publication.
    pub fn manual_send_endpoint(
        &self,
        id: Option<SendEndpointId>,
        publication_id: i64,
    ) -> Result<SendEndpointId, DriverError> {
        let endpoint = id.and_then(|id| self.send_endpoint(id)).ok_or_else(|| {
            DriverError::coded(
                ErrorCode::UnknownPublication,
                format_args!("unknown publication registration_id={publication_id}"),
            )
        })?;
        if endpoint.channel.control_mode() != ControlMode::Manual {
            return Err(DriverError::invalid_argument(format_args!(
                "channel does not allow manual control of destinations: publication_registration_id={publication_id}"
            )));
        }
        match endpoint.state() {
            EndpointState::Active => Ok(endpoint.id),
            EndpointState::Closing => Err(closing(&endpoint.channel)),
        }
    }

    /// Opens the endpoint of a channel, allocates the endpoint's counters, and passes the endpoint to the sender.
    pub fn open_send(
        &mut self,
        channel: &Arc<UdpChannel>,
        registration_id: i64,
        outlets: &mut ConductorOutlets,
    ) -> Result<SendEndpointId, DriverError> {
        let LeasedSendSocket { socket, lease } = self.open_send_socket(channel)?;
        let counters =
            count_send_endpoint(channel, socket.local_address(), registration_id, outlets)
                .inspect_err(|_| self.release_send_port(lease))?;
        let id = self.next_object_id();
        let config = SendEndpointConfig {
            id,
            socket,
            destinations: self.destinations_of(channel, counters.destination_count, outlets),
            send_timestamp_offset: channel.params.timestamp_offsets.channel_send,
        };
        let endpoint = SendEndpoint::new(config, outlets.now_ns);
        outlets
            .sender_commands
            .send(SenderCommand::AddEndpoint(Box::new(endpoint)));
        self.send.push(SendEndpointRecord {
            id,
            channel: Arc::clone(channel),
            addresses: channel.data_addresses(),
            state: EndpointState::Active,
            publication_count: 0,
            status: counters.status,
            counter_ids: counters.ids,
            lease,
        });
        Ok(id)
    }

    fn open_send_socket(&mut self, channel: &UdpChannel) -> Result<LeasedSendSocket, DriverError> {
        let lease = match &channel.control {
            Some(control) => Some(self.sender_ports.lease(control.address)?),
            None => None,
        };
        let lengths = BufferLengths::of(channel, &self.context);
        let spec = SocketSpec {
            bind: match lease {
                Some(lease) => lease,
                None if channel.is_multicast => channel.remote_control,
                None => channel.local_control,
            },
            connect: self.is_connected(channel).then_some(channel.remote_data),
            multicast: multicast_spec(channel, channel.remote_control, &self.context),
            send_buffer_length: lengths.send as usize,
            receive_buffer_length: lengths.receive as usize,
            receive_timestamps: false,
            side: SocketSide::Sender,
        };
        match self.network.open(&spec) {
            Ok(socket) => Ok(LeasedSendSocket { socket, lease }),
            Err(error) => {
                self.release_send_port(lease);
                Err(socket_error(&error, &spec))
            }
        }
    }

    fn release_send_port(&mut self, lease: Option<SocketAddr>) {
        if let Some(lease) = lease {
            self.sender_ports.release(lease);
        }
    }

    fn is_connected(&self, channel: &UdpChannel) -> bool {
        self.context.connect_enabled
            && channel.endpoint.is_some()
            && !channel.is_mdc()
            && !channel.is_response()
    }

    fn destinations_of(
        &self,
        channel: &UdpChannel,
        destination_count: Option<AtomicCounter<SharedBuffer>>,
        outlets: &mut ConductorOutlets,
    ) -> Destinations {
        let control = match channel.control_mode() {
            ControlMode::Dynamic => DestinationControl::Dynamic,
            ControlMode::Manual => DestinationControl::Manual,
            ControlMode::Response => return Destinations::PerPublication,
            ControlMode::None => {
                let name = channel.endpoint.as_ref().map(|endpoint| &*endpoint.name);
                return Destinations::One(Peer {
                    name: name.filter(|_| !channel.is_multicast).map(Arc::from),
                    address: channel.remote_data,
                    is_multicast: channel.is_multicast,
                    is_connected: self.is_connected(channel),
                });
            }
        };
        let counter = destination_count.expect("channels with several destinations count them");
        let challenge_key = outlets.random.u128(..);
        Destinations::Several(DestinationTracker::new(control, counter, challenge_key))
    }

    /// Increments the number of publications that use an endpoint.
    pub fn add_publication(&mut self, id: SendEndpointId) {
        debug_assert!(
            self.send_endpoint(id)
                .is_some_and(|endpoint| endpoint.state == EndpointState::Active),
            "a publication is added to endpoint {id}, which is closed or closing"
        );
        if let Some(endpoint) = self.send_endpoint_mut(id) {
            endpoint.publication_count += 1;
        }
    }

    /// Decrements the number of publications that use an endpoint. Closes the endpoint if none is left.
    pub fn remove_publication(&mut self, id: SendEndpointId, outlets: &mut ConductorOutlets) {
        if let Some(endpoint) = self.send_endpoint_mut(id) {
            debug_assert!(
                endpoint.publication_count > 0,
                "a publication leaves endpoint {id}, which has none"
            );
            endpoint.publication_count = endpoint.publication_count.saturating_sub(1);
        }
        self.close_unused_send(id, outlets);
    }

    /// Closes an endpoint if no publication uses it.
    pub fn close_unused_send(&mut self, id: SendEndpointId, outlets: &mut ConductorOutlets) {
        let Some(endpoint) = self.send_endpoint_mut(id) else {
            return;
        };
        if endpoint.publication_count == 0 && endpoint.state == EndpointState::Active {
            endpoint.state = EndpointState::Closing;
            endpoint.status.set(types::CHANNEL_CLOSING);
            outlets
                .sender_commands
                .send(SenderCommand::RemoveEndpoint(id));
        }
    }

    /// Deletes an endpoint after the sender has closed its socket. The next publication on the channel opens a new
    /// endpoint.
    pub fn on_send_released(&mut self, id: SendEndpointId, outlets: &mut ConductorOutlets) {
        let Some(index) = self.send.iter().position(|endpoint| endpoint.id == id) else {
            return;
        };
        let endpoint = self.send.remove(index);
        debug_assert_eq!(
            (endpoint.state, endpoint.publication_count),
            (EndpointState::Closing, 0),
            "endpoint {id} was released, but publications use it"
        );
        outlets.free_counters(endpoint.counter_ids);
        self.release_send_port(endpoint.lease);
    }
}

/// Allocates the counters of an endpoint that is bound to `address`. If there is no room for all of them, allocates
/// none.
fn count_send_endpoint(
    channel: &UdpChannel,
    address: SocketAddr,
    registration_id: i64,
    outlets: &mut ConductorOutlets,
) -> Result<SendEndpointCounters, DriverError> {
    let text = &channel.text;
    let kind = ChannelKind::Send;
    let status = outlets.allocate_channel_status(kind, text, Some(address), registration_id)?;
    let mut ids = vec![status.id()];
    let counted = (|| {
        let destination_count = match channel.is_mdc() {
            true => Some(outlets.allocate_destination_count(text, registration_id)?),
            false => None,
        };
        ids.extend(destination_count.as_ref().map(AtomicCounter::id));
        let local = outlets.allocate_local_address(kind, status.id(), address, registration_id)?;
        ids.push(local.id());
        Ok(destination_count)
    })();
    match counted {
        Ok(destination_count) => Ok(SendEndpointCounters {
            status,
            destination_count,
            ids,
        }),
        Err(error) => {
            outlets.free_counters(ids);
            Err(error)
        }
    }
}
