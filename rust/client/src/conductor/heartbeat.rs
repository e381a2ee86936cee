//! Two heartbeats: the client checks the driver's heartbeat, and the driver checks the client's heartbeat counter.

use aeron_agent::{ClockSteps, HeartbeatAge, version};
use aeron_memory::buffer::SharedBuffer;
use aeron_memory::cnc::CLOSED_HEARTBEAT_MS;
use aeron_memory::counters::keys::{decode_heartbeat_key, heartbeat_label_suffix};
use aeron_memory::counters::{AtomicCounter, types};

use crate::client::Client;
use crate::error::{DriverTimeout, Error, Result};
use crate::link::Link;

/// Time of the last heartbeat check, and the client's heartbeat counter once it is found.
pub(super) struct Heartbeat {
    last_keepalive_ns: i64,
    driver_age: HeartbeatAge,
    clock_steps: ClockSteps,
    counter: Option<AtomicCounter<SharedBuffer>>,
    /// The client has searched for the counter, but the driver has not created it yet.
    missing: bool,
}

impl Heartbeat {
    /// Creates the heartbeats of a client that connects at `now_ns` to a live driver with the heartbeat `driver_ms`.
    pub(super) fn new(driver_ms: i64, now_ns: i64) -> Self {
        Self {
            last_keepalive_ns: now_ns,
            driver_age: HeartbeatAge::new(driver_ms, now_ns),
            clock_steps: ClockSteps::default(),
            counter: None,
            missing: false,
        }
    }

    /// Every keepalive interval, checks the driver's heartbeat and updates the client's heartbeat counter. Does so at
    /// once if the wall clock was set, because Aeron's drivers compare the counter with the wall clock.
    ///
    /// A client that has added nothing has no counter. That is not an error: each later check searches again.
    pub(super) fn check(&mut self, client: &Client, link: &Link, now_ns: i64) -> Result<()> {
        let driver_ms = link.proxy.driver_heartbeat_ms();
        let now_ms = client.now_ms();
        let was_set = self.clock_steps.was_set(now_ms, now_ns);
        if was_set || now_ns - self.last_keepalive_ns > client.settings.keepalive_interval_ns as i64
        {
            self.last_keepalive_ns = now_ns;
            self.check_driver(client, driver_ms, now_ms, now_ns)?;
            return self.write(client, link);
        }
        if self.missing {
            self.write(client, link)
        } else {
            Ok(())
        }
    }

    /// Checks the driver's heartbeat `driver_ms`. The time is `now_ms` (epoch) and `now_ns` (monotonic).
    ///
    /// # Errors
    /// [`DriverTimeout::Shutdown`] if the driver was closed, [`DriverTimeout::Keepalive`] if the heartbeat is older
    /// than the driver timeout.
    pub(super) fn check_driver(
        &mut self,
        client: &Client,
        driver_ms: i64,
        now_ms: i64,
        now_ns: i64,
    ) -> Result<()> {
        check_not_closed(driver_ms)?;
        let age_ms = self.driver_age.update(driver_ms, now_ms, now_ns) / 1_000_000;
        let timeout_ms = client.settings.driver_timeout_ms as i64;
        if age_ms > timeout_ms {
            return Err(DriverTimeout::Keepalive { age_ms, timeout_ms }.into());
        }
        Ok(())
    }

    fn write(&mut self, client: &Client, link: &Link) -> Result<()> {
        let Some(counter) = &self.counter else {
            self.counter = link.heartbeat_counter();
            self.missing = self.counter.is_none();
            if let Some(counter) = &self.counter {
                let suffix = heartbeat_label_suffix(
                    &client.settings.client_name,
                    version::TEXT,
                    version::COMMIT,
                );
                link.counters.append_to_label(counter.id(), &suffix);
                counter.set(client.now_ms());
            }
            return Ok(());
        };
        let counter_id = counter.id();
        if !is_heartbeat_of(link, counter_id) {
            // The driver may be closing. It then marks its CnC file as closed before it frees the counters.
            check_not_closed(link.proxy.driver_heartbeat_ms())?;
            return Err(Error::HeartbeatCounterClosed { counter_id });
        }
        counter.set(client.now_ms());
        Ok(())
    }
}

fn check_not_closed(driver_ms: i64) -> Result<()> {
    match driver_ms {
        CLOSED_HEARTBEAT_MS => Err(DriverTimeout::Shutdown.into()),
        _ => Ok(()),
    }
}

/// Whether the counter is still the one that the driver created for this client.
fn is_heartbeat_of(link: &Link, counter_id: i32) -> bool {
    let record = link.counters.record(counter_id);
    record.is_some_and(|record| {
        record.type_id == types::CLIENT_HEARTBEAT
            && decode_heartbeat_key(&record.key) == link.proxy.client_id()
    })
}
