//! Measures the duration of the duty cycles of an agent.

use aeron_agent::DutyCycleTracker;
use aeron_memory::buffer::SharedBuffer;
use aeron_memory::counters::AtomicCounter;

/// Keeps the longest duty cycle in one counter. Counts the cycles that are longer than a threshold in another counter.
#[derive(Debug)]
pub struct StallTracker {
    tracker: DutyCycleTracker,
    max_cycle_time: AtomicCounter<SharedBuffer>,
    exceeded_count: AtomicCounter<SharedBuffer>,
}

impl StallTracker {
    /// Creates a tracker. The first duty cycle starts at `now_ns`.
    pub fn new(
        threshold_ns: i64,
        max_cycle_time: AtomicCounter<SharedBuffer>,
        exceeded_count: AtomicCounter<SharedBuffer>,
        now_ns: i64,
    ) -> Self {
        Self {
            tracker: DutyCycleTracker::new(threshold_ns, now_ns),
            max_cycle_time,
            exceeded_count,
        }
    }

    /// Discards the current measurement and starts a new one at `now_ns`.
    pub fn restart(&mut self, now_ns: i64) {
        self.tracker.update(now_ns);
    }

    /// Ends the measurement of the previous duty cycle at `now_ns` and starts the measurement of the next one.
    pub fn on_duty_cycle(&mut self, now_ns: i64) {
        let cycle = self.tracker.measure(now_ns);
        // All deadlines of an agent are times of this clock.
        debug_assert!(
            cycle.duration_ns >= 0,
            "the monotonic clock went back by {} ns",
            -cycle.duration_ns
        );
        self.max_cycle_time.propose_max(cycle.duration_ns);
        if cycle.is_stalled {
            self.exceeded_count.add_release(1);
        }
    }
}
