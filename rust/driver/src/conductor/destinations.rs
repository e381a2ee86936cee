//! Executes the commands that add and remove destinations of publications with manual control.

use std::net::SocketAddr;
use std::sync::Arc;

use aeron_protocol::command::{Destination, RemoveDestinationById};
use aeron_protocol::uri::key;

use super::Conductor;
use super::requests::{Change, DestinationChange};
use crate::error::DriverError;
use crate::media::destination::send_destination_endpoint;
use crate::resources::LookupSubject;
use crate::sender::{ManualDestination, SendEndpointId, SenderCommand};

impl Conductor {
    pub(super) fn on_change_destination(
        &mut self,
        command: &Destination<'_>,
        change: Change,
    ) -> Result<(), DriverError> {
        let endpoint = self.manual_send_endpoint(command.registration_correlation_id)?;
        let name = send_destination_endpoint(command.channel).map_err(|error| {
            let channel = String::from_utf8_lossy(command.channel);
            error.context(format_args!("channel={channel}"))
        })?;
        let lookup_id = self.outlets.look_up(LookupSubject::Name {
            name: name.clone(),
            parameter: key::ENDPOINT,
        });
        let change = DestinationChange {
            change,
            correlation_id: command.correlation_id,
            endpoint,
            endpoint_name: name.into(),
        };
        self.pending.await_address(change, lookup_id);
        Ok(())
    }

    /// Adds or removes a destination. If the name of a new destination cannot be resolved now, the destination is still
    /// added, and the driver resolves the name again later.
    pub(super) fn on_destination_resolved(
        &mut self,
        change: &DestinationChange,
        result: Result<SocketAddr, DriverError>,
    ) {
        let address = result.ok();
        let endpoint = change.endpoint;
        self.outlets.sender_commands.send(match change.change {
            Change::Add => SenderCommand::AddDestination {
                endpoint,
                destination: ManualDestination {
                    registration_id: change.correlation_id,
                    name: Arc::clone(&change.endpoint_name),
                    address,
                },
            },
            Change::Remove => SenderCommand::RemoveDestination { endpoint, address },
        });
        self.outlets
            .events
            .on_operation_success(change.correlation_id);
    }

    pub(super) fn on_remove_destination_by_id(
        &mut self,
        command: &RemoveDestinationById,
    ) -> Result<(), DriverError> {
        let endpoint = self.manual_send_endpoint(command.resource_registration_id)?;
        self.outlets
            .sender_commands
            .send(SenderCommand::RemoveDestinationById {
                endpoint,
                registration_id: command.destination_registration_id,
            });
        self.outlets
            .events
            .on_operation_success(command.correlation_id);
        Ok(())
    }

    /// Returns the endpoint of a publication with manual control.
    fn manual_send_endpoint(&self, publication_id: i64) -> Result<SendEndpointId, DriverError> {
        let endpoint = self.publications.endpoint_of(publication_id);
        self.endpoints
            .manual_send_endpoint(endpoint, publication_id)
    }
}
