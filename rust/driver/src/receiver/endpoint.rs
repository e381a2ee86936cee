//! [`ReceiveEndpoint`]: the receiver's state that the subscriptions of one channel share.

use aeron_protocol::frame::StatusMessage;

use super::dispatcher::Dispatcher;
use super::ids::ReceiveEndpointId;
use crate::stream::StreamSession;

/// A receive endpoint. It does not contain its destinations and their sockets: the receiver owns them.
#[derive(Debug)]
pub struct ReceiveEndpoint {
    pub(super) id: ReceiveEndpointId,
    pub(super) identity: ReceiverIdentity,
    /// The channel, for the error log.
    pub(super) channel: String,
    pub(super) dispatcher: Dispatcher,
    pub(super) has_noted_forgetting: bool,
}

/// The identity of an endpoint in its control frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceiverIdentity {
    /// Receiver id. Unique among the endpoints of this driver and, with high probability, of other drivers.
    pub receiver_id: i64,
    /// The group for the flow control of senders.
    pub group_tag: Option<i64>,
}

impl ReceiveEndpoint {
    /// Creates an endpoint for `channel` without an interest. It allows up to `stream_session_limit` images for each
    /// stream.
    pub fn new(
        id: ReceiveEndpointId,
        identity: ReceiverIdentity,
        channel: String,
        stream_session_limit: usize,
    ) -> Self {
        Self {
            id,
            identity,
            channel,
            dispatcher: Dispatcher::new(stream_session_limit),
            has_noted_forgetting: false,
        }
    }
}

impl ReceiverIdentity {
    /// Returns the status message that requests the SETUP of a session, or of [any](StreamSession::ANY).
    pub(super) fn setup_request(&self, session: StreamSession) -> EncodedStatusMessage {
        self.status_message(StatusMessage {
            wants_setup: true,
            is_end_of_stream: false,
            session_id: session.session_id,
            stream_id: session.stream_id,
            consumption_term_id: 0,
            consumption_term_offset: 0,
            receiver_window: 0,
            receiver_id: 0,
            feedback: &[],
        })
    }

    /// Encodes `message` with the endpoint's identity.
    pub(super) fn status_message(&self, message: StatusMessage<'_>) -> EncodedStatusMessage {
        let group_tag = self.group_tag.map(i64::to_le_bytes);
        let message = StatusMessage {
            receiver_id: self.receiver_id,
            feedback: group_tag.as_ref().map_or(&[], |tag| tag),
            ..message
        };
        let mut bytes = [0; StatusMessage::MAX_LENGTH];
        let length = message.encode(&mut bytes);
        EncodedStatusMessage { bytes, length }
    }
}

/// An encoded status message.
pub(super) struct EncodedStatusMessage {
    bytes: [u8; StatusMessage::MAX_LENGTH],
    length: usize,
}

impl EncodedStatusMessage {
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}
