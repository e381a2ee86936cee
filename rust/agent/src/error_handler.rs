//! [`ErrorHandler`] and [`ErrorCounter`]: report and count the errors of agents.

use crate::agent::AgentError;

/// Called with each error of a loop, whether the loop continues or ends. Runs on the thread of the loop.
pub trait ErrorHandler: Send + Sync {
    /// Handles an error. Must not panic.
    fn on_error(&self, error: &AgentError);
}

impl<F: Fn(&AgentError) + Send + Sync> ErrorHandler for F {
    fn on_error(&self, error: &AgentError) {
        self(error);
    }
}

/// Counts the failed duty cycles, for example in a counter of the driver's shared memory.
pub trait ErrorCounter: Send + Sync {
    /// Adds one. A closed counter ignores the call.
    fn increment(&self);
}

impl<F: Fn() + Send + Sync> ErrorCounter for F {
    fn increment(&self) {
        self();
    }
}
