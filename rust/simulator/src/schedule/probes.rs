//! Probes: disturbances of single streams between the recovery and the last messages, while the network has no faults.
//! After each probe, the stream must go on within the timeouts of the drivers.
//!
//! The earlier editions have no probes. The draws use random numbers of their own.

use fastrand::Rng;

use super::names::host_name;
use super::streams::Form;
use super::{StreamPlan, one_of};
use crate::network::ipv4;
use crate::roles::SubscriberPlan;

/// Length of a long message in bytes. With frames of the shortest MTU, it takes less than [`DEATH_CLAIM_LENGTH`].
pub const LONG_MESSAGE_LENGTH: usize = 4_000;
/// Length of the claim with which a publisher dies at the end of a term: that of the longest message in the shortest
/// term.
pub const DEATH_CLAIM_LENGTH: usize = 8_192;

/// A probe of one stream.
#[derive(Clone, Debug)]
pub enum Probe {
    /// Another subscriber joins the stream.
    Join(usize, SubscriberPlan),
    /// A receiver asks for the stream's SETUP, and sends no status message after it.
    SilentReceiver(usize),
    /// One of several publishers dies within a claim, or while it ends a term.
    Death(usize, TermEndDeath),
    /// The subscription of the stream loses the destination with this index.
    RemoveDestination(usize, usize),
}

/// The last store of a publisher that dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TermEndDeath {
    /// The header of a claim within the term. The claim is neither committed nor aborted.
    InClaim,
    /// The claim, which moves the tail past the end of the term.
    AfterClaim,
    /// The padding at the end of the term.
    AfterPadding,
    /// The tail of the next term.
    AfterNextTail,
}

impl TermEndDeath {
    const ALL: [Self; 4] = [
        Self::InClaim,
        Self::AfterClaim,
        Self::AfterPadding,
        Self::AfterNextTail,
    ];
}

impl Probe {
    /// Returns the index of the stream.
    pub fn stream(&self) -> usize {
        match self {
            Self::Join(stream, _)
            | Self::SilentReceiver(stream)
            | Self::Death(stream, _)
            | Self::RemoveDestination(stream, _) => *stream,
        }
    }
}

/// Draws at most one probe for each stream. Half of the schedules have no probes: their last messages begin while the
/// drivers have only just recovered.
pub fn draw(seed: u64, streams: &[StreamPlan]) -> Vec<Probe> {
    let mut random = Rng::with_seed(seed ^ 0x9_4087_0B35);
    if random.bool() {
        return Vec::new();
    }
    let indexed = streams.iter().enumerate();
    indexed
        .filter_map(|(index, stream)| draw_one(&mut random, index, stream))
        .collect()
}

fn draw_one(random: &mut Rng, index: usize, stream: &StreamPlan) -> Option<Probe> {
    let chosen = random.u8(..5);
    let must_be_complete =
        |plan: &SubscriberPlan| !plan.is_served || (plan.is_reliable && plan.is_waited_for);
    if !stream.subscribers.iter().all(must_be_complete) {
        return None;
    }
    let first = stream.subscribers.iter().find(|plan| plan.is_served)?;
    let has_destinations = !first.destinations.is_empty();
    match chosen {
        // Two subscriptions with the same destinations would be two endpoints with the same addresses.
        0 | 1 if has_destinations => Some(Probe::RemoveDestination(
            index,
            random.usize(..first.destinations.len()),
        )),
        0 | 1 => Some(Probe::Join(index, joining(random, stream, first))),
        2 if stream.form != Form::Ipc => Some(Probe::SilentReceiver(index)),
        3 if !stream.publisher.is_exclusive => {
            Some(Probe::Death(index, one_of(random, &TermEndDeath::ALL)))
        }
        _ => None,
    }
}

/// Returns a subscriber that joins. If the form permits it, the subscriber is in half of the cases on the host of the
/// publisher, whose receiver has not joined the stream before.
fn joining(random: &mut Rng, stream: &StreamPlan, first: &SubscriberPlan) -> SubscriberPlan {
    let mut plan = first.clone();
    let (own, other) = (stream.publisher.host, first.host);
    let key = match stream.form {
        Form::Multicast => "interface=",
        Form::MdcDynamic => "endpoint=",
        _ => return plan,
    };
    if random.bool() {
        plan.host = stream.publisher.host;
        for address in [|host| ipv4(host).to_string(), host_name] {
            let [from, to] = [other, own].map(|host| format!("{key}{}", address(host)));
            plan.channel = plan.channel.replace(&from, &to);
        }
    }
    plan
}
