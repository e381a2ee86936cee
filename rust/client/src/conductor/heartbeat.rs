//! Two heartbeats: the client checks the driver's heartbeat, and the driver checks the client's heartbeat counter.

use aeron_agent::version;
use aeron_memory::buffer::SharedBuffer;
use aeron_memory::counters::keys::{decode_heartbeat_key, heartbeat_label_suffix};
use aeron_memory::counters::{AtomicCounter, types};

use crate::client::Client;
use crate::error::{Error, Result};

/// Time of the last heartbeat check, and the client's heartbeat counter once it is found.
pub(super) struct Heartbeat {
    last_keepalive_ns: i64,
    counter: Option<AtomicCounter<SharedBuffer>>,
    /// The client has searched for the counter, but the driver has not created it yet.
    missing: bool,
}

impl Heartbeat {
    pub(super) fn new(now_ns: i64) -> Self {
        Self {
            last_keepalive_ns: now_ns,
            counter: None,
            missing: false,
        }
    }

    /// Every keepalive interval, checks the driver's heartbeat and updates the client's heartbeat counter.
    ///
    /// A client that has added nothing has no counter. That is not an error: each later check searches again.
    pub(super) fn check(&mut self, client: &Client, now_ns: i64) -> Result<()> {
        if now_ns - self.last_keepalive_ns > client.settings.keepalive_interval_ns as i64 {
            self.last_keepalive_ns = now_ns;
            client.check_driver()?;
            return self.write(client);
        }
        if self.missing {
            self.write(client)
        } else {
            Ok(())
        }
    }

    fn write(&mut self, client: &Client) -> Result<()> {
        let client_id = client.proxy.client_id();
        let Some(counter) = &self.counter else {
            self.counter = find(client, client_id);
            self.missing = self.counter.is_none();
            if let Some(counter) = &self.counter {
                let suffix = heartbeat_label_suffix(
                    &client.settings.client_name,
                    version::TEXT,
                    version::COMMIT,
                );
                client.counters.append_to_label(counter.id(), &suffix);
                counter.set(client.now_ms());
            }
            return Ok(());
        };
        let counter_id = counter.id();
        if !is_heartbeat_of(client, counter_id, client_id) {
            // The driver may be closing. It then marks its CnC file as closed before it frees the counters.
            client.check_driver()?;
            return Err(Error::HeartbeatCounterClosed { counter_id });
        }
        counter.set(client.now_ms());
        Ok(())
    }
}

/// Finds the counter that the driver created for this client.
fn find(client: &Client, client_id: i64) -> Option<AtomicCounter<SharedBuffer>> {
    let id = client
        .counters
        .find_by_key(types::CLIENT_HEARTBEAT, |key| {
            decode_heartbeat_key(key) == client_id
        })?;
    client.counters.counter(id)
}

/// Whether the counter is still the one that the driver created for this client.
fn is_heartbeat_of(client: &Client, counter_id: i32, client_id: i64) -> bool {
    let record = client.counters.record(counter_id);
    record.is_some_and(|record| {
        record.type_id == types::CLIENT_HEARTBEAT && decode_heartbeat_key(&record.key) == client_id
    })
}
