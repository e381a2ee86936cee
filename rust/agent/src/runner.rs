//! [`AgentRunner`]: runs an agent on a thread.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{JoinHandle, Thread};
use std::time::Duration;

use crate::agent::{Agent, AgentError, Panicked};
use crate::console;
use crate::crash::panic_if_requested;
use crate::error_handler::{ErrorCounter, ErrorHandler};
use crate::idle::IdleStrategy;
use crate::invoker::report_failed_work;

/// Runs an agent's duty cycle on one thread until the runner is closed, or until the agent ends itself.
///
/// Any thread may close the runner. Dropping the runner also closes it. Closing waits for the end of the current duty
/// cycle. The closing thread must not hold a lock for which the agent waits.
pub struct AgentRunner {
    shared: Arc<SharedRunner>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// Time for which [`AgentRunner::close`] waits before it reports that an agent does not end, and tries again.
pub const RETRY_CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

struct SharedRunner {
    role_name: String,
    is_running: AtomicBool,
    /// Whether the agent has completed a duty cycle since the last [`AgentRunner::take_progress`] that was true.
    has_progressed: AtomicBool,
    /// Removed by the first thread that runs or closes the agent, so the agent runs and closes at most once.
    duty: Mutex<Option<RunnerDuty>>,
    is_closed: Mutex<bool>,
    closed: Condvar,
    runner: OnceLock<Thread>,
    error_handler: Arc<dyn ErrorHandler>,
}

struct RunnerDuty {
    agent: Box<dyn Agent>,
    idle_strategy: Box<dyn IdleStrategy>,
    error_counter: Option<Arc<dyn ErrorCounter>>,
}

impl AgentRunner {
    /// Creates a runner of `agent`. Failed duty cycles are counted in `error_counter` and reported to `error_handler`.
    pub fn new(
        agent: Box<dyn Agent>,
        idle_strategy: Box<dyn IdleStrategy>,
        error_handler: Arc<dyn ErrorHandler>,
        error_counter: Option<Arc<dyn ErrorCounter>>,
    ) -> Self {
        let shared = SharedRunner {
            role_name: agent.role_name().into_owned(),
            is_running: AtomicBool::new(true),
            has_progressed: AtomicBool::new(false),
            duty: Mutex::new(Some(RunnerDuty {
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

    /// Runs the agent on a new thread with the agent's role name. If the runner ran before or is closed, the thread
    /// ends at once.
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
    /// If the agent panics. First the panic is reported and the agent is closed, then the same panic continues here.
    pub fn run(&self) {
        self.shared.run();
    }

    /// Ends the loop and waits until the agent is closed. If the agent never ran, closes it on the calling thread.
    ///
    /// May be called again. A call on the agent's own thread only requests the end of the loop. If an agent does not
    /// end, `close` writes a line to the standard error output every [`RETRY_CLOSE_TIMEOUT`].
    pub fn close(&self) {
        self.close_with(RETRY_CLOSE_TIMEOUT, |role_name| {
            console::warn(format_args!(
                "{role_name} failed to close due to timeout, retrying..."
            ));
        });
    }

    /// Like [`close`](AgentRunner::close), but waits up to `retry_timeout` at a time. After each timeout, calls
    /// `fail_action` with the role name.
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
            // The loop has already reported a panic of the agent.
            let _ = thread.join();
        }
    }

    /// Whether the loop has ended and the agent is closed.
    pub fn is_closed(&self) -> bool {
        *lock(&self.shared.is_closed)
    }

    /// Returns whether each agent has completed a duty cycle since this function last returned true for `runners`.
    ///
    /// A watchdog calls it: an agent that is stuck or has ended completes no duty cycle.
    pub fn take_progress(runners: &[AgentRunner]) -> bool {
        let flags = || runners.iter().map(|runner| &runner.shared.has_progressed);
        let have_all = flags().all(|flag| flag.load(Ordering::Relaxed));
        if have_all {
            flags().for_each(|flag| flag.store(false, Ordering::Relaxed));
        }
        have_all
    }

    /// Returns the role name of the agent, which is the name of the thread.
    pub fn role_name(&self) -> &str {
        &self.shared.role_name
    }

    /// Returns the thread that runs the agent; `None` before the agent runs.
    pub fn thread(&self) -> Option<&Thread> {
        self.shared.runner.get()
    }
}

impl Drop for AgentRunner {
    fn drop(&mut self) {
        self.close();
    }
}

impl SharedRunner {
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
        RunnerDuty {
            agent,
            idle_strategy,
            error_counter,
        }: &mut RunnerDuty,
    ) {
        if let Err(error) = agent.on_start() {
            self.is_running.store(false, Ordering::Release);
            self.error_handler.on_error(&error);
        }
        panic_if_requested(&self.role_name);
        while self.is_running.load(Ordering::Acquire) {
            let worked = agent.do_work();
            self.note_progress();
            match worked {
                Ok(work_count) => idle_strategy.idle(work_count),
                Err(error) => {
                    if report_failed_work(&error, &*self.error_handler, error_counter.as_deref()) {
                        self.is_running.store(false, Ordering::Release);
                    }
                }
            }
        }
    }

    /// Notes that a duty cycle is complete. Only the first duty cycle after a look of the watchdog stores: a store in
    /// each duty cycle would cost more than the load.
    fn note_progress(&self) {
        if !self.has_progressed.load(Ordering::Relaxed) {
            self.has_progressed.store(true, Ordering::Relaxed);
        }
    }

    fn close_agent(&self, duty: &mut RunnerDuty) {
        if let Err(error) = duty.agent.on_close() {
            self.error_handler.on_error(&error);
        }
    }

    fn set_closed(&self) {
        *lock(&self.is_closed) = true;
        self.closed.notify_all();
    }

    /// Waits until the agent is closed. Returns `false` if the agent is not closed within `timeout`.
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

/// Locks the mutex. Ignores poisoning, so that a runner can be closed after its error handler panicked.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
