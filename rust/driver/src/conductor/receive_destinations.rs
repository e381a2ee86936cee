//! Executes the commands that add and remove destinations of subscriptions with manual control.
//!
//! A UDP destination is an additional socket of the subscription's endpoint. An IPC or spy destination is an additional
//! subscription with the registration id of the original subscription.

use std::sync::Arc;

use aeron_protocol::ErrorCode;
use aeron_protocol::command::Destination;
use aeron_protocol::uri::{ChannelUri, ControlMode, Transport};

use super::Conductor;
use super::pending::AwaitedChannel;
use super::requests::{Change, ReceiveDestinationChange, SubscriptionRequest};
use super::subscriptions::{SubscriptionLink, SubscriptionSource};
use crate::error::DriverError;
use crate::media::{ChannelRole, UdpChannel};
use crate::receiver::{ReceiveEndpointId, ReceiverCommand};

impl Conductor {
    pub(super) fn on_change_receive_destination(
        &mut self,
        command: &Destination<'_>,
        change: Change,
    ) -> Result<(), DriverError> {
        let transport = Transport::of(command.channel);
        if change == Change::Remove && transport != Transport::Network {
            return self.remove_local_destination(command);
        }
        let uri = ChannelUri::from_bytes(command.channel)
            .map_err(|error| DriverError::bad_channel(error, command.channel))?;
        let (endpoint, request) = self.manual_subscription(command)?;
        let is_spy = match transport {
            Transport::Ipc => return self.add_ipc_destination(&uri, request, command),
            Transport::Spy => true,
            Transport::Network => false,
        };
        let role = match is_spy {
            true => ChannelRole::Spy,
            false => ChannelRole::ReceiveDestination,
        };
        let change = ReceiveDestinationChange {
            change,
            correlation_id: command.correlation_id,
            endpoint,
            request,
            is_spy,
        };
        self.resolve_channel(
            command.channel,
            role,
            AwaitedChannel::ReceiveDestination(change),
        );
        Ok(())
    }

    /// Returns the endpoint of a subscription with manual control, and a subscription request with the channel of the
    /// destination.
    fn manual_subscription(
        &self,
        command: &Destination<'_>,
    ) -> Result<(ReceiveEndpointId, SubscriptionRequest), DriverError> {
        let registration_id = command.registration_correlation_id;
        let (subscription, endpoint) = self
            .subscriptions
            .network(registration_id)
            .ok_or_else(|| unknown_subscription(command.client_id, registration_id))?;
        let mode = self
            .endpoints
            .receive_endpoint(endpoint)
            .map(|endpoint| endpoint.channel.control_mode());
        if mode != Some(ControlMode::Manual) {
            return Err(DriverError::coded(
                ErrorCode::InvalidChannel,
                "channel does not allow manual control",
            ));
        }
        let request = SubscriptionRequest {
            client_id: subscription.client_id,
            registration_id,
            stream_id: subscription.stream_id,
            channel: String::from_utf8_lossy(command.channel).into(),
        };
        Ok((endpoint, request))
    }

    /// Returns whether a network subscription with this id exists. It may no longer exist, because its client may have
    /// ended while the channel was being resolved.
    fn is_subscribed(&self, registration_id: i64) -> bool {
        self.subscriptions.network(registration_id).is_some()
    }

    fn add_ipc_destination(
        &mut self,
        uri: &ChannelUri,
        request: SubscriptionRequest,
        command: &Destination<'_>,
    ) -> Result<(), DriverError> {
        let params = self
            .parse_subscription(uri)
            .map_err(|error| DriverError::bad_channel(error, command.channel))?;
        let id = Some(command.correlation_id);
        self.add_local_subscription(request, &params, SubscriptionSource::Ipc, id)
    }

    /// Adds an IPC or spy destination, and sends the response to the client.
    pub(super) fn finish_local_destination(
        &mut self,
        destination: SubscriptionLink,
        correlation_id: i64,
    ) -> Result<(), DriverError> {
        if !self.is_subscribed(destination.registration_id) {
            return Err(unknown_subscription(
                destination.client_id,
                destination.registration_id,
            ));
        }
        self.subscriptions.add(destination);
        self.outlets.events.on_operation_success(correlation_id);
        self.link_last_subscription();
        Ok(())
    }

    /// Adds or removes a destination after its channel was resolved.
    pub(super) fn on_receive_destination_channel(
        &mut self,
        change: ReceiveDestinationChange,
        channel: Arc<UdpChannel>,
    ) -> Result<(), DriverError> {
        let registration_id = change.request.registration_id;
        if !self.is_subscribed(registration_id) {
            return Err(unknown_subscription(
                change.request.client_id,
                registration_id,
            ));
        }
        let ReceiveDestinationChange {
            correlation_id,
            endpoint,
            ..
        } = change;
        match change.change {
            Change::Add if change.is_spy => {
                let params = self.subscription_params(&channel)?;
                let source = SubscriptionSource::Spy(channel);
                let id = Some(correlation_id);
                return self.add_local_subscription(change.request, &params, source, id);
            }
            Change::Add => {
                let outlets = &mut self.outlets;
                self.endpoints
                    .open_destination(endpoint, &channel, registration_id, outlets)?;
            }
            Change::Remove => {
                let destination = self
                    .endpoints
                    .receive_endpoint(endpoint)
                    .and_then(|endpoint| endpoint.destination_with(&channel.canonical_form));
                if let Some(destination) = destination {
                    self.outlets
                        .receiver_commands
                        .send(ReceiverCommand::RemoveDestination {
                            endpoint,
                            destination,
                        });
                }
            }
        }
        self.outlets.events.on_operation_success(correlation_id);
        Ok(())
    }

    /// Removes an IPC or spy destination, and announces the end of each image of the destination.
    fn remove_local_destination(&mut self, command: &Destination<'_>) -> Result<(), DriverError> {
        let registration_id = command.registration_correlation_id;
        let unknown = || unknown_subscription(command.client_id, registration_id);
        if !self.is_subscribed(registration_id) {
            return Err(unknown());
        }
        let subscription = self
            .subscriptions
            .remove_local_destination(registration_id, command.channel)
            .ok_or_else(unknown)?;
        self.outlets
            .events
            .on_operation_success(command.correlation_id);
        self.announce_unlinked(&subscription);
        self.unlink(&subscription);
        Ok(())
    }
}

fn unknown_subscription(client_id: i64, registration_id: i64) -> DriverError {
    DriverError::coded(
        ErrorCode::UnknownSubscription,
        format_args!(
            "unknown subscription client_id={client_id} registration_id={registration_id}"
        ),
    )
}
