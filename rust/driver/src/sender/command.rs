//! [`SenderCommand`]: commands from the conductor to the sender.

use std::net::SocketAddr;
use std::sync::Arc;

use super::endpoint::SendEndpoint;
use super::endpoint_id::SendEndpointId;
use super::manual_destination::ManualDestination;
use super::publication::SenderPublication;

#[derive(Debug)]
pub enum SenderCommand {
    /// Adds an endpoint. The sender polls the endpoint for control frames.
    AddEndpoint(Box<SendEndpoint>),
    /// Closes the endpoint. The sender replies with
    /// [`SenderEvent::EndpointReleased`](super::SenderEvent::EndpointReleased).
    RemoveEndpoint(SendEndpointId),
    /// Adds a publication, which is sent through the endpoint.
    AddPublication(SendEndpointId, Box<SenderPublication>),
    /// Removes the publication with this registration id.
    ///
    /// The sender replies with [`SenderEvent::PublicationReleased`](super::SenderEvent::PublicationReleased).
    RemovePublication(i64),
    /// Adds a destination to an endpoint with manual control.
    AddDestination {
        endpoint: SendEndpointId,
        destination: ManualDestination,
    },
    /// Removes the first destination with this address.
    RemoveDestination {
        endpoint: SendEndpointId,
        /// Address of the destination; `None` if the name was never resolved.
        address: Option<SocketAddr>,
    },
    /// Removes the destination that a client's command added.
    RemoveDestinationById {
        endpoint: SendEndpointId,
        /// Correlation id of the command that added the destination.
        registration_id: i64,
    },
    /// Changes the address for a name: the address of the endpoint, or of its destinations with this name.
    ResolutionChange {
        endpoint: SendEndpointId,
        /// The name, as written in the channel.
        name: Arc<str>,
        /// The new address.
        address: SocketAddr,
    },
}
