//! The applications: publishers and subscribers, each with a separate client.
//!
//! A role has a wanted state, present or absent, and acts to reach this state. The role connects and adds its
//! resources. If its client was closed, the role starts again with a new client. A crashed client never runs again and
//! sends nothing to its driver.

mod conversation;
mod publisher;
mod reconnecting;
mod subscriber;

use std::sync::Arc;

use aeron_agent::NanoClock;
use aeron_client::{Aeron, Context};

use crate::clock::VirtualClock;
use crate::host::Host;
use crate::network::HostId;
use crate::truth::Truth;

pub use conversation::{Conversation, ConversationPlan};
pub use publisher::{Publisher, PublisherPlan};
pub use reconnecting::{CurrentDriver, MessageCounter, Reconnections};
pub use subscriber::{SimulatedSubscriber, SubscriberPlan};

/// Driver timeout of a client, in milliseconds.
pub const DRIVER_TIMEOUT_MS: u64 = 5_000;

/// Time before a role repeats a request that the driver refused because a resource is still closing, in nanoseconds.
const RETRY_NS: i64 = 50_000_000;

/// Environment of a role during a turn.
pub struct RoleEnvironment<'a> {
    /// All hosts.
    pub hosts: &'a [Host],
    /// Virtual time.
    pub clock: &'a VirtualClock,
    /// The published messages.
    pub truth: &'a mut Truth,
    /// Seed of the schedule.
    pub seed: u64,
}

/// Returns the settings of a client on a host: no thread, and virtual time.
pub fn client_context(clock: &VirtualClock, host: HostId) -> Context {
    Context {
        driver_timeout_ms: DRIVER_TIMEOUT_MS,
        keepalive_interval_ns: 500_000_000,
        idle_sleep_duration_ns: 16_000_000,
        resource_linger_duration_ns: 1_000_000_000,
        use_conductor_agent_invoker: true,
        error_handler: Arc::new(|_| {}),
        epoch_clock: clock.epoch_clock(host),
        nano_clock: clock.nano_clock() as Arc<dyn NanoClock>,
        ..Context::default()
    }
}

/// Clients that crashed, kept because their memory must stay mapped.
#[derive(Default)]
pub struct Graveyard {
    buried: Vec<(Aeron, Box<dyn std::any::Any>)>,
    paused: usize,
}

impl Graveyard {
    /// Keeps a crashed client with its handles, without running them again.
    pub fn bury(&mut self, client: Aeron, handles: impl std::any::Any) {
        self.buried.push((client, Box::new(handles)));
    }

    /// Counts a client that is paused for so long that its driver may time it out.
    pub fn on_paused(&mut self) {
        self.paused += 1;
    }

    /// Returns how many clients the drivers may have timed out: those that crashed or were paused.
    pub fn count(&self) -> usize {
        self.buried.len() + self.paused
    }
}
