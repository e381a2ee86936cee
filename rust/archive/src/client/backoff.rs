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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_from_1_ms_up_to_500_ms() {
        let mut backoff = Backoff::new();
        let pauses: Vec<_> = (0..11)
            .map(|_| backoff.next_attempt_ns(5) / 1_000_000)
            .collect();
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 64, 128, 256, 500, 500]);
    }
}
