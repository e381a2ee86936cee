//! Subscriptions, and their links to the streams that match them.

use std::sync::Arc;

use aeron_memory::counters::{NewCounter, keys, types};
use aeron_protocol::uri::{ReceiverGroup, SubscriptionParams};

use super::Conductor;
use super::endpoints::Interest;
use super::outlets::Outlets;
use super::requests::SubscriptionRequest;
use crate::error::DriverError;
use crate::media::UdpChannel;
use crate::receiver::EndpointId;
use crate::stream::{IPC_SOURCE_IDENTITY, LinkId, Stream, Subscriber, TetherAction};

/// What a client wants to hear. One subscription command makes one, and each IPC or spy destination added to it another one.
#[derive(Debug)]
pub(super) struct Subscription {
    pub(super) link_id: LinkId,
    pub(super) registration_id: i64,
    pub(super) client_id: i64,
    pub(super) stream_id: i32,
    pub(super) channel: Arc<str>,
    /// Only this session.
    pub(super) session_id: Option<i32>,
    pub(super) is_response: bool,
    pub(super) is_tethered: bool,
    pub(super) rejoins: bool,
    pub(super) is_reliable: bool,
    pub(super) is_sparse: bool,
    pub(super) group: ReceiverGroup,
    pub(super) source: Source,
}

/// Where a subscription gets its streams from.
#[derive(Clone, Debug)]
pub(super) enum Source {
    Ipc,
    /// What publications of this driver send to the channel.
    Spy(Arc<UdpChannel>),
    /// What arrives at the endpoint.
    Network(EndpointId),
}

/// Where a stream is, for subscriptions to find it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Origin<'a> {
    Ipc,
    /// Sent by this driver, to the channel.
    Sent(&'a UdpChannel),
    /// Received at the endpoint.
    Received(EndpointId),
}

impl Subscription {
    /// Whether it wants to hear a session of a stream from there.
    pub(super) fn matches(&self, (stream_id, session_id): (i32, i32), origin: Origin<'_>) -> bool {
        if self.stream_id != stream_id {
            return false;
        }
        match (&self.source, origin) {
            (Source::Ipc, Origin::Ipc) => self.wants_session(session_id),
            (Source::Network(endpoint), Origin::Received(at)) => {
                *endpoint == at && self.wants_session(session_id)
            }
            (Source::Spy(spied), Origin::Sent(channel)) => {
                let has_same_tag = spied.tag().is_some() && spied.tag() == channel.tag();
                has_same_tag
                    || (spied.canonical_form == channel.canonical_form
                        && self.wants_session(session_id))
            }
            _ => false,
        }
    }

    /// What it wants to hear at an endpoint.
    pub(super) fn interest(&self) -> Interest {
        Interest::of(self.stream_id, self.session_id, self.is_response)
    }

    fn wants_session(&self, session_id: i32) -> bool {
        match self.session_id {
            Some(wanted) => wanted == session_id,
            None => !self.is_response,
        }
    }
}

impl Conductor {
    pub(super) fn add_subscription(
        &mut self,
        request: SubscriptionRequest,
        params: &SubscriptionParams,
        source: Source,
    ) {
        self.next_link_id += 1;
        self.subscriptions.push(Subscription {
            link_id: LinkId(self.next_link_id),
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

    /// Links the subscription that was added last to every stream that matches it.
    pub(super) fn link_last_subscription(&mut self) {
        let Some(subscription) = self.subscriptions.last() else {
            return;
        };
        let outlets = &mut self.outlets;
        match subscription.source {
            Source::Ipc => {
                for publication in &mut self.ipc_publications {
                    outlets.link_if_matching(publication, Origin::Ipc, subscription);
                }
            }
            Source::Spy(_) => {
                for publication in &mut self.network_publications {
                    let endpoint = publication.options().endpoint;
                    if let Some(channel) = self.endpoints.sent_channel(endpoint) {
                        let origin = Origin::Sent(channel);
                        outlets.link_if_matching(publication, origin, subscription);
                    }
                }
            }
            Source::Network(_) => {
                for image in &mut self.images {
                    let origin = Origin::Received(image.config().endpoint);
                    outlets.link_if_matching(image, origin, subscription);
                }
            }
        }
    }

    /// Links every subscription that matches an IPC publication and is not linked yet.
    pub(super) fn link_ipc_publication(&mut self, index: usize) {
        let publication = &mut self.ipc_publications[index];
        for subscription in &self.subscriptions {
            self.outlets
                .link_if_matching(publication, Origin::Ipc, subscription);
        }
    }

    /// Links every spy that matches a network publication and is not linked yet.
    pub(super) fn link_network_publication(&mut self, index: usize) {
        let publication = &mut self.network_publications[index];
        let Some(channel) = self.endpoints.sent_channel(publication.options().endpoint) else {
            return;
        };
        for subscription in &self.subscriptions {
            let origin = Origin::Sent(channel);
            self.outlets
                .link_if_matching(publication, origin, subscription);
        }
    }

    /// Tells the client of a local subscription that is about to be unlinked of each image that goes with it.
    pub(super) fn announce_unlinked(&mut self, subscription: &Subscription) {
        let outlets = &mut self.outlets;
        let mut announce = |stream: &dyn Stream| {
            if stream.subscribers().contains(subscription.link_id) {
                outlets.events.on_unavailable_image(
                    stream.identity(),
                    subscription.registration_id,
                    &subscription.channel,
                );
            }
        };
        match subscription.source {
            Source::Ipc => self.ipc_publications.iter().for_each(|it| announce(it)),
            Source::Spy(_) => self.network_publications.iter().for_each(|it| announce(it)),
            Source::Network(_) => self.images.iter().for_each(|it| announce(it)),
        }
    }

    /// Ends the links of a subscription that is gone, without telling anybody.
    pub(super) fn unlink(&mut self, subscription: &Subscription) {
        let outlets = &mut self.outlets;
        match subscription.source {
            Source::Ipc => outlets.unlink_all(&mut self.ipc_publications, subscription.link_id),
            Source::Spy(_) => {
                outlets.unlink_all(&mut self.network_publications, subscription.link_id);
            }
            Source::Network(_) => outlets.unlink_all(&mut self.images, subscription.link_id),
        }
    }
}

impl Outlets {
    fn link_if_matching(
        &mut self,
        stream: &mut dyn Stream,
        origin: Origin<'_>,
        subscription: &Subscription,
    ) {
        let identity = stream.identity();
        let is_new = !stream.subscribers().contains(subscription.link_id);
        if is_new
            && subscription.matches((identity.stream_id, identity.session_id), origin)
            && stream.is_accepting_subscribers()
        {
            if !stream.is_ready_for_subscribers() {
                return stream.await_pages();
            }
            // The subscription is there already, and its client has been told; only this image is missing.
            if let Err(error) = self.link(stream, subscription) {
                self.errors.record(&error);
            }
        }
    }

    /// Makes a subscription a subscriber of a stream, from its join position on.
    pub(super) fn link(
        &mut self,
        stream: &mut dyn Stream,
        subscription: &Subscription,
    ) -> Result<(), DriverError> {
        let (identity, join_position) = (stream.identity(), stream.join_position());
        let (registration_id, channel) = (subscription.registration_id, &*subscription.channel);
        let (session_id, stream_id) = (identity.session_id, identity.stream_id);
        let key = keys::stream_key(registration_id, session_id, stream_id, channel);
        let label = keys::subscriber_position_label(
            registration_id,
            session_id,
            stream_id,
            channel,
            join_position,
        );
        let position = self.allocate_counter(&NewCounter {
            type_id: types::SUBSCRIBER_POSITION,
            key: &key,
            label: label.as_bytes(),
            registration_id,
            owner_id: subscription.client_id,
            reference_id: identity.correlation_id,
            value: join_position,
        })?;
        let position_counter_id = position.id();
        stream.subscribers_mut().add(Subscriber::new(
            (subscription.link_id, registration_id),
            Arc::clone(&subscription.channel),
            position,
            (subscription.is_tethered, subscription.rejoins),
            self.now_ns,
        ));
        stream.on_subscriber_added();
        self.events
            .on_available_image(stream.identity(), registration_id, position_counter_id);
        Ok(())
    }

    fn unlink_all(&mut self, streams: &mut [impl Stream], link_id: LinkId) {
        for stream in streams {
            if let Some(subscriber) = stream.subscribers_mut().remove(link_id) {
                subscriber
                    .position_counter_id()
                    .into_iter()
                    .for_each(|id| self.free_counter(id));
                stream.on_subscriber_removed();
            }
        }
    }

    /// Frees the counters of all subscribers of a stream that has ended.
    pub(super) fn free_subscribers(&mut self, stream: &mut dyn Stream) {
        for subscriber in stream.subscribers_mut().remove_all() {
            subscriber
                .position_counter_id()
                .into_iter()
                .for_each(|id| self.free_counter(id));
        }
    }

    /// Tells every subscriber of a stream that its image is gone; `channel` instead of its own, where that is said.
    pub(super) fn announce_unavailable(&mut self, stream: &dyn Stream, channel: Option<&str>) {
        for subscriber in stream.subscribers().iter() {
            self.events.on_unavailable_image(
                stream.identity(),
                subscriber.registration_id(),
                channel.unwrap_or_else(|| subscriber.channel()),
            );
        }
    }

    /// Does what the untethered subscribers of a stream ask for.
    pub(super) fn on_tether_actions(&mut self, stream: &dyn Stream, actions: Vec<TetherAction>) {
        for action in actions {
            match action {
                TetherAction::Unavailable { registration_id } => {
                    self.events.on_unavailable_image(
                        stream.identity(),
                        registration_id,
                        IPC_SOURCE_IDENTITY,
                    );
                }
                TetherAction::Available {
                    registration_id,
                    position_counter_id,
                } => {
                    self.events.on_available_image(
                        stream.identity(),
                        registration_id,
                        position_counter_id,
                    );
                }
                TetherAction::FreeCounter {
                    position_counter_id,
                } => self.free_counter(position_counter_id),
            }
        }
    }
}
