//! [`SenderEvent`]: events from the sender to the conductor.

use std::net::SocketAddr;
use std::sync::Arc;

use super::endpoint_id::SendEndpointId;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SenderEvent {
    /// The endpoint is closed.
    EndpointReleased(SendEndpointId),
    /// The sender has dropped the publication with this registration id.
    PublicationReleased(i64),
    /// No status message has arrived for a while from the address of a name. The conductor resolves the name again.
    ReResolve {
        endpoint: SendEndpointId,
        /// The name, as written in the channel.
        name: Arc<str>,
        /// The current address.
        current: Option<SocketAddr>,
    },
    /// The peer has opened a response stream for the subscription with this registration id.
    ResponseSetup {
        /// Registration id of the subscription.
        response_correlation_id: i64,
        /// Session of the response stream.
        response_session_id: i32,
    },
    /// The response publication for the image with this correlation id has its first receiver.
    ResponseConnected {
        /// Correlation id of the image.
        response_correlation_id: i64,
    },
    /// A live receiver rejects a publication.
    PublicationError(Box<PublicationErrorReport>),
}

/// Content of a receiver's error frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicationErrorReport {
    /// Registration id of the publication.
    pub registration_id: i64,
    /// Registration id of the manual destination of the receiver, else -1.
    pub destination_registration_id: i64,
    /// Session of the publication.
    pub session_id: i32,
    /// Stream of the publication.
    pub stream_id: i32,
    /// Id of the receiver that rejects the publication.
    pub receiver_id: i64,
    /// Group tag of the receiver, -1 if the frame has none.
    pub group_tag: i64,
    /// Source address of the frame.
    pub source: SocketAddr,
    /// The error code as received; any value is possible.
    pub error_code: i32,
    /// The error text as received: at most 1023 bytes, which need not be UTF-8.
    pub message: Box<[u8]>,
}
