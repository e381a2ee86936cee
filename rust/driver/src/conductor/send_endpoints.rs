//! The send endpoints: sockets that publications share. The sender has them; what is here says who uses them.

use std::net::SocketAddr;
use std::sync::Arc;

use aeron_memory::buffer::SharedBuffer;
use aeron_memory::counters::{AtomicCounter, types};
use aeron_protocol::uri::{ControlMode, key};

use super::Conductor;
use super::endpoints::{
    BufferLengths, ChannelKind, Endpoint, EndpointState, check_buffer_length,
    check_timestamp_offset, multicast_spec, socket_error,
};
use crate::config::Context;
use crate::error::DriverError;
use crate::media::UdpChannel;
use crate::media::transport::{Socket, SocketSide, SocketSpec};
use crate::sender::{
    DestinationControl, DestinationTracker, Destinations, EndpointId, Peer, SendEndpoint,
    SendEndpointConfig, SenderCommand,
};

/// A send endpoint as the conductor knows it.
#[derive(Debug)]
pub(super) struct SendEndpointRecord {
    pub(super) id: EndpointId,
    pub(super) channel: Arc<UdpChannel>,
    state: EndpointState,
    /// Publications that are sent through it.
    publication_count: usize,
    status: AtomicCounter<SharedBuffer>,
    counter_ids: Vec<i32>,
    /// The local address whose port goes back to the port manager.
    lease: Option<SocketAddr>,
}

impl SendEndpointRecord {
    pub(super) fn status_counter_id(&self) -> i32 {
        self.status.id()
    }
}

impl Endpoint for SendEndpointRecord {
    fn channel(&self) -> &UdpChannel {
        &self.channel
    }

    fn state(&self) -> EndpointState {
        self.state
    }
}

/// All send endpoints.
#[derive(Debug, Default)]
pub(super) struct SendEndpoints(Vec<SendEndpointRecord>);

impl SendEndpoints {
    pub(super) fn all(&self) -> &[SendEndpointRecord] {
        &self.0
    }

    pub(super) fn get(&self, id: EndpointId) -> Option<&SendEndpointRecord> {
        self.0.iter().find(|endpoint| endpoint.id == id)
    }

    fn get_mut(&mut self, id: EndpointId) -> Option<&mut SendEndpointRecord> {
        self.0.iter_mut().find(|endpoint| endpoint.id == id)
    }

    pub(super) fn channel(&self, id: EndpointId) -> Option<&UdpChannel> {
        self.get(id).map(|endpoint| &*endpoint.channel)
    }

    /// One more publication is sent through an endpoint.
    pub(super) fn add_publication(&mut self, id: EndpointId) {
        if let Some(endpoint) = self.get_mut(id) {
            endpoint.publication_count += 1;
        }
    }
}

/// Checks that a publication's channel writes times of sending where the endpoint's channel does.
pub(super) fn check_send_timestamps(
    existing: &UdpChannel,
    channel: &UdpChannel,
) -> Result<(), DriverError> {
    let offset = |channel: &UdpChannel| channel.params.timestamp_offsets.channel_send;
    check_timestamp_offset(
        key::CHANNEL_SND_TIMESTAMP_OFFSET,
        (offset(existing), offset(channel)),
        existing,
        channel,
    )
}

/// Checks the lengths of socket buffers that a publication's channel states against those of the endpoint.
///
/// The endpoint has what its first channel stated, else what the driver's settings say. Lengths that the channel does not state
/// cannot conflict.
pub(super) fn check_stated_buffer_lengths(
    existing: &UdpChannel,
    channel: &UdpChannel,
    context: &Context,
) -> Result<(), DriverError> {
    let granted = BufferLengths::of(existing, context);
    let rcvbuf = channel.params.socket_rcvbuf_length.unwrap_or(0);
    let lengths = (granted.receive, rcvbuf);
    check_buffer_length(key::SOCKET_RCVBUF, lengths, existing, channel)?;
    let sndbuf = channel.params.socket_sndbuf_length.unwrap_or(0);
    let lengths = (granted.send, sndbuf);
    check_buffer_length(key::SOCKET_SNDBUF, lengths, existing, channel)
}

impl Conductor {
    /// Opens the socket of a channel, with its counters, and gives it to the sender.
    pub(super) fn open_send_endpoint(
        &mut self,
        channel: &Arc<UdpChannel>,
        registration_id: i64,
    ) -> Result<EndpointId, DriverError> {
        let (socket, lease) = self.open_send_socket(channel)?;
        let opened = self.count_send_endpoint(channel, socket.local_address(), registration_id);
        let (status, counter_ids, destination_count) = opened.inspect_err(|_| {
            lease
                .into_iter()
                .for_each(|lease| self.sender_ports.release(lease));
        })?;
        let id = self.next_object_id();
        let destinations = self.destinations_of(channel, destination_count);
        let config = SendEndpointConfig {
            id,
            socket,
            destinations,
            send_timestamp_offset: channel.params.timestamp_offsets.channel_send,
        };
        let endpoint = SendEndpoint::new(config, self.outlets.now_ns);
        self.outlets
            .sender_commands
            .send(SenderCommand::AddEndpoint(Box::new(endpoint)));
        self.send_endpoints.0.push(SendEndpointRecord {
            id,
            channel: Arc::clone(channel),
            state: EndpointState::Active,
            publication_count: 0,
            status,
            counter_ids,
            lease,
        });
        Ok(id)
    }

    fn open_send_socket(
        &mut self,
        channel: &UdpChannel,
    ) -> Result<(Box<dyn Socket>, Option<SocketAddr>), DriverError> {
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
            Ok(socket) => Ok((socket, lease)),
            Err(error) => {
                lease
                    .into_iter()
                    .for_each(|lease| self.sender_ports.release(lease));
                Err(socket_error(&error, (spec.bind, spec.connect)))
            }
        }
    }

    fn is_connected(&self, channel: &UdpChannel) -> bool {
        self.context.connect_enabled
            && channel.endpoint.is_some()
            && !channel.is_mdc()
            && !channel.is_response()
    }

    fn count_send_endpoint(
        &mut self,
        channel: &UdpChannel,
        address: SocketAddr,
        registration_id: i64,
    ) -> Result<SendEndpointCounters, DriverError> {
        let text = &channel.text;
        let outlets = &mut self.outlets;
        let kind = ChannelKind::Send;
        let status = outlets.allocate_channel_status(kind, text, Some(address), registration_id)?;
        let mut counter_ids = vec![status.id()];
        let counted = (|| {
            let destination_count = match channel.is_mdc() {
                true => Some(outlets.allocate_destination_count(text, registration_id)?),
                false => None,
            };
            counter_ids.extend(destination_count.as_ref().map(AtomicCounter::id));
            let local =
                outlets.allocate_local_address(kind, status.id(), address, registration_id)?;
            counter_ids.push(local.id());
            Ok(destination_count)
        })();
        match counted {
            Ok(destination_count) => Ok((status, counter_ids, destination_count)),
            Err(error) => {
                outlets.free_counters(counter_ids);
                Err(error)
            }
        }
    }

    fn destinations_of(
        &self,
        channel: &UdpChannel,
        destination_count: Option<AtomicCounter<SharedBuffer>>,
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
        Destinations::Several(DestinationTracker::new(control, counter))
    }

    /// A publication is not sent through the endpoint any more; the last one closes it.
    pub(super) fn release_send_endpoint(&mut self, id: EndpointId) {
        if let Some(endpoint) = self.send_endpoints.get_mut(id) {
            endpoint.publication_count = endpoint.publication_count.saturating_sub(1);
        }
        self.close_unused_send_endpoint(id);
    }

    /// Closes an endpoint that nothing is sent through.
    pub(super) fn close_unused_send_endpoint(&mut self, id: EndpointId) {
        let Some(endpoint) = self.send_endpoints.get_mut(id) else {
            return;
        };
        if endpoint.publication_count == 0 && endpoint.state == EndpointState::Active {
            endpoint.state = EndpointState::Closing;
            endpoint.status.set(types::CHANNEL_CLOSING);
            self.outlets
                .sender_commands
                .send(SenderCommand::RemoveEndpoint(id));
        }
    }

    /// Deletes an endpoint whose socket the sender has closed: the next channel of its form opens a new one.
    pub(super) fn on_send_endpoint_released(&mut self, id: EndpointId) {
        let endpoints = &mut self.send_endpoints.0;
        let Some(index) = endpoints.iter().position(|endpoint| endpoint.id == id) else {
            return;
        };
        let endpoint = endpoints.remove(index);
        self.outlets.free_counters(endpoint.counter_ids);
        if let Some(lease) = endpoint.lease {
            self.sender_ports.release(lease);
        }
    }
}

/// Status, ids of all counters, and the number of destinations if there can be several.
type SendEndpointCounters = (
    AtomicCounter<SharedBuffer>,
    Vec<i32>,
    Option<AtomicCounter<SharedBuffer>>,
);
