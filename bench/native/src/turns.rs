//! Work between two attempts of a loop: the process idles, or runs driver and client if the driver is in mode INVOKER.

use std::error::Error;
use std::sync::{Arc, Mutex};

use aeron_agent::{BackoffIdleStrategy, BusySpinIdleStrategy, IdleStrategy, YieldingIdleStrategy};
use aeron_client::{Aeron, Context};
use aeron_driver::config::Sources;
use aeron_driver::{MediaDriver, ThreadingMode};

use crate::arguments::Arguments;

/// A client with its idle strategy, and its driver if this process runs one.
pub struct Turns {
    idle: Box<dyn IdleStrategy>,
    invoked: Option<Arc<Mutex<MediaDriver>>>,
    aeron: Aeron,
    /// An embedded driver on its own threads. It is declared after the client, so that it is dropped after the client.
    _driver: Option<MediaDriver>,
}

impl Turns {
    /// Connects to the driver of the directory. If the driver is embedded, `begin` starts it first.
    pub fn begin(arguments: &Arguments) -> Result<Self, Box<dyn Error>> {
        let mut client = Context {
            aeron_dir: arguments.directory.clone(),
            ..Context::default()
        };
        let (mut invoked, mut driver) = (None, None);
        match arguments.driver.as_str() {
            "" => {}
            "invoked" => {
                let shared = Arc::new(Mutex::new(MediaDriver::launch_with_main_loop(embedded(
                    arguments,
                    ThreadingMode::Invoker,
                ))?));
                client.use_conductor_agent_invoker = true;
                let runs = Arc::clone(&shared);
                client.driver_invoker = Some(Arc::new(move || do_work(&runs)));
                invoked = Some(shared);
            }
            "threads" => {
                let context = embedded(arguments, ThreadingMode::Shared);
                let threads = MediaDriver::launch(context)?;
                if let Some(turns) = threads.network_turns().cloned() {
                    client.driver_turn = Some(Arc::new(move || turns.take()));
                }
                driver = Some(threads);
            }
            other => return Err(format!("driver={other} is neither invoked nor threads").into()),
        }
        Ok(Self {
            idle: idle_strategy(&arguments.idle)?,
            invoked,
            aeron: Aeron::connect(client)?,
            _driver: driver,
        })
    }

    /// The client.
    pub fn aeron(&self) -> &Aeron {
        &self.aeron
    }

    /// Idles after an iteration that did `work`. If the driver is in mode INVOKER, runs driver and client instead.
    #[inline]
    pub fn after(&mut self, work: usize) {
        match &self.invoked {
            Some(driver) => {
                do_work(driver);
                self.aeron.do_work();
            }
            None => self.idle.idle(work),
        }
    }

    /// Calls `attempt` until it returns a value, and returns that value. Idles between two attempts.
    #[inline]
    pub fn until<T>(&mut self, mut attempt: impl FnMut() -> Option<T>) -> T {
        match attempt() {
            Some(done) => done,
            None => self.retry(attempt),
        }
    }

    #[cold]
    fn retry<T>(&mut self, mut attempt: impl FnMut() -> Option<T>) -> T {
        self.idle.reset();
        loop {
            self.after(0);
            if let Some(done) = attempt() {
                return done;
            }
        }
    }
}

/// Returns the settings of the embedded driver: the defaults, changed by the environment.
fn embedded(arguments: &Arguments, threading_mode: ThreadingMode) -> aeron_driver::Context {
    let mut context = aeron_driver::Context {
        threading_mode,
        ..Default::default()
    };
    context.apply(&Sources::environment());
    context.dir = arguments.directory.clone();
    context
}

fn do_work(driver: &Mutex<MediaDriver>) -> usize {
    driver.lock().expect("no turn panics").do_work()
}

fn idle_strategy(name: &str) -> Result<Box<dyn IdleStrategy>, String> {
    match name {
        "spin" => Ok(Box::new(BusySpinIdleStrategy)),
        "yield" => Ok(Box::new(YieldingIdleStrategy)),
        "backoff" => Ok(Box::new(BackoffIdleStrategy::default())),
        other => Err(format!("idle={other} is not spin, yield or backoff")),
    }
}
