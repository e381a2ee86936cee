//! [`ErrorHandler`] and [`ErrorCounter`]: they receive the errors of agents, and count them.

use crate::agent::AgentError;

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
