//! One command from a client: what it asks for, and the answer.

use std::net::{Ipv4Addr, SocketAddr};

use aeron_memory::counters::system::SystemCounter;
use aeron_protocol::ErrorCode;
use aeron_protocol::command::{
    Command, GetNextAvailableSessionId, MAX_REJECTION_REASON_LENGTH, RejectImage,
};
use aeron_protocol::uri::UriError;

use super::destinations::Change;
use super::publications::NULL_ID;
use super::{Conductor, Outlets};
use crate::error::DriverError;
use crate::publication::{IpcPublication, NetworkPublication};
use crate::receiver::ReceiverCommand;
use crate::sender::PublicationErrorReport;

impl Conductor {
    /// Executes a command; whatever its bytes are. What cannot be understood is not answered.
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
            Command::AddCounter(command) => self.on_add_counter(&command),
            Command::RemoveCounter(command) => self.on_remove_counter(&command),
            Command::AddStaticCounter(command) => self.on_add_static_counter(&command),
            Command::ClientKeepalive(command) => {
                let now_ms = self.outlets.now_ms;
                self.known_client(command.client_id)
                    .into_iter()
                    .for_each(|client| client.keep_alive(now_ms));
                Ok(())
            }
            Command::ClientClose(command) => {
                self.forget_slow_commands(command.client_id);
                self.known_client(command.client_id)
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
        let ipc = self.ipc_publications.iter().map(IpcPublication::config);
        let network = self
            .network_publications
            .iter()
            .map(NetworkPublication::config);
        let in_use: Vec<_> = ipc
            .chain(network)
            .filter(|config| config.stream_id == command.stream_id)
            .map(|config| config.session_id)
            .collect();
        let session_id = self
            .session_ids
            .allocate(|session_id| in_use.contains(&session_id));
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
        let is_received = self
            .images
            .iter()
            .any(|image| image.config().correlation_id == correlation_id);
        if is_received {
            self.receiver_commands.send(ReceiverCommand::RejectImage {
                correlation_id,
                reason: command.reason.into(),
            });
        } else {
            self.reject_ipc_image(correlation_id, command.reason)?;
        }
        self.outlets
            .system(SystemCounter::ImagesRejected)
            .add_release(1);
        self.outlets
            .events
            .on_operation_success(command.correlation_id);
        Ok(())
    }

    /// Takes an IPC publication away from its subscribers for a while, and tells the publisher why.
    fn reject_ipc_image(&mut self, image_id: i64, reason: &[u8]) -> Result<(), DriverError> {
        let publication = self
            .ipc_publications
            .iter_mut()
            .find(|publication| publication.config().registration_id == image_id)
            .ok_or_else(|| {
                let text = format!("Unable to resolve image for correlationId={image_id}");
                DriverError::coded(ErrorCode::GenericError, text)
            })?;
        let config = publication.config();
        self.outlets
            .announce_publication_error(&PublicationErrorReport {
                registration_id: config.registration_id,
                destination_registration_id: NULL_ID,
                session_id: config.session_id,
                stream_id: config.stream_id,
                receiver_id: NULL_ID,
                group_tag: NULL_ID,
                source: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
                error_code: ErrorCode::ImageRejected.value(),
                message: reason.into(),
            });
        if publication.reject(self.now_ns) {
            self.outlets.announce_unavailable(publication, None);
            self.outlets.free_subscribers(publication);
        }
        Ok(())
    }
}

impl Outlets {
    pub(super) fn refuse(&mut self, correlation_id: i64, error: &DriverError) {
        self.errors.record(error);
        self.events.on_error(correlation_id, error);
    }
}

/// The failure of a channel, as clients and the error log are told of it.
pub(super) fn bad_channel(error: UriError, channel: &[u8]) -> DriverError {
    DriverError::from(error).context(format_args!("channel={}", String::from_utf8_lossy(channel)))
}
