//! [`Link`]: the connection of a client to one driver.

use std::time::Duration;

use aeron_memory::buffer::SharedBuffer;
use aeron_memory::cnc::{CncFile, DriverIdentity};
use aeron_memory::counters::keys::decode_heartbeat_key;
use aeron_memory::counters::{AtomicCounter, CountersReader, types};

use crate::error::{Error, Result};
use crate::log_source::LogSource;
use crate::proxy::DriverProxy;

/// The connection of a client to one driver. A client that reconnects has a new link for each connection.
pub(crate) struct Link {
    pub(crate) proxy: DriverProxy,
    pub(crate) counters: CountersReader<SharedBuffer>,
    pub(crate) logs: Box<dyn LogSource>,
    pub(crate) driver: DriverIdentity,
}

impl Link {
    /// Creates the link of a new client to the driver with this CnC file.
    pub(crate) fn new(cnc: &CncFile, logs: Box<dyn LogSource>) -> Self {
        Self {
            proxy: DriverProxy::new(cnc.to_driver().clone()),
            counters: cnc.counters().clone(),
            logs,
            driver: cnc.identity(),
        }
    }

    /// Returns the maximum time between two runs of the conductor: the driver's client liveness timeout.
    pub(crate) fn inter_service_timeout(&self) -> Duration {
        Duration::from_nanos(self.driver.client_liveness_timeout_ns.max(0) as u64)
    }

    /// Returns the counter with an id that the driver has sent.
    pub(crate) fn counter(&self, id: i32) -> Result<AtomicCounter<SharedBuffer>> {
        self.counters
            .counter(id)
            .ok_or(Error::CounterOutOfRange(id))
    }

    /// Finds the heartbeat counter that the driver created for this client.
    pub(crate) fn heartbeat_counter(&self) -> Option<AtomicCounter<SharedBuffer>> {
        let client_id = self.proxy.client_id();
        let id = self.counters.find_by_key(types::CLIENT_HEARTBEAT, |key| {
            decode_heartbeat_key(key) == client_id
        })?;
        self.counters.counter(id)
    }

    /// Whether the driver knows this client.
    pub(crate) fn has_heartbeat_counter(&self) -> bool {
        self.heartbeat_counter().is_some()
    }
}
