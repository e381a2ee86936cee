//! The links between subscriptions and the streams that match them.

use std::sync::Arc;

use aeron_memory::counters::{NewCounter, keys, types};

use super::Conductor;
use super::outlets::Outlets;
use super::subscriptions::{Origin, Source, Subscription, Subscriptions};
use crate::error::DriverError;
use crate::stream::{
    IPC_SOURCE_IDENTITY, LinkId, Stream, StreamSession, Subscriber, SubscriberConfig, TetherAction,
};

impl Conductor {
    /// Links the subscription that was added last to every stream that matches it.
    pub(super) fn link_last_subscription(&mut self) {
        let Some(subscription) = self.subscriptions.last() else {
            return;
        };
        let outlets = &mut self.outlets;
        match subscription.source {
            Source::Ipc => {
                for publication in self.publications.ipc_mut() {
                    outlets.link_if_matching(publication, Origin::Ipc, subscription);
                }
            }
            Source::Spy(_) => {
                for publication in self.publications.network_mut() {
                    let endpoint = publication.options().endpoint;
                    if let Some(channel) = self.endpoints.sent_channel(endpoint) {
                        let origin = Origin::Sent(channel);
                        outlets.link_if_matching(publication, origin, subscription);
                    }
                }
            }
            Source::Network(_) => {
                for image in self.images.all_mut() {
                    let origin = Origin::Received(image.config().endpoint);
                    outlets.link_if_matching(image, origin, subscription);
                }
            }
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
            Source::Ipc => self.publications.ipc().iter().for_each(|it| announce(it)),
            Source::Spy(_) => self
                .publications
                .network()
                .iter()
                .for_each(|it| announce(it)),
            Source::Network(_) => self.images.all().iter().for_each(|it| announce(it)),
        }
    }

    /// Ends the links of a subscription that is gone, without telling anybody.
    pub(super) fn unlink(&mut self, subscription: &Subscription) {
        let outlets = &mut self.outlets;
        match subscription.source {
            Source::Ipc => outlets.unlink_all(self.publications.ipc_mut(), subscription.link_id),
            Source::Spy(_) => {
                outlets.unlink_all(self.publications.network_mut(), subscription.link_id);
            }
            Source::Network(_) => outlets.unlink_all(self.images.all_mut(), subscription.link_id),
        }
    }
}

impl Subscriptions {
    /// Links every subscription that matches a stream and is not linked yet.
    pub(super) fn link_to(
        &self,
        stream: &mut dyn Stream,
        origin: Origin<'_>,
        outlets: &mut Outlets,
    ) {
        for subscription in self.iter() {
            outlets.link_if_matching(stream, origin, subscription);
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
        let session = StreamSession {
            stream_id: identity.stream_id,
            session_id: identity.session_id,
        };
        let is_new = !stream.subscribers().contains(subscription.link_id);
        if is_new && subscription.matches(session, origin) && stream.is_accepting_subscribers() {
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
            SubscriberConfig {
                link_id: subscription.link_id,
                registration_id,
                channel: Arc::clone(&subscription.channel),
                is_tethered: subscription.is_tethered,
                rejoins: subscription.rejoins,
            },
            position,
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
