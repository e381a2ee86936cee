//! Executes the conductor's commands for the receiver.

use std::net::SocketAddr;

use aeron_memory::counters::system::SystemCounter;

use super::Receiver;
use super::command::{ReceiverCommand as Command, ReceiverEvent};
use super::destination::{ControlAddress, ReceiveDestination};
use super::dispatcher::Dispatcher;
use super::endpoint::ReceiveEndpoint;
use super::ids::{DestinationId, ReceiveEndpointId};
use super::image::ReceiverImage;
use crate::error::DriverError;
use crate::media::transport::SocketKey;
use crate::stream::StreamSession;

impl Receiver {
    pub(super) fn on_command(&mut self, command: Command, now_ns: i64) {
        match command {
            Command::AddEndpoint {
                endpoint,
                destinations,
            } => self.add_endpoint(endpoint, destinations, now_ns),
            Command::RemoveEndpoint(endpoint) => self.remove_endpoint(endpoint),
            Command::AddSubscription {
                endpoint,
                stream_id,
            } => self.change_interest(endpoint, |it| it.add_subscription(stream_id)),
            Command::RemoveSubscription {
                endpoint,
                stream_id,
            } => self.change_interest(endpoint, |it| it.remove_subscription(stream_id)),
            Command::AddSubscriptionBySession { endpoint, session } => {
                self.change_interest(endpoint, |it| it.add_subscription_by_session(session));
                self.request_setup(endpoint, session);
            }
            Command::RemoveSubscriptionBySession { endpoint, session } => {
                self.change_interest(endpoint, |it| it.remove_subscription_by_session(session));
            }
            Command::RequestSetup { endpoint, session } => self.request_setup(endpoint, session),
            Command::RemoveState {
                endpoint,
                session,
                state,
            } => self.change_interest(endpoint, |it| it.forget(session, state)),
            Command::AddDestination {
                endpoint,
                destination,
            } => self.add_destination(endpoint, *destination, now_ns),
            Command::RemoveDestination {
                endpoint,
                destination,
            } => self.remove_destination(endpoint, destination, now_ns),
            Command::ResolutionChange {
                endpoint,
                destination,
                address,
            } => self.on_resolution_change(endpoint, destination, address),
            Command::AddImage(image) => self.add_image(image, now_ns),
            Command::RemoveImage(correlation_id) => self.remove_image(correlation_id, now_ns),
            Command::RejectImage {
                correlation_id,
                reason,
            } => self.reject_image(correlation_id, reason),
        }
    }

    fn add_endpoint(
        &mut self,
        endpoint: Box<ReceiveEndpoint>,
        destinations: Vec<ReceiveDestination>,
        now_ns: i64,
    ) {
        debug_assert!(
            self.endpoint_key(endpoint.id).is_none(),
            "endpoint {} is added twice",
            endpoint.id
        );
        let key = self.endpoints.insert(endpoint);
        for destination in destinations {
            self.open(key, destination, now_ns);
        }
    }

    fn remove_endpoint(&mut self, id: ReceiveEndpointId) {
        let Some(key) = self.endpoint_key(id) else {
            return;
        };
        for destination in self.destination_keys(key) {
            self.close(destination);
        }
        self.pending_setups.remove_endpoint(key);
        for (_, image) in &mut self.images {
            image.endpoint.take_if(|(endpoint, _)| *endpoint == key);
        }
        self.endpoints.remove(key);
        self.events.send(ReceiverEvent::EndpointReleased(id));
    }

    fn change_interest(&mut self, id: ReceiveEndpointId, change: impl FnOnce(&mut Dispatcher)) {
        if let Some(key) = self.endpoint_key(id) {
            change(&mut self.endpoints[key].dispatcher);
        }
    }

    fn request_setup(&mut self, id: ReceiveEndpointId, session: StreamSession) {
        let Some(key) = self.endpoint_key(id) else {
            return;
        };
        for destination in self.destination_keys(key) {
            self.ask_control_for_setup(destination, session);
        }
    }

    fn add_destination(
        &mut self,
        id: ReceiveEndpointId,
        destination: ReceiveDestination,
        now_ns: i64,
    ) {
        let Some(endpoint) = self.endpoint_key(id) else {
            return;
        };
        let key = self.open(endpoint, destination, now_ns);
        for (_, image) in &mut self.images {
            if image.belongs_to(endpoint) {
                image.connections.add(key, None, now_ns);
            }
        }
    }

    fn remove_destination(
        &mut self,
        id: ReceiveEndpointId,
        destination: DestinationId,
        now_ns: i64,
    ) {
        let Some((endpoint, key)) = self.destination_key(id, destination) else {
            return;
        };
        self.close(key);
        for (_, image) in &self.images {
            if image.belongs_to(endpoint) {
                image.update_active_transports(now_ns, &self.timeouts);
            }
        }
        self.events.send(ReceiverEvent::DestinationReleased {
            endpoint: id,
            destination,
        });
    }

    fn on_resolution_change(
        &mut self,
        id: ReceiveEndpointId,
        destination: DestinationId,
        new_address: SocketAddr,
    ) {
        let Some((_, key)) = self.destination_key(id, destination) else {
            return;
        };
        if let ControlAddress::Explicit { address, .. } = &mut self.destinations[key].link.control {
            *address = new_address;
            self.system
                .get(SystemCounter::ResolutionChanges)
                .fetch_add(1);
        }
    }

    /// Adds an image.
    ///
    /// An older image of the session stops sending status messages, because the sender cannot distinguish the two
    /// images.
    fn add_image(&mut self, mut image: Box<ReceiverImage>, now_ns: i64) {
        debug_assert!(
            self.image_key(image.config.correlation_id).is_none(),
            "image {} is added twice",
            image.config.correlation_id
        );
        let Some(endpoint) = self.endpoint_key(image.config.endpoint) else {
            self.images.insert(image);
            return;
        };
        let session = image.session();
        image.endpoint = Some((endpoint, self.endpoints[endpoint].identity));
        let (id, destination) = (image.config.endpoint, image.config.destination);
        if let Some((_, destination)) = self.destination_key(id, destination) {
            let source = image.config.source_address;
            image.connections.track(destination, source, now_ns);
        }
        for (_, older) in &mut self.images {
            if older.belongs_to(endpoint) && older.session() == session {
                older.feedback.supersede();
            }
        }
        let key = self.images.insert(image);
        self.endpoints[endpoint].dispatcher.add_image(session, key);
    }

    /// Removes an image. If the stream was revoked, first sends the frames that the conductor had scheduled.
    fn remove_image(&mut self, correlation_id: i64, now_ns: i64) {
        let Some(key) = self.image_key(correlation_id) else {
            return;
        };
        let mut image = self.images.remove(key);
        if image.config.status.is_revoked() {
            let timeouts = self.timeouts;
            image.send_pending(now_ns, &timeouts, &mut self.outbound());
        }
        if let Some((endpoint, _)) = image.endpoint {
            let has_ended = image.config.status.is_end_of_stream();
            self.endpoints[endpoint]
                .dispatcher
                .remove_image(image.session(), key, has_ended);
        }
        self.events
            .send(ReceiverEvent::ImageReleased(correlation_id));
    }

    fn reject_image(&mut self, correlation_id: i64, reason: Box<[u8]>) {
        if let Some(key) = self.image_key(correlation_id) {
            self.images[key].feedback.reject(reason);
        }
    }

    /// Starts to read from a destination.
    ///
    /// If the channel of the destination contains the sender's control address, requests the SETUP of any session from
    /// this address.
    fn open(&mut self, endpoint: usize, mut destination: ReceiveDestination, now_ns: i64) -> usize {
        debug_assert_eq!(
            destination.link.endpoint,
            usize::MAX,
            "destination {} belongs to another endpoint",
            destination.link.id
        );
        destination.link.endpoint = endpoint;
        destination.link.time_of_last_activity_ns = now_ns;
        let is_asked = matches!(destination.link.control, ControlAddress::Explicit { .. });
        let entry = self.destinations.vacant_entry();
        let key = entry.key();
        let destination = entry.insert(destination);
        if let Err(error) = self
            .poller
            .add(key as SocketKey, destination.socket.as_ref())
        {
            let message = "failed to poll a receive socket";
            self.errors.record(&DriverError::io(&error, message));
        }
        if is_asked {
            self.ask_control_for_setup(key, StreamSession::ANY);
            self.pending_setups.add_periodic(key, now_ns);
        }
        key
    }

    /// Stops reading from a destination and closes its socket.
    fn close(&mut self, key: usize) {
        let destination = self.destinations.remove(key);
        self.poller
            .remove(key as SocketKey, destination.socket.as_ref());
        self.pending_setups.remove_destination(key);
        for (_, image) in &mut self.images {
            image.connections.remove(key);
        }
    }

    fn endpoint_key(&self, id: ReceiveEndpointId) -> Option<usize> {
        let found = self.endpoints.iter().find(|(_, it)| it.id == id);
        found.map(|(key, _)| key)
    }

    fn destination_keys(&self, endpoint: usize) -> Vec<usize> {
        self.destinations
            .iter()
            .filter(|(_, destination)| destination.link.endpoint == endpoint)
            .map(|(key, _)| key)
            .collect()
    }

    /// Returns the keys of an endpoint and of one of its destinations.
    fn destination_key(
        &self,
        endpoint: ReceiveEndpointId,
        destination: DestinationId,
    ) -> Option<(usize, usize)> {
        let endpoint = self.endpoint_key(endpoint)?;
        let is_it =
            |it: &ReceiveDestination| it.link.endpoint == endpoint && it.link.id == destination;
        let (key, _) = self.destinations.iter().find(|(_, it)| is_it(it))?;
        Some((endpoint, key))
    }

    fn image_key(&self, correlation_id: i64) -> Option<usize> {
        let is_it = |it: &ReceiverImage| it.config.correlation_id == correlation_id;
        let found = self.images.iter().find(|(_, it)| is_it(it));
        found.map(|(key, _)| key)
    }
}
