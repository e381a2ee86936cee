//! Measures the duration of duty cycles, and detects duty cycles that are too long.

/// Measures the time from one duty cycle to the next, and compares it with a threshold.
///
/// The tracker has no counters: its owner records the results of [`measure`](DutyCycleTracker::measure) (the longest
/// cycle, and the number of cycles that were too long).
#[derive(Debug, Clone)]
pub struct DutyCycleTracker {
    last_update_ns: i64,
    threshold_ns: i64,
}

/// Measurement of one duty cycle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DutyCycle {
    /// Time since the previous duty cycle, in nanoseconds.
    pub duration_ns: i64,
    /// Whether the duty cycle took longer than the threshold.
    pub is_stalled: bool,
}

impl DutyCycleTracker {
    /// Creates a tracker that starts to measure at `now_ns`.
    pub fn new(threshold_ns: i64, now_ns: i64) -> Self {
        Self {
            last_update_ns: now_ns,
            threshold_ns,
        }
    }

    /// Starts a new measurement and discards the current one.
    pub fn update(&mut self, now_ns: i64) {
        self.last_update_ns = now_ns;
    }

    /// Ends the measurement and starts the next one.
    pub fn measure(&mut self, now_ns: i64) -> DutyCycle {
        let duration_ns = now_ns.wrapping_sub(self.last_update_ns);
        self.last_update_ns = now_ns;
        DutyCycle {
            duration_ns,
            is_stalled: duration_ns > self.threshold_ns,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cycle_longer_than_the_threshold_is_a_stall() {
        let mut tracker = DutyCycleTracker::new(100, 1_000);
        assert_eq!(
            tracker.measure(1_100),
            DutyCycle {
                duration_ns: 100,
                is_stalled: false
            }
        );
        assert_eq!(
            tracker.measure(1_201),
            DutyCycle {
                duration_ns: 101,
                is_stalled: true
            }
        );
        tracker.update(5_000);
        assert_eq!(
            tracker.measure(5_001),
            DutyCycle {
                duration_ns: 1,
                is_stalled: false
            }
        );
    }
}
