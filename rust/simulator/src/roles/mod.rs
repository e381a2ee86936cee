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
use aeron_client::{Aeron, Context, Error, ErrorCode, PendingOperation};

use crate::clock::VirtualClock;
use crate::host::Host;
use crate::network::HostId;
use crate::truth::{Finding, Truth};

pub use conversation::{Conversation, ConversationPlan};
pub use publisher::{Publisher, PublisherPlan};
pub use reconnecting::{CurrentDriver, MessageCounter, Reconnections};
pub use subscriber::{SimulatedSubscriber, SubscriberPlan};

/// Driver timeout of a client, in milliseconds.
pub const DRIVER_TIMEOUT_MS: u64 = 5_000;

/// Time before a role repeats a request that the driver refused because a resource is still closing, in nanoseconds.
const RETRY_NS: i64 = 50_000_000;

/// Destinations that the driver has not accepted yet, with their pending commands.
type MissingDestinations<T> = Vec<(String, Option<PendingOperation<T>>)>;

/// Adds destinations until the driver has accepted them. The driver refuses a destination while the lookup of its name
/// fails, or while a previous subscription still uses its address.
fn add_missing<T: Clone>(
    missing: &mut MissingDestinations<T>,
    adds_from_ns: &mut i64,
    now_ns: i64,
    add: impl Fn(&str) -> Option<PendingOperation<T>>,
) {
    missing.retain_mut(|(channel, command)| match command {
        None if now_ns < *adds_from_ns => true,
        None => {
            *command = add(channel);
            true
        }
        Some(operation) => match operation.poll() {
            Ok(Some(_)) => false,
            Ok(None) => true,
            Err(_) => {
                *command = None;
                *adds_from_ns = now_ns + RETRY_NS;
                true
            }
        },
    });
}

/// Whether a driver has refused a request only temporarily. Any other refusal of a running driver is a finding. All
/// other errors mean that the driver or the client has ended.
fn is_temporary(error: Error, resource: &str) -> Result<bool, Finding> {
    match error {
        Error::Registration {
            code: ErrorCode::ResourceTemporarilyUnavailable | ErrorCode::UnknownHost,
            ..
        } => Ok(true),
        Error::Registration { code, message, .. } => {
            Err(format!("{resource} refused: {code:?} {message}"))
        }
        _ => Ok(false),
    }
}

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
