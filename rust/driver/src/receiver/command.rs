//! [`ReceiverCommand`] and [`ReceiverEvent`]: the messages from the conductor to the receiver, and back.

use std::net::SocketAddr;

use aeron_protocol::frame::Setup;

use super::destination::ReceiveDestination;
use super::endpoint::ReceiveEndpoint;
use super::ids::{DestinationId, EndpointId};
use super::image::ReceiverImage;
use super::sessions::ForgettableState;
use crate::stream::StreamSession;

/// One request of the conductor. Whoever names something that the receiver does not have asks for nothing.
pub enum ReceiverCommand {
    /// Receives from the destinations of a new endpoint.
    AddEndpoint {
        endpoint: Box<ReceiveEndpoint>,
        destinations: Vec<ReceiveDestination>,
    },
    /// Closes the sockets of an endpoint; answered by [`ReceiverEvent::EndpointReleased`].
    RemoveEndpoint(EndpointId),
    /// Every session of a stream is wanted.
    AddSubscription {
        endpoint: EndpointId,
        stream_id: i32,
    },
    /// Sessions that are not wanted by themselves are not wanted any more.
    RemoveSubscription {
        endpoint: EndpointId,
        stream_id: i32,
    },
    /// One session of a stream is wanted; a sender whose control address is known is asked for its SETUP at once.
    AddSubscriptionBySession {
        endpoint: EndpointId,
        session: StreamSession,
    },
    /// One session of a stream is not wanted by itself any more.
    RemoveSubscriptionBySession {
        endpoint: EndpointId,
        session: StreamSession,
    },
    /// Asks a sender whose control address is known for the SETUP of a session.
    RequestSetup {
        endpoint: EndpointId,
        session: StreamSession,
    },
    /// One more destination of an endpoint, and of its images.
    AddDestination {
        endpoint: EndpointId,
        destination: Box<ReceiveDestination>,
    },
    /// Closes the socket of a destination; answered by [`ReceiverEvent::DestinationReleased`].
    RemoveDestination {
        endpoint: EndpointId,
        destination: DestinationId,
    },
    /// Receives into a new image.
    AddImage(Box<ReceiverImage>),
    /// Gives up the image with this correlation id; answered by [`ReceiverEvent::ImageReleased`].
    RemoveImage(i64),
    /// Forgets what is remembered about a session, if it is this.
    RemoveState {
        endpoint: EndpointId,
        session: StreamSession,
        state: ForgettableState,
    },
    /// The control name of a destination has a new address.
    ResolutionChange {
        endpoint: EndpointId,
        destination: DestinationId,
        address: SocketAddr,
    },
    /// Tells the senders of an image why it is not wanted, and takes no more of its data. The reason has up to 1,023 bytes.
    RejectImage {
        correlation_id: i64,
        reason: Box<[u8]>,
    },
}

/// What the receiver tells the conductor.
#[derive(Debug)]
pub enum ReceiverEvent {
    /// A stream that is wanted can be received: answered by [`ReceiverCommand::AddImage`] or
    /// [`ReceiverCommand::RemoveState`].
    CreateImage(Box<ImageRequest>),
    /// Nothing came from the sender behind this name for a while; it may have moved.
    ReResolveControl {
        endpoint: EndpointId,
        destination: DestinationId,
        name: String,
        current: SocketAddr,
    },
    /// The socket of the destination is closed.
    DestinationReleased {
        endpoint: EndpointId,
        destination: DestinationId,
    },
    /// The sockets of the endpoint are closed.
    EndpointReleased(EndpointId),
    /// The receiver does not refer to the image with this correlation id any more.
    ImageReleased(i64),
}

/// A stream whose SETUP frame was received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageRequest {
    pub endpoint: EndpointId,
    /// The destination that received the frame.
    pub destination: DestinationId,
    /// The frame, which was checked: such a stream can be.
    pub setup: Setup,
    /// Where the frame came from.
    pub source_address: SocketAddr,
}
