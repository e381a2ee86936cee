//! The client command that waits for the native resource agent. Until it is done no other is taken, so that commands are answered in
//! their order.

use std::net::SocketAddr;
use std::sync::Arc;

use aeron_memory::buffer::SharedBuffer;

use super::Conductor;
use super::destinations::DestinationChange;
use super::ipc_publications::IpcPlan;
use super::links::SubscriptionRequest;
use super::network_publications::NetworkPlan;
use super::publications::PublicationRequest;
use super::receive_destinations::ReceiveDestinationChange;
use crate::error::DriverError;
use crate::log_storage::LogId;
use crate::media::{ChannelRole, UdpChannel};
use crate::resources::ResourceCommand;

/// What is done next with a command, once what it waits for is there.
#[derive(Debug)]
pub(super) enum Pending {
    /// Waits for its log.
    IpcPublication(Box<IpcPlan>),
    /// Waits for its channel.
    PublicationChannel(PublicationRequest),
    /// Waits for its log.
    NetworkPublication(Box<NetworkPlan>),
    /// Waits for its channel.
    Subscription(SubscriptionRequest),
    /// Waits for its channel.
    Spy(SubscriptionRequest),
    /// Waits for the address of the destination.
    Destination(DestinationChange),
    /// Waits for the channel of the destination.
    ReceiveDestination(ReceiveDestinationChange),
}

impl Pending {
    fn correlation_id(&self) -> i64 {
        match self {
            Self::IpcPublication(plan) => plan.request.correlation_id,
            Self::PublicationChannel(request) => request.correlation_id,
            Self::NetworkPublication(plan) => plan.request.correlation_id,
            Self::Subscription(request) | Self::Spy(request) => request.registration_id,
            Self::Destination(change) => change.correlation_id,
            Self::ReceiveDestination(change) => change.correlation_id,
        }
    }

    fn describe(&self) -> String {
        let (channel, stream_id) = match self {
            Self::IpcPublication(plan) => return plan.request.describe(),
            Self::PublicationChannel(request) => return request.describe(),
            Self::NetworkPublication(plan) => return plan.request.describe(),
            Self::Subscription(request) | Self::Spy(request) => {
                (&request.channel, request.stream_id)
            }
            Self::Destination(change) => return format!("destination={}", change.endpoint_name),
            Self::ReceiveDestination(change) => {
                return format!("destination={}", change.request.channel);
            }
        };
        format!("channel={channel} streamId={stream_id}")
    }
}

impl Conductor {
    /// Has a channel's names resolved; `pending` goes on with it.
    pub(super) fn resolve_channel(
        &mut self,
        channel: &[u8],
        role: ChannelRole,
        pending: Pending,
    ) -> Result<(), DriverError> {
        let id = self.next_request_id();
        self.resource_commands
            .send(ResourceCommand::ResolveChannel {
                id,
                channel: channel.into(),
                role,
            });
        self.pending = Some((id, pending));
        Ok(())
    }

    /// Has the name of a destination resolved.
    pub(super) fn resolve_destination(&mut self, change: DestinationChange) {
        let id = self.next_request_id();
        self.resource_commands.send(ResourceCommand::ResolveName {
            id,
            name: change.endpoint_name.to_string(),
            parameter: aeron_protocol::uri::key::ENDPOINT,
        });
        self.pending = Some((id, Pending::Destination(change)));
    }

    /// `pending` goes on when its log is there.
    pub(super) fn await_log(&mut self, pending: Pending) {
        self.pending = Some((NO_REQUEST, pending));
    }

    pub(super) fn next_request_id(&mut self) -> i64 {
        self.next_request_id += 1;
        self.next_request_id
    }

    pub(super) fn on_channel_resolved(
        &mut self,
        id: i64,
        result: Result<Arc<UdpChannel>, DriverError>,
    ) {
        let Some(pending) = self.take_pending(id) else {
            return;
        };
        let (correlation_id, description) = (pending.correlation_id(), pending.describe());
        let outcome = result.and_then(|channel| match pending {
            Pending::PublicationChannel(request) => self.on_publication_channel(request, channel),
            Pending::Subscription(request) => self.on_subscription_channel(request, channel),
            Pending::Spy(request) => self.on_spy_channel(request, channel),
            Pending::ReceiveDestination(change) => {
                self.on_receive_destination_channel(change, channel)
            }
            Pending::IpcPublication(_)
            | Pending::NetworkPublication(_)
            | Pending::Destination(_) => Ok(()),
        });
        self.answer_failure(correlation_id, &description, outcome);
    }

    pub(super) fn on_name_resolved(&mut self, id: i64, result: Result<SocketAddr, DriverError>) {
        match self.take_pending(id) {
            Some(Pending::Destination(change)) => self.on_destination_resolved(&change, result),
            Some(_) => {}
            None => self.on_re_resolved(id, result),
        }
    }

    /// The log that the pending command waits for is there, or cannot be made.
    pub(super) fn on_publication_log(
        &mut self,
        registration_id: i64,
        result: Result<SharedBuffer, DriverError>,
    ) {
        let Some((_, pending)) = self
            .pending
            .take_if(|(_, pending)| pending.correlation_id() == registration_id)
        else {
            return;
        };
        let description = pending.describe();
        let outcome = result.and_then(|memory| {
            let added = match pending {
                Pending::IpcPublication(plan) => self.add_ipc_publication(&plan, &memory),
                Pending::NetworkPublication(plan) => self.add_network_publication(&plan, &memory),
                _ => Ok(()),
            };
            added.inspect_err(|_| {
                let log = LogId::Publication(registration_id);
                self.resource_commands
                    .send(ResourceCommand::RemoveLog { log });
            })
        });
        self.answer_failure(registration_id, &description, outcome);
    }

    fn answer_failure(
        &mut self,
        correlation_id: i64,
        description: &str,
        outcome: Result<(), DriverError>,
    ) {
        if let Err(error) = outcome {
            self.outlets
                .refuse(correlation_id, &error.context(description));
        }
    }

    fn take_pending(&mut self, id: i64) -> Option<Pending> {
        let (_, pending) = self.pending.take_if(|(waits_for, _)| *waits_for == id)?;
        Some(pending)
    }
}

/// The id of what waits for something else than a name.
const NO_REQUEST: i64 = 0;
