//! One command from a client: what it asks for, and the answer.

use aeron_memory::counters::system::SystemCounter;
use aeron_protocol::ErrorCode;
use aeron_protocol::command::{
    Command, Destination, GetNextAvailableSessionId, MAX_REJECTION_REASON_LENGTH, RejectImage,
    RemoveDestinationById,
};
use aeron_protocol::uri::{ChannelUri, NetworkParams, UriError};

use super::{Conductor, Outlets};
use crate::error::DriverError;
use crate::publication::IpcPublication;

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
            Command::AddDestination(Destination {
                registration_correlation_id,
                ..
            })
            | Command::RemoveDestination(Destination {
                registration_correlation_id,
                ..
            })
            | Command::RemoveDestinationById(RemoveDestinationById {
                resource_registration_id: registration_correlation_id,
                ..
            }) => Err(unknown_network_publication(registration_correlation_id)),
            Command::AddRcvDestination(command) | Command::RemoveRcvDestination(command) => {
                refuse_receive_destination(&command)
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
        let publications = &self.publications;
        let session_id = self.session_ids.allocate(|session_id| {
            publications
                .iter()
                .map(IpcPublication::config)
                .any(|config| {
                    config.stream_id == command.stream_id && config.session_id == session_id
                })
        });
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
        let image_id = command.image_correlation_id;
        let publication = self
            .publications
            .iter_mut()
            .find(|publication| publication.config().registration_id == image_id)
            .ok_or_else(|| {
                let text = format!("Unable to resolve image for correlationId={image_id}");
                DriverError::coded(ErrorCode::GenericError, text)
            })?;
        self.outlets.announce_rejection(publication, command.reason);
        if publication.reject(self.now_ns) {
            self.outlets.announce_unavailable(publication);
            for subscriber in publication.subscribers.remove_all() {
                subscriber
                    .position_counter_id()
                    .into_iter()
                    .for_each(|id| self.outlets.free_counter(id));
            }
        }
        self.outlets
            .system(SystemCounter::ImagesRejected)
            .add_release(1);
        self.outlets
            .events
            .on_operation_success(command.correlation_id);
        Ok(())
    }
}

impl Outlets {
    pub(super) fn refuse(&mut self, correlation_id: i64, error: &DriverError) {
        self.errors.record(error);
        self.events.on_error(correlation_id, error);
    }

    fn announce_rejection(&mut self, publication: &IpcPublication, reason: &[u8]) {
        self.events.on_image_rejected(publication, reason);
        let config = publication.config();
        self.errors.note(&format!(
            "onPublicationError: registrationId={}, destinationRegistrationId=-1, sessionId={}, streamId={}, \
             receiverId=-1, groupId=-1, errorCode={}, errorMessage={}\n",
            config.registration_id,
            config.session_id,
            config.stream_id,
            ErrorCode::ImageRejected.value(),
            String::from_utf8_lossy(reason),
        ));
    }
}

/// The failure of a channel, as clients and the error log are told of it.
pub(super) fn bad_channel(error: UriError, channel: &[u8]) -> DriverError {
    DriverError::from(error).context(format_args!("channel={}", String::from_utf8_lossy(channel)))
}

/// What is wrong with a channel that needs a socket: its text, or that there are no sockets.
pub(super) fn refuse_network_channel(channel: &[u8]) -> DriverError {
    let checked = ChannelUri::from_bytes(channel).and_then(|uri| NetworkParams::parse(&uri));
    match checked {
        Err(error) => bad_channel(error, channel),
        Ok(_) => DriverError::coded(
            ErrorCode::NotSupported,
            format_args!(
                "this driver has no sockets: use aeron:ipc, channel={}",
                String::from_utf8_lossy(channel)
            ),
        ),
    }
}

fn unknown_network_publication(registration_id: i64) -> DriverError {
    DriverError::coded(
        ErrorCode::UnknownPublication,
        format_args!("unknown publication registration_id={registration_id}"),
    )
}

/// Only network subscriptions have destinations.
fn refuse_receive_destination(command: &Destination<'_>) -> Result<(), DriverError> {
    ChannelUri::from_bytes(command.channel).map_err(|error| bad_channel(error, command.channel))?;
    Err(DriverError::coded(
        ErrorCode::UnknownSubscription,
        format_args!(
            "unknown subscription client_id={} registration_id={}",
            command.client_id, command.registration_correlation_id
        ),
    ))
}
