//! Clients that continue with another driver after they have lost their driver.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use aeron_memory::log::AppendError;
use aeron_protocol::event::{self, Event};

use super::{Log, text};
use crate::aeron::Aeron;
use crate::context::Context;
use crate::error::{DriverTimeout, Error, Result};
use crate::lock::lock;
use crate::publication::{ClaimAborted, ExclusivePublication, OfferError, Publication};
use crate::reconnect::{
    DriverFinder, DriverScout, FoundDriver, LostDriver, LostStreamKind, Reconnect, ReconnectReport,
};
use crate::subscription::Subscription;
use crate::testing::{FIRST_SESSION_ID, FakeDriver, LIVENESS_TIMEOUT_MS, REFUSED_CHANNEL};

mod drivers;
mod objects;
mod restoration;

const CHANNEL: &str = "aeron:ipc";
const STREAM: i32 = 10;

/// The directory of the drivers of a test: at most one runs at a time.
#[derive(Clone)]
struct Directory {
    current: Arc<Mutex<Arc<FakeDriver>>>,
    /// Whether the process of the driver has ended.
    has_ended: Arc<Mutex<bool>>,
    refusal: Arc<Mutex<Option<Error>>>,
    scout: Arc<Mutex<DriverScout>>,
}

impl DriverFinder for Directory {
    fn find(&mut self, lost: &LostDriver) -> Result<Option<FoundDriver>> {
        if let Some(error) = lock(&self.refusal).clone() {
            return Err(error);
        }
        let driver = self.driver();
        let is_running = !*lock(&self.has_ended);
        let is_next = lock(&self.scout).is_next(lost, &driver.cnc, is_running);
        Ok(is_next.then(|| driver.found()))
    }

    fn has_driver_ended(&mut self) -> bool {
        *lock(&self.has_ended)
    }
}

impl Directory {
    fn new() -> Self {
        Self {
            current: Arc::new(Mutex::new(FakeDriver::new())),
            has_ended: Arc::default(),
            refusal: Arc::default(),
            scout: Arc::default(),
        }
    }

    fn driver(&self) -> Arc<FakeDriver> {
        Arc::clone(&lock(&self.current))
    }

    /// Kills the driver. Clients notice that at once.
    fn kill(&self) {
        self.driver().kill();
        *lock(&self.has_ended) = true;
    }

    fn restart(&self) {
        let next = self.driver().successor();
        *lock(&self.current) = next;
        *lock(&self.has_ended) = false;
    }

    fn connect(&self, configure: impl FnOnce(&mut Context)) -> Aeron {
        let (driver, directory) = (self.driver(), self.clone());
        let mut context = Context {
            epoch_clock: Arc::clone(&driver.epoch_clock) as _,
            nano_clock: Arc::clone(&driver.nano_clock) as _,
            use_conductor_agent_invoker: true,
            driver_invoker: Some(Arc::new(move || directory.driver().step())),
            error_handler: Arc::new(|_| {}),
            reconnect: Some(Reconnect::default()),
            ..Context::default()
        };
        configure(&mut context);
        Aeron::attach_with_finder(context, driver.found(), Box::new(self.clone())).unwrap()
    }

    fn run_ms(&self, aeron: &Aeron, duration_ms: usize) {
        for _ in 0..duration_ms {
            self.driver().step();
            aeron.do_work();
        }
    }
}

/// A client that reconnects, with the calls of its handlers and its reports.
struct Client {
    directory: Directory,
    aeron: Aeron,
    log: Log,
    reports: Arc<Mutex<Vec<ReconnectReport>>>,
}

impl Client {
    fn new() -> Self {
        Self::with(|_| {})
    }

    fn with(configure: impl FnOnce(&mut Context)) -> Self {
        let (directory, log) = (Directory::new(), Log::default());
        let reports: Arc<Mutex<Vec<ReconnectReport>>> = Arc::default();
        let aeron = directory.connect(|context| {
            log.attach(context);
            context.available_counter_handler = None;
            context.unavailable_counter_handler = None;
            let lost = log.clone();
            context.disconnect_handler =
                Some(Arc::new(move |cause| lost.add(format!("lost: {cause}"))));
            let (again, reports) = (log.clone(), Arc::clone(&reports));
            context.reconnect_handler = Some(Arc::new(move |report| {
                again.add("connected again");
                lock(&reports).push(report.clone());
            }));
            configure(context);
        });
        Self {
            directory,
            aeron,
            log,
            reports,
        }
    }

    fn run_ms(&self, duration_ms: usize) {
        self.directory.run_ms(&self.aeron, duration_ms);
    }

    fn subscribe(&self) -> Subscription {
        self.aeron.add_subscription(CHANNEL, STREAM).unwrap()
    }

    fn publish(&self) -> ExclusivePublication {
        let publication = self.aeron.add_exclusive_publication(CHANNEL, STREAM);
        let publication = publication.unwrap();
        self.run_ms(2);
        publication
    }

    fn lose_driver(&self) {
        self.directory.kill();
        self.run_ms(20);
        assert!(!self.aeron.has_driver() && !self.aeron.is_closed());
    }

    fn reconnect(&self) {
        self.directory.restart();
        for _ in 0..1_000 {
            self.run_ms(1);
            if self.aeron.has_driver() {
                break;
            }
        }
        // Long enough that the next loss is no reason to wait for longer.
        self.run_ms(250);
        assert!(self.aeron.has_driver());
    }

    fn report(&self) -> ReconnectReport {
        lock(&self.reports).last().cloned().expect("a report")
    }
}

fn received(subscription: &Subscription) -> Vec<String> {
    let mut messages = Vec::new();
    let add = |fragment: crate::fragment::Fragment<'_>| {
        messages.push(String::from_utf8_lossy(&fragment.to_vec()).into_owned());
    };
    subscription.poll(add, 100).unwrap();
    messages
}
