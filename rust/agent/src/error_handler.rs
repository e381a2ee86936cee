//! Where errors of agents go, and how they are counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::agent::AgentError;
use crate::console;

/// Told of each error that a loop survives or ends with. Called on the thread of the loop.
pub trait ErrorHandler: Send + Sync {
    /// Takes note of an error. It must not panic.
    fn on_error(&self, error: &AgentError);
}

impl<F: Fn(&AgentError) + Send + Sync> ErrorHandler for F {
    fn on_error(&self, error: &AgentError) {
        self(error);
    }
}

/// Counts the failed duty cycles, for instance in a counter of the driver's shared memory.
pub trait ErrorCounter: Send + Sync {
    /// Adds one. A counter that is closed already ignores it.
    fn increment(&self);
}

impl<F: Fn() + Send + Sync> ErrorCounter for F {
    fn increment(&self) {
        self();
    }
}

/// Counts each error, then hands it on. After [`close`](CountedErrorHandler::close) the counter may be gone, so errors are
/// printed to the standard error output instead.
pub struct CountedErrorHandler {
    handler: Arc<dyn ErrorHandler>,
    counter: Arc<dyn ErrorCounter>,
    is_closed: AtomicBool,
}

impl CountedErrorHandler {
    /// Counts in `counter`, then delegates to `handler`.
    pub fn new(handler: Arc<dyn ErrorHandler>, counter: Arc<dyn ErrorCounter>) -> Self {
        Self {
            handler,
            counter,
            is_closed: AtomicBool::new(false),
        }
    }

    /// Lets go of handler and counter. May be called again.
    pub fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
    }
}

impl ErrorHandler for CountedErrorHandler {
    fn on_error(&self, error: &AgentError) {
        if self.is_closed.load(Ordering::Acquire) {
            console::warn(error);
        } else {
            self.counter.increment();
            self.handler.on_error(error);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Journal;

    fn logging_handler(journal: &Journal) -> CountedErrorHandler {
        let (counted, handled) = (journal.clone(), journal.clone());
        CountedErrorHandler::new(
            Arc::new(move |error: &AgentError| handled.note(error)),
            Arc::new(move || counted.note("counted")),
        )
    }

    #[test]
    fn counts_then_delegates_03_124() {
        let journal = Journal::default();
        logging_handler(&journal).on_error(&AgentError::failed("no luck"));
        assert_eq!(journal.lines(), ["counted", "no luck"]);
    }

    /// 03-124
    #[test]
    fn touches_neither_counter_nor_handler_after_close() {
        let journal = Journal::default();
        let handler = logging_handler(&journal);
        handler.close();
        handler.close();
        handler.on_error(&AgentError::failed("too late"));
        assert!(journal.lines().is_empty());
    }
}
