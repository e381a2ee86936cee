//! Draws the errors of wall clocks. They were added later, so they have random numbers of their own.

use fastrand::Rng;

use super::{MS, one_of};
use crate::clock::ClockPlan;

const HOUR_MS: i64 = 3_600_000;
const DAY_MS: i64 = 24 * HOUR_MS;
/// Differences by which a clock is set, in milliseconds: a correction, more than the liveness timeouts, more than the
/// limit after which a clock is doubted, and a clock without a battery.
const STEPS_MS: [i64; 12] = [
    -30 * DAY_MS,
    -HOUR_MS,
    -61_000,
    -12_000,
    -1_500,
    -300,
    300,
    1_500,
    12_000,
    61_000,
    HOUR_MS,
    30 * DAY_MS,
];
/// Maximum number of steps of a host's clock.
const MAX_STEPS: usize = 3;
/// Maximum time between an event and a step at that event, in nanoseconds.
const MAX_DELAY_NS: i64 = 100 * MS;

/// Draws the wall clocks of `hosts` hosts. `marks` are times of events such as kills: half of the steps come shortly
/// after such an event, so that a process starts with another time than its predecessor had.
pub fn draw(seed: u64, hosts: usize, marks: &[i64], times: std::ops::Range<i64>) -> Vec<ClockPlan> {
    let mut random = Rng::with_seed(seed ^ 0xC1_0C_C5);
    let plan = |_| {
        let offset_ms = match random.u8(..3) {
            0 => 0,
            1 => random.i64(-500..=500),
            _ => one_of(&mut random, &STEPS_MS),
        };
        let drift_ppm = match random.u8(..3) {
            0 => 0,
            1 => random.i64(-500..=500),
            _ => one_of(&mut random, &[-20_000, 20_000]),
        };
        let mut steps: Vec<_> = (0..random.usize(..=MAX_STEPS))
            .map(|_| {
                let at_ns = match !marks.is_empty() && random.bool() {
                    true => one_of(&mut random, marks) + random.i64(0..MAX_DELAY_NS),
                    false => random.i64(times.clone()),
                };
                (at_ns, one_of(&mut random, &STEPS_MS))
            })
            .collect();
        steps.sort_unstable();
        ClockPlan {
            offset_ms,
            drift_ppm,
            steps,
        }
    };
    (0..hosts).map(plan).collect()
}
