//! The virtual clock. All components have the same time, as monotonic time and as wall-clock time.

use std::sync::Arc;

use aeron_agent::{CachedEpochClock, CachedNanoClock};

/// Wall-clock time at the start of every schedule: 2024-01-01.
const START_MS: i64 = 1_704_067_200_000;
/// Monotonic time at the start of every schedule. Not 0, so that an unset time is detected.
pub const START_NS: i64 = 1_000_000_000_000;

/// The clock of a schedule. Clones share the time.
#[derive(Clone)]
pub struct VirtualClock {
    nano: Arc<CachedNanoClock>,
    epoch: Arc<CachedEpochClock>,
    now_ns: i64,
}

impl VirtualClock {
    /// Creates a clock at the start time.
    pub fn new() -> Self {
        Self {
            nano: Arc::new(CachedNanoClock::new(START_NS)),
            epoch: Arc::new(CachedEpochClock::new(START_MS)),
            now_ns: START_NS,
        }
    }

    /// Returns the monotonic time in nanoseconds.
    pub fn now_ns(&self) -> i64 {
        self.now_ns
    }

    /// Returns the wall-clock time in milliseconds.
    pub fn now_ms(&self) -> i64 {
        START_MS + (self.now_ns - START_NS) / 1_000_000
    }

    /// Returns the monotonic clock, for components that read the time themselves.
    pub fn nano_clock(&self) -> Arc<CachedNanoClock> {
        Arc::clone(&self.nano)
    }

    /// Returns the wall clock, for components that read the time themselves.
    pub fn epoch_clock(&self) -> Arc<CachedEpochClock> {
        Arc::clone(&self.epoch)
    }

    /// Advances the time.
    pub fn advance_to(&mut self, now_ns: i64) {
        self.now_ns = now_ns;
        self.nano.update(now_ns);
        self.epoch.update(self.now_ms());
    }
}
