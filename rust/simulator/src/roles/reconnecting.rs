//! [`Reconnections`]: what a role learns from its client when the client loses its driver and connects again.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use aeron_client::{
    Aeron, Context, Counter, PendingOperation, Reconnect, ReconnectReport, StreamReport,
};

use crate::host::Host;
use crate::truth::Finding;

/// Delays of the simulated clients. The network must recover within seconds after the faults have ended.
const RECONNECT: Reconnect = Reconnect {
    min_delay: Duration::from_millis(100),
    max_delay: Duration::from_millis(500),
    give_up_after: None,
};

/// The losses of drivers of one role's client.
#[derive(Clone, Default)]
pub struct Reconnections {
    losses: Arc<AtomicU64>,
    reports: Arc<Mutex<Vec<ReconnectReport>>>,
    /// Whether the newest event was a loss.
    is_lost: Arc<AtomicBool>,
}

impl Reconnections {
    /// Connects a client to the running driver. `reconnects` says whether it reconnects, and then whether it notices
    /// the end of its driver at once.
    pub fn connect(
        &self,
        host: &Host,
        context: Context,
        reconnects: Option<bool>,
    ) -> Option<Aeron> {
        let Some(is_watching) = reconnects else {
            return host.connect(context);
        };
        let (losses, reports) = (Arc::clone(&self.losses), Arc::clone(&self.reports));
        let (lost, found) = (Arc::clone(&self.is_lost), Arc::clone(&self.is_lost));
        let context = Context {
            reconnect: Some(RECONNECT),
            disconnect_handler: Some(Arc::new(move |_| {
                losses.fetch_add(1, Ordering::Relaxed);
                lost.store(true, Ordering::Relaxed);
            })),
            reconnect_handler: Some(Arc::new(move |report| {
                found.store(false, Ordering::Relaxed);
                let mut reports = reports.lock().unwrap_or_else(PoisonError::into_inner);
                reports.push(report.clone());
            })),
            ..context
        };
        host.connect_reconnecting(context, is_watching)
    }

    /// Returns the number of losses so far, for the handlers of images.
    pub fn losses(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.losses)
    }

    /// Whether the current driver has all resources of the client.
    pub fn is_over(&self) -> bool {
        !self.is_lost.load(Ordering::Relaxed)
    }

    /// Returns the streams of the reports since the last call.
    pub fn take_reports(&self) -> Vec<StreamReport> {
        let reports =
            std::mem::take(&mut *self.reports.lock().unwrap_or_else(PoisonError::into_inner));
        reports
            .into_iter()
            .flat_map(|report| report.streams)
            .collect()
    }
}

/// The driver of a role's client, as the number of the driver's start on its host.
#[derive(Clone, Copy, Debug, Default)]
pub struct CurrentDriver {
    start: Option<u64>,
}

impl CurrentDriver {
    /// Updates the driver after a turn of the client. `starts` is the number of driver starts on the host.
    pub fn update(&mut self, client: &Aeron, starts: u64) {
        match client.has_driver() {
            true => self.start = self.start.or(Some(starts)),
            false => self.start = None,
        }
    }

    /// Returns the number of the driver's start; `None` without a driver.
    pub fn start(self) -> Option<u64> {
        self.start
    }
}

/// Type of the counters.
const COUNTER_TYPE_ID: i32 = 1_000;

/// A counter of a client that reconnects, with the value that it must have.
#[derive(Default)]
pub struct MessageCounter {
    adding: Option<PendingOperation<Counter>>,
    counter: Option<Counter>,
    value: i64,
}

impl MessageCounter {
    /// Counts a message.
    pub fn add(&mut self) {
        if let Some(counter) = &self.counter {
            counter.add_release(1);
            self.value += 1;
        }
    }

    /// Adds the counter if the client does not have it. Checks its value, also in the driver if `is_connected`.
    ///
    /// # Errors
    /// The value is wrong.
    pub fn check(&mut self, client: &Aeron, is_connected: bool) -> Result<(), Finding> {
        let Some(counter) = &self.counter else {
            self.find(client);
            return Ok(());
        };
        if counter.get() != self.value {
            let found = counter.get();
            return Err(format!(
                "a counter has the value {found} instead of {}",
                self.value
            ));
        }
        let reader = client.counters_reader();
        let record = reader.record(counter.id());
        let is_there = record
            .is_some_and(|record| (record.type_id, record.value) == (COUNTER_TYPE_ID, self.value));
        match is_there || !is_connected || !client.has_driver() || counter.is_closed() {
            true => Ok(()),
            false => Err(format!(
                "the driver has no counter with the value {}",
                self.value
            )),
        }
    }

    fn find(&mut self, client: &Aeron) {
        let Some(adding) = &mut self.adding else {
            self.adding = client
                .async_add_counter(COUNTER_TYPE_ID, &[], "messages")
                .ok();
            return;
        };
        match adding.poll() {
            Ok(None) => {}
            Ok(Some(counter)) => self.counter = Some(counter),
            Err(_) => self.adding = None,
        }
    }
}
