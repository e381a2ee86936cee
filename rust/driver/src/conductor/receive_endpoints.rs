//! The receive endpoints: what subscriptions of one channel share. The receiver has their sockets; what is here says who listens.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;

use aeron_memory::buffer::SharedBuffer;
use aeron_memory::counters::{AtomicCounter, types};
use aeron_protocol::uri::{ControlMode, SubscriptionParams};

use super::Conductor;
use super::endpoints::{
    BufferLengths, ChannelKind, Endpoint, EndpointState, multicast_spec, socket_error,
};
use super::links::{Source, Subscription};
use crate::error::DriverError;
use crate::media::UdpChannel;
use crate::media::transport::{Socket, SocketSide, SocketSpec};
use crate::receiver::{
    DestinationId, EndpointId, ReceiveDestination, ReceiveEndpoint, ReceiverCommand,
    ReceiverIdentity,
};
use crate::stream::StreamSession;

/// A receive endpoint as the conductor knows it.
#[derive(Debug)]
pub(super) struct ReceiveEndpointRecord {
    pub(super) id: EndpointId,
    pub(super) channel: Arc<UdpChannel>,
    /// What its channel says to its images: the first subscription's parameters.
    pub(super) params: SubscriptionParams,
    state: EndpointState,
    status: AtomicCounter<SharedBuffer>,
    destinations: Vec<DestinationRecord>,
    interests: Interests,
    image_count: usize,
}

/// A socket of an endpoint.
#[derive(Debug)]
pub(super) struct DestinationRecord {
    pub(super) id: DestinationId,
    pub(super) canonical_form: String,
    address: AtomicCounter<SharedBuffer>,
    /// The local address whose port goes back to the port manager.
    lease: SocketAddr,
}

/// A socket of an endpoint, for the conductor and for the receiver.
type Destination = (DestinationRecord, ReceiveDestination);

/// How many subscriptions want what.
#[derive(Debug, Default)]
struct Interests {
    streams: HashMap<i32, usize>,
    sessions: HashMap<StreamSession, usize>,
    /// Streams of responses whose session is not known yet.
    responses: HashMap<i32, usize>,
}

impl ReceiveEndpointRecord {
    pub(super) fn status_counter_id(&self) -> i32 {
        self.status.id()
    }

    pub(super) fn is_active(&self) -> bool {
        self.state == EndpointState::Active
    }

    pub(super) fn add_image(&mut self) {
        self.image_count += 1;
    }

    pub(super) fn remove_image(&mut self) {
        self.image_count = self.image_count.saturating_sub(1);
    }

    pub(super) fn destination_with(&self, canonical_form: &str) -> Option<DestinationId> {
        self.destinations
            .iter()
            .find(|destination| destination.canonical_form == canonical_form)
            .map(|destination| destination.id)
    }

    fn is_unused(&self) -> bool {
        let interests = &self.interests;
        interests.streams.is_empty()
            && interests.sessions.is_empty()
            && interests.responses.is_empty()
            && self.image_count == 0
    }
}

impl Endpoint for ReceiveEndpointRecord {
    fn channel(&self) -> &UdpChannel {
        &self.channel
    }

    fn state(&self) -> EndpointState {
        self.state
    }
}

impl Conductor {
    pub(super) fn receive_endpoint(&self, id: EndpointId) -> Option<&ReceiveEndpointRecord> {
        self.receive_endpoints
            .iter()
            .find(|endpoint| endpoint.id == id)
    }

    pub(super) fn receive_endpoint_mut(
        &mut self,
        id: EndpointId,
    ) -> Option<&mut ReceiveEndpointRecord> {
        self.receive_endpoints
            .iter_mut()
            .find(|endpoint| endpoint.id == id)
    }

    /// Opens the endpoint of a channel, with its counters, and gives it to the receiver. With manual control it has no socket yet.
    pub(super) fn open_receive_endpoint(
        &mut self,
        channel: &Arc<UdpChannel>,
        params: &SubscriptionParams,
        registration_id: i64,
    ) -> Result<EndpointId, DriverError> {
        let (status, destination) = match channel.control_mode() {
            ControlMode::Manual => (self.count_channel(channel, None, registration_id)?, None),
            _ => {
                let (status, destination) =
                    self.open_first_destination(channel, registration_id)?;
                (status, Some(destination))
            }
        };
        let (records, destinations) = destination.into_iter().unzip();
        let id = self.next_object_id();
        let identity = self.next_receiver_identity(channel);
        let endpoint = ReceiveEndpoint::new(
            id,
            identity,
            channel.text.clone(),
            self.context.stream_session_limit as usize,
        );
        self.outlets
            .receiver_commands
            .send(ReceiverCommand::AddEndpoint {
                endpoint: Box::new(endpoint),
                destinations,
            });
        self.receive_endpoints.push(ReceiveEndpointRecord {
            id,
            channel: Arc::clone(channel),
            params: *params,
            state: EndpointState::Active,
            status,
            destinations: records,
            interests: Interests::default(),
            image_count: 0,
        });
        Ok(id)
    }

    fn count_channel(
        &mut self,
        channel: &UdpChannel,
        address: Option<SocketAddr>,
        registration_id: i64,
    ) -> Result<AtomicCounter<SharedBuffer>, DriverError> {
        self.outlets.allocate_channel_status(
            ChannelKind::Receive,
            &channel.text,
            address,
            registration_id,
        )
    }

    /// Opens the socket of an endpoint that has only one, with the counters of both.
    fn open_first_destination(
        &mut self,
        channel: &UdpChannel,
        registration_id: i64,
    ) -> Result<(AtomicCounter<SharedBuffer>, Destination), DriverError> {
        let (socket, lease) = self.open_receive_socket(channel, channel)?;
        let status = self
            .count_channel(channel, Some(socket.local_address()), registration_id)
            .inspect_err(|_| self.receiver_ports.release(lease))?;
        let destination = self
            .new_destination(
                (channel, channel),
                (socket, lease),
                status.id(),
                registration_id,
            )
            .inspect_err(|_| self.outlets.free_counter(status.id()))?;
        Ok((status, destination))
    }

    /// Who the next endpoint is to senders.
    fn next_receiver_identity(&mut self, channel: &UdpChannel) -> ReceiverIdentity {
        let receiver_id = self.next_receiver_id;
        self.next_receiver_id = receiver_id.wrapping_add(1);
        ReceiverIdentity {
            receiver_id,
            group_tag: channel.params.group_tag.or(self.context.receiver_group_tag),
        }
    }

    /// Opens one more socket of an endpoint, with its counter, and gives it to the receiver.
    ///
    /// `registration_id` is the subscription's, so that clients find the addresses of a subscription by its id.
    pub(super) fn open_destination(
        &mut self,
        id: EndpointId,
        channel: &UdpChannel,
        registration_id: i64,
    ) -> Result<(), DriverError> {
        let Some(endpoint) = self.receive_endpoint(id) else {
            return Ok(());
        };
        let (status_id, subscribed) = (endpoint.status_counter_id(), Arc::clone(&endpoint.channel));
        let opened = self.open_receive_socket(channel, &subscribed)?;
        let (record, destination) =
            self.new_destination((channel, &subscribed), opened, status_id, registration_id)?;
        if let Some(endpoint) = self.receive_endpoint_mut(id) {
            endpoint.destinations.push(record);
        }
        self.outlets
            .receiver_commands
            .send(ReceiverCommand::AddDestination {
                endpoint: id,
                destination: Box::new(destination),
            });
        Ok(())
    }

    /// Opens the socket that `channel` names, with the buffers and timestamps that the subscription's channel asks for.
    fn open_receive_socket(
        &mut self,
        channel: &UdpChannel,
        subscribed: &UdpChannel,
    ) -> Result<(Box<dyn Socket>, SocketAddr), DriverError> {
        let lease = self.receiver_ports.lease(channel.remote_data)?;
        let lengths = BufferLengths::of(subscribed, &self.context);
        let spec = SocketSpec {
            bind: lease,
            connect: None,
            multicast: multicast_spec(channel, channel.remote_data, &self.context),
            send_buffer_length: lengths.send as usize,
            receive_buffer_length: lengths.receive as usize,
            receive_timestamps: subscribed.params.timestamp_offsets.media_receive.is_some(),
            side: SocketSide::Receiver,
        };
        match self.network.open(&spec) {
            Ok(socket) => Ok((socket, lease)),
            Err(error) => {
                self.receiver_ports.release(lease);
                Err(socket_error(&error, (lease, None)))
            }
        }
    }

    fn new_destination(
        &mut self,
        (channel, subscribed): (&UdpChannel, &UdpChannel),
        (socket, lease): (Box<dyn Socket>, SocketAddr),
        status_id: i32,
        registration_id: i64,
    ) -> Result<Destination, DriverError> {
        let address = self
            .outlets
            .allocate_local_address(
                ChannelKind::Receive,
                status_id,
                socket.local_address(),
                registration_id,
            )
            .inspect_err(|_| self.receiver_ports.release(lease))?;
        let id = self.next_object_id();
        let record = DestinationRecord {
            id,
            canonical_form: channel.canonical_form.clone(),
            address,
            lease,
        };
        let offsets = subscribed.params.timestamp_offsets;
        let destination = ReceiveDestination::new(id, channel, offsets, socket);
        Ok((record, destination))
    }

    /// The receiver closed the socket of a destination.
    pub(super) fn on_destination_released(&mut self, id: EndpointId, destination: DestinationId) {
        let Some(endpoint) = self.receive_endpoint_mut(id) else {
            return;
        };
        let mut records = endpoint.destinations.iter();
        let Some(index) = records.position(|record| record.id == destination) else {
            return;
        };
        let record = endpoint.destinations.remove(index);
        self.free_destination(&record);
    }

    fn free_destination(&mut self, record: &DestinationRecord) {
        record.address.set(types::CHANNEL_CLOSING);
        self.outlets.free_counter(record.address.id());
        self.receiver_ports.release(record.lease);
    }

    /// A subscription listens at an endpoint from now on; the receiver is told of what nobody wanted before.
    pub(super) fn begin_interest(
        &mut self,
        id: EndpointId,
        stream_id: i32,
        params: &SubscriptionParams,
    ) {
        let Some(endpoint) = self.receive_endpoint_mut(id) else {
            return;
        };
        let interests = &mut endpoint.interests;
        if params.is_response && params.session_id.is_none() {
            *interests.responses.entry(stream_id).or_default() += 1;
            return;
        }
        match params.session_id {
            Some(session_id) => self.begin_session_interest(id, stream_id, session_id),
            None => {
                let count = interests.streams.entry(stream_id).or_default();
                *count += 1;
                if *count == 1 {
                    self.outlets
                        .receiver_commands
                        .send(ReceiverCommand::AddSubscription {
                            endpoint: id,
                            stream_id,
                        });
                }
            }
        }
    }

    fn begin_session_interest(&mut self, id: EndpointId, stream_id: i32, session_id: i32) {
        let session = StreamSession {
            stream_id,
            session_id,
        };
        let Some(endpoint) = self.receive_endpoint_mut(id) else {
            return;
        };
        let count = endpoint.interests.sessions.entry(session).or_default();
        *count += 1;
        if *count == 1 {
            self.outlets
                .receiver_commands
                .send(ReceiverCommand::AddSubscriptionBySession {
                    endpoint: id,
                    session,
                });
        }
    }

    /// The session of the responses that a subscription waits for is known.
    pub(super) fn narrow_interest(&mut self, id: EndpointId, stream_id: i32, session_id: i32) {
        self.begin_session_interest(id, stream_id, session_id);
        if let Some(endpoint) = self.receive_endpoint_mut(id) {
            release(&mut endpoint.interests.responses, stream_id);
        }
    }

    /// A subscription is gone; the receiver is told of what nobody wants any more, and an endpoint without use closes.
    pub(super) fn end_interest(&mut self, subscription: &Subscription) {
        let Source::Network(id) = subscription.source else {
            return;
        };
        let stream_id = subscription.stream_id;
        let Some(endpoint) = self.receive_endpoint_mut(id) else {
            return;
        };
        let interests = &mut endpoint.interests;
        let command = match subscription.session_id {
            Some(session_id) => {
                let session = StreamSession {
                    stream_id,
                    session_id,
                };
                release(&mut interests.sessions, session).then_some(
                    ReceiverCommand::RemoveSubscriptionBySession {
                        endpoint: id,
                        session,
                    },
                )
            }
            None if subscription.is_response => {
                release(&mut interests.responses, stream_id);
                None
            }
            None => release(&mut interests.streams, stream_id).then_some(
                ReceiverCommand::RemoveSubscription {
                    endpoint: id,
                    stream_id,
                },
            ),
        };
        command
            .into_iter()
            .for_each(|command| self.outlets.receiver_commands.send(command));
        self.close_unused_receive_endpoint(id);
    }

    /// Closes an endpoint that nobody listens at and that has no images.
    pub(super) fn close_unused_receive_endpoint(&mut self, id: EndpointId) {
        let Some(endpoint) = self.receive_endpoint_mut(id) else {
            return;
        };
        if endpoint.is_unused() && endpoint.is_active() {
            endpoint.state = EndpointState::Closing;
            endpoint.status.set(types::CHANNEL_CLOSING);
            self.outlets
                .receiver_commands
                .send(ReceiverCommand::RemoveEndpoint(id));
        }
    }

    /// Deletes an endpoint whose sockets the receiver has closed: the next channel of its form opens a new one.
    pub(super) fn on_receive_endpoint_released(&mut self, id: EndpointId) {
        let mut endpoints = self.receive_endpoints.iter();
        let Some(index) = endpoints.position(|endpoint| endpoint.id == id) else {
            return;
        };
        let endpoint = self.receive_endpoints.remove(index);
        self.outlets.free_counter(endpoint.status.id());
        for destination in &endpoint.destinations {
            self.free_destination(destination);
        }
    }
}

/// One user less; answers whether it was the last.
fn release<K: std::hash::Hash + Eq>(counts: &mut HashMap<K, usize>, key: K) -> bool {
    let Some(count) = counts.get_mut(&key) else {
        return false;
    };
    *count -= 1;
    let is_last = *count == 0;
    if is_last {
        counts.remove(&key);
    }
    is_last
}
