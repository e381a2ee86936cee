//! Executes the commands that add and remove subscriptions.

use std::sync::Arc;

use aeron_protocol::ErrorCode;
use aeron_protocol::command::{AddSubscription, RemoveSubscription};
use aeron_protocol::event::NO_COUNTER_ID;
use aeron_protocol::uri::{
    ChannelUri, SubscriptionDefaults, SubscriptionParams, Transport, UriError,
};

use super::Conductor;
use super::endpoints::{ReceiveEndpointRecord, ReceiveInterest};
use super::pending::{AwaitedChannel, LocalSubscription};
use super::requests::SubscriptionRequest;
use super::subscriptions::{SubscriptionLink, SubscriptionSource};
use crate::config::Context;
use crate::error::DriverError;
use crate::media::{ChannelRole, UdpChannel};

impl Conductor {
    pub(super) fn on_add_subscription(
        &mut self,
        command: &AddSubscription<'_>,
    ) -> Result<(), DriverError> {
        let request = SubscriptionRequest {
            client_id: command.client_id,
            registration_id: command.correlation_id,
            stream_id: command.stream_id,
            channel: String::from_utf8_lossy(command.channel).into(),
        };
        match Transport::of(command.channel) {
            Transport::Ipc => self.add_ipc_subscription(request, command.channel),
            Transport::Spy => {
                let awaited = AwaitedChannel::Spy(request);
                self.resolve_channel(command.channel, ChannelRole::Spy, awaited);
                Ok(())
            }
            Transport::Network => {
                let awaited = AwaitedChannel::Subscription(request);
                self.resolve_channel(command.channel, ChannelRole::Subscription, awaited);
                Ok(())
            }
        }
    }

    fn add_ipc_subscription(
        &mut self,
        request: SubscriptionRequest,
        channel: &[u8],
    ) -> Result<(), DriverError> {
        let params = ChannelUri::from_bytes(channel)
            .and_then(|uri| self.parse_subscription(&uri))
            .map_err(|error| DriverError::bad_channel(error, channel))?;
        self.add_local_subscription(request, &params, SubscriptionSource::Ipc, None)
    }

    /// Adds a subscription to publications of this driver, at once or after the pages of these publications are
    /// allocated.
    ///
    /// `destination` is the correlation id of a command that adds a destination.
    pub(super) fn add_local_subscription(
        &mut self,
        request: SubscriptionRequest,
        params: &SubscriptionParams,
        source: SubscriptionSource,
        destination: Option<i64>,
    ) -> Result<(), DriverError> {
        self.clients
            .get_or_add(request.client_id, &mut self.outlets)?;
        let link = self.subscriptions.create(request, params, source);
        self.pending
            .await_pages(LocalSubscription { link, destination });
        self.resume_local_subscription();
        Ok(())
    }

    /// Continues a command that waits for pages, if they are allocated or there is no space for them. Returns the
    /// number of continued commands.
    ///
    /// Meanwhile, no other command is executed. The response is therefore directly followed by the images, and
    /// publishers have room as soon as the client gets them.
    pub(super) fn resume_local_subscription(&mut self) -> usize {
        let Some(LocalSubscription { link, .. }) = self.pending.local_subscription() else {
            return 0;
        };
        if self.publications.awaits_pages(link, &self.endpoints) {
            return 0;
        }
        if let Some(subscription) = self.pending.take_local_subscription() {
            let LocalSubscription { link, destination } = *subscription;
            let correlation_id = destination.unwrap_or(link.registration_id);
            let outcome = match destination {
                Some(_) => self.finish_local_destination(link, correlation_id),
                None => self.finish_subscription(link, NO_COUNTER_ID),
            };
            if let Err(error) = outcome {
                self.outlets.refuse(correlation_id, &error);
            }
        }
        1
    }

    /// Adds a spy subscription after its channel was resolved.
    pub(super) fn on_spy_channel(
        &mut self,
        request: SubscriptionRequest,
        channel: Arc<UdpChannel>,
    ) -> Result<(), DriverError> {
        let params = self.subscription_params(&channel)?;
        self.add_local_subscription(request, &params, SubscriptionSource::Spy(channel), None)
    }

    /// Adds a network subscription after its channel was resolved.
    pub(super) fn on_subscription_channel(
        &mut self,
        request: SubscriptionRequest,
        channel: Arc<UdpChannel>,
    ) -> Result<(), DriverError> {
        let params = self.subscription_params(&channel)?;
        let existing = self.endpoints.find_receive(&channel, &params)?;
        if let Some(endpoint) = existing {
            let is_comparable = channel.tag().is_some() || endpoint.channel.tag().is_none();
            if is_comparable {
                self.subscriptions
                    .check_agreement(endpoint.id, &request, &params, &channel)?;
            }
        }
        let endpoint = match existing {
            Some(endpoint) => endpoint.id,
            None => {
                let id = request.registration_id;
                let outlets = &mut self.outlets;
                self.endpoints
                    .open_receive(&channel, &params, id, outlets)?
            }
        };
        let interest =
            ReceiveInterest::of(request.stream_id, params.session_id, params.is_response);
        self.endpoints
            .begin_interest(endpoint, interest, &mut self.outlets);
        let status_counter_id = self
            .endpoints
            .receive_endpoint(endpoint)
            .map_or(NO_COUNTER_ID, ReceiveEndpointRecord::status_counter_id);
        let source = SubscriptionSource::Network(endpoint);
        let subscription = self.subscriptions.create(request, &params, source);
        self.finish_subscription(subscription, status_counter_id)
    }

    /// Adds a subscription, and sends the response to the client.
    fn finish_subscription(
        &mut self,
        subscription: SubscriptionLink,
        channel_status_id: i32,
    ) -> Result<(), DriverError> {
        self.clients
            .get_or_add(subscription.client_id, &mut self.outlets)?;
        let registration_id = subscription.registration_id;
        self.subscriptions.add(subscription);
        self.outlets
            .events
            .on_subscription_ready(registration_id, channel_status_id);
        self.link_last_subscription();
        Ok(())
    }

    pub(super) fn on_remove_subscription(
        &mut self,
        command: &RemoveSubscription,
    ) -> Result<(), DriverError> {
        let registration_id = command.registration_id;
        let is_it =
            |subscription: &SubscriptionLink| subscription.registration_id == registration_id;
        if self.remove_subscriptions(is_it) == 0
            && !self
                .pending
                .forget_command(registration_id, &mut self.outlets)
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

    /// Removes the subscriptions that `is_removed` selects, without events to clients. Returns the number of removed
    /// subscriptions.
    pub(super) fn remove_subscriptions(
        &mut self,
        is_removed: impl Fn(&SubscriptionLink) -> bool,
    ) -> usize {
        let removed = self.subscriptions.remove(is_removed);
        for subscription in &removed {
            self.unlink(subscription);
            if let Some(endpoint) = subscription.endpoint() {
                self.endpoints
                    .end_interest(endpoint, subscription.interest(), &mut self.outlets);
            }
        }
        removed.len()
    }

    pub(super) fn subscription_params(
        &self,
        channel: &UdpChannel,
    ) -> Result<SubscriptionParams, DriverError> {
        self.parse_subscription(&channel.uri)
            .map_err(|error| DriverError::bad_channel(error, channel.text.as_bytes()))
    }

    pub(super) fn parse_subscription(
        &self,
        uri: &ChannelUri,
    ) -> Result<SubscriptionParams, UriError> {
        SubscriptionParams::parse(uri, &subscription_defaults(&self.context))
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
        untethered: context.untethered_timeouts(),
    }
}
