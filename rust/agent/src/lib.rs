//! Shared parts of driver, client and archive: agents and the ways to run them, idle strategies, clocks, configuration
//! values.
//!
//! An [`Agent`] is work that is done in a loop (a *duty cycle*). There are several ways to run it. An [`AgentRunner`]
//! runs it on a thread, and an [`AgentInvoker`] on the caller's thread. A [`CompositeAgent`] combines several agents in
//! one loop. Other threads can run duty cycles of a [`SharedAgent`]. An [`IdleStrategy`] decides how a loop waits when
//! it has no work.
//!
//! Configuration is text: [`value`] parses and prints sizes and durations, [`properties`] reads property files, and
//! [`sources`] combines them with the environment.
#![forbid(unsafe_code)]

pub mod clock;
pub mod console;
pub mod crash;
pub mod known;
pub mod logging;
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
mod reload;
mod runner;
mod service;
mod shared;
mod shutdown;
#[cfg(test)]
mod testing;

pub use agent::{Agent, AgentError, BoxError, Panicked};
pub use clock::{
    CachedEpochClock, CachedNanoClock, ClockSteps, EpochClock, HeartbeatAge, NanoClock,
    SystemEpochClock, SystemNanoClock,
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
pub use reload::{ReloadRequests, ReloadThread, unapplied};
pub use runner::AgentRunner;
pub use service::ServiceNotifier;
pub use shared::{AgentTurns, SharedAgent};
pub use shutdown::{Shutdown, ShutdownSignalBarrier};
