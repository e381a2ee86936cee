//! The virtual clock: one time for everything, in two forms.

use std::sync::Arc;

use aeron_agent::{CachedEpochClock, CachedNanoClock};

/// 2024-01-01, when every schedule begins.
const START_MS: i64 = 1_704_067_200_000;
/// When every schedule begins, on the monotonic clock: not 0, so that a time that was never set is seen.
pub const START_NS: i64 = 1_000_000_000_000;

/// The clock of a schedule. Clones are the same clock.
#[derive(Clone)]
pub struct VirtualClock {
    nano: Arc<CachedNanoClock>,
    epoch: Arc<CachedEpochClock>,
    now_ns: i64,
}

impl VirtualClock {
    /// A clock at the beginning.
    pub fn new() -> Self {
        Self {
            nano: Arc::new(CachedNanoClock::new(START_NS)),
            epoch: Arc::new(CachedEpochClock::new(START_MS)),
            now_ns: START_NS,
        }
    }

    /// Monotonic time in nanoseconds.
    pub fn now_ns(&self) -> i64 {
        self.now_ns
    }

    /// Wall clock in milliseconds.
    pub fn now_ms(&self) -> i64 {
        START_MS + (self.now_ns - START_NS) / 1_000_000
    }

    /// The monotonic clock for those who read it themselves.
    pub fn nano_clock(&self) -> Arc<CachedNanoClock> {
        Arc::clone(&self.nano)
    }

    /// The wall clock for those who read it themselves.
    pub fn epoch_clock(&self) -> Arc<CachedEpochClock> {
        Arc::clone(&self.epoch)
    }

    /// Moves time on.
    pub fn advance_to(&mut self, now_ns: i64) {
        self.now_ns = now_ns;
        self.nano.update(now_ns);
        self.epoch.update(self.now_ms());
    }
}
