//! What the sender tells the conductor.

use std::net::SocketAddr;
use std::sync::Arc;

use super::endpoint_id::EndpointId;

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
