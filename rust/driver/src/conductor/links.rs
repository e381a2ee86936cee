//! Links subscriptions with matching streams.

use std::sync::Arc;

use aeron_memory::counters::{NewCounter, keys, types};
use aeron_memory::log::frame::FRAME_ALIGNMENT;

use super::Conductor;
use super::outlets::ConductorOutlets;
use super::subscriptions::{StreamOrigin, SubscriptionLink, SubscriptionSource, Subscriptions};
use crate::error::DriverError;
use crate::stream::{
    IPC_SOURCE_IDENTITY, LinkId, LinkedStream, Subscriber, SubscriberConfig, TetherAction,
};

impl Conductor {
    /// Links the newest subscription to every stream that matches it.
    pub(super) fn link_last_subscription(&mut self) {
        let Some(subscription) = self.subscriptions.last() else {
            return;
        };
        let outlets = &mut self.outlets;
        match subscription.source {
            SubscriptionSource::Ipc => {
                for publication in self.publications.ipc_mut() {
                    outlets.link_if_matching(publication, StreamOrigin::Ipc, subscription);
                }
            }
            SubscriptionSource::Spy(_) => {
                for publication in self.publications.network_mut() {
                    let endpoint = publication.options().endpoint;
                    if let Some(channel) = self.endpoints.sent_channel(endpoint) {
                        let origin = StreamOrigin::Sent(channel);
                        outlets.link_if_matching(publication, origin, subscription);
                    }
                }
            }
            SubscriptionSource::Network(_) => {
                for image in self.images.all_mut() {
                    let origin = StreamOrigin::Received(image.config().endpoint);
                    outlets.link_if_matching(image, origin, subscription);
                }
            }
        }
    }

    /// Announces the end of each image of a subscription that is about to be unlinked.
    pub(super) fn announce_unlinked(&mut self, subscription: &SubscriptionLink) {
        let outlets = &mut self.outlets;
        let mut announce = |stream: &dyn LinkedStream| {
            if stream.subscribers().contains(subscription.link_id) {
                outlets.events.on_unavailable_image(
                    stream.identity(),
                    subscription.registration_id,
                    &subscription.channel,
                );
            }
        };
        match subscription.source {
            SubscriptionSource::Ipc => self.publications.ipc().iter().for_each(|it| announce(it)),
            SubscriptionSource::Spy(_) => self
                .publications
                .network()
                .iter()
                .for_each(|it| announce(it)),
            SubscriptionSource::Network(_) => self.images.all().iter().for_each(|it| announce(it)),
        }
    }

    /// Removes the links of a subscription that has ended, without events to clients.
    pub(super) fn unlink(&mut self, subscription: &SubscriptionLink) {
        let outlets = &mut self.outlets;
        match subscription.source {
            SubscriptionSource::Ipc => {
                outlets.unlink_all(self.publications.ipc_mut(), subscription.link_id)
            }
            SubscriptionSource::Spy(_) => {
                outlets.unlink_all(self.publications.network_mut(), subscription.link_id);
            }
            SubscriptionSource::Network(_) => {
                outlets.unlink_all(self.images.all_mut(), subscription.link_id)
            }
        }
    }
}

impl Subscriptions {
    /// Links a stream to every matching subscription that has no link to the stream yet.
    pub(super) fn link_to(
        &self,
        stream: &mut dyn LinkedStream,
        origin: StreamOrigin<'_>,
        outlets: &mut ConductorOutlets,
    ) {
        for subscription in self.iter() {
            outlets.link_if_matching(stream, origin, subscription);
        }
    }
}

impl ConductorOutlets {
    fn link_if_matching(
        &mut self,
        stream: &mut dyn LinkedStream,
        origin: StreamOrigin<'_>,
        subscription: &SubscriptionLink,
    ) {
        let session = stream.identity().session();
        let is_new = !stream.subscribers().contains(subscription.link_id);
        if is_new && subscription.matches(session, origin) && stream.is_accepting_subscribers() {
            // If the link fails, the client still has its subscription, and only lacks this image. The error is
            // therefore recorded, and not sent to the client.
            if let Err(error) = self.link(stream, subscription) {
                self.errors.record(&error);
            }
        }
    }

    /// Adds a subscription to the subscribers of a stream, beginning at the stream's join position.
    pub(super) fn link(
        &mut self,
        stream: &mut dyn LinkedStream,
        subscription: &SubscriptionLink,
    ) -> Result<(), DriverError> {
        let (identity, join_position) = (stream.identity(), stream.join_position());
        debug_assert!(
            join_position >= 0 && join_position % FRAME_ALIGNMENT as i64 == 0,
            "a subscriber cannot begin to read at {join_position}"
        );
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

    fn unlink_all(&mut self, streams: &mut [impl LinkedStream], link_id: LinkId) {
        for stream in streams {
            if let Some(subscriber) = stream.subscribers_mut().remove(link_id) {
                subscriber
                    .position_counter_id()
                    .into_iter()
                    .for_each(|id| self.free_counter(id));
                debug_assert!(
                    !stream.subscribers().contains(link_id),
                    "the stream had two subscribers of {link_id:?}"
                );
                stream.on_subscriber_removed();
            }
        }
    }

    /// Removes all subscribers of a stream, and frees their counters.
    pub(super) fn free_subscribers(&mut self, stream: &mut dyn LinkedStream) {
        for subscriber in stream.subscribers_mut().remove_all() {
            subscriber
                .position_counter_id()
                .into_iter()
                .for_each(|id| self.free_counter(id));
        }
    }

    /// Announces to every subscriber of a stream that its image ends.
    ///
    /// If `channel` is set, it replaces the subscriber's channel in the event.
    pub(super) fn announce_unavailable(
        &mut self,
        stream: &dyn LinkedStream,
        channel: Option<&str>,
    ) {
        for subscriber in stream.subscribers().iter() {
            self.events.on_unavailable_image(
                stream.identity(),
                subscriber.registration_id(),
                channel.unwrap_or_else(|| subscriber.channel()),
            );
        }
    }

    /// Executes the actions that untethered subscribers of a stream need.
    pub(super) fn on_tether_actions(
        &mut self,
        stream: &dyn LinkedStream,
        actions: Vec<TetherAction>,
    ) {
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
