//! A schedule: everything that happens in one run, drawn from a seed before it begins.

mod drivers;
mod faults;
mod streams;

use fastrand::Rng;

pub use drivers::{DriverPlan, MS, SECOND};
pub use faults::{Event, FaultKind, Role};
pub use streams::StreamPlan;

use crate::network::Weather;

/// When the faults begin, after the start of the schedule.
pub const FAULTS_BEGIN_NS: i64 = 2 * SECOND;
/// When the network heals and everybody is to come back.
pub const HEAL_NS: i64 = 30 * SECOND;
/// When everybody must be connected again.
pub const CONNECTED_BY_NS: i64 = 42 * SECOND;
/// When what was published last must have arrived everywhere.
pub const DELIVERED_BY_NS: i64 = 46 * SECOND;
/// When subscribers must know that their streams have ended.
pub const LEAVE_NS: i64 = 50 * SECOND;
/// When nothing may be left of anything.
pub const END_NS: i64 = 60 * SECOND;

/// Messages of a schedule.
pub const MESSAGES: usize = 1_000;
/// Of those, how many each stream gets after the network has healed.
pub const LAST_MESSAGES: usize = 60;
/// Streams of a schedule.
pub const STREAMS: usize = 3;
/// Kinds of faults in a schedule, at least.
pub const FAULT_KINDS: usize = 3;

/// See the [module](self).
#[derive(Clone, Debug)]
pub struct Schedule {
    /// Where everything came from.
    pub seed: u64,
    /// The drivers, one for each host.
    pub drivers: Vec<DriverPlan>,
    /// The streams, each of another form.
    pub streams: Vec<StreamPlan>,
    /// The network without faults.
    pub fair: Weather,
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
    pub fn draw(seed: u64) -> Self {
        let mut random = Rng::with_seed(seed ^ 0xA3_7051_3D00);
        let hosts = 2 + usize::from(random.u8(..4) == 0);
        let timing = drivers::Timing::draw(&mut random);
        let drivers: Vec<_> = (0..hosts)
            .map(|_| DriverPlan::draw(&mut random, &timing))
            .collect();
        let streams = streams::draw(&mut random, hosts);
        let fair = Weather::fair(random.i64(5_000..2_000_000));
        let (kinds, events) = faults::draw(&mut random, hosts, &streams, &fair);
        Self {
            seed,
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
fn one_of<T: Copy>(random: &mut Rng, values: &[T]) -> T {
    values[random.usize(..values.len())]
}

/// True in one of `n` cases.
fn rarely(random: &mut Rng, n: u32) -> bool {
    random.u32(..n) == 0
}
