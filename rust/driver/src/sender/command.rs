//! What the conductor asks of the sender.

use std::net::SocketAddr;
use std::sync::Arc;

use super::endpoint::SendEndpoint;
use super::endpoint_id::EndpointId;
use super::manual_destination::ManualDestination;
use super::publication::SenderPublication;

/// One request of the conductor.
#[derive(Debug)]
pub enum SenderCommand {
    /// Polls the endpoint for control frames from now on.
    AddEndpoint(Box<SendEndpoint>),
    /// Closes the endpoint; answered by [`SenderEvent::EndpointReleased`](super::SenderEvent::EndpointReleased).
    RemoveEndpoint(EndpointId),
    /// Sends the publication through the endpoint from now on.
    AddPublication(EndpointId, Box<SenderPublication>),
    /// Stops sending the publication with this registration id; answered by
    /// [`SenderEvent::PublicationReleased`](super::SenderEvent::PublicationReleased).
    RemovePublication(i64),
    /// Sends to the destination too; only for endpoints with manual control.
    AddDestination {
        /// Which endpoint.
        endpoint: EndpointId,
        /// What to send to.
        destination: ManualDestination,
    },
    /// Forgets the first destination with the address.
    RemoveDestination {
        /// Which endpoint.
        endpoint: EndpointId,
        /// Its address, `None` if that was never known.
        address: Option<SocketAddr>,
    },
    /// Forgets the destination that was added by a command.
    RemoveDestinationById {
        /// Which endpoint.
        endpoint: EndpointId,
        /// Correlation id of the command that added it.
        registration_id: i64,
    },
    /// The name of the endpoint, or of destinations, stands for another address now.
    ResolutionChange {
        /// Which endpoint.
        endpoint: EndpointId,
        /// The name as it stands in the channel.
        name: Arc<str>,
        /// Where it is now.
        address: SocketAddr,
    },
}
