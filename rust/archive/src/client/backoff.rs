//! [`Backoff`]: increasing pauses between attempts.

/// First pause, in nanoseconds.
const FIRST_NS: i64 = 1_000_000;
/// Longest pause, in nanoseconds.
const LONGEST_NS: i64 = 500_000_000;

/// Pauses between attempts. The first is 1 ms, each next one is twice as long, and no pause is
/// longer than 500 ms.
#[derive(Debug)]
pub(super) struct Backoff {
    next_ns: i64,
}

impl Backoff {
    pub(super) const fn new() -> Self {
        Self { next_ns: FIRST_NS }
    }

    /// Returns the time of the next attempt.
    pub(super) fn next_attempt_ns(&mut self, now_ns: i64) -> i64 {
        let pause_ns = self.next_ns;
        self.next_ns = (2 * pause_ns).min(LONGEST_NS);
        now_ns.wrapping_add(pause_ns)
    }
}

/// Attempts at an action that can fail immediately. After a failure, the next attempt is due after a pause.
#[derive(Debug)]
pub(super) struct Attempts {
    pauses: Backoff,
    next_ns: Option<i64>,
}

impl Attempts {
    pub(super) const fn new() -> Self {
        Self {
            pauses: Backoff::new(),
            next_ns: None,
        }
    }

    /// Returns whether the pause after the last failure is over.
    pub(super) const fn is_due(&self, now_ns: i64) -> bool {
        match self.next_ns {
            Some(next_ns) => now_ns.wrapping_sub(next_ns) >= 0,
            None => true,
        }
    }

    pub(super) fn failed(&mut self, now_ns: i64) {
        self.next_ns = Some(self.pauses.next_attempt_ns(now_ns));
    }

    pub(super) const fn succeeded(&mut self) {
        *self = Self::new();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_attempt_is_due_after_the_pause_and_a_success_resets_the_pauses() {
        let mut attempts = Attempts::new();
        assert!(attempts.is_due(0));
        attempts.failed(0);
        assert!(!attempts.is_due(999_999) && attempts.is_due(1_000_000));
        attempts.failed(1_000_000);
        assert!(!attempts.is_due(2_999_999) && attempts.is_due(3_000_000));
        attempts.succeeded();
        assert!(attempts.is_due(1));
        attempts.failed(1);
        assert!(attempts.is_due(1_000_001));
    }

    #[test]
    fn pauses_double_from_1_ms_up_to_500_ms() {
        let mut backoff = Backoff::new();
        let pauses: Vec<_> = (0..11)
            .map(|_| backoff.next_attempt_ns(5) / 1_000_000)
            .collect();
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 64, 128, 256, 500, 500]);
    }
}
