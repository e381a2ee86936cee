//! A schedule: all events of one run, generated from a seed before the run starts.

mod additions;
pub mod clocks;
mod conversations;
mod drivers;
mod faults;
pub mod names;
pub mod probes;
mod reconnecting;
mod streams;

use fastrand::Rng;

pub use drivers::{DriverPlan, MS, SECOND, Timing};
pub use faults::{Event, FaultKind, RoleId};
pub use names::NamePlan;
pub use probes::{Probe, TermEndDeath};
pub use streams::{GROUP_TAG, StreamPlan};

use crate::clock::ClockPlan;
use crate::network::Weather;
use crate::roles::ConversationPlan;

/// Start of the faults, in nanoseconds after the start of the schedule.
pub const FAULTS_BEGIN_NS: i64 = 2 * SECOND;
/// Time at which the network heals and all roles must return.
pub const HEAL_NS: i64 = 30 * SECOND;
/// Time limit until all roles are connected again and have all published messages.
pub const RECOVERY_LIMIT_NS: i64 = 14 * SECOND;
/// Time for which connections must be unchanged before a check regards them as settled.
pub const SETTLED_NS: i64 = 2 * SECOND;
/// Time after the end of the faults until each driver has noticed the death of all its clients: the timeout and the
/// longest timer interval.
pub const DEATHS_NOTICED_NS: i64 = 5 * SECOND;
/// Time limit for the end of a probe, in addition to the timeouts of the drivers on which the probe depends.
pub const PROBE_LIMIT_NS: i64 = SECOND;
/// Time limit until the last messages have arrived and subscribers know that their streams have ended.
pub const PARTING_LIMIT_NS: i64 = 12 * SECOND;
/// Time limit for the removal of all resources.
pub const LEAVING_LIMIT_NS: i64 = 12 * SECOND;

/// Number of messages in a schedule. [`PARTING_MESSAGES`] and the messages of some faults are not included.
pub const MESSAGES: usize = 1_000;
/// Number of these messages that each stream publishes after the network faults have ended.
pub const LAST_MESSAGES: usize = 60;
/// Number of messages that each stream publishes directly before its publisher closes.
pub const PARTING_MESSAGES: usize = 20;
/// Number of streams in a schedule.
pub const STREAMS: usize = 3;
/// Minimum number of kinds of faults in a schedule.
pub const FAULT_KINDS: usize = 3;

/// Set of features that a schedule may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edition {
    /// Only the features of the first simulator, so that seeds that found defects at that time still have the same
    /// faults.
    First,
    /// The features of the first edition and the additions, without probes, names, wrong clocks and response channels.
    Second,
    /// All features.
    Third,
}

/// See the [module](self).
#[derive(Clone, Debug)]
pub struct Schedule {
    /// Seed from which the schedule was generated.
    pub seed: u64,
    /// Features that the schedule may use.
    pub edition: Edition,
    /// The drivers, one for each host.
    pub drivers: Vec<DriverPlan>,
    /// The wall clocks, one for each host.
    pub clocks: Vec<ClockPlan>,
    /// The streams, each with a different transport form.
    pub streams: Vec<StreamPlan>,
    /// Network conditions without faults.
    pub fair: Weather,
    /// Network conditions for the last messages, each with its start time.
    pub parting: Vec<(i64, Weather)>,
    /// The resolution of names.
    pub names: NamePlan,
    /// Clients and a server that talk over response channels.
    pub conversation: Option<ConversationPlan>,
    /// Disturbances of single streams between the recovery and the last messages, while the network has no faults.
    pub probes: Vec<Probe>,
    /// Kinds of faults.
    pub kinds: Vec<FaultKind>,
    /// Events with their times, in order.
    pub events: Vec<(i64, Event)>,
    /// Minimum and maximum step of virtual time, in nanoseconds. The minimum applies while there is work.
    pub step_ns: (i64, i64),
    /// Seed of the network's random decisions.
    pub network_seed: u64,
}

impl Schedule {
    /// Generates the schedule of a seed.
    pub fn draw(seed: u64, edition: Edition) -> Self {
        let mut random = Rng::with_seed(seed ^ 0xA3_7051_3D00);
        let hosts = 2 + usize::from(random.u8(..4) == 0);
        let timing = drivers::Timing::draw(&mut random);
        let mut drivers: Vec<_> = (0..hosts)
            .map(|_| DriverPlan::draw(&mut random, &timing))
            .collect();
        let mut streams = streams::draw(&mut random, hosts);
        let fair = Weather::fair(random.i64(5_000..2_000_000));
        let (kinds, mut events) = faults::draw(&mut random, hosts, &streams, &fair);
        let clocks = match edition {
            Edition::First | Edition::Second => vec![ClockPlan::default(); hosts],
            Edition::Third => clocks::draw(seed, hosts, &[], 0..HEAL_NS),
        };
        let parting = match edition {
            Edition::First => vec![(0, fair.clone())],
            // The additions use a separate random generator, so that the random numbers of the first edition do not
            // change.
            Edition::Second | Edition::Third => {
                let mut random = Rng::with_seed(seed ^ 0x0D_D171_0450);
                additions::draw(&mut random, &mut drivers, &mut streams, &mut events, &fair)
            }
        };
        if edition == Edition::Third {
            events.extend(reconnecting::draw(seed, hosts, &mut streams));
        }
        // Names are drawn first: a subscriber that joins has the channel of another one.
        let (names, probes) = match edition {
            Edition::First | Edition::Second => (NamePlan::default(), Vec::new()),
            Edition::Third => (
                names::draw(seed, &mut drivers, &mut streams),
                probes::draw(seed, &streams),
            ),
        };
        let conversation = match edition {
            Edition::First | Edition::Second => None,
            Edition::Third => conversations::draw(seed, &drivers),
        };
        let (conversation, deaths) = conversation.unzip();
        let deaths = deaths.into_iter().flatten();
        events.extend(deaths.map(|(at_ns, victim)| (at_ns, Event::CrashConversation(victim))));
        Self {
            seed,
            edition,
            conversation,
            names,
            probes,
            parting,
            clocks,
            drivers,
            streams,
            fair,
            kinds,
            events,
            step_ns: (random.i64(10_000..400_000), random.i64(8 * MS..24 * MS)),
            network_seed: random.u64(..),
        }
    }
}

/// Returns a random element of `values`.
pub fn one_of<T: Copy>(random: &mut Rng, values: &[T]) -> T {
    values[random.usize(..values.len())]
}

/// Returns `true` with the probability 1/`n`.
pub fn rarely(random: &mut Rng, n: u32) -> bool {
    random.u32(..n) == 0
}
