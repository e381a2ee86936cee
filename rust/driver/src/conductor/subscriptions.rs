//! The subscriptions of clients: what they want to hear, and from where.

use std::sync::Arc;

use aeron_protocol::uri::{ReceiverGroup, SubscriptionParams, key};

use super::endpoints::Interest;
use super::requests::SubscriptionRequest;
use crate::error::DriverError;
use crate::media::UdpChannel;
use crate::receiver::EndpointId;
use crate::stream::{LinkId, StreamSession};

/// What a client wants to hear. One subscription command makes one, and each IPC or spy destination added to it another one.
#[derive(Debug)]
pub struct Subscription {
    pub link_id: LinkId,
    pub registration_id: i64,
    pub client_id: i64,
    pub stream_id: i32,
    pub channel: Arc<str>,
    /// Only this session.
    pub session_id: Option<i32>,
    pub is_response: bool,
    pub is_tethered: bool,
    pub rejoins: bool,
    pub is_reliable: bool,
    pub is_sparse: bool,
    pub group: ReceiverGroup,
    pub source: Source,
}

/// Where a subscription gets its streams from.
#[derive(Clone, Debug)]
pub enum Source {
    Ipc,
    /// What publications of this driver send to the channel.
    Spy(Arc<UdpChannel>),
    /// What arrives at the endpoint.
    Network(EndpointId),
}

/// Where a stream is, for subscriptions to find it.
#[derive(Clone, Copy, Debug)]
pub enum Origin<'a> {
    Ipc,
    /// Sent by this driver, to the channel.
    Sent(&'a UdpChannel),
    /// Received at the endpoint.
    Received(EndpointId),
}

/// All subscriptions, oldest first.
#[derive(Debug, Default)]
pub struct Subscriptions {
    all: Vec<Subscription>,
    last_link_id: u64,
}

impl Subscription {
    /// Whether it wants to hear a session of a stream from there.
    pub fn matches(&self, session: StreamSession, origin: Origin<'_>) -> bool {
        if self.stream_id != session.stream_id {
            return false;
        }
        let wants_session = self.wants_session(session.session_id);
        match (&self.source, origin) {
            (Source::Ipc, Origin::Ipc) => wants_session,
            (Source::Network(endpoint), Origin::Received(at)) => *endpoint == at && wants_session,
            (Source::Spy(spied), Origin::Sent(channel)) => {
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

    /// What it wants to hear at an endpoint.
    pub fn interest(&self) -> Interest {
        Interest::of(self.stream_id, self.session_id, self.is_response)
    }

    /// The endpoint of a subscription to the network.
    pub fn endpoint(&self) -> Option<EndpointId> {
        match self.source {
            Source::Network(endpoint) => Some(endpoint),
            Source::Ipc | Source::Spy(_) => None,
        }
    }
}

impl Subscriptions {
    pub fn iter(&self) -> impl Iterator<Item = &Subscription> {
        self.all.iter()
    }

    /// Adds a subscription.
    pub fn add(
        &mut self,
        request: SubscriptionRequest,
        params: &SubscriptionParams,
        source: Source,
    ) {
        self.last_link_id += 1;
        self.all.push(Subscription {
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
        });
    }

    /// The newest subscription.
    pub fn last(&self) -> Option<&Subscription> {
        self.all.last()
    }

    /// Takes out the subscriptions that `is_removed` names.
    pub fn remove(&mut self, is_removed: impl Fn(&Subscription) -> bool) -> Vec<Subscription> {
        self.all
            .extract_if(.., |subscription| is_removed(subscription))
            .collect()
    }

    /// Takes out the oldest IPC or spy destination of a subscription with this channel.
    pub fn remove_local_destination(
        &mut self,
        registration_id: i64,
        channel: &[u8],
    ) -> Option<Subscription> {
        let index = self.all.iter().position(|subscription| {
            subscription.registration_id == registration_id
                && subscription.channel.as_bytes() == channel
                && subscription.endpoint().is_none()
        })?;
        Some(self.all.remove(index))
    }

    /// The subscription to the network with this id, and its endpoint.
    pub fn network(&self, registration_id: i64) -> Option<(&Subscription, EndpointId)> {
        self.all
            .iter()
            .filter(|subscription| subscription.registration_id == registration_id)
            .find_map(|subscription| Some((subscription, subscription.endpoint()?)))
    }

    /// As [`network`](Self::network), to be changed.
    pub fn network_mut(&mut self, registration_id: i64) -> Option<(&mut Subscription, EndpointId)> {
        self.all
            .iter_mut()
            .filter(|subscription| subscription.registration_id == registration_id)
            .find_map(|subscription| {
                let endpoint = subscription.endpoint()?;
                Some((subscription, endpoint))
            })
    }

    /// An IPC subscription waits for responses, and the session of the responses is known.
    pub fn narrow_ipc(&mut self, registration_id: i64, session_id: i32) {
        let mut subscriptions = self.all.iter_mut();
        if let Some(subscription) = subscriptions.find(|subscription| {
            subscription.registration_id == registration_id
                && matches!(subscription.source, Source::Ipc)
        }) {
            subscription.session_id = Some(session_id);
        }
    }

    /// The subscriptions that want to hear a session of a stream from there.
    pub fn matching(
        &self,
        session: StreamSession,
        origin: Origin<'_>,
    ) -> impl Iterator<Item = &Subscription> {
        self.all
            .iter()
            .filter(move |subscription| subscription.matches(session, origin))
    }

    /// Checks what a subscription wants of its images. Subscriptions of one stream and session at one endpoint get the same image, so
    /// they must want the same of it.
    pub fn check_agreement(
        &self,
        endpoint: EndpointId,
        request: &SubscriptionRequest,
        params: &SubscriptionParams,
        channel: &UdpChannel,
    ) -> Result<(), DriverError> {
        let is_comparable = |other: &&Subscription| {
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
