//! The client commands that wait for the native resource agent. Until the command in progress is done the conductor executes no
//! other, so that the replies have the order of the commands. One exception: while names are resolved for long, or a long log is
//! created, the command steps aside and the conductor executes others.

use std::net::SocketAddr;
use std::sync::Arc;

use aeron_memory::buffer::SharedBuffer;

use super::outlets::Outlets;
use super::requests::{
    DestinationChange, IpcPlan, NetworkPlan, PublicationRequest, ReceiveDestinationChange,
    SubscriptionRequest,
};
use crate::error::DriverError;
use crate::log_storage::LogId;
use crate::media::UdpChannel;

/// Commands that step aside; with so many of them one more holds up the others.
const MAX_SLOW_COMMANDS: usize = 1024;

/// A command that waits for the log of its publication.
#[derive(Debug)]
pub(super) enum AwaitedLog {
    Ipc(Box<IpcPlan>),
    Network(Box<NetworkPlan>),
}

/// A command that waits for the addresses of its channel.
#[derive(Debug)]
pub(super) enum AwaitedChannel {
    Publication(PublicationRequest),
    Subscription(SubscriptionRequest),
    Spy(SubscriptionRequest),
    ReceiveDestination(ReceiveDestinationChange),
}

/// A command that can go on: what it waited for is there, or cannot be had.
#[derive(Debug)]
pub(super) enum ReadyCommand {
    Log(AwaitedLog, Result<SharedBuffer, DriverError>),
    Channel(AwaitedChannel, Result<Arc<UdpChannel>, DriverError>),
    Address(DestinationChange, Result<SocketAddr, DriverError>),
}

/// The commands that wait.
#[derive(Debug, Default)]
pub(super) struct PendingCommands {
    in_progress: Option<PendingCommand>,
    /// Commands that have stepped aside, oldest first.
    slow: Vec<PendingCommand>,
}

#[derive(Debug)]
enum PendingCommand {
    /// Requested by the registration id of the publication.
    Log(Waiting<AwaitedLog, SharedBuffer>),
    /// Requested by the id of a lookup.
    Channel(Waiting<AwaitedChannel, Arc<UdpChannel>>),
    /// Requested by the id of a lookup.
    Address(Waiting<DestinationChange, SocketAddr>),
}

/// A command, its request to the native resource agent, and the result of the request once it is there.
#[derive(Debug)]
struct Waiting<C, R> {
    command: C,
    request_id: i64,
    result: Option<Result<R, DriverError>>,
}

/// The place for the result of a request.
type ResultSlot<'a, R> = &'a mut Option<Result<R, DriverError>>;

impl PendingCommands {
    /// Whether a command is in progress.
    pub(super) fn is_busy(&self) -> bool {
        self.in_progress.is_some()
    }

    /// The command in progress waits for the log of a publication.
    pub(super) fn await_log(&mut self, command: AwaitedLog) {
        let registration_id = command.request().correlation_id;
        self.in_progress = Some(PendingCommand::Log(Waiting::new(command, registration_id)));
    }

    /// The command in progress waits for the channel of a lookup.
    pub(super) fn await_channel(&mut self, command: AwaitedChannel, lookup_id: i64) {
        self.in_progress = Some(PendingCommand::Channel(Waiting::new(command, lookup_id)));
    }

    /// The command in progress waits for the address of a lookup.
    pub(super) fn await_address(&mut self, change: DestinationChange, lookup_id: i64) {
        self.in_progress = Some(PendingCommand::Address(Waiting::new(change, lookup_id)));
    }

    /// The lookup that a command waits for takes long: others are taken meanwhile.
    pub(super) fn on_looking_up(&mut self, lookup_id: i64) {
        self.step_aside(|command| match command {
            PendingCommand::Log(_) => false,
            PendingCommand::Channel(waiting) => waiting.request_id == lookup_id,
            PendingCommand::Address(waiting) => waiting.request_id == lookup_id,
        });
    }

    /// The log that a command waits for takes long: others are taken meanwhile.
    pub(super) fn on_creating_log(&mut self, registration_id: i64) {
        self.step_aside(|command| match command {
            PendingCommand::Log(waiting) => waiting.request_id == registration_id,
            PendingCommand::Channel(_) | PendingCommand::Address(_) => false,
        });
    }

    fn step_aside(&mut self, is_meant: impl Fn(&PendingCommand) -> bool) {
        if self.slow.len() < MAX_SLOW_COMMANDS {
            self.slow
                .extend(self.in_progress.take_if(|command| is_meant(command)));
        }
    }

    /// The place for a log, if a command waits for it.
    pub(super) fn log_slot(
        &mut self,
        registration_id: i64,
    ) -> Option<ResultSlot<'_, SharedBuffer>> {
        self.all().find_map(|command| match command {
            PendingCommand::Log(waiting) => waiting.slot_of(registration_id),
            _ => None,
        })
    }

    /// The place for a channel, if a command waits for it.
    pub(super) fn channel_slot(
        &mut self,
        lookup_id: i64,
    ) -> Option<ResultSlot<'_, Arc<UdpChannel>>> {
        self.all().find_map(|command| match command {
            PendingCommand::Channel(waiting) => waiting.slot_of(lookup_id),
            _ => None,
        })
    }

    /// The place for an address, if a command waits for it.
    pub(super) fn address_slot(&mut self, lookup_id: i64) -> Option<ResultSlot<'_, SocketAddr>> {
        self.all().find_map(|command| match command {
            PendingCommand::Address(waiting) => waiting.slot_of(lookup_id),
            _ => None,
        })
    }

    fn all(&mut self) -> impl Iterator<Item = &mut PendingCommand> {
        self.in_progress.iter_mut().chain(&mut self.slow)
    }

    /// Takes the command in progress out, if it can go on.
    pub(super) fn take_ready(&mut self) -> Option<ReadyCommand> {
        self.in_progress
            .take_if(|command| command.is_ready())
            .and_then(PendingCommand::into_ready)
    }

    /// Takes the oldest command out that had stepped aside and can go on. To be called when no other is in progress: the two could
    /// want the same endpoint or publication.
    pub(super) fn take_slow_ready(&mut self) -> Option<ReadyCommand> {
        let index = self.slow.iter().position(PendingCommand::is_ready)?;
        self.slow.remove(index).into_ready()
    }

    /// Forgets the slow commands of a client that is gone. Destinations are changed nevertheless.
    pub(super) fn forget_client(&mut self, client_id: i64, outlets: &mut Outlets) {
        self.forget(|command| command.client_id() == Some(client_id), outlets);
    }

    /// Forgets the slow command with this correlation id, because what it adds is not wanted any more. Returns whether the command
    /// had stepped aside.
    pub(super) fn forget_command(&mut self, correlation_id: i64, outlets: &mut Outlets) -> bool {
        self.forget(
            |command| command.correlation_id() == correlation_id,
            outlets,
        )
    }

    /// Forgets slow commands, and removes the logs that were created for them; returns whether there was one. A log that is still
    /// being created is removed as soon as it is complete.
    fn forget(
        &mut self,
        is_meant: impl Fn(&PendingCommand) -> bool,
        outlets: &mut Outlets,
    ) -> bool {
        let forgotten: Vec<_> = self
            .slow
            .extract_if(.., |command| is_meant(command))
            .collect();
        for command in &forgotten {
            if let PendingCommand::Log(waiting) = command
                && let Some(Ok(_)) = waiting.result
            {
                outlets.remove_log(LogId::Publication(waiting.request_id));
            }
        }
        !forgotten.is_empty()
    }

    /// Drops all commands.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

impl<C, R> Waiting<C, R> {
    fn new(command: C, request_id: i64) -> Self {
        Self {
            command,
            request_id,
            result: None,
        }
    }

    fn slot_of(&mut self, request_id: i64) -> Option<ResultSlot<'_, R>> {
        (self.request_id == request_id).then_some(&mut self.result)
    }
}

impl PendingCommand {
    fn is_ready(&self) -> bool {
        match self {
            Self::Log(waiting) => waiting.result.is_some(),
            Self::Channel(waiting) => waiting.result.is_some(),
            Self::Address(waiting) => waiting.result.is_some(),
        }
    }

    fn into_ready(self) -> Option<ReadyCommand> {
        Some(match self {
            Self::Log(waiting) => ReadyCommand::Log(waiting.command, waiting.result?),
            Self::Channel(waiting) => ReadyCommand::Channel(waiting.command, waiting.result?),
            Self::Address(waiting) => ReadyCommand::Address(waiting.command, waiting.result?),
        })
    }

    /// The client that waits; the command of a destination does not keep it.
    fn client_id(&self) -> Option<i64> {
        match self {
            Self::Log(waiting) => Some(waiting.command.request().client_id),
            Self::Channel(waiting) => Some(waiting.command.client_id()),
            Self::Address(_) => None,
        }
    }

    fn correlation_id(&self) -> i64 {
        match self {
            Self::Log(waiting) => waiting.command.request().correlation_id,
            Self::Channel(waiting) => waiting.command.correlation_id(),
            Self::Address(waiting) => waiting.command.correlation_id,
        }
    }
}

impl AwaitedLog {
    /// The client's request for the publication.
    pub(super) fn request(&self) -> &PublicationRequest {
        match self {
            Self::Ipc(plan) => &plan.request,
            Self::Network(plan) => &plan.request,
        }
    }
}

impl AwaitedChannel {
    fn client_id(&self) -> i64 {
        match self {
            Self::Publication(request) => request.client_id,
            Self::Subscription(request) | Self::Spy(request) => request.client_id,
            Self::ReceiveDestination(change) => change.request.client_id,
        }
    }

    pub(super) fn correlation_id(&self) -> i64 {
        match self {
            Self::Publication(request) => request.correlation_id,
            Self::Subscription(request) | Self::Spy(request) => request.registration_id,
            Self::ReceiveDestination(change) => change.correlation_id,
        }
    }

    /// The command in an error text.
    pub(super) fn describe(&self) -> String {
        match self {
            Self::Publication(request) => request.describe(),
            Self::Subscription(request) | Self::Spy(request) => request.describe(),
            Self::ReceiveDestination(change) => format!("destination={}", change.request.channel),
        }
    }
}
