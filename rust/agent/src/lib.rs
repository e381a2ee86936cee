//! What driver, client and archive share: agents and the ways to run them, idle strategies, clocks, configuration values.
//!
//! An [`Agent`] is a piece of work done in a loop (a *duty cycle*). Who owns the loop is a matter of taste and of threads:
//! an [`AgentRunner`] gives it a thread, an [`AgentInvoker`] leaves it to the caller, a [`CompositeAgent`] puts several agents into
//! one loop, and at a [`SharedAgent`] other threads may take turns. An [`IdleStrategy`] decides what a loop does when there was nothing to do.
//!
//! Configuration arrives as text: [`value`] reads and prints sizes and durations, [`properties`] reads property files, and
//! [`sources`] lays them over the environment.
#![forbid(unsafe_code)]

pub mod clock;
pub mod console;
pub mod properties;
pub mod setting;
pub mod sources;
pub mod thread;
pub mod value;
pub mod version;

mod agent;
mod composite;
mod download;
mod duty_cycle;
mod error_handler;
mod idle;
mod invoker;
mod runner;
mod shared;
mod shutdown;
#[cfg(test)]
mod testing;

pub use agent::{Agent, AgentError, BoxError, Panicked};
pub use clock::{
    CachedEpochClock, CachedNanoClock, EpochClock, NanoClock, SystemEpochClock, SystemNanoClock,
};
pub use composite::{CompositeAgent, CompositeError, NoAgents};
pub use duty_cycle::{DutyCycle, DutyCycleTracker};
pub use error_handler::{ErrorCounter, ErrorHandler};
pub use idle::{
    BackoffIdleStrategy, BusySpinIdleStrategy, ControllableIdleStrategy, IdleStrategy,
    IdleStrategyError, IdleStrategySpec, NoOpIdleStrategy, SleepingIdleStrategy,
    SleepingMillisIdleStrategy, YieldingIdleStrategy,
};
pub use invoker::AgentInvoker;
pub use runner::AgentRunner;
pub use shared::{AgentTurns, SharedAgent};
pub use shutdown::{Shutdown, ShutdownSignalBarrier};
