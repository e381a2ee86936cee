//! Watches how long the duty cycles of an agent take.

use aeron_agent::DutyCycleTracker;
use aeron_memory::buffer::SharedBuffer;
use aeron_memory::counters::AtomicCounter;

/// Keeps the longest duty cycle in one counter, and the number of those over a threshold in another.
#[derive(Debug)]
pub struct StallTracker {
    tracker: DutyCycleTracker,
    max_cycle_time: AtomicCounter<SharedBuffer>,
    exceeded_count: AtomicCounter<SharedBuffer>,
}

impl StallTracker {
    /// A tracker primed with `now_ns`.
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

    /// Starts measuring at `now_ns`, whatever was before.
    pub fn restart(&mut self, now_ns: i64) {
        self.tracker.update(now_ns);
    }

    /// A duty cycle begins at `now_ns`.
    pub fn on_duty_cycle(&mut self, now_ns: i64) {
        let cycle = self.tracker.measure(now_ns);
        self.max_cycle_time.propose_max(cycle.duration_ns);
        if cycle.is_stalled {
            self.exceeded_count.add_release(1);
        }
    }
}
