//! The clients that the driver knows, and what each of them owns.

use aeron_memory::buffer::SharedBuffer;
use aeron_memory::counters::{AtomicCounter, NewCounter, keys, types};

use super::outlets::Outlets;
use crate::error::DriverError;

/// All clients.
#[derive(Debug, Default)]
pub struct Clients(Vec<Client>);

/// A client: known from its first resource until it closes or falls silent.
#[derive(Debug)]
pub struct Client {
    id: i64,
    heartbeat: AtomicCounter<SharedBuffer>,
    is_closed: bool,
    pub publications: Vec<PublicationReference>,
    pub counters: Vec<OwnedCounter>,
}

/// A client's claim on a publication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublicationReference {
    /// Correlation id of the client's add.
    pub registration_id: i64,
    /// Registration id of the publication itself.
    pub publication_id: i64,
}

/// A counter that ends with its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnedCounter {
    pub registration_id: i64,
    pub counter_id: i32,
}

impl Clients {
    /// The client with this id, if it has shown up.
    pub fn known(&mut self, id: i64) -> Option<&mut Client> {
        self.0.iter_mut().find(|client| client.id == id)
    }

    /// The client with this id; a new one is announced by its heartbeat counter.
    pub fn get_or_add(
        &mut self,
        id: i64,
        outlets: &mut Outlets,
    ) -> Result<&mut Client, DriverError> {
        let index = match self.0.iter().position(|client| client.id == id) {
            Some(index) => index,
            None => {
                let heartbeat = allocate_heartbeat(id, outlets)?;
                outlets.events.on_counter_ready(id, heartbeat.id());
                self.0.push(Client::new(id, heartbeat));
                self.0.len() - 1
            }
        };
        Ok(&mut self.0[index])
    }

    /// Gives a client a reference to a publication.
    pub fn refer(
        &mut self,
        client_id: i64,
        reference: PublicationReference,
        outlets: &mut Outlets,
    ) -> Result<(), DriverError> {
        let client = self.get_or_add(client_id, outlets)?;
        client.publications.push(reference);
        Ok(())
    }

    /// Takes out one client that is gone or has been silent for too long.
    pub fn take_gone(&mut self, now_ms: i64, liveness_timeout_ms: i64) -> Option<Client> {
        let is_gone = |client: &Client| client.is_gone(now_ms, liveness_timeout_ms);
        let index = self.0.iter().rposition(is_gone)?;
        Some(self.0.swap_remove(index))
    }
}

impl Client {
    /// A client whose heartbeat counter holds the time of its last sign of life in epoch milliseconds.
    fn new(id: i64, heartbeat: AtomicCounter<SharedBuffer>) -> Self {
        Self {
            id,
            heartbeat,
            is_closed: false,
            publications: Vec::new(),
            counters: Vec::new(),
        }
    }

    pub fn id(&self) -> i64 {
        self.id
    }

    pub fn heartbeat_counter_id(&self) -> i32 {
        self.heartbeat.id()
    }

    /// The client showed a sign of life.
    pub fn keep_alive(&self, now_ms: i64) {
        self.heartbeat.set(now_ms);
    }

    /// The client said that it is gone.
    pub fn close(&mut self) {
        self.is_closed = true;
        self.heartbeat.set(0);
    }

    pub fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Whether the client is gone or has been silent for too long.
    fn is_gone(&self, now_ms: i64, liveness_timeout_ms: i64) -> bool {
        self.is_closed || now_ms > self.heartbeat.get().saturating_add(liveness_timeout_ms)
    }

    /// Takes a publication reference out.
    pub fn remove_publication(&mut self, registration_id: i64) -> Option<PublicationReference> {
        let index = self
            .publications
            .iter()
            .position(|link| link.registration_id == registration_id)?;
        Some(self.publications.swap_remove(index))
    }

    /// Takes a counter out.
    pub fn remove_counter(&mut self, registration_id: i64) -> Option<OwnedCounter> {
        let index = self
            .counters
            .iter()
            .position(|counter| counter.registration_id == registration_id)?;
        Some(self.counters.swap_remove(index))
    }
}

fn allocate_heartbeat(
    client_id: i64,
    outlets: &mut Outlets,
) -> Result<AtomicCounter<SharedBuffer>, DriverError> {
    outlets.allocate_counter(&NewCounter {
        type_id: types::CLIENT_HEARTBEAT,
        key: &keys::heartbeat_key(client_id)[..size_of::<i64>()],
        label: keys::heartbeat_label(client_id).as_bytes(),
        registration_id: client_id,
        owner_id: client_id,
        reference_id: 0,
        value: outlets.now_ms,
    })
}
