//! Executes one command of a client and sends the response.

use std::net::SocketAddr;
use std::sync::Arc;

use aeron_memory::counters::system::SystemCounter;
use aeron_protocol::ErrorCode;
use aeron_protocol::command::{
    Command, GetNextAvailableSessionId, MAX_REJECTION_REASON_LENGTH, RejectImage,
};

use super::Conductor;
use super::pending::{AwaitedChannel, AwaitedLog, ReadyCommand};
use super::requests::Change;
use crate::error::DriverError;
use crate::log_storage::LogId;
use crate::media::{ChannelRole, UdpChannel};
use crate::receiver::ReceiverCommand;
use crate::resources::{CreatedLog, LookupSubject};

impl Conductor {
    /// Executes a command. `body` may contain arbitrary bytes. A command that cannot be decoded has no response.
    pub(super) fn on_command(&mut self, type_id: i32, body: &[u8]) {
        match Command::decode(type_id, body) {
            Ok(command) => {
                if let Err(error) = self.execute(command) {
                    self.outlets.refuse(command.correlation_id(), &error);
                }
            }
            Err(error) => self.outlets.errors.record(&error.into()),
        }
    }

    fn execute(&mut self, command: Command<'_>) -> Result<(), DriverError> {
        match command {
            Command::AddPublication(command) => self.on_add_publication(&command, false),
            Command::AddExclusivePublication(command) => self.on_add_publication(&command, true),
            Command::RemovePublication(command) => self.on_remove_publication(&command),
            Command::AddSubscription(command) => self.on_add_subscription(&command),
            Command::RemoveSubscription(command) => self.on_remove_subscription(&command),
            Command::AddDestination(command) => self.on_change_destination(&command, Change::Add),
            Command::RemoveDestination(command) => {
                self.on_change_destination(&command, Change::Remove)
            }
            Command::RemoveDestinationById(command) => self.on_remove_destination_by_id(&command),
            Command::AddRcvDestination(command) => {
                self.on_change_receive_destination(&command, Change::Add)
            }
            Command::RemoveRcvDestination(command) => {
                self.on_change_receive_destination(&command, Change::Remove)
            }
            Command::AddCounter(command) => {
                self.clients.on_add_counter(&command, &mut self.outlets)
            }
            Command::RemoveCounter(command) => {
                self.clients.on_remove_counter(&command, &mut self.outlets)
            }
            Command::AddStaticCounter(command) => self
                .clients
                .on_add_static_counter(&command, &mut self.outlets),
            Command::ClientKeepalive(command) => {
                let now_ms = self.outlets.now_ms;
                self.clients
                    .known(command.client_id)
                    .into_iter()
                    .for_each(|client| client.keep_alive(now_ms));
                Ok(())
            }
            Command::ClientClose(command) => {
                self.pending
                    .forget_client(command.client_id, &mut self.outlets);
                self.clients
                    .known(command.client_id)
                    .into_iter()
                    .for_each(|client| client.close());
                Ok(())
            }
            Command::TerminateDriver(_) => {
                self.terminate();
                Ok(())
            }
            Command::RejectImage(command) => self.on_reject_image(&command),
            Command::GetNextAvailableSessionId(command) => {
                self.on_get_next_available_session_id(&command);
                Ok(())
            }
        }
    }

    fn on_get_next_available_session_id(&mut self, command: &GetNextAvailableSessionId) {
        let session_id = self
            .publications
            .next_available_session_id(command.stream_id);
        self.outlets
            .events
            .on_next_available_session_id(command.correlation_id, session_id);
    }

    fn on_reject_image(&mut self, command: &RejectImage<'_>) -> Result<(), DriverError> {
        if command.reason.len() > MAX_REJECTION_REASON_LENGTH {
            return Err(DriverError::coded(
                ErrorCode::GenericError,
                format!(
                    "Invalidation reason_text must be {MAX_REJECTION_REASON_LENGTH} bytes or less"
                ),
            ));
        }
        let correlation_id = command.image_correlation_id;
        if self.images.find(correlation_id).is_some() {
            self.outlets
                .receiver_commands
                .send(ReceiverCommand::RejectImage {
                    correlation_id,
                    reason: command.reason.into(),
                });
        } else {
            let outlets = &mut self.outlets;
            self.publications
                .reject_ipc(correlation_id, command.reason, outlets)?;
        }
        self.outlets
            .system_counter(SystemCounter::ImagesRejected)
            .add_release(1);
        self.outlets
            .events
            .on_operation_success(command.correlation_id);
        Ok(())
    }

    /// Requests the addresses of a channel, and stores `command` until the addresses arrive.
    pub(super) fn resolve_channel(
        &mut self,
        channel: &[u8],
        role: ChannelRole,
        command: AwaitedChannel,
    ) {
        let lookup_id = self.outlets.look_up(LookupSubject::Channel {
            channel: channel.into(),
            role,
        });
        self.pending.await_channel(command, lookup_id);
    }

    /// Continues the command that waits for this channel. `result` is an error if the channel is refused.
    pub(super) fn on_channel_resolved(
        &mut self,
        lookup_id: i64,
        result: Result<Arc<UdpChannel>, DriverError>,
    ) {
        // If there is no slot, the client has ended, or it has removed the resource that the command adds.
        if let Some(slot) = self.pending.channel_slot(lookup_id) {
            debug_assert!(slot.is_none(), "lookup {lookup_id} has two results");
            *slot = Some(result);
            self.resume_command_in_progress();
        }
    }

    /// Continues the command or the endpoint that waits for this address.
    ///
    /// `result` is an error if the name cannot be resolved.
    pub(super) fn on_address_resolved(
        &mut self,
        lookup_id: i64,
        result: Result<SocketAddr, DriverError>,
    ) {
        if let Some(slot) = self.pending.address_slot(lookup_id) {
            debug_assert!(slot.is_none(), "lookup {lookup_id} has two results");
            *slot = Some(result);
            self.resume_command_in_progress();
        } else {
            self.endpoints
                .on_re_resolved(lookup_id, result, &mut self.outlets);
        }
    }

    /// Continues the command that waits for this log. `result` is an error if the log cannot be created.
    pub(super) fn on_publication_log(
        &mut self,
        registration_id: i64,
        result: Result<CreatedLog, DriverError>,
    ) {
        if let Some(slot) = self.pending.log_slot(registration_id) {
            *slot = Some(result);
            self.resume_command_in_progress();
        } else if result.is_ok() {
            // The client has ended, or has removed the publication.
            self.outlets.remove_log(LogId::Publication(registration_id));
        }
    }

    /// Continues the command in progress if its result has arrived.
    fn resume_command_in_progress(&mut self) {
        if let Some(command) = self.pending.take_ready() {
            self.resume(command);
        }
    }

    /// Continues a command after the result of its request has arrived.
    pub(super) fn resume(&mut self, command: ReadyCommand) {
        match command {
            ReadyCommand::Log(command, result) => {
                let outcome = result.and_then(|log| self.use_publication_log(&command, &log));
                let request = command.request();
                self.refuse_failed(request.correlation_id, &request.describe(), outcome);
            }
            ReadyCommand::Channel(command, result) => {
                let (correlation_id, description) = (command.correlation_id(), command.describe());
                let outcome = result.and_then(|channel| self.use_channel(command, channel));
                self.refuse_failed(correlation_id, &description, outcome);
            }
            ReadyCommand::Address(change, result) => self.on_destination_resolved(&change, result),
        }
    }

    fn use_channel(
        &mut self,
        command: AwaitedChannel,
        channel: Arc<UdpChannel>,
    ) -> Result<(), DriverError> {
        match command {
            AwaitedChannel::Publication(request) => self.on_publication_channel(request, channel),
            AwaitedChannel::Subscription(request) => self.on_subscription_channel(request, channel),
            AwaitedChannel::Spy(request) => self.on_spy_channel(request, channel),
            AwaitedChannel::ReceiveDestination(change) => {
                self.on_receive_destination_channel(change, channel)
            }
        }
    }

    /// Adds the publication for which the log was created.
    ///
    /// While the command waited, another command may have added the same publication, or a publication with the same
    /// session. In this case, the new log is not needed and is removed.
    fn use_publication_log(
        &mut self,
        command: &AwaitedLog,
        created: &CreatedLog,
    ) -> Result<(), DriverError> {
        let is_log_used = match command {
            AwaitedLog::Ipc(plan) => self.join_or_add_ipc_publication(plan, created),
            AwaitedLog::Network(plan) => self.join_or_add_network_publication(plan, created),
        };
        if !matches!(is_log_used, Ok(true)) {
            let registration_id = command.request().correlation_id;
            self.outlets.remove_log(LogId::Publication(registration_id));
        }
        is_log_used.map(drop)
    }

    fn refuse_failed(
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
}
