//! Copies of client requests. The conductor keeps a copy while the command waits for an address or a log.

use std::sync::Arc;

use aeron_protocol::uri::PublicationParams;

use super::outlets::StreamOwner;
use crate::flow_control::FlowControlSpec;
use crate::media::UdpChannel;
use crate::{receiver, sender};

/// A client's request for a publication.
#[derive(Clone, Debug)]
pub(super) struct PublicationRequest {
    pub(super) client_id: i64,
    pub(super) correlation_id: i64,
    pub(super) stream_id: i32,
    pub(super) is_exclusive: bool,
    pub(super) channel: Arc<str>,
}

/// An IPC publication that is to be created.
#[derive(Debug)]
pub(super) struct IpcPlan {
    pub(super) request: PublicationRequest,
    pub(super) params: PublicationParams,
}

/// A network publication that is to be created.
#[derive(Debug)]
pub(super) struct NetworkPlan {
    pub(super) request: PublicationRequest,
    pub(super) channel: Arc<UdpChannel>,
    pub(super) params: PublicationParams,
    pub(super) flow_control: FlowControlSpec,
}

/// A client's request for a subscription.
#[derive(Clone, Debug)]
pub(super) struct SubscriptionRequest {
    pub(super) client_id: i64,
    /// Registration id of the subscription: the correlation id of the command that added it.
    pub(super) registration_id: i64,
    pub(super) stream_id: i32,
    pub(super) channel: Arc<str>,
}

/// Whether a destination is added or removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Add,
    Remove,
}

/// The addition or removal of a publication's destination.
#[derive(Clone, Debug)]
pub(super) struct DestinationChange {
    pub(super) change: Change,
    pub(super) correlation_id: i64,
    pub(super) endpoint: sender::SendEndpointId,
    pub(super) endpoint_name: Arc<str>,
}

/// The addition or removal of a subscription's destination.
#[derive(Clone, Debug)]
pub(super) struct ReceiveDestinationChange {
    pub(super) change: Change,
    pub(super) correlation_id: i64,
    pub(super) endpoint: receiver::ReceiveEndpointId,
    /// The request of the subscription. Its channel is replaced by the channel of the destination.
    pub(super) request: SubscriptionRequest,
    pub(super) is_spy: bool,
}

impl PublicationRequest {
    /// Returns the owner of the counters of the publication.
    pub(super) fn counter_owner(&self, session_id: i32) -> StreamOwner<'_> {
        StreamOwner {
            registration_id: self.correlation_id,
            owner_id: self.client_id,
            session_id,
            stream_id: self.stream_id,
            channel: &self.channel,
        }
    }

    /// Returns a description of the request for an error text.
    pub(super) fn describe(&self) -> String {
        format!("channel={} streamId={}", self.channel, self.stream_id)
    }
}

impl SubscriptionRequest {
    /// Returns a description of the request for an error text.
    pub(super) fn describe(&self) -> String {
        format!("channel={} streamId={}", self.channel, self.stream_id)
    }
}
