//! Subscriptions to IPC, and their links to the publications that match them.

use aeron_memory::counters::{NewCounter, keys, types};
use aeron_protocol::ErrorCode;
use aeron_protocol::command::{AddSubscription, RemoveSubscription};
use aeron_protocol::event::NO_COUNTER_ID;
use aeron_protocol::uri::{ChannelUri, SubscriptionDefaults, SubscriptionParams, Transport};

use super::commands::{bad_channel, refuse_network_channel};
use super::publications::untethered_timeouts;
use super::{Conductor, Outlets};
use crate::config::Context;
use crate::error::DriverError;
use crate::publication::{IpcPublication, LinkId, Subscriber};

/// What a client wants to hear.
#[derive(Debug)]
pub(super) struct IpcSubscription {
    link_id: LinkId,
    pub(super) registration_id: i64,
    pub(super) client_id: i64,
    stream_id: i32,
    channel: String,
    /// Only this session.
    pub(super) session_id: Option<i32>,
    is_response: bool,
    is_tethered: bool,
    rejoins: bool,
}

impl IpcSubscription {
    fn matches(&self, publication: &IpcPublication) -> bool {
        let config = publication.config();
        let session_matches = match self.session_id {
            Some(session_id) => session_id == config.session_id,
            None => !self.is_response,
        };
        self.stream_id == config.stream_id && session_matches
    }
}

impl Conductor {
    pub(super) fn on_add_subscription(
        &mut self,
        command: &AddSubscription<'_>,
    ) -> Result<(), DriverError> {
        if Transport::of(command.channel) != Transport::Ipc {
            return Err(refuse_network_channel(command.channel));
        }
        let params = ChannelUri::from_bytes(command.channel)
            .and_then(|uri| SubscriptionParams::parse(&uri, &subscription_defaults(&self.context)))
            .map_err(|error| bad_channel(error, command.channel))?;
        self.client(command.client_id)?;
        self.next_link_id += 1;
        self.subscriptions.push(IpcSubscription {
            link_id: LinkId(self.next_link_id),
            registration_id: command.correlation_id,
            client_id: command.client_id,
            stream_id: command.stream_id,
            channel: String::from_utf8_lossy(command.channel).into_owned(),
            session_id: params.session_id,
            is_response: params.is_response,
            is_tethered: params.is_tether,
            rejoins: params.is_rejoin,
        });
        self.outlets
            .events
            .on_subscription_ready(command.correlation_id, NO_COUNTER_ID);
        if let Some(subscription) = self.subscriptions.last() {
            for publication in &mut self.publications {
                self.outlets
                    .link_if_matching(publication, subscription, self.now_ns);
            }
        }
        Ok(())
    }

    pub(super) fn on_remove_subscription(
        &mut self,
        command: &RemoveSubscription,
    ) -> Result<(), DriverError> {
        let registration_id = command.registration_id;
        if self.remove_subscriptions(|subscription| subscription.registration_id == registration_id)
            == 0
        {
            return Err(DriverError::coded(
                ErrorCode::UnknownSubscription,
                format_args!(
                    "unknown subscription client_id={} registration_id={registration_id}",
                    command.client_id
                ),
            ));
        }
        self.outlets
            .events
            .on_operation_success(command.correlation_id);
        Ok(())
    }

    /// Removes the subscriptions that `is_removed` names, without telling anybody; answers how many they were.
    pub(super) fn remove_subscriptions(
        &mut self,
        is_removed: impl Fn(&IpcSubscription) -> bool,
    ) -> usize {
        let (publications, outlets) = (&mut self.publications, &mut self.outlets);
        let before = self.subscriptions.len();
        self.subscriptions.retain(|subscription| {
            let removed = is_removed(subscription);
            if removed {
                outlets.unlink(publications, subscription);
            }
            !removed
        });
        before - self.subscriptions.len()
    }

    /// Links every subscription that matches a publication and is not linked yet.
    pub(super) fn link_publication(&mut self, index: usize) {
        for subscription in &self.subscriptions {
            self.outlets
                .link_if_matching(&mut self.publications[index], subscription, self.now_ns);
        }
    }
}

impl Outlets {
    fn link_if_matching(
        &mut self,
        publication: &mut IpcPublication,
        subscription: &IpcSubscription,
        now_ns: i64,
    ) {
        let is_new = !publication.subscribers.contains(subscription.link_id);
        if is_new && subscription.matches(publication) && publication.is_accepting_subscribers() {
            // The subscription is there already, and its client has been told; only this image is missing.
            if let Err(error) = self.link(publication, subscription, now_ns) {
                self.errors.record(&error);
            }
        }
    }

    fn link(
        &mut self,
        publication: &mut IpcPublication,
        subscription: &IpcSubscription,
        now_ns: i64,
    ) -> Result<(), DriverError> {
        let (config, join_position) = (publication.config(), publication.join_position());
        let (registration_id, channel) =
            (subscription.registration_id, subscription.channel.as_str());
        let (session_id, stream_id) = (config.session_id, config.stream_id);
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
            reference_id: config.registration_id,
            value: join_position,
        })?;
        let position_counter_id = position.id();
        publication.subscribers.add(Subscriber::new(
            (subscription.link_id, registration_id),
            position,
            (subscription.is_tethered, subscription.rejoins),
            now_ns,
        ));
        publication.on_subscriber_added();
        self.events
            .on_available_image(publication, registration_id, position_counter_id);
        Ok(())
    }

    fn unlink(&mut self, publications: &mut [IpcPublication], subscription: &IpcSubscription) {
        for publication in publications {
            if let Some(subscriber) = publication.subscribers.remove(subscription.link_id) {
                subscriber
                    .position_counter_id()
                    .into_iter()
                    .for_each(|id| self.free_counter(id));
                publication.on_subscriber_removed();
            }
        }
    }
}

fn subscription_defaults(context: &Context) -> SubscriptionDefaults {
    SubscriptionDefaults {
        is_reliable: context.reliable_stream,
        is_sparse: context.term_buffer_sparse_file,
        is_tether: context.tether_subscriptions,
        is_rejoin: context.rejoin_stream,
        group: context.receiver_group_consideration,
        receiver_window_length: context.initial_window_length as i64,
        untethered: untethered_timeouts(context),
    }
}
