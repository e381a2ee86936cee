//! The applications: publishers and subscribers, each with a client of its own.
//!
//! A role wants to be present or not, and does what it takes: it connects, adds what it needs, and begins again when its client was
//! closed. When its client crashes, that client is never run again and says nothing to its driver.

mod publisher;
mod subscriber;

use std::sync::Arc;

use aeron_agent::NanoClock;
use aeron_client::{Aeron, Context};

use crate::clock::VirtualClock;
use crate::host::Host;
use crate::truth::Truth;

pub use publisher::{Publisher, PublisherPlan};
pub use subscriber::{Subscriber, SubscriberPlan};

/// How long a client waits for its driver, in milliseconds.
pub const DRIVER_TIMEOUT_MS: u64 = 5_000;

/// How long a role waits before it asks again for what the driver is just closing.
const RETRY_NS: i64 = 50_000_000;

/// What a role has around it.
pub struct Surroundings<'a> {
    /// All hosts.
    pub hosts: &'a [Host],
    /// The time.
    pub clock: &'a VirtualClock,
    /// What was published.
    pub truth: &'a mut Truth,
    /// Of the schedule.
    pub seed: u64,
}

/// The settings of every client: no thread, virtual time.
pub fn client_context(clock: &VirtualClock) -> Context {
    Context {
        driver_timeout_ms: DRIVER_TIMEOUT_MS,
        keepalive_interval_ns: 500_000_000,
        idle_sleep_duration_ns: 16_000_000,
        resource_linger_duration_ns: 1_000_000_000,
        use_conductor_agent_invoker: true,
        error_handler: Arc::new(|_| {}),
        epoch_clock: clock.epoch_clock(),
        nano_clock: clock.nano_clock() as Arc<dyn NanoClock>,
        ..Context::default()
    }
}

/// What is left of crashed clients: the memory that they had mapped.
#[derive(Default)]
pub struct Graveyard(Vec<(Aeron, Box<dyn std::any::Any>)>);

impl Graveyard {
    /// Buries a client with its handles: nothing of it runs any more.
    pub fn bury(&mut self, client: Aeron, handles: impl std::any::Any) {
        self.0.push((client, Box::new(handles)));
    }
}
