//! What the conductor asks of the sender, and what the sender tells the conductor.

use std::net::SocketAddr;
use std::sync::Arc;

use super::endpoint::SendEndpoint;
use super::publication::SenderPublication;

/// Names a send endpoint; given by the conductor, never used twice.
pub type EndpointId = u64;

/// A destination that a client added to a publication with manual control.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManualDestination {
    /// Correlation id of the command that added it.
    pub registration_id: i64,
    /// The `endpoint` of its URI, as it was written.
    pub name: Arc<str>,
    /// What the name stands for; nothing is sent as long as that is not known.
    pub address: Option<SocketAddr>,
}

/// Asked by the conductor, one per duty cycle of the sender.
#[derive(Debug)]
pub enum SenderCommand {
    /// Polls the endpoint for control frames from now on.
    AddEndpoint(Box<SendEndpoint>),
    /// Closes the endpoint; answered by [`SenderEvent::EndpointReleased`].
    RemoveEndpoint(EndpointId),
    /// Sends the publication through the endpoint from now on.
    AddPublication(EndpointId, Box<SenderPublication>),
    /// Stops sending the publication with this registration id; answered by [`SenderEvent::PublicationReleased`].
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

/// Told to the conductor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SenderEvent {
    /// The endpoint is closed.
    EndpointReleased(EndpointId),
    /// The sender holds nothing of the publication with this registration id any more.
    PublicationReleased(i64),
    /// Nobody answers at an address: does its name stand for another one now?
    ReResolve {
        /// Which endpoint.
        endpoint: EndpointId,
        /// The name as it stands in the channel.
        name: Arc<str>,
        /// What it stood for so far.
        current: Option<SocketAddr>,
    },
    /// The other side opened a response stream for the subscription with this registration id.
    ResponseSetup {
        /// Registration id of the subscription.
        response_correlation_id: i64,
        /// Session of the response stream.
        response_session_id: i32,
    },
    /// A response publication, made for the image with this correlation id, has its first receiver.
    ResponseConnected {
        /// Correlation id of the image.
        response_correlation_id: i64,
    },
    /// A receiver that was alive refuses a publication.
    PublicationError(Box<PublicationErrorReport>),
}

/// What a receiver's error frame said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicationErrorReport {
    /// Registration id of the publication.
    pub registration_id: i64,
    /// Registration id of the manual destination that it came from, -1 if there is none.
    pub destination_registration_id: i64,
    /// Session of the publication.
    pub session_id: i32,
    /// Stream of the publication.
    pub stream_id: i32,
    /// Who refuses it.
    pub receiver_id: i64,
    /// Group of the receiver, -1 if the frame has none.
    pub group_tag: i64,
    /// Where the frame came from.
    pub source: SocketAddr,
    /// Why, as a number; any value, as it came.
    pub error_code: i32,
    /// Why, in words: at most 1023 bytes, of any kind.
    pub message: Box<[u8]>,
}
