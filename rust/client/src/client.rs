//! [`Client`]: what all objects of one client share, and the way in to its conductor.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::Duration;

use aeron_agent::{EpochClock, IdleStrategy, NanoClock};
use aeron_memory::buffer::SharedBuffer;
use aeron_memory::counters::{AtomicCounter, CountersReader};

use crate::conductor::{Conductor, ResourceKind, check_driver};
use crate::context::{Context, DriverInvoker, InterruptCheck};
use crate::error::{CloseCause, Error, Result};
use crate::handlers::{Dispatcher, lock};
use crate::idle_work::IdleWork;
use crate::log_source::LogSource;
use crate::proxy::DriverProxy;
use crate::state::OpenState;

/// Settings that the client needs after it has connected.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) driver_timeout_ms: u64,
    pub(crate) keepalive_interval_ns: u64,
    pub(crate) inter_service_timeout_ns: u64,
    pub(crate) timer_interval_ns: u64,
    pub(crate) awaiting_sleep_duration_ns: u64,
    pub(crate) resource_linger_duration_ns: u64,
    pub(crate) close_linger_duration_ns: u64,
    pub(crate) client_name: String,
}

impl Settings {
    pub(crate) fn new(context: &Context, inter_service_timeout_ns: u64) -> Self {
        Self {
            driver_timeout_ms: context.driver_timeout_ms,
            keepalive_interval_ns: context.keepalive_interval_ns,
            inter_service_timeout_ns,
            timer_interval_ns: context.idle_sleep_duration_ns,
            awaiting_sleep_duration_ns: context.awaiting_sleep_duration_ns,
            resource_linger_duration_ns: context.resource_linger_duration_ns,
            close_linger_duration_ns: context.close_linger_duration_ns,
            client_name: context.client_name.clone(),
        }
    }

    pub(crate) fn driver_timeout(&self) -> Duration {
        Duration::from_millis(self.driver_timeout_ms)
    }
}

/// One connected client. Publications, subscriptions, images and counters refer to it.
pub(crate) struct Client {
    pub(crate) settings: Settings,
    pub(crate) proxy: DriverProxy,
    pub(crate) counters: CountersReader<SharedBuffer>,
    pub(crate) dispatcher: Dispatcher,
    pub(crate) state: OpenState,
    pub(crate) logs: Box<dyn LogSource>,
    pub(crate) epoch_clock: Arc<dyn EpochClock>,
    pub(crate) nano_clock: Arc<dyn NanoClock>,
    pub(crate) idle_work: Option<Arc<IdleWork>>,
    driver_invoker: Option<DriverInvoker>,
    interrupt_check: Option<InterruptCheck>,
    conductor: Mutex<Conductor>,
    thread: Mutex<Option<JoinHandle<()>>>,
    process: ProcessStamp,
}

impl Client {
    pub(crate) fn new(
        context: Context,
        settings: Settings,
        proxy: DriverProxy,
        counters: CountersReader<SharedBuffer>,
        logs: Box<dyn LogSource>,
        conductor: Conductor,
    ) -> Arc<Self> {
        Arc::new(Self {
            settings,
            proxy,
            counters,
            dispatcher: Dispatcher::new(context.handler_mode, context.error_handler),
            state: OpenState::default(),
            logs,
            epoch_clock: context.epoch_clock,
            nano_clock: context.nano_clock,
            idle_work: context.driver_turn.map(IdleWork::new),
            driver_invoker: context.driver_invoker,
            interrupt_check: context.interrupt_check,
            conductor: Mutex::new(conductor),
            thread: Mutex::default(),
            process: ProcessStamp::now(),
        })
    }

    pub(crate) fn now_ns(&self) -> i64 {
        self.nano_clock.nano_time()
    }

    pub(crate) fn now_ms(&self) -> i64 {
        self.epoch_clock.time_ms()
    }

    /// The conductor, for as long as the guard lives. Handlers never run under it.
    pub(crate) fn conductor(&self) -> MutexGuard<'_, Conductor> {
        lock(&self.conductor)
    }

    /// Whether the client belongs to the parent of this process.
    pub(crate) fn is_foreign(&self) -> bool {
        self.process.is_foreign()
    }

    /// The conductor of a client that is open and belongs to this process.
    pub(crate) fn open_conductor(&self) -> Result<MutexGuard<'_, Conductor>> {
        self.process.check()?;
        let conductor = self.conductor();
        if self.state.is_closed() {
            return Err(Error::ClientClosed(self.state.cause()));
        }
        Ok(conductor)
    }

    /// Runs one duty cycle and, in inline mode, the handlers that it queued; answers a work count.
    pub(crate) fn service(self: &Arc<Self>) -> usize {
        if self.process.is_foreign() {
            return 0;
        }
        let work = {
            let mut conductor = self.conductor();
            if self.state.is_closed() {
                conductor.announce_close(self);
                0
            } else {
                conductor.do_work(self)
            }
        };
        work + self.dispatcher.run_inline()
    }

    /// Whether the application wants waits to end.
    pub(crate) fn is_interrupted(&self) -> bool {
        self.interrupt_check.as_ref().is_some_and(|check| check())
    }

    /// Runs a driver that has no threads. Returns whether there is one.
    pub(crate) fn run_driver(&self) -> bool {
        let Some(invoke) = &self.driver_invoker else {
            return false;
        };
        invoke();
        true
    }

    /// The counter of this id, which the driver named.
    pub(crate) fn counter(&self, id: i32) -> Result<AtomicCounter<SharedBuffer>> {
        self.counters
            .counter(id)
            .ok_or(Error::CounterOutOfRange(id))
    }

    /// Refuses calls that wait for the driver when they come from a handler of this client.
    pub(crate) fn check_may_wait(&self) -> Result<()> {
        if self.dispatcher.is_inside_handler() {
            return Err(Error::ReentrantCall);
        }
        Ok(())
    }

    /// Most answers come within tens of microseconds, so a few turns yield before the first sleep.
    pub(crate) fn idle_while_waiting(&self, waits: u32) {
        const YIELDS: u32 = 50;
        if self.run_driver() {
            return;
        }
        if waits < YIELDS {
            std::thread::yield_now();
        } else {
            std::thread::sleep(Duration::from_nanos(
                self.settings.awaiting_sleep_duration_ns,
            ));
        }
    }

    /// Closes one resource and tells the driver, without waiting for its answer.
    pub(crate) fn close_resource(
        self: &Arc<Self>,
        kind: ResourceKind,
        registration_id: i64,
        revoke: bool,
    ) {
        if self.process.is_foreign() {
            return;
        }
        let removed = self.conductor().remove(self, kind, registration_id, revoke);
        drop(removed);
        self.dispatcher.run_inline();
    }

    /// Closes the client and everything it opened; does nothing when it is closed already.
    ///
    /// If the ring to the driver is full, waits for room until the driver timeout has passed or the driver is gone.
    pub(crate) fn close(self: &Arc<Self>) {
        if self.process.is_foreign() {
            self.state.close(CloseCause::error(Error::Forked));
            return;
        }
        let released = self.conductor().close(self, CloseCause::default());
        if released.is_some() {
            std::thread::sleep(Duration::from_nanos(self.settings.close_linger_duration_ns));
        }
        drop(released);
        self.dispatcher.run_inline();
        self.announce_close();
        self.join();
    }

    /// Repeats the close that met a full ring until the driver has taken it, is gone, or the driver timeout has passed.
    fn announce_close(self: &Arc<Self>) {
        let deadline_ns = self.now_ns() + self.settings.driver_timeout().as_nanos() as i64;
        let mut waits = 0;
        while !self.conductor().announce_close(self) {
            if self.now_ns() - deadline_ns > 0 || check_driver(self).is_err() {
                return;
            }
            self.idle_while_waiting(waits);
            waits += 1;
        }
    }

    /// Starts the thread that runs the conductor.
    pub(crate) fn start(
        self: &Arc<Self>,
        mut idle_strategy: Box<dyn IdleStrategy>,
    ) -> std::io::Result<()> {
        let client = Arc::clone(self);
        let thread = std::thread::Builder::new()
            .name("aeron-client-conductor".to_owned())
            .spawn(move || {
                while !client.state.is_closed() {
                    let work = client.service();
                    idle_strategy.idle(work);
                }
                client.dispatcher.run_inline();
                client.announce_close();
            })?;
        *lock(&self.thread) = Some(thread);
        Ok(())
    }

    fn join(&self) {
        let Some(thread) = lock(&self.thread).take() else {
            return;
        };
        thread.thread().unpark();
        // A handler may close its own client; the thread it runs on then ends by itself.
        if thread.thread().id() != std::thread::current().id() {
            // A panic of the conductor was printed by its thread; closing goes on.
            let _ = thread.join();
        }
    }
}

/// Counts the forks that lead to this process.
static FORKS: AtomicU32 = AtomicU32::new(0);

/// Says that this process is a forked child: objects made before belong to its parent, and send and close nothing here.
///
/// To be called in the child before anything else uses the library; Python does so with `os.register_at_fork`.
pub fn mark_forked_child() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// In which process an object was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ProcessStamp(u32);

impl ProcessStamp {
    pub(crate) fn now() -> Self {
        Self(FORKS.load(Ordering::Relaxed))
    }

    pub(crate) fn is_foreign(self) -> bool {
        self != Self::now()
    }

    pub(crate) fn check(self) -> Result<()> {
        if self.is_foreign() {
            Err(Error::Forked)
        } else {
            Ok(())
        }
    }
}
