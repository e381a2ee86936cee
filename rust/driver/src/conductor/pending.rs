//! The client command that waits for the native resource agent. Until it is done the conductor executes no other, so that
//! the replies have the order of the commands. One exception: while names are resolved for long, or a long log is created, the conductor
//! executes other commands.

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
use crate::resources::{Lookup, ResourceCommand};

/// Commands that step aside; with so many of them one more holds up the others.
const MAX_SLOW_COMMANDS: usize = 1024;

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

/// A command that has stepped aside, and the answer to its request once that is there.
#[derive(Debug)]
pub(super) struct SlowCommand {
    request_id: i64,
    pending: Pending,
    answer: Option<Resolved>,
}

/// The result of a request to the native resource agent.
#[derive(Debug)]
pub(super) enum Resolved {
    /// Of a whole channel.
    Channel(Result<Arc<UdpChannel>, DriverError>),
    /// Of one name.
    Name(Result<SocketAddr, DriverError>),
    /// The log of a publication.
    Log(Result<SharedBuffer, DriverError>),
}

impl Pending {
    /// Who waits for a channel, if it is known.
    fn client_id(&self) -> Option<i64> {
        match self {
            Self::PublicationChannel(request) => Some(request.client_id),
            Self::Subscription(request) | Self::Spy(request) => Some(request.client_id),
            Self::ReceiveDestination(change) => Some(change.request.client_id),
            Self::IpcPublication(plan) => Some(plan.request.client_id),
            Self::NetworkPublication(plan) => Some(plan.request.client_id),
            Self::Destination(_) => None,
        }
    }

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
        let what = Lookup::Channel {
            channel: channel.into(),
            role,
        };
        self.resource_commands
            .send(ResourceCommand::LookUp { id, what });
        self.pending = Some((id, pending));
        Ok(())
    }

    /// Has the name of a destination resolved.
    pub(super) fn resolve_destination(&mut self, change: DestinationChange) {
        let id = self.next_request_id();
        let what = Lookup::Name {
            name: change.endpoint_name.to_string(),
            parameter: aeron_protocol::uri::key::ENDPOINT,
        };
        self.resource_commands
            .send(ResourceCommand::LookUp { id, what });
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

    /// The addresses that a command waits for take long: others are taken meanwhile.
    pub(super) fn on_looking_up(&mut self, request_id: i64) {
        if self.slow_commands.len() < MAX_SLOW_COMMANDS
            && let Some(pending) = self.take_pending(request_id)
        {
            self.step_aside(request_id, pending);
        }
    }

    /// The log that a command waits for takes long: others are taken meanwhile.
    pub(super) fn on_creating_log(&mut self, registration_id: i64) {
        if self.slow_commands.len() < MAX_SLOW_COMMANDS
            && let Some(pending) = self.take_pending_publication(registration_id)
        {
            self.step_aside(NO_REQUEST, pending);
        }
    }

    fn step_aside(&mut self, request_id: i64, pending: Pending) {
        self.slow_commands.push(SlowCommand {
            request_id,
            pending,
            answer: None,
        });
    }

    pub(super) fn on_resolved(&mut self, request_id: i64, answer: Resolved) {
        if let Some(pending) = self.take_pending(request_id) {
            return self.go_on(pending, answer);
        }
        let mut slow_commands = self.slow_commands.iter_mut();
        if let Some(slow) = slow_commands.find(|slow| slow.request_id == request_id) {
            slow.answer = Some(answer);
        } else if let Resolved::Name(result) = answer {
            self.on_re_resolved(request_id, result);
        }
    }

    /// Goes on with a command that had stepped aside; answers whether there was one. To be called when no other is in progress: the
    /// two could want the same endpoint or publication.
    pub(super) fn take_slow_command(&mut self) -> bool {
        let is_answered = |slow: &SlowCommand| slow.answer.is_some();
        let Some(index) = self.slow_commands.iter().position(is_answered) else {
            return false;
        };
        let slow = self.slow_commands.remove(index);
        if let Some(answer) = slow.answer {
            self.go_on(slow.pending, answer);
        }
        true
    }

    /// What the client still waits for is not made: it is gone.
    pub(super) fn forget_slow_commands(&mut self, client_id: i64) {
        self.forget_those(|slow| slow.pending.client_id() == Some(client_id));
    }

    /// What the command with this correlation id adds is not wanted any more; answers whether the command had stepped aside.
    pub(super) fn forget_slow_command(&mut self, correlation_id: i64) -> bool {
        self.forget_those(|slow| slow.pending.correlation_id() == correlation_id)
    }

    /// Forgets slow commands, and removes the logs that were created for them; returns whether there was one. A log that is still
    /// being created is removed as soon as it is complete.
    fn forget_those(&mut self, is_meant: impl FnMut(&mut SlowCommand) -> bool) -> bool {
        let forgotten: Vec<_> = self.slow_commands.extract_if(.., is_meant).collect();
        for slow in &forgotten {
            if let Some(Resolved::Log(Ok(_))) = slow.answer {
                self.remove_publication_log(slow.pending.correlation_id());
            }
        }
        !forgotten.is_empty()
    }

    fn remove_publication_log(&mut self, registration_id: i64) {
        let log = LogId::Publication(registration_id);
        self.resource_commands
            .send(ResourceCommand::RemoveLog { log });
    }

    /// Goes on with a command whose addresses are known, or are not to be found, or whose log was created late.
    fn go_on(&mut self, pending: Pending, answer: Resolved) {
        let (correlation_id, description) = (pending.correlation_id(), pending.describe());
        let outcome = match (pending, answer) {
            (pending, Resolved::Log(Ok(memory))) => self.on_late_publication_log(&pending, &memory),
            (_, Resolved::Log(Err(error))) => Err(error),
            (Pending::Destination(change), Resolved::Name(result)) => {
                self.on_destination_resolved(&change, result);
                Ok(())
            }
            (pending, Resolved::Channel(Ok(channel))) => self.on_channel(pending, channel),
            (_, Resolved::Channel(Err(error)) | Resolved::Name(Err(error))) => Err(error),
            (_, Resolved::Name(Ok(_))) => Ok(()),
        };
        self.answer_failure(correlation_id, &description, outcome);
    }

    fn on_channel(
        &mut self,
        pending: Pending,
        channel: Arc<UdpChannel>,
    ) -> Result<(), DriverError> {
        match pending {
            Pending::PublicationChannel(request) => self.on_publication_channel(request, channel),
            Pending::Subscription(request) => self.on_subscription_channel(request, channel),
            Pending::Spy(request) => self.on_spy_channel(request, channel),
            Pending::ReceiveDestination(change) => {
                self.on_receive_destination_channel(change, channel)
            }
            Pending::IpcPublication(_)
            | Pending::NetworkPublication(_)
            | Pending::Destination(_) => Ok(()),
        }
    }

    /// The log that the pending command waits for is there, or cannot be made.
    pub(super) fn on_publication_log(
        &mut self,
        registration_id: i64,
        result: Result<SharedBuffer, DriverError>,
    ) {
        if let Some(pending) = self.take_pending_publication(registration_id) {
            let description = pending.describe();
            let outcome = result.and_then(|memory| self.add_publication(&pending, &memory));
            return self.answer_failure(registration_id, &description, outcome);
        }
        let mut slow_commands = self.slow_commands.iter_mut();
        let slow = slow_commands.find(|slow| slow.pending.correlation_id() == registration_id);
        match slow {
            Some(slow) => slow.answer = Some(Resolved::Log(result)),
            // The client has gone, or does not want the publication any more.
            None if result.is_ok() => self.remove_publication_log(registration_id),
            None => {}
        }
    }

    /// While the command stood aside, another may have added the same publication, or one with the same session.
    fn on_late_publication_log(
        &mut self,
        pending: &Pending,
        memory: &SharedBuffer,
    ) -> Result<(), DriverError> {
        let joined = match pending {
            Pending::IpcPublication(plan) => self.join_ipc_publication(&plan.request, &plan.params),
            Pending::NetworkPublication(plan) => self.join_network_publication(plan),
            _ => Ok(false),
        };
        match joined {
            Ok(false) => self.add_publication(pending, memory),
            Ok(true) => {
                self.remove_publication_log(pending.correlation_id());
                Ok(())
            }
            Err(error) => {
                self.remove_publication_log(pending.correlation_id());
                Err(error)
            }
        }
    }

    /// Adds the publication after its log was created. Removes the log if that fails.
    fn add_publication(
        &mut self,
        pending: &Pending,
        memory: &SharedBuffer,
    ) -> Result<(), DriverError> {
        let added = match pending {
            Pending::IpcPublication(plan) => self.add_ipc_publication(plan, memory),
            Pending::NetworkPublication(plan) => self.add_network_publication(plan, memory),
            _ => Ok(()),
        };
        added.inspect_err(|_| self.remove_publication_log(pending.correlation_id()))
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

    fn take_pending_publication(&mut self, registration_id: i64) -> Option<Pending> {
        let is_it = |pending: &Pending| pending.correlation_id() == registration_id;
        let (_, pending) = self.pending.take_if(|(_, pending)| is_it(pending))?;
        Some(pending)
    }

    fn take_pending(&mut self, id: i64) -> Option<Pending> {
        let (_, pending) = self.pending.take_if(|(waits_for, _)| *waits_for == id)?;
        Some(pending)
    }
}

/// The id of what waits for something else than a name.
const NO_REQUEST: i64 = 0;
