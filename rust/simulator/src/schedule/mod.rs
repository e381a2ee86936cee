//! A schedule: everything that happens in one run, drawn from a seed before it begins.

mod additions;
mod drivers;
mod faults;
mod streams;

use fastrand::Rng;

pub use drivers::{DriverPlan, MS, SECOND, Timing};
pub use faults::{Event, FaultKind, Role};
pub use streams::StreamPlan;

use crate::network::Weather;

/// When the faults begin, after the start of the schedule.
pub const FAULTS_BEGIN_NS: i64 = 2 * SECOND;
/// When the network heals and everybody is to come back.
pub const HEAL_NS: i64 = 30 * SECOND;
/// Within this time everybody must be connected again, and have what was published.
pub const RECOVERY_LIMIT_NS: i64 = 14 * SECOND;
/// So long connections must stay as they are before they count.
pub const SETTLED_NS: i64 = 2 * SECOND;
/// Within this time the last messages must have arrived, and subscribers must know that their streams have ended.
pub const PARTING_LIMIT_NS: i64 = 12 * SECOND;
/// Within this time nothing may be left of anything.
pub const LEAVING_LIMIT_NS: i64 = 12 * SECOND;

/// Messages of a schedule.
pub const MESSAGES: usize = 1_000;
/// Of those, how many each stream gets after the network has healed.
pub const LAST_MESSAGES: usize = 60;
/// Messages that each stream gets right before its publisher leaves.
pub const PARTING_MESSAGES: usize = 20;
/// Streams of a schedule.
pub const STREAMS: usize = 3;
/// Kinds of faults in a schedule, at least.
pub const FAULT_KINDS: usize = 3;

/// What a schedule may contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edition {
    /// Only what the first simulator drew: a seed that found something then has the same faults.
    First,
    /// All there is.
    Second,
}

/// See the [module](self).
#[derive(Clone, Debug)]
pub struct Schedule {
    /// Where everything came from.
    pub seed: u64,
    /// What it may contain.
    pub edition: Edition,
    /// The drivers, one for each host.
    pub drivers: Vec<DriverPlan>,
    /// The streams, each of another form.
    pub streams: Vec<StreamPlan>,
    /// The network without faults.
    pub fair: Weather,
    /// The weathers in which the last messages travel, and when each begins.
    pub parting: Vec<(i64, Weather)>,
    /// Kinds of faults.
    pub kinds: Vec<FaultKind>,
    /// What happens when, in order of time.
    pub events: Vec<(i64, Event)>,
    /// Steps of virtual time: while something happens, and at most.
    pub step_ns: (i64, i64),
    /// Seed of what the network decides.
    pub network_seed: u64,
}

impl Schedule {
    /// The schedule of a seed.
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
        let parting = match edition {
            Edition::First => vec![(0, fair.clone())],
            // Numbers of their own: what the first edition draws stays the same.
            Edition::Second => {
                let mut random = Rng::with_seed(seed ^ 0x0D_D171_0450);
                additions::draw(&mut random, &mut drivers, &mut streams, &mut events, &fair)
            }
        };
        Self {
            seed,
            edition,
            parting,
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

/// One of some values.
pub fn one_of<T: Copy>(random: &mut Rng, values: &[T]) -> T {
    values[random.usize(..values.len())]
}

/// True in one of `n` cases.
pub fn rarely(random: &mut Rng, n: u32) -> bool {
    random.u32(..n) == 0
}
