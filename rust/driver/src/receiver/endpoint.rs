//! [`ReceiveEndpoint`]: what the subscriptions of one channel share in the receiver.

use aeron_protocol::frame::StatusMessage;

use super::dispatcher::Dispatcher;
use super::ids::EndpointId;
use crate::stream::StreamSession;

/// A receive endpoint; its destinations, each with a socket, belong to the receiver.
#[derive(Debug)]
pub struct ReceiveEndpoint {
    pub(super) id: EndpointId,
    pub(super) identity: ReceiverIdentity,
    /// Names the endpoint in the error log.
    pub(super) channel: String,
    pub(super) dispatcher: Dispatcher,
    pub(super) has_noted_forgetting: bool,
}

/// Who the endpoint is to senders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceiverIdentity {
    /// Different for each endpoint, and for those of other drivers.
    pub receiver_id: i64,
    /// For the flow control of senders.
    pub group_tag: Option<i64>,
}

impl ReceiveEndpoint {
    /// An endpoint for `channel` that wants no stream yet, and allows `stream_session_limit` images for each.
    pub fn new(
        id: EndpointId,
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
    /// The status message that asks for the SETUP of a session, or of [any](StreamSession::ANY).
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

    /// `message` with the identity in it.
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

/// A status message as it travels.
pub(super) struct EncodedStatusMessage {
    bytes: [u8; StatusMessage::MAX_LENGTH],
    length: usize,
}

impl EncodedStatusMessage {
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}
