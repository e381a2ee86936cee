//! How long a loop takes for one turn, and whether that is too long.

/// Measures the time from one duty cycle to the next against a threshold.
///
/// It keeps no counters: the owner records what [`measure`](DutyCycleTracker::measure) answers (the longest cycle, how many
/// were too long).
#[derive(Debug, Clone)]
pub struct DutyCycleTracker {
    last_update_ns: i64,
    threshold_ns: i64,
}

/// One turn of a loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DutyCycle {
    /// Time since the last turn.
    pub duration_ns: i64,
    /// It took longer than the threshold.
    pub is_stalled: bool,
}

impl DutyCycleTracker {
    /// A tracker primed with the current time.
    pub fn new(threshold_ns: i64, now_ns: i64) -> Self {
        Self {
            last_update_ns: now_ns,
            threshold_ns,
        }
    }

    /// Starts a new measurement without judging the time before it.
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
