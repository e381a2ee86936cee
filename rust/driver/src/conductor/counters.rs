//! Commands about counters, and the heartbeat counters of clients.

use aeron_memory::buffer::SharedBuffer;
use aeron_memory::counters::{AtomicCounter, NULL_VALUE, NewCounter, keys, types};
use aeron_protocol::ErrorCode;
use aeron_protocol::command::{AddCounter, AddStaticCounter, RemoveCounter};

use super::Conductor;
use super::clients::{Client, OwnedCounter};
use super::outlets::Outlets;
use crate::error::DriverError;

impl Conductor {
    /// The client with this id, if it has shown up.
    pub(super) fn known_client(&mut self, client_id: i64) -> Option<&mut Client> {
        self.clients
            .iter_mut()
            .find(|client| client.id() == client_id)
    }

    /// The client with this id; a new one is announced by its heartbeat counter.
    pub(super) fn client(&mut self, client_id: i64) -> Result<&mut Client, DriverError> {
        let index = match self
            .clients
            .iter()
            .position(|client| client.id() == client_id)
        {
            Some(index) => index,
            None => {
                let heartbeat = self.outlets.allocate_heartbeat(client_id)?;
                self.outlets
                    .events
                    .on_counter_ready(client_id, heartbeat.id());
                self.clients.push(Client::new(client_id, heartbeat));
                self.clients.len() - 1
            }
        };
        Ok(&mut self.clients[index])
    }

    pub(super) fn on_add_counter(&mut self, command: &AddCounter<'_>) -> Result<(), DriverError> {
        self.client(command.client_id)?;
        let counter = self.outlets.allocate_counter(&NewCounter {
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
        self.client(command.client_id)?.counters.push(owned);
        self.outlets
            .events
            .on_counter_ready(command.correlation_id, counter.id());
        Ok(())
    }

    pub(super) fn on_remove_counter(&mut self, command: &RemoveCounter) -> Result<(), DriverError> {
        let owned = self
            .known_client(command.client_id)
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
        self.outlets
            .events
            .on_operation_success(command.correlation_id);
        self.outlets
            .events
            .on_unavailable_counter(owned.registration_id, owned.counter_id);
        self.outlets.free_counter(owned.counter_id);
        Ok(())
    }

    pub(super) fn on_add_static_counter(
        &mut self,
        command: &AddStaticCounter<'_>,
    ) -> Result<(), DriverError> {
        self.client(command.client_id)?;
        let reader = self.outlets.counters.reader();
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
                let counter = self.outlets.allocate_counter(&NewCounter {
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
        self.outlets
            .events
            .on_static_counter(command.correlation_id, counter_id);
        Ok(())
    }
}

impl Outlets {
    fn allocate_heartbeat(
        &mut self,
        client_id: i64,
    ) -> Result<AtomicCounter<SharedBuffer>, DriverError> {
        self.allocate_counter(&NewCounter {
            type_id: types::CLIENT_HEARTBEAT,
            key: &keys::heartbeat_key(client_id)[..size_of::<i64>()],
            label: keys::heartbeat_label(client_id).as_bytes(),
            registration_id: client_id,
            owner_id: client_id,
            reference_id: 0,
            value: self.now_ms,
        })
    }
}
