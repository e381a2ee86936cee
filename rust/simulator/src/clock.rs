//! The virtual clock: one monotonic time for all components, and a wall clock for each host.
//!
//! The wall clock of a host may be wrong, may run too fast or too slow, and may be set while the host runs.

use std::sync::Arc;

use aeron_agent::{CachedEpochClock, CachedNanoClock};

use crate::network::HostId;

/// True wall-clock time at the start of every schedule: 2024-01-01.
pub const START_MS: i64 = 1_704_067_200_000;
/// Monotonic time at the start of every schedule. Not 0, so that an unset time is detected.
pub const START_NS: i64 = 1_000_000_000_000;

/// The errors of a host's wall clock.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClockPlan {
    /// Difference from the true time at the start of the schedule, in milliseconds.
    pub offset_ms: i64,
    /// Microseconds that the clock gains in each second.
    pub drift_ppm: i64,
    /// Times in nanoseconds after the start of the schedule, in order. At each time the clock is set by a number of
    /// milliseconds.
    pub steps: Vec<(i64, i64)>,
}

/// The clock of a schedule. Clones share the time.
#[derive(Clone)]
pub struct VirtualClock {
    nano: Arc<CachedNanoClock>,
    now_ns: i64,
    walls: Vec<WallClock>,
}

/// The wall clock of a host.
#[derive(Clone)]
struct WallClock {
    plan: ClockPlan,
    epoch: Arc<CachedEpochClock>,
}

impl VirtualClock {
    /// Creates a clock at the start time, with a wall clock for each host.
    pub fn new(plans: &[ClockPlan]) -> Self {
        let wall = |plan: &ClockPlan| WallClock {
            plan: plan.clone(),
            epoch: Arc::new(CachedEpochClock::new(plan.time_ms(0))),
        };
        Self {
            nano: Arc::new(CachedNanoClock::new(START_NS)),
            now_ns: START_NS,
            walls: plans.iter().map(wall).collect(),
        }
    }

    /// Returns the monotonic time in nanoseconds.
    pub fn now_ns(&self) -> i64 {
        self.now_ns
    }

    /// Returns the true time in milliseconds since the epoch. No component of a host knows this time.
    pub fn true_ms(&self) -> i64 {
        START_MS + (self.now_ns - START_NS) / 1_000_000
    }

    /// Returns the wall-clock time of a host in milliseconds since the epoch.
    pub fn now_ms(&self, host: HostId) -> i64 {
        self.walls[host].plan.time_ms(self.now_ns - START_NS)
    }

    /// Returns the monotonic clock, for components that read the time themselves.
    pub fn nano_clock(&self) -> Arc<CachedNanoClock> {
        Arc::clone(&self.nano)
    }

    /// Returns the wall clock of a host, for components that read the time themselves.
    pub fn epoch_clock(&self, host: HostId) -> Arc<CachedEpochClock> {
        Arc::clone(&self.walls[host].epoch)
    }

    /// Advances the time.
    pub fn advance_to(&mut self, now_ns: i64) {
        self.now_ns = now_ns;
        self.nano.update(now_ns);
        for wall in &self.walls {
            wall.epoch.update(wall.plan.time_ms(now_ns - START_NS));
        }
    }
}

impl ClockPlan {
    /// Returns the time that the clock shows, in milliseconds since the epoch.
    fn time_ms(&self, after_ns: i64) -> i64 {
        let after_ms = after_ns / 1_000_000;
        let steps = self
            .steps
            .iter()
            .take_while(|(at_ns, _)| *at_ns <= after_ns);
        let set_ms: i64 = steps.map(|(_, by_ms)| by_ms).sum();
        START_MS + after_ms + self.offset_ms + set_ms + after_ms * self.drift_ppm / 1_000_000
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wall_clocks_of_hosts_differ_drift_and_are_set() {
        let wrong = ClockPlan {
            offset_ms: -5_000,
            drift_ppm: 500,
            steps: vec![(2_000_000_000, 60_000), (4_000_000_000, -10)],
        };
        let mut clock = VirtualClock::new(&[ClockPlan::default(), wrong]);
        let shown = |clock: &VirtualClock| [0, 1].map(|host| clock.now_ms(host) - START_MS);
        assert_eq!(shown(&clock), [0, -5_000]);
        clock.advance_to(START_NS + 2_000_000_000);
        assert_eq!(shown(&clock), [2_000, 57_001]);
        clock.advance_to(START_NS + 4_000_000_000);
        assert_eq!(shown(&clock), [4_000, 58_992]);
        assert_eq!(clock.true_ms(), clock.now_ms(0));
    }
}
