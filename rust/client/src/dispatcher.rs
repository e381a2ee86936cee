//! [`Dispatcher`]: the queue through which the conductor calls the handlers of the application.
//!
//! The conductor never calls a handler while it works. It queues a task; tasks run one at a time, in order, outside the
//! conductor's lock. In [`HandlerMode::Inline`] the thread that ran the conductor then runs the tasks. In
//! [`HandlerMode::Queued`] the application runs them on a thread of its choice, so that heartbeats never wait for a
//! handler.

use std::cell::Cell;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use crate::error::Error;
use crate::handlers::ClientErrorHandler;
use crate::lock::lock;

/// Thread on which the client's handlers run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HandlerMode {
    /// The thread that runs the conductor, between its duty cycles. A handler that blocks stops the client's heartbeat.
    #[default]
    Inline,
    /// The thread that calls [`Aeron::run_handlers`](crate::Aeron::run_handlers). The conductor only queues the
    /// handlers, so it never runs code of the application.
    Queued,
}

type Task = Box<dyn FnOnce() + Send>;

/// Runs handlers one at a time, in the order in which the conductor queued them.
pub(crate) struct Dispatcher {
    mode: HandlerMode,
    error_handler: ClientErrorHandler,
    queue: Mutex<VecDeque<Task>>,
    queued: Condvar,
    /// Held while tasks run.
    running: Mutex<()>,
}

thread_local! {
    /// Address of the dispatcher whose handler runs on this thread; 0 if none runs.
    static CURRENT: Cell<usize> = const { Cell::new(0) };
}

impl Dispatcher {
    pub(crate) fn new(mode: HandlerMode, error_handler: ClientErrorHandler) -> Self {
        Self {
            mode,
            error_handler,
            queue: Mutex::default(),
            queued: Condvar::new(),
            running: Mutex::default(),
        }
    }

    pub(crate) fn push(&self, task: impl FnOnce() + Send + 'static) {
        lock(&self.queue).push_back(Box::new(task));
        self.queued.notify_one();
    }

    /// Queues a call of the error handler.
    pub(crate) fn report(&self, error: Error) {
        let handler = Arc::clone(&self.error_handler);
        self.push(move || handler(&error));
    }

    /// Runs the queued handlers in inline mode; does nothing in queued mode.
    pub(crate) fn run_inline(&self) -> usize {
        match self.mode {
            HandlerMode::Inline => self.run_all(),
            HandlerMode::Queued => 0,
        }
    }

    /// Waits up to `timeout` for a task, then runs all queued tasks. Returns the number of handlers that ran.
    pub(crate) fn run_queued(&self, timeout: Duration) -> usize {
        self.wait(timeout);
        self.run_all()
    }

    /// Whether this thread runs a handler of this client.
    pub(crate) fn is_inside_handler(&self) -> bool {
        CURRENT.get() == self.address()
    }

    /// Ends the wait of [`run_queued`](Self::run_queued).
    pub(crate) fn wake(&self) {
        let _queue = lock(&self.queue);
        self.queued.notify_all();
    }

    fn wait(&self, timeout: Duration) {
        let deadline = Instant::now() + timeout;
        let queue = lock(&self.queue);
        let left = deadline.saturating_duration_since(Instant::now());
        if queue.is_empty() && !left.is_zero() {
            drop(self.queued.wait_timeout(queue, left));
        }
    }

    fn run_all(&self) -> usize {
        let mut count = 0;
        // While this thread holds `running`, another thread may queue a task, but cannot run it. The next iteration
        // then runs that task.
        while !lock(&self.queue).is_empty() {
            let Ok(_running) = self.running.try_lock() else {
                break;
            };
            while let Some(task) = self.next() {
                self.run(task);
                count += 1;
            }
        }
        count
    }

    fn next(&self) -> Option<Task> {
        lock(&self.queue).pop_front()
    }

    fn run(&self, task: Task) {
        let outer = CURRENT.replace(self.address());
        let outcome = catch_unwind(AssertUnwindSafe(task));
        CURRENT.set(outer);
        if let Err(panic) = outcome {
            let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
            let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
            let error = Error::HandlerPanicked(text.unwrap_or_default());
            // If the error handler itself panics, the panic is ignored.
            let _ = catch_unwind(AssertUnwindSafe(|| (self.error_handler)(&error)));
        }
    }

    fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn dispatcher(mode: HandlerMode) -> (Dispatcher, Arc<AtomicUsize>) {
        let errors = Arc::new(AtomicUsize::new(0));
        let seen = Arc::clone(&errors);
        let handler: ClientErrorHandler = Arc::new(move |_| {
            seen.fetch_add(1, Ordering::Relaxed);
        });
        (Dispatcher::new(mode, handler), errors)
    }

    #[test]
    fn queued_handlers_run_only_in_run_queued() {
        let (dispatcher, _) = dispatcher(HandlerMode::Queued);
        dispatcher.push(|| {});
        assert_eq!(dispatcher.run_inline(), 0);
        assert_eq!(dispatcher.run_queued(Duration::from_secs(5)), 1);
        assert_eq!(dispatcher.run_queued(Duration::ZERO), 0);
    }

    #[test]
    fn a_handler_that_panics_is_reported_and_the_next_one_runs() {
        let (dispatcher, errors) = dispatcher(HandlerMode::Inline);
        dispatcher.push(|| panic!("boom"));
        dispatcher.push(|| {});
        assert_eq!(dispatcher.run_inline(), 2);
        assert_eq!(errors.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn handlers_run_in_order_and_a_handler_may_queue_another() {
        let (dispatcher, _) = dispatcher(HandlerMode::Inline);
        let dispatcher = Arc::new(dispatcher);
        let order = Arc::new(Mutex::new(Vec::new()));
        let (inner, seen) = (Arc::clone(&dispatcher), Arc::clone(&order));
        dispatcher.push(move || {
            assert!(inner.is_inside_handler());
            let last = Arc::clone(&seen);
            inner.push(move || lock(&last).push(2));
            assert_eq!(
                inner.run_inline(),
                0,
                "the running handler is not interrupted"
            );
            lock(&seen).push(1);
        });
        assert_eq!(dispatcher.run_inline(), 2);
        assert!(!dispatcher.is_inside_handler());
        assert_eq!(*lock(&order), [1, 2]);
    }
}
