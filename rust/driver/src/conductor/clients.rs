//! [`Clients`]: the clients of the driver and the resources that each client owns.

use aeron_agent::HeartbeatAge;
use aeron_memory::buffer::SharedBuffer;
use aeron_memory::counters::{AtomicCounter, NewCounter, keys, types};

use super::outlets::ConductorOutlets;
use super::requests::PublicationRequest;
use crate::error::DriverError;

#[derive(Debug, Default)]
pub struct Clients(Vec<Client>);

/// A client. The entry exists from the client's first resource until the client closes or times out.
#[derive(Debug)]
pub struct Client {
    id: i64,
    heartbeat: AtomicCounter<SharedBuffer>,
    heartbeat_age: HeartbeatAge,
    is_closed: bool,
    pub publications: Vec<PublicationReference>,
    pub counters: Vec<OwnedCounter>,
}

/// A client's reference to a publication, which several clients may share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublicationReference {
    /// Correlation id of the client's command that added the publication.
    pub registration_id: i64,
    /// Registration id of the publication.
    pub publication_id: i64,
}

/// A counter that is freed when its client ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnedCounter {
    pub registration_id: i64,
    pub counter_id: i32,
}

impl Clients {
    /// Returns the number of clients.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Returns the client with this id; `None` if the client has no resources yet.
    pub fn known(&mut self, id: i64) -> Option<&mut Client> {
        self.0.iter_mut().find(|client| client.id == id)
    }

    /// Returns the client with this id.
    ///
    /// If the client is new, adds it, allocates its heartbeat counter and announces the counter to the clients.
    pub fn get_or_add(
        &mut self,
        id: i64,
        outlets: &mut ConductorOutlets,
    ) -> Result<&mut Client, DriverError> {
        let index = match self.0.iter().position(|client| client.id == id) {
            Some(index) => index,
            None => {
                let heartbeat = allocate_heartbeat(id, outlets)?;
                outlets.events.on_counter_ready(id, heartbeat.id());
                self.0.push(Client::new(id, heartbeat, outlets));
                self.0.len() - 1
            }
        };
        Ok(&mut self.0[index])
    }

    /// Adds a reference to a publication to the client of a request.
    pub fn refer(
        &mut self,
        request: &PublicationRequest,
        publication_id: i64,
        outlets: &mut ConductorOutlets,
    ) -> Result<(), DriverError> {
        let client = self.get_or_add(request.client_id, outlets)?;
        client.publications.push(PublicationReference {
            registration_id: request.correlation_id,
            publication_id,
        });
        Ok(())
    }

    /// Removes and returns a client that has closed or timed out. `now_ms` (epoch) and `now_ns` (monotonic) are the
    /// time.
    pub fn take_gone(
        &mut self,
        now_ms: i64,
        now_ns: i64,
        liveness_timeout_ns: i64,
    ) -> Option<Client> {
        let is_gone = |client: &mut Client| client.is_gone(now_ms, now_ns, liveness_timeout_ns);
        let index = self.0.iter_mut().rposition(is_gone)?;
        Some(self.0.swap_remove(index))
    }
}

impl Client {
    /// Creates a client. The counter `heartbeat` is the time of the client's last keepalive in epoch milliseconds.
    fn new(id: i64, heartbeat: AtomicCounter<SharedBuffer>, outlets: &ConductorOutlets) -> Self {
        Self {
            id,
            heartbeat_age: HeartbeatAge::new(heartbeat.get(), outlets.now_ns),
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

    /// Sets the time of the last keepalive.
    pub fn keep_alive(&self, now_ms: i64) {
        self.heartbeat.set(now_ms);
    }

    /// Sets the client to closed, after its close command.
    pub fn close(&mut self) {
        self.is_closed = true;
        self.heartbeat.set(0);
    }

    pub fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Returns whether the client has closed or timed out.
    fn is_gone(&mut self, now_ms: i64, now_ns: i64, liveness_timeout_ns: i64) -> bool {
        let heartbeat_ms = self.heartbeat.get();
        let age_ns = self.heartbeat_age.update(heartbeat_ms, now_ms, now_ns);
        self.is_closed || age_ns > liveness_timeout_ns
    }

    /// Removes and returns a publication reference.
    pub fn remove_publication(&mut self, registration_id: i64) -> Option<PublicationReference> {
        let index = self
            .publications
            .iter()
            .position(|link| link.registration_id == registration_id)?;
        Some(self.publications.swap_remove(index))
    }

    /// Removes and returns a counter.
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
    outlets: &mut ConductorOutlets,
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
