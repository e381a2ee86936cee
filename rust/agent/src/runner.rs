//! An agent with a thread of its own.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{JoinHandle, Thread};
use std::time::Duration;

use crate::agent::{Agent, AgentError, Panicked};
use crate::console;
use crate::error_handler::{ErrorCounter, ErrorHandler};
use crate::idle::IdleStrategy;
use crate::invoker::report_failed_work;

/// Runs an agent's duty cycle on one thread until it is closed, or until the agent ends itself.
///
/// Any thread may close it; dropping closes it too. Closing waits for the running duty cycle to end, so whoever closes must not
/// hold what the agent waits for.
pub struct AgentRunner {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// How long [`AgentRunner::close`] waits before it says that an agent does not end, and tries again.
pub const RETRY_CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

struct Shared {
    role_name: String,
    is_running: AtomicBool,
    /// Taken by the first who runs or closes the agent, so it runs and closes at most once.
    duty: Mutex<Option<Duty>>,
    is_closed: Mutex<bool>,
    closed: Condvar,
    runner: OnceLock<Thread>,
    error_handler: Arc<dyn ErrorHandler>,
}

struct Duty {
    agent: Box<dyn Agent>,
    idle_strategy: Box<dyn IdleStrategy>,
    error_counter: Option<Arc<dyn ErrorCounter>>,
}

impl AgentRunner {
    /// A runner of `agent`; failed duty cycles are counted in `error_counter` and reported to `error_handler`.
    pub fn new(
        agent: Box<dyn Agent>,
        idle_strategy: Box<dyn IdleStrategy>,
        error_handler: Arc<dyn ErrorHandler>,
        error_counter: Option<Arc<dyn ErrorCounter>>,
    ) -> Self {
        let shared = Shared {
            role_name: agent.role_name().into_owned(),
            is_running: AtomicBool::new(true),
            duty: Mutex::new(Some(Duty {
                agent,
                idle_strategy,
                error_counter,
            })),
            is_closed: Mutex::new(false),
            closed: Condvar::new(),
            runner: OnceLock::new(),
            error_handler,
        };
        Self {
            shared: Arc::new(shared),
            thread: Mutex::new(None),
        }
    }

    /// Runs the agent on a new thread that has its role name. A runner that ran before, or is closed, only ends its thread at once.
    pub fn start_on_thread(&self) -> io::Result<()> {
        let shared = Arc::clone(&self.shared);
        let thread = std::thread::Builder::new()
            .name(self.shared.role_name.clone())
            .spawn(move || shared.run())?;
        lock(&self.thread).get_or_insert(thread);
        Ok(())
    }

    /// Runs the agent on the calling thread until it ends. Does nothing if the agent ran before or is closed.
    ///
    /// # Panics
    /// With the agent's own panic, after it was reported and the agent closed.
    pub fn run(&self) {
        self.shared.run();
    }

    /// Ends the loop and waits until the agent is closed; an agent that never ran is closed on the calling thread.
    ///
    /// May be called again. On the agent's own thread it only asks the loop to end. When an agent does not end, a line on the
    /// standard error output says so every [`RETRY_CLOSE_TIMEOUT`].
    pub fn close(&self) {
        self.close_with(RETRY_CLOSE_TIMEOUT, |role_name| {
            console::warn(format_args!(
                "{role_name} failed to close due to timeout, retrying..."
            ));
        });
    }

    /// [`close`](AgentRunner::close) with another timeout and another action on each timeout, which is given the role name.
    pub fn close_with(&self, retry_timeout: Duration, mut fail_action: impl FnMut(&str)) {
        self.shared.is_running.store(false, Ordering::Release);
        if let Some(mut duty) = lock(&self.shared.duty).take() {
            self.shared.close_agent(&mut duty);
            self.shared.set_closed();
        }
        if self.shared.is_own_thread() {
            return;
        }
        self.shared.unpark();
        while !self.shared.wait_closed(retry_timeout) {
            fail_action(&self.shared.role_name);
            self.shared.unpark();
        }
        if let Some(thread) = lock(&self.thread).take() {
            // A panic of the agent has been reported by the loop itself.
            let _ = thread.join();
        }
    }

    /// The loop has ended and the agent is closed.
    pub fn is_closed(&self) -> bool {
        *lock(&self.shared.is_closed)
    }

    /// The name of the agent, which is the name of the thread.
    pub fn role_name(&self) -> &str {
        &self.shared.role_name
    }

    /// The thread that runs the agent, once it runs.
    pub fn thread(&self) -> Option<&Thread> {
        self.shared.runner.get()
    }
}

impl Drop for AgentRunner {
    fn drop(&mut self) {
        self.close();
    }
}

impl Shared {
    fn run(&self) {
        let Some(mut duty) = lock(&self.duty).take() else {
            return;
        };
        let _ = self.runner.set(std::thread::current());
        let panic = catch_unwind(AssertUnwindSafe(|| self.work(&mut duty))).err();
        if let Some(panic) = &panic {
            self.is_running.store(false, Ordering::Release);
            let panicked = Panicked::new(&self.role_name, &**panic);
            self.error_handler.on_error(&AgentError::failed(panicked));
        }
        let close_panic = catch_unwind(AssertUnwindSafe(|| self.close_agent(&mut duty))).err();
        self.set_closed();
        if let Some(panic) = panic.or(close_panic) {
            resume_unwind(panic);
        }
    }

    fn work(
        &self,
        Duty {
            agent,
            idle_strategy,
            error_counter,
        }: &mut Duty,
    ) {
        if let Err(error) = agent.on_start() {
            self.is_running.store(false, Ordering::Release);
            self.error_handler.on_error(&error);
        }
        while self.is_running.load(Ordering::Acquire) {
            match agent.do_work() {
                Ok(work_count) => idle_strategy.idle(work_count),
                Err(error) => {
                    if report_failed_work(&error, &*self.error_handler, error_counter.as_deref()) {
                        self.is_running.store(false, Ordering::Release);
                    }
                }
            }
        }
    }

    fn close_agent(&self, duty: &mut Duty) {
        if let Err(error) = duty.agent.on_close() {
            self.error_handler.on_error(&error);
        }
    }

    fn set_closed(&self) {
        *lock(&self.is_closed) = true;
        self.closed.notify_all();
    }

    /// True once the agent is closed, false if that took longer than `timeout`.
    fn wait_closed(&self, timeout: Duration) -> bool {
        let waited = self
            .closed
            .wait_timeout_while(lock(&self.is_closed), timeout, |closed| !*closed);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }

    fn is_own_thread(&self) -> bool {
        self.runner
            .get()
            .is_some_and(|runner| runner.id() == std::thread::current().id())
    }

    fn unpark(&self) {
        if let Some(runner) = self.runner.get() {
            runner.unpark();
        }
    }
}

/// A panicking error handler must not make the runner unclosable.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
