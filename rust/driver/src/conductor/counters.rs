//! Commands about the counters of clients.

use aeron_memory::counters::{NULL_VALUE, NewCounter};
use aeron_protocol::ErrorCode;
use aeron_protocol::command::{AddCounter, AddStaticCounter, RemoveCounter};

use super::clients::{Clients, OwnedCounter};
use super::outlets::ConductorOutlets;
use crate::error::DriverError;

impl Clients {
    pub(super) fn on_add_counter(
        &mut self,
        command: &AddCounter<'_>,
        outlets: &mut ConductorOutlets,
    ) -> Result<(), DriverError> {
        let client = self.get_or_add(command.client_id, outlets)?;
        let counter = outlets.allocate_counter(&NewCounter {
            type_id: command.type_id,
            key: command.key,
            label: command.label,
            registration_id: command.correlation_id,
            owner_id: command.client_id,
            reference_id: 0,
            value: 0,
        })?;
        let owned = OwnedCounter {
            registration_id: command.correlation_id,
            counter_id: counter.id(),
        };
        client.counters.push(owned);
        outlets
            .events
            .on_counter_ready(command.correlation_id, counter.id());
        Ok(())
    }

    pub(super) fn on_remove_counter(
        &mut self,
        command: &RemoveCounter,
        outlets: &mut ConductorOutlets,
    ) -> Result<(), DriverError> {
        let owned = self
            .known(command.client_id)
            .and_then(|client| client.remove_counter(command.registration_id));
        let Some(owned) = owned else {
            return Err(DriverError::coded(
                ErrorCode::UnknownCounter,
                format_args!(
                    "unknown counter client_id={} registration_id={}",
                    command.client_id, command.registration_id
                ),
            ));
        };
        outlets.events.on_operation_success(command.correlation_id);
        outlets
            .events
            .on_unavailable_counter(owned.registration_id, owned.counter_id);
        outlets.free_counter(owned.counter_id);
        Ok(())
    }

    pub(super) fn on_add_static_counter(
        &mut self,
        command: &AddStaticCounter<'_>,
        outlets: &mut ConductorOutlets,
    ) -> Result<(), DriverError> {
        self.get_or_add(command.client_id, outlets)?;
        let reader = outlets.counters.reader();
        let existing = reader
            .find_by_registration(command.type_id, command.registration_id)
            .and_then(|counter_id| reader.counter(counter_id));
        let counter_id = match existing {
            Some(counter) if counter.owner_id() == NULL_VALUE => counter.id(),
            Some(counter) => {
                return Err(DriverError::coded(
                    ErrorCode::GenericError,
                    format_args!(
                        "cannot add static counter, because a non-static counter exists (counterId={}) for typeId={} and \
                         registrationId={}",
                        counter.id(),
                        command.type_id,
                        command.registration_id
                    ),
                ));
            }
            None => {
                let counter = outlets.allocate_counter(&NewCounter {
                    type_id: command.type_id,
                    key: command.key,
                    label: command.label,
                    registration_id: command.registration_id,
                    owner_id: NULL_VALUE,
                    reference_id: 0,
                    value: 0,
                })?;
                counter.id()
            }
        };
        outlets
            .events
            .on_static_counter(command.correlation_id, counter_id);
        Ok(())
    }
}
