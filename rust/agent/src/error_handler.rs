//! [`ErrorHandler`] and [`ErrorCounter`]: report and count the errors of agents.

use crate::agent::AgentError;

/// Handler that is called with each error of an agent, whether the loop continues or ends. Only
/// [`AgentError::Interrupted`] from a duty cycle is not reported. The handler runs on the thread that starts, runs or
/// closes the agent.
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
