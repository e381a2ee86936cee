//! [`PendingCommands`]: client commands that wait for the native resource agent.
//!
//! While a command is in progress, the conductor executes no other command, so responses keep the order of the
//! commands. Slow commands are an exception. If the resolution of a name or the creation of a long log takes long, the
//! command is set aside, and the conductor executes other commands.

use std::net::SocketAddr;
use std::sync::Arc;

use super::outlets::ConductorOutlets;
use super::requests::{
    DestinationChange, IpcPlan, NetworkPlan, PublicationRequest, ReceiveDestinationChange,
    SubscriptionRequest,
};
use super::subscriptions::SubscriptionLink;
use crate::error::DriverError;
use crate::log_storage::LogId;
use crate::media::UdpChannel;
use crate::resources::CreatedLog;

/// Maximum number of commands set aside. At the maximum, another slow command stays in progress and delays all later
/// commands.
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

/// A command and the result of its request. The result may be an error.
#[derive(Debug)]
pub(super) enum ReadyCommand {
    Log(AwaitedLog, Result<CreatedLog, DriverError>),
    Channel(AwaitedChannel, Result<Arc<UdpChannel>, DriverError>),
    Address(DestinationChange, Result<SocketAddr, DriverError>),
}

/// A command that adds a subscription to publications of this driver.
#[derive(Debug)]
pub(super) struct LocalSubscription {
    pub(super) link: SubscriptionLink,
    /// Correlation id of the command if it adds a destination to the subscription.
    pub(super) destination: Option<i64>,
}

/// The waiting commands.
#[derive(Debug, Default)]
pub(super) struct PendingCommands {
    in_progress: Option<PendingCommand>,
    /// A command in progress that waits for the pages of publications.
    local_subscription: Option<Box<LocalSubscription>>,
    /// Commands that were set aside, oldest first.
    slow: Vec<PendingCommand>,
}

#[derive(Debug)]
enum PendingCommand {
    /// A command that is identified by the registration id of its publication.
    Log(Waiting<AwaitedLog, CreatedLog>),
    /// A command that is identified by the id of its lookup.
    Channel(Waiting<AwaitedChannel, Arc<UdpChannel>>),
    /// A command that is identified by the id of its lookup.
    Address(Waiting<DestinationChange, SocketAddr>),
}

/// A command, the id of its request to the native resource agent, and the result of the request once it has arrived.
#[derive(Debug)]
struct Waiting<C, R> {
    command: C,
    request_id: i64,
    result: Option<Result<R, DriverError>>,
}

/// The place for the result of a request; `None` until the result arrives.
type ResultSlot<'a, R> = &'a mut Option<Result<R, DriverError>>;

impl PendingCommands {
    /// Returns the number of waiting commands.
    pub(super) fn count(&self) -> usize {
        usize::from(self.is_busy()) + self.slow.len()
    }

    /// Returns whether a command is in progress.
    pub(super) fn is_busy(&self) -> bool {
        self.in_progress.is_some() || self.local_subscription.is_some()
    }

    /// Makes the command in progress wait for the pages of the publications that the subscription will read.
    pub(super) fn await_pages(&mut self, subscription: LocalSubscription) {
        debug_assert!(
            !self.is_busy(),
            "a subscription waits for pages while another command is in progress"
        );
        self.local_subscription = Some(Box::new(subscription));
    }

    /// Returns the subscription that waits for pages.
    pub(super) fn local_subscription(&self) -> Option<&LocalSubscription> {
        self.local_subscription.as_deref()
    }

    /// Removes and returns the subscription that waits for pages.
    pub(super) fn take_local_subscription(&mut self) -> Option<Box<LocalSubscription>> {
        self.local_subscription.take()
    }

    /// Makes the command in progress wait for the log of a publication.
    pub(super) fn await_log(&mut self, command: AwaitedLog) {
        debug_assert!(
            !self.is_busy(),
            "a command waits for its log while another command is in progress"
        );
        let registration_id = command.request().correlation_id;
        self.in_progress = Some(PendingCommand::Log(Waiting::new(command, registration_id)));
    }

    /// Makes the command in progress wait for the channel of a lookup.
    pub(super) fn await_channel(&mut self, command: AwaitedChannel, lookup_id: i64) {
        debug_assert!(
            !self.is_busy(),
            "a command waits for its channel while another command is in progress"
        );
        self.in_progress = Some(PendingCommand::Channel(Waiting::new(command, lookup_id)));
    }

    /// Makes the command in progress wait for the address of a lookup.
    pub(super) fn await_address(&mut self, change: DestinationChange, lookup_id: i64) {
        debug_assert!(
            !self.is_busy(),
            "a command waits for its address while another command is in progress"
        );
        self.in_progress = Some(PendingCommand::Address(Waiting::new(change, lookup_id)));
    }

    /// Sets the command in progress aside if it waits for this lookup, because the lookup takes long.
    pub(super) fn on_looking_up(&mut self, lookup_id: i64) {
        self.step_aside(|command| match command {
            PendingCommand::Log(_) => false,
            PendingCommand::Channel(waiting) => waiting.request_id == lookup_id,
            PendingCommand::Address(waiting) => waiting.request_id == lookup_id,
        });
    }

    /// Sets the command in progress aside if it waits for this log, because the creation of the log takes long.
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

    /// Returns the result slot of the command that waits for this log; `None` if no command does.
    pub(super) fn log_slot(&mut self, registration_id: i64) -> Option<ResultSlot<'_, CreatedLog>> {
        self.all().find_map(|command| match command {
            PendingCommand::Log(waiting) => waiting.slot_of(registration_id),
            _ => None,
        })
    }

    /// Returns the result slot of the command that waits for this channel; `None` if no command does.
    pub(super) fn channel_slot(
        &mut self,
        lookup_id: i64,
    ) -> Option<ResultSlot<'_, Arc<UdpChannel>>> {
        self.all().find_map(|command| match command {
            PendingCommand::Channel(waiting) => waiting.slot_of(lookup_id),
            _ => None,
        })
    }

    /// Returns the result slot of the command that waits for this address; `None` if no command does.
    pub(super) fn address_slot(&mut self, lookup_id: i64) -> Option<ResultSlot<'_, SocketAddr>> {
        self.all().find_map(|command| match command {
            PendingCommand::Address(waiting) => waiting.slot_of(lookup_id),
            _ => None,
        })
    }

    fn all(&mut self) -> impl Iterator<Item = &mut PendingCommand> {
        self.in_progress.iter_mut().chain(&mut self.slow)
    }

    /// Removes and returns the command in progress, if its result has arrived.
    pub(super) fn take_ready(&mut self) -> Option<ReadyCommand> {
        self.in_progress
            .take_if(|command| command.is_ready())
            .and_then(PendingCommand::into_ready)
    }

    /// Removes and returns the oldest slow command for which the result has arrived.
    ///
    /// Call this method only if no command is in progress. Otherwise both commands could use the same endpoint or
    /// publication.
    pub(super) fn take_slow_ready(&mut self) -> Option<ReadyCommand> {
        debug_assert!(
            !self.is_busy(),
            "a slow command continues while another command is in progress"
        );
        let index = self.slow.iter().position(PendingCommand::is_ready)?;
        self.slow.remove(index).into_ready()
    }

    /// Drops the slow commands of a client that has ended.
    ///
    /// Commands that change destinations of publications are kept and still executed.
    pub(super) fn forget_client(&mut self, client_id: i64, outlets: &mut ConductorOutlets) {
        self.forget(|command| command.client_id() == Some(client_id), outlets);
    }

    /// Drops the slow command with this correlation id, because the client has removed the resource that
    /// the command adds.
    ///
    /// Returns whether a command was dropped.
    pub(super) fn forget_command(
        &mut self,
        correlation_id: i64,
        outlets: &mut ConductorOutlets,
    ) -> bool {
        self.forget(
            |command| command.correlation_id() == correlation_id,
            outlets,
        )
    }

    /// Drops slow commands and removes the logs that were created for them. Returns whether a command was dropped.
    ///
    /// If a log is still being created, the conductor's `on_publication_log` removes it after its creation.
    fn forget(
        &mut self,
        is_meant: impl Fn(&PendingCommand) -> bool,
        outlets: &mut ConductorOutlets,
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
        debug_assert!(
            self.is_ready(),
            "the command {} is dropped without a response, because its result has not arrived",
            self.correlation_id()
        );
        Some(match self {
            Self::Log(waiting) => ReadyCommand::Log(waiting.command, waiting.result?),
            Self::Channel(waiting) => ReadyCommand::Channel(waiting.command, waiting.result?),
            Self::Address(waiting) => ReadyCommand::Address(waiting.command, waiting.result?),
        })
    }

    /// Returns the client of the command; `None` for a change of a publication's destination, which is executed even if
    /// its client has ended.
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
    /// Returns the client's request for the publication.
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

    /// Returns a description of the command for an error text.
    pub(super) fn describe(&self) -> String {
        match self {
            Self::Publication(request) => request.describe(),
            Self::Subscription(request) | Self::Spy(request) => request.describe(),
            Self::ReceiveDestination(change) => format!("destination={}", change.request.channel),
        }
    }
}
