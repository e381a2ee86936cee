//! [`Subscriptions`]: the conductor's list of the clients' subscriptions. Each has a source and a stream id, and may be
//! limited to one session.

use std::sync::Arc;

use aeron_protocol::uri::{ReceiverGroup, SubscriptionParams, key};

use super::endpoints::ReceiveInterest;
use super::requests::SubscriptionRequest;
use crate::error::DriverError;
use crate::media::UdpChannel;
use crate::receiver::ReceiveEndpointId;
use crate::stream::{LinkId, StreamSession};

/// A client's subscription. One command adds one subscription, and each IPC or spy destination adds another.
#[derive(Debug)]
pub struct SubscriptionLink {
    pub link_id: LinkId,
    pub registration_id: i64,
    pub client_id: i64,
    pub stream_id: i32,
    pub channel: Arc<str>,
    /// If set, the subscription matches only this session.
    pub session_id: Option<i32>,
    pub is_response: bool,
    pub is_tethered: bool,
    pub rejoins: bool,
    pub is_reliable: bool,
    pub is_sparse: bool,
    pub group: ReceiverGroup,
    pub source: SubscriptionSource,
}

/// The source of the streams of a subscription.
#[derive(Clone, Debug)]
pub enum SubscriptionSource {
    Ipc,
    /// Publications of this driver that send to the channel.
    Spy(Arc<UdpChannel>),
    /// Streams that arrive at the endpoint.
    Network(ReceiveEndpointId),
}

/// The origin of a stream, to be matched with the source of a subscription.
#[derive(Clone, Copy, Debug)]
pub enum StreamOrigin<'a> {
    Ipc,
    /// Sent by this driver to the channel.
    Sent(&'a UdpChannel),
    /// Received at the endpoint.
    Received(ReceiveEndpointId),
}

#[derive(Debug, Default)]
pub struct Subscriptions {
    all: Vec<SubscriptionLink>,
    last_link_id: u64,
}

impl SubscriptionLink {
    /// Returns whether the subscription matches a session of a stream from this origin.
    pub fn matches(&self, session: StreamSession, origin: StreamOrigin<'_>) -> bool {
        if self.stream_id != session.stream_id {
            return false;
        }
        let wants_session = self.wants_session(session.session_id);
        match (&self.source, origin) {
            (SubscriptionSource::Ipc, StreamOrigin::Ipc) => wants_session,
            (SubscriptionSource::Network(endpoint), StreamOrigin::Received(at)) => {
                *endpoint == at && wants_session
            }
            (SubscriptionSource::Spy(spied), StreamOrigin::Sent(channel)) => {
                let has_same_tag = spied.tag().is_some() && spied.tag() == channel.tag();
                has_same_tag || (spied.canonical_form == channel.canonical_form && wants_session)
            }
            _ => false,
        }
    }

    fn wants_session(&self, session_id: i32) -> bool {
        match self.session_id {
            Some(wanted) => wanted == session_id,
            None => !self.is_response,
        }
    }

    /// Returns the stream and session that the subscription reads from an endpoint.
    pub fn interest(&self) -> ReceiveInterest {
        ReceiveInterest::of(self.stream_id, self.session_id, self.is_response)
    }

    /// Returns the endpoint of a network subscription; `None` for an IPC or spy subscription.
    pub fn endpoint(&self) -> Option<ReceiveEndpointId> {
        match self.source {
            SubscriptionSource::Network(endpoint) => Some(endpoint),
            SubscriptionSource::Ipc | SubscriptionSource::Spy(_) => None,
        }
    }
}

impl Subscriptions {
    pub fn iter(&self) -> impl Iterator<Item = &SubscriptionLink> {
        self.all.iter()
    }

    /// Creates a subscription, without adding it to the list.
    pub fn create(
        &mut self,
        request: SubscriptionRequest,
        params: &SubscriptionParams,
        source: SubscriptionSource,
    ) -> SubscriptionLink {
        self.last_link_id += 1;
        SubscriptionLink {
            link_id: LinkId(self.last_link_id),
            registration_id: request.registration_id,
            client_id: request.client_id,
            stream_id: request.stream_id,
            channel: request.channel,
            session_id: params.session_id,
            is_response: params.is_response,
            is_tethered: params.is_tether,
            rejoins: params.is_rejoin,
            is_reliable: params.is_reliable,
            is_sparse: params.is_sparse,
            group: params.group,
            source,
        }
    }

    /// Adds a subscription to the list.
    pub fn add(&mut self, subscription: SubscriptionLink) {
        // `last` returns the newest subscription, which is linked to the streams.
        debug_assert!(
            self.all
                .last()
                .is_none_or(|last| last.link_id.0 < subscription.link_id.0),
            "the subscription {:?} is added after a newer one",
            subscription.link_id
        );
        self.all.push(subscription);
    }

    /// Returns the newest subscription.
    pub fn last(&self) -> Option<&SubscriptionLink> {
        self.all.last()
    }

    /// Removes and returns the subscriptions that `is_removed` selects.
    pub fn remove(
        &mut self,
        is_removed: impl Fn(&SubscriptionLink) -> bool,
    ) -> Vec<SubscriptionLink> {
        self.all
            .extract_if(.., |subscription| is_removed(subscription))
            .collect()
    }

    /// Removes and returns a subscription's oldest IPC or spy destination with this channel.
    pub fn remove_local_destination(
        &mut self,
        registration_id: i64,
        channel: &[u8],
    ) -> Option<SubscriptionLink> {
        let index = self.all.iter().position(|subscription| {
            subscription.registration_id == registration_id
                && subscription.channel.as_bytes() == channel
                && subscription.endpoint().is_none()
        })?;
        Some(self.all.remove(index))
    }

    /// Returns the network subscription with this id, and its endpoint.
    pub fn network(&self, registration_id: i64) -> Option<(&SubscriptionLink, ReceiveEndpointId)> {
        self.all
            .iter()
            .filter(|subscription| subscription.registration_id == registration_id)
            .find_map(|subscription| Some((subscription, subscription.endpoint()?)))
    }

    /// Like [`network`](Self::network), but returns a mutable reference.
    pub fn network_mut(
        &mut self,
        registration_id: i64,
    ) -> Option<(&mut SubscriptionLink, ReceiveEndpointId)> {
        self.all
            .iter_mut()
            .filter(|subscription| subscription.registration_id == registration_id)
            .find_map(|subscription| {
                let endpoint = subscription.endpoint()?;
                Some((subscription, endpoint))
            })
    }

    /// Sets the session of an IPC subscription that receives responses. From then on, the subscription matches only
    /// this session.
    pub fn narrow_ipc(&mut self, registration_id: i64, session_id: i32) {
        let mut subscriptions = self.all.iter_mut();
        if let Some(subscription) = subscriptions.find(|subscription| {
            subscription.registration_id == registration_id
                && matches!(subscription.source, SubscriptionSource::Ipc)
        }) {
            subscription.session_id = Some(session_id);
        }
    }

    /// Returns the subscriptions that match a session of a stream from this origin.
    pub fn matching(
        &self,
        session: StreamSession,
        origin: StreamOrigin<'_>,
    ) -> impl Iterator<Item = &SubscriptionLink> {
        self.all
            .iter()
            .filter(move |subscription| subscription.matches(session, origin))
    }

    /// Checks the image options of a new subscription.
    ///
    /// Subscriptions of one stream and session at one endpoint share an image, so their options must be equal.
    pub fn check_agreement(
        &self,
        endpoint: ReceiveEndpointId,
        request: &SubscriptionRequest,
        params: &SubscriptionParams,
        channel: &UdpChannel,
    ) -> Result<(), DriverError> {
        let is_comparable = |other: &&SubscriptionLink| {
            other.endpoint() == Some(endpoint)
                && other.stream_id == request.stream_id
                && other.session_id == params.session_id
        };
        for other in self.all.iter().filter(is_comparable) {
            for (key, existing, requested) in [
                (key::RELIABLE, other.is_reliable, params.is_reliable),
                (key::REJOIN, other.rejoins, params.is_rejoin),
                ("isResponse", other.is_response, params.is_response),
            ] {
                if existing != requested {
                    return Err(DriverError::invalid_argument(format_args!(
                        "option conflicts with existing subscription: {key}={requested} existingChannel={} channel={}",
                        other.channel, channel.text
                    )));
                }
            }
        }
        Ok(())
    }
}
