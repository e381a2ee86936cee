//! [`ReceiverCommand`] and [`ReceiverEvent`]: the messages between the conductor and the receiver.

use std::net::SocketAddr;

use aeron_protocol::frame::Setup;

use super::destination::ReceiveDestination;
use super::endpoint::ReceiveEndpoint;
use super::ids::{DestinationId, ReceiveEndpointId};
use super::image::ReceiverImage;
use super::sessions::ForgettableState;
use crate::stream::StreamSession;

/// A command of the conductor. It has no effect if the endpoint, destination or image does not exist. An exception is
/// [`Self::AddImage`].
pub enum ReceiverCommand {
    /// Adds an endpoint and receives from its destinations.
    AddEndpoint {
        endpoint: Box<ReceiveEndpoint>,
        destinations: Vec<ReceiveDestination>,
    },
    /// Closes the sockets of an endpoint. The receiver replies with [`ReceiverEvent::EndpointReleased`].
    RemoveEndpoint(ReceiveEndpointId),
    /// Adds an interest in all sessions of a stream.
    AddSubscription {
        endpoint: ReceiveEndpointId,
        stream_id: i32,
    },
    /// Removes the interest in all sessions of a stream. Interests in single sessions stay.
    RemoveSubscription {
        endpoint: ReceiveEndpointId,
        stream_id: i32,
    },
    /// Adds an interest in one session of a stream. If the sender's control address is known, the receiver requests the
    /// SETUP of the session at once.
    AddSubscriptionBySession {
        endpoint: ReceiveEndpointId,
        session: StreamSession,
    },
    /// Removes the interest in one session of a stream.
    RemoveSubscriptionBySession {
        endpoint: ReceiveEndpointId,
        session: StreamSession,
    },
    /// Requests the SETUP of a session from a sender with a known control address.
    RequestSetup {
        endpoint: ReceiveEndpointId,
        session: StreamSession,
    },
    /// Adds a destination to an endpoint and its images.
    AddDestination {
        endpoint: ReceiveEndpointId,
        destination: Box<ReceiveDestination>,
    },
    /// Closes the socket of a destination. The receiver replies with [`ReceiverEvent::DestinationReleased`].
    RemoveDestination {
        endpoint: ReceiveEndpointId,
        destination: DestinationId,
    },
    /// Adds an image. From then on, the image receives data if its endpoint exists.
    AddImage(Box<ReceiverImage>),
    /// Removes the image with this correlation id. The receiver replies with [`ReceiverEvent::ImageReleased`].
    RemoveImage(i64),
    /// Forgets a session if its state is `state`.
    RemoveState {
        endpoint: ReceiveEndpointId,
        session: StreamSession,
        state: ForgettableState,
    },
    /// Changes the address for the control name of a destination.
    ResolutionChange {
        endpoint: ReceiveEndpointId,
        destination: DestinationId,
        address: SocketAddr,
    },
    /// Rejects an image: sends the reason, of up to 1,023 bytes, to the senders of the image and drops further data.
    RejectImage {
        correlation_id: i64,
        reason: Box<[u8]>,
    },
}

/// An event for the conductor.
#[derive(Debug)]
pub enum ReceiverEvent {
    /// A SETUP has arrived for a session of interest without an image. The conductor replies with
    /// [`ReceiverCommand::AddImage`] or [`ReceiverCommand::RemoveState`].
    CreateImage(Box<ImageRequest>),
    /// No datagram has arrived for a while from the sender with this control name. The address of the name may have
    /// changed.
    ReResolveControl {
        endpoint: ReceiveEndpointId,
        destination: DestinationId,
        name: String,
        current: SocketAddr,
    },
    /// The socket of the destination is closed.
    DestinationReleased {
        endpoint: ReceiveEndpointId,
        destination: DestinationId,
    },
    /// The sockets of the endpoint are closed.
    EndpointReleased(ReceiveEndpointId),
    /// The receiver has dropped the image with this correlation id.
    ImageReleased(i64),
}

/// A request to create an image, because the receiver has received a SETUP frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageRequest {
    pub endpoint: ReceiveEndpointId,
    /// The destination that received the frame.
    pub destination: DestinationId,
    /// The frame. Its values were checked.
    pub setup: Setup,
    /// Source address of the frame.
    pub source_address: SocketAddr,
}
