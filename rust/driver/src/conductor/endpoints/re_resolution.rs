//! Looks up names again if no datagram arrives from their old addresses.

use std::net::SocketAddr;
use std::sync::Arc;

use aeron_protocol::uri::key;

use super::Endpoints;
use crate::conductor::outlets::ConductorOutlets;
use crate::error::DriverError;
use crate::receiver::{self, DestinationId, ReceiverCommand};
use crate::resources::LookupSubject;
use crate::sender::{self, SenderCommand};

/// A lookup in progress.
#[derive(Debug)]
pub(super) struct ReResolution {
    id: i64,
    endpoint: ReResolvedEndpoint,
    name: Arc<str>,
    current: Option<SocketAddr>,
}

/// The endpoint that a name belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReResolvedEndpoint {
    /// A send endpoint, or one of its destinations.
    Sender(sender::SendEndpointId),
    /// A destination of a receive endpoint.
    Receiver(receiver::ReceiveEndpointId, DestinationId),
}

impl Endpoints {
    /// Requests a new lookup of `name`. `current` is the address that the endpoint uses for the name now.
    pub fn re_resolve(
        &mut self,
        endpoint: ReResolvedEndpoint,
        name: Arc<str>,
        current: Option<SocketAddr>,
        outlets: &mut ConductorOutlets,
    ) {
        // The agents repeat the request every second, even while the lookup is in progress.
        let is_asked = |waiting: &ReResolution| {
            (waiting.endpoint, &waiting.name, waiting.current) == (endpoint, &name, current)
        };
        if self.re_resolutions.iter().any(is_asked) {
            return;
        }
        let parameter = match endpoint {
            ReResolvedEndpoint::Sender(_) => key::ENDPOINT,
            ReResolvedEndpoint::Receiver(..) => key::CONTROL,
        };
        let id = outlets.look_up(LookupSubject::Name {
            name: name.to_string(),
            parameter,
        });
        self.re_resolutions.push(ReResolution {
            id,
            endpoint,
            name,
            current,
        });
    }

    /// Handles the result of a lookup: informs the sender or the receiver if the address has changed.
    pub fn on_re_resolved(
        &mut self,
        id: i64,
        result: Result<SocketAddr, DriverError>,
        outlets: &mut ConductorOutlets,
    ) {
        let mut waiting = self.re_resolutions.iter();
        let Some(index) = waiting.position(|waiting| waiting.id == id) else {
            return;
        };
        let waiting = self.re_resolutions.swap_remove(index);
        let address = match result {
            Ok(address) => address,
            Err(error) => return outlets.errors.record(&error),
        };
        if waiting.current == Some(address) {
            return;
        }
        match waiting.endpoint {
            ReResolvedEndpoint::Sender(endpoint) => {
                self.move_send(endpoint, &waiting.name, address);
                outlets
                    .sender_commands
                    .send(SenderCommand::ResolutionChange {
                        endpoint,
                        name: waiting.name,
                        address,
                    });
            }
            ReResolvedEndpoint::Receiver(endpoint, destination) => {
                self.move_receive(endpoint, &waiting.name, address);
                outlets
                    .receiver_commands
                    .send(ReceiverCommand::ResolutionChange {
                        endpoint,
                        destination,
                        address,
                    });
            }
        }
    }
}
