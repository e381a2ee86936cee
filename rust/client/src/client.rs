//! [`Client`]: the state that all objects of one client share, and the access to its conductor.
//!
//! Client, conductor, subscription core and image refer to each other. A client has its conductor in a lock, the
//! conductor owns subscriptions with their images, and an image needs its client for a rejection. A publication core is
//! part of the cycle, because it names the subscription that gets its responses.

use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::conductor::{Conductor, ResourceKind};
use crate::dispatcher::Dispatcher;
use crate::error::{CloseCause, Error, Result};
use crate::idle_work::IdleWork;
use crate::lifetime::Registration;
use crate::link::Link;
use crate::lock::lock;
use crate::operation::Waiter;
use crate::process::ProcessStamp;
use crate::settings::Settings;
use crate::state::OpenState;
use aeron_agent::IdleStrategy;

/// One connected client. Publications, subscriptions, images and counters refer to it.
pub(crate) struct Client {
    pub(crate) settings: Settings,
    pub(crate) dispatcher: Dispatcher,
    pub(crate) state: OpenState,
    pub(crate) idle_work: Option<Arc<IdleWork>>,
    /// The connection to the current driver. The conductor replaces it when the client has reconnected.
    link: Mutex<Arc<Link>>,
    conductor: Mutex<Conductor>,
    thread: Mutex<Option<JoinHandle<()>>>,
    process: ProcessStamp,
}

impl Client {
    pub(crate) fn new(settings: Settings, link: Arc<Link>, conductor: Conductor) -> Arc<Self> {
        let error_handler = Arc::clone(&settings.error_handler);
        Arc::new(Self {
            dispatcher: Dispatcher::new(settings.handler_mode, error_handler),
            idle_work: settings.driver_turn.clone().map(IdleWork::new),
            settings,
            link: Mutex::new(link),
            state: OpenState::default(),
            conductor: Mutex::new(conductor),
            thread: Mutex::default(),
            process: ProcessStamp::now(),
        })
    }

    pub(crate) fn now_ns(&self) -> i64 {
        self.settings.nano_clock.nano_time()
    }

    pub(crate) fn now_ms(&self) -> i64 {
        self.settings.epoch_clock.time_ms()
    }

    /// Locks the conductor. Handlers never run under this lock.
    pub(crate) fn conductor(&self) -> MutexGuard<'_, Conductor> {
        lock(&self.conductor)
    }

    /// Whether the client belongs to the parent process of a fork.
    pub(crate) fn is_foreign(&self) -> bool {
        self.process.is_foreign()
    }

    /// Locks the conductor of a client that is open and belongs to this process.
    pub(crate) fn open_conductor(&self) -> Result<MutexGuard<'_, Conductor>> {
        self.process.check()?;
        let conductor = self.conductor();
        if self.state.is_closed() {
            return Err(Error::ClientClosed(self.state.cause()));
        }
        Ok(conductor)
    }

    /// Runs one duty cycle and, in inline mode, the handlers that it queued. Returns a work count.
    pub(crate) fn service(self: &Arc<Self>) -> usize {
        if self.process.is_foreign() {
            return 0;
        }
        let work = {
            let mut conductor = self.conductor();
            if self.state.is_closed() {
                conductor.announce_close();
                0
            } else {
                conductor.do_work(self)
            }
        };
        work + self.dispatcher.run_inline()
    }

    /// Returns the connection to the current driver. Without a driver, returns the last connection.
    pub(crate) fn link(&self) -> Arc<Link> {
        Arc::clone(&lock(&self.link))
    }

    /// Continues with another driver. Only the conductor calls this.
    pub(crate) fn set_link(&self, link: &Arc<Link>) {
        *lock(&self.link) = Arc::clone(link);
    }

    /// Whether the client looks for another driver when it has lost its driver.
    pub(crate) fn reconnects(&self) -> bool {
        self.settings.reconnects
    }

    /// Runs the embedded driver, or pauses if the client has none. Most responses come within tens of microseconds, so
    /// the first pauses yield instead of sleeping.
    fn pause(&self, waits: u32) {
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

    /// Closes one resource and sends its removal to the driver, without waiting for the response.
    pub(crate) fn close_resource(
        self: &Arc<Self>,
        kind: ResourceKind,
        registration: &Registration,
        revoke: bool,
    ) {
        if self.process.is_foreign() {
            return;
        }
        {
            // The key is read under the lock, because a conductor that reconnects changes it.
            let mut conductor = self.conductor();
            conductor.remove(self, kind, registration.key(), revoke);
        }
        self.dispatcher.run_inline();
    }

    /// Closes the client and everything that it opened. Does nothing if the client is already closed.
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

    /// If the ring was full, sends the close again. Stops when the close was sent, when the driver has ended, or after
    /// the driver timeout.
    fn announce_close(self: &Arc<Self>) {
        let deadline_ns = self.now_ns() + self.settings.driver_timeout().as_nanos() as i64;
        let mut waits = 0;
        while !self.conductor().announce_close() {
            if self.now_ns() - deadline_ns > 0 || self.conductor().check_driver(self).is_err() {
                return;
            }
            self.pause(waits);
            waits += 1;
        }
    }

    /// Starts the conductor's thread.
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
        // If a handler closes its client, this code runs on the conductor's thread, which must not join itself.
        if thread.thread().id() != std::thread::current().id() {
            // A panic of the conductor was already printed by its thread.
            let _ = thread.join();
        }
    }
}

impl Waiter for Client {
    fn check_may_wait(&self) -> Result<()> {
        if self.dispatcher.is_inside_handler() {
            return Err(Error::ReentrantCall);
        }
        Ok(())
    }

    fn run_driver(&self) -> bool {
        let invoker = self.settings.driver_invoker.as_ref();
        invoker.map(|invoke| invoke()).is_some()
    }

    fn idle_while_waiting(&self, waits: u32) -> Result<()> {
        self.check_may_wait()?;
        let check = self.settings.interrupt_check.as_ref();
        if check.is_some_and(|check| check()) {
            return Err(Error::Interrupted);
        }
        self.pause(waits);
        Ok(())
    }
}
