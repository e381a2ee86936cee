//! The receive endpoints. Subscriptions with the same channel share one. An endpoint has a socket for each of its
//! destinations.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;

use aeron_memory::buffer::SharedBuffer;
use aeron_memory::counters::{AtomicCounter, types};
use aeron_protocol::uri::{ControlMode, SubscriptionParams, key};

use super::Endpoints;
use super::agreement::{
    BufferLengths, ChannelPair, Endpoint, EndpointState, find_shared, multicast_spec, socket_error,
};
use super::channel_counters::ChannelKind;
use crate::conductor::outlets::ConductorOutlets;
use crate::error::DriverError;
use crate::media::transport::{Socket, SocketSide, SocketSpec};
use crate::media::{DataAddresses, UdpChannel};
use crate::receiver::{
    DestinationId, ReceiveDestination, ReceiveEndpoint, ReceiveEndpointId, ReceiverCommand,
    ReceiverIdentity,
};
use crate::stream::StreamSession;

/// The conductor's record of a receive endpoint.
#[derive(Debug)]
pub struct ReceiveEndpointRecord {
    pub id: ReceiveEndpointId,
    pub channel: Arc<UdpChannel>,
    /// Parameters of the endpoint's images, taken from the first subscription.
    pub params: SubscriptionParams,
    /// The current addresses of the data. A name of the channel may have got another address.
    addresses: DataAddresses,
    state: EndpointState,
    status: AtomicCounter<SharedBuffer>,
    destinations: Vec<DestinationRecord>,
    /// The number of subscriptions with each interest.
    interests: HashMap<ReceiveInterest, usize>,
    image_count: usize,
}

/// The sessions that a subscription asks for at its endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReceiveInterest {
    /// All sessions of a stream.
    Stream(i32),
    /// One session of a stream.
    Session(StreamSession),
    /// Responses on a stream. Their session is not known yet.
    Response(i32),
}

/// A socket of an endpoint.
#[derive(Debug)]
struct DestinationRecord {
    id: DestinationId,
    canonical_form: String,
    address: AtomicCounter<SharedBuffer>,
    /// The local address. Its port is returned to the port manager when the socket is closed.
    lease: SocketAddr,
}

/// A receiving socket and its local address. The port of the address is returned to the port manager later.
struct LeasedReceiveSocket {
    socket: Box<dyn Socket>,
    lease: SocketAddr,
}

/// A new socket of an endpoint: the conductor's record and the receiver's part.
struct DestinationSocket {
    record: DestinationRecord,
    receiving: ReceiveDestination,
}

impl ReceiveInterest {
    /// Returns the interest of a subscription to a stream.
    pub fn of(stream_id: i32, session_id: Option<i32>, is_response: bool) -> Self {
        match session_id {
            Some(session_id) => Self::Session(StreamSession {
                stream_id,
                session_id,
            }),
            None if is_response => Self::Response(stream_id),
            None => Self::Stream(stream_id),
        }
    }

    /// Returns the receiver command for the first subscription with this interest.
    fn begin(self, endpoint: ReceiveEndpointId) -> Option<ReceiverCommand> {
        match self {
            Self::Stream(stream_id) => Some(ReceiverCommand::AddSubscription {
                endpoint,
                stream_id,
            }),
            Self::Session(session) => {
                Some(ReceiverCommand::AddSubscriptionBySession { endpoint, session })
            }
            Self::Response(_) => None,
        }
    }

    /// Returns the receiver command for the end of the last subscription with this interest.
    fn end(self, endpoint: ReceiveEndpointId) -> Option<ReceiverCommand> {
        match self {
            Self::Stream(stream_id) => Some(ReceiverCommand::RemoveSubscription {
                endpoint,
                stream_id,
            }),
            Self::Session(session) => {
                Some(ReceiverCommand::RemoveSubscriptionBySession { endpoint, session })
            }
            Self::Response(_) => None,
        }
    }
}

impl ReceiveEndpointRecord {
    pub fn status_counter_id(&self) -> i32 {
        self.status.id()
    }

    pub fn is_active(&self) -> bool {
        self.state == EndpointState::Active
    }

    /// Returns whether the endpoint counts a subscription.
    pub fn has_interest(&self) -> bool {
        !self.interests.is_empty()
    }

    pub fn add_image(&mut self) {
        self.image_count += 1;
    }

    /// Returns the destination for the channel with this canonical form.
    pub fn destination_with(&self, canonical_form: &str) -> Option<DestinationId> {
        self.destinations
            .iter()
            .find(|destination| destination.canonical_form == canonical_form)
            .map(|destination| destination.id)
    }

    /// Removes one subscription from the interest. Returns whether it was the last subscription with this interest.
    fn release(&mut self, interest: ReceiveInterest) -> bool {
        debug_assert!(
            self.interests.contains_key(&interest),
            "no subscription has the interest {interest:?}, which ends"
        );
        let Some(count) = self.interests.get_mut(&interest) else {
            return false;
        };
        *count -= 1;
        let is_last = *count == 0;
        if is_last {
            self.interests.remove(&interest);
        }
        is_last
    }
}

impl Endpoint for ReceiveEndpointRecord {
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

impl Endpoints {
    pub fn receive_endpoint(&self, id: ReceiveEndpointId) -> Option<&ReceiveEndpointRecord> {
        self.receive.iter().find(|endpoint| endpoint.id == id)
    }

    pub fn receive_endpoint_mut(
        &mut self,
        id: ReceiveEndpointId,
    ) -> Option<&mut ReceiveEndpointRecord> {
        self.receive.iter_mut().find(|endpoint| endpoint.id == id)
    }

    /// Records the new address of a control name, if it is the name of the endpoint and not of a destination.
    pub(super) fn move_receive(&mut self, id: ReceiveEndpointId, name: &str, address: SocketAddr) {
        if let Some(endpoint) = self.receive_endpoint_mut(id)
            && let Some(own) = &endpoint.channel.control
            && own.name == name
        {
            endpoint.addresses.local = address;
        }
    }

    /// Returns the existing receive endpoint of a subscription's channel, after checking that the parameters match.
    pub fn find_receive(
        &self,
        channel: &UdpChannel,
        params: &SubscriptionParams,
    ) -> Result<Option<&ReceiveEndpointRecord>, DriverError> {
        let endpoint = find_shared(&self.receive, channel)?;
        let channels = endpoint.map(|endpoint| ChannelPair {
            existing: &endpoint.channel,
            requested: channel,
        });
        if let Some(channels) = channels {
            channels
                .check_timestamp_offset(key::MEDIA_RCV_TIMESTAMP_OFFSET, |it| it.media_receive)?;
            channels.check_timestamp_offset(key::CHANNEL_RCV_TIMESTAMP_OFFSET, |it| {
                it.channel_receive
            })?;
        }
        self.check_receiver_window(params, endpoint, channel)?;
        if let Some(channels) = channels {
            let granted = BufferLengths::of(channels.existing, &self.context);
            let requested = BufferLengths::of(channel, &self.context);
            channels.check_buffer_length(key::SOCKET_SNDBUF, granted.send, requested.send)?;
            channels.check_buffer_length(key::SOCKET_RCVBUF, granted.receive, requested.receive)?;
        }
        Ok(endpoint)
    }

    fn check_receiver_window(
        &self,
        params: &SubscriptionParams,
        existing: Option<&ReceiveEndpointRecord>,
        channel: &UdpChannel,
    ) -> Result<(), DriverError> {
        let window = params.receiver_window_length;
        let buffer = self.receive_buffer_length(channel);
        if window <= buffer {
            return Ok(());
        }
        let existing =
            existing.map(|endpoint| format!("existingChannel={} ", endpoint.channel.text));
        Err(DriverError::invalid_argument(format_args!(
            "Initial window greater than SO_RCVBUF for channel: rcv-wnd={window} so-rcvbuf={buffer} {}channel={}",
            existing.unwrap_or_default(),
            channel.text
        )))
    }

    /// Returns the length of the receive buffer in bytes: the length that the channel sets, else the length that the
    /// configuration sets, else the default of the operating system.
    pub fn receive_buffer_length(&self, channel: &UdpChannel) -> i64 {
        match BufferLengths::of(channel, &self.context).receive {
            0 => self.system_socket_buffers.receive.into(),
            length => length,
        }
    }

    /// Creates the endpoint of a channel and the endpoint's counters. Passes the endpoint to the receiver.
    ///
    /// An endpoint with manual control has no socket yet.
    pub fn open_receive(
        &mut self,
        channel: &Arc<UdpChannel>,
        params: &SubscriptionParams,
        registration_id: i64,
        outlets: &mut ConductorOutlets,
    ) -> Result<ReceiveEndpointId, DriverError> {
        let (status, destination) = match channel.control_mode() {
            ControlMode::Manual => {
                let status = outlets.allocate_channel_status(
                    ChannelKind::Receive,
                    &channel.text,
                    None,
                    registration_id,
                )?;
                (status, None)
            }
            _ => {
                let (status, destination) =
                    self.open_first_destination(channel, registration_id, outlets)?;
                (status, Some(destination))
            }
        };
        let (records, destinations) = destination
            .map(|destination| (destination.record, destination.receiving))
            .into_iter()
            .unzip();
        let id = self.next_object_id();
        let identity = self.next_receiver_identity(channel);
        let endpoint = ReceiveEndpoint::new(
            id,
            identity,
            channel.text.clone(),
            self.context.stream_session_limit as usize,
        );
        outlets
            .receiver_commands
            .send(ReceiverCommand::AddEndpoint {
                endpoint: Box::new(endpoint),
                destinations,
            });
        self.receive.push(ReceiveEndpointRecord {
            id,
            channel: Arc::clone(channel),
            params: *params,
            addresses: channel.data_addresses(),
            state: EndpointState::Active,
            status,
            destinations: records,
            interests: HashMap::new(),
            image_count: 0,
        });
        Ok(id)
    }

    /// Opens the only socket of an endpoint without manual control. Allocates the counters of the endpoint and the
    /// socket.
    ///
    /// The returned counter is the endpoint's status.
    fn open_first_destination(
        &mut self,
        channel: &UdpChannel,
        registration_id: i64,
        outlets: &mut ConductorOutlets,
    ) -> Result<(AtomicCounter<SharedBuffer>, DestinationSocket), DriverError> {
        let opened = self.open_receive_socket(channel, channel)?;
        let status = outlets
            .allocate_channel_status(
                ChannelKind::Receive,
                &channel.text,
                Some(opened.socket.local_address()),
                registration_id,
            )
            .inspect_err(|_| self.receiver_ports.release(opened.lease))?;
        let address = self
            .count_address(&opened, status.id(), registration_id, outlets)
            .inspect_err(|_| outlets.free_counter(status.id()))?;
        let destination = self.new_destination(channel, channel, opened, address);
        Ok((status, destination))
    }

    /// Returns the receiver id and the group tag for a new endpoint. Status messages carry both.
    fn next_receiver_identity(&mut self, channel: &UdpChannel) -> ReceiverIdentity {
        let receiver_id = self.next_receiver_id;
        self.next_receiver_id = receiver_id.wrapping_add(1);
        ReceiverIdentity {
            receiver_id,
            group_tag: channel.params.group_tag.or(self.context.receiver_group_tag),
        }
    }

    /// Opens another socket of an endpoint, allocates the socket's counter, and passes the socket to the receiver.
    ///
    /// `registration_id` is the id of the subscription, because clients look up a subscription's addresses by this id.
    pub fn open_destination(
        &mut self,
        id: ReceiveEndpointId,
        channel: &UdpChannel,
        registration_id: i64,
        outlets: &mut ConductorOutlets,
    ) -> Result<(), DriverError> {
        let Some(endpoint) = self.receive_endpoint(id) else {
            return Ok(());
        };
        let (status_id, subscribed) = (endpoint.status_counter_id(), Arc::clone(&endpoint.channel));
        let opened = self.open_receive_socket(channel, &subscribed)?;
        let address = self.count_address(&opened, status_id, registration_id, outlets)?;
        let destination = self.new_destination(channel, &subscribed, opened, address);
        if let Some(endpoint) = self.receive_endpoint_mut(id) {
            endpoint.destinations.push(destination.record);
        }
        outlets
            .receiver_commands
            .send(ReceiverCommand::AddDestination {
                endpoint: id,
                destination: Box::new(destination.receiving),
            });
        Ok(())
    }

    /// Opens the socket for `channel`, with the buffers and timestamps that the subscription's channel asks for.
    fn open_receive_socket(
        &mut self,
        channel: &UdpChannel,
        subscribed: &UdpChannel,
    ) -> Result<LeasedReceiveSocket, DriverError> {
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
            Ok(socket) => Ok(LeasedReceiveSocket { socket, lease }),
            Err(error) => {
                self.receiver_ports.release(lease);
                Err(socket_error(&error, &spec))
            }
        }
    }

    /// Allocates the counter of a socket's address. If that fails, returns the socket's port to the port manager.
    fn count_address(
        &mut self,
        opened: &LeasedReceiveSocket,
        status_id: i32,
        registration_id: i64,
        outlets: &mut ConductorOutlets,
    ) -> Result<AtomicCounter<SharedBuffer>, DriverError> {
        let address = opened.socket.local_address();
        outlets
            .allocate_local_address(ChannelKind::Receive, status_id, address, registration_id)
            .inspect_err(|_| self.receiver_ports.release(opened.lease))
    }

    fn new_destination(
        &mut self,
        channel: &UdpChannel,
        subscribed: &UdpChannel,
        opened: LeasedReceiveSocket,
        address: AtomicCounter<SharedBuffer>,
    ) -> DestinationSocket {
        let id = self.next_object_id();
        let offsets = subscribed.params.timestamp_offsets;
        DestinationSocket {
            record: DestinationRecord {
                id,
                canonical_form: channel.canonical_form.clone(),
                address,
                lease: opened.lease,
            },
            receiving: ReceiveDestination::new(id, channel, offsets, opened.socket),
        }
    }

    /// Handles the event that the receiver has closed the socket of a destination.
    pub fn on_destination_released(
        &mut self,
        id: ReceiveEndpointId,
        destination: DestinationId,
        outlets: &mut ConductorOutlets,
    ) {
        let Some(endpoint) = self.receive_endpoint_mut(id) else {
            return;
        };
        let mut records = endpoint.destinations.iter();
        let Some(index) = records.position(|record| record.id == destination) else {
            return;
        };
        let record = endpoint.destinations.remove(index);
        self.free_destination(&record, outlets);
    }

    fn free_destination(&mut self, record: &DestinationRecord, outlets: &mut ConductorOutlets) {
        record.address.set(types::CHANNEL_CLOSING);
        outlets.free_counter(record.address.id());
        self.receiver_ports.release(record.lease);
    }

    /// Adds a subscription to an interest of an endpoint. The receiver gets a command if the interest is new.
    pub fn begin_interest(
        &mut self,
        id: ReceiveEndpointId,
        interest: ReceiveInterest,
        outlets: &mut ConductorOutlets,
    ) {
        let Some(endpoint) = self.receive_endpoint_mut(id) else {
            return;
        };
        debug_assert!(
            endpoint.is_active(),
            "a subscription is added to endpoint {id}, which is closing"
        );
        let count = endpoint.interests.entry(interest).or_default();
        *count += 1;
        if *count == 1
            && let Some(command) = interest.begin(id)
        {
            outlets.receiver_commands.send(command);
        }
    }

    /// Replaces an interest in responses by an interest in the session of the responses, which is now known.
    pub fn narrow_interest(
        &mut self,
        id: ReceiveEndpointId,
        session: StreamSession,
        outlets: &mut ConductorOutlets,
    ) {
        self.begin_interest(id, ReceiveInterest::Session(session), outlets);
        if let Some(endpoint) = self.receive_endpoint_mut(id) {
            endpoint.release(ReceiveInterest::Response(session.stream_id));
        }
    }

    /// Removes a subscription from an interest of an endpoint.
    ///
    /// The receiver gets a command if the interest has no subscription any more. An unused endpoint is closed.
    pub fn end_interest(
        &mut self,
        id: ReceiveEndpointId,
        interest: ReceiveInterest,
        outlets: &mut ConductorOutlets,
    ) {
        let Some(endpoint) = self.receive_endpoint_mut(id) else {
            return;
        };
        if endpoint.release(interest)
            && let Some(command) = interest.end(id)
        {
            outlets.receiver_commands.send(command);
        }
        self.close_unused_receive(id, outlets);
    }

    /// Decrements the number of images of an endpoint, and closes the endpoint if it is unused.
    pub fn remove_image(&mut self, id: ReceiveEndpointId, outlets: &mut ConductorOutlets) {
        if let Some(endpoint) = self.receive_endpoint_mut(id) {
            debug_assert!(
                endpoint.image_count > 0,
                "an image leaves endpoint {id}, which has none"
            );
            endpoint.image_count = endpoint.image_count.saturating_sub(1);
        }
        self.close_unused_receive(id, outlets);
    }

    /// Closes an endpoint if it has no subscriptions and no images.
    fn close_unused_receive(&mut self, id: ReceiveEndpointId, outlets: &mut ConductorOutlets) {
        let Some(endpoint) = self.receive_endpoint_mut(id) else {
            return;
        };
        let is_unused = !endpoint.has_interest() && endpoint.image_count == 0;
        if is_unused && endpoint.is_active() {
            endpoint.state = EndpointState::Closing;
            endpoint.status.set(types::CHANNEL_CLOSING);
            outlets
                .receiver_commands
                .send(ReceiverCommand::RemoveEndpoint(id));
        }
    }

    /// Deletes an endpoint after the receiver has closed its sockets. The next subscription to the channel opens a new
    /// endpoint.
    pub fn on_receive_released(&mut self, id: ReceiveEndpointId, outlets: &mut ConductorOutlets) {
        let Some(index) = self.receive.iter().position(|endpoint| endpoint.id == id) else {
            return;
        };
        let endpoint = self.receive.remove(index);
        debug_assert_eq!(
            (endpoint.state, endpoint.image_count),
            (EndpointState::Closing, 0),
            "endpoint {id} was released, but images use it"
        );
        debug_assert!(
            !endpoint.has_interest(),
            "endpoint {id} was released, but subscriptions use it: {:?}",
            endpoint.interests
        );
        outlets.free_counter(endpoint.status.id());
        for destination in &endpoint.destinations {
            self.free_destination(destination, outlets);
        }
    }
}
