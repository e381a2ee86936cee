//! [`RetryLimits`]: the time-outs of a task, and its idle strategy between two attempts.

use std::time::{Duration, Instant};

use aeron_agent::{BackoffIdleStrategy, IdleStrategy};

/// Two clocks and an idle strategy. One clock measures the time without a subscriber, the other one the time without
/// room. Progress resets both clocks.
#[derive(Debug)]
pub(super) struct RetryLimits {
    connect_timeout: Duration,
    offer_timeout: Duration,
    unconnected: Duration,
    pressed: Duration,
    last_refusal: Option<Instant>,
    idle: BackoffIdleStrategy,
}

/// Reason why a publication accepted no message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refusal {
    /// No subscriber is connected.
    NotConnected,
    /// The publication is at its limit.
    Pressed,
}

impl RetryLimits {
    pub(super) fn new(connect_timeout: Duration, offer_timeout: Duration) -> Self {
        Self {
            connect_timeout,
            offer_timeout,
            unconnected: Duration::ZERO,
            pressed: Duration::ZERO,
            last_refusal: None,
            idle: BackoffIdleStrategy::default(),
        }
    }

    /// Resets the clocks. Call it after the publication has accepted a message.
    pub(super) fn progress(&mut self) {
        if self.last_refusal.take().is_some() {
            self.unconnected = Duration::ZERO;
            self.pressed = Duration::ZERO;
            self.idle.reset();
        }
    }

    /// Adds the time since the last refusal to the clock of `refusal`. Returns whether its time-out is reached. If not,
    /// waits a short time first.
    pub(super) fn is_exhausted_by(&mut self, refusal: Refusal) -> bool {
        let is_exhausted = self.refused(refusal, Instant::now());
        if !is_exhausted {
            self.idle.idle_once();
        }
        is_exhausted
    }

    /// Adds the time since the last refusal to the clock of this refusal. Only progress resets the clocks. So the wait
    /// is at most the sum of both time-outs, even if subscribers connect and disconnect repeatedly.
    fn refused(&mut self, refusal: Refusal, now: Instant) -> bool {
        let passed = self
            .last_refusal
            .replace(now)
            .map_or(Duration::ZERO, |last| now - last);
        let (clock, timeout) = match refusal {
            Refusal::NotConnected => (&mut self.unconnected, self.connect_timeout),
            Refusal::Pressed => (&mut self.pressed, self.offer_timeout),
        };
        *clock += passed;
        *clock >= timeout
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Refusal::{NotConnected, Pressed};

    const MS: Duration = Duration::from_millis(1);

    fn patience() -> (RetryLimits, Instant) {
        (RetryLimits::new(10 * MS, 30 * MS), Instant::now())
    }

    #[test]
    fn each_reason_of_a_refusal_has_its_own_clock_08_73_08_74() {
        let (mut patience, begin) = patience();
        assert!(!patience.refused(NotConnected, begin));
        assert!(!patience.refused(NotConnected, begin + 9 * MS));
        assert!(patience.refused(NotConnected, begin + 10 * MS));

        let (mut patience, begin) = self::patience();
        assert!(!patience.refused(Pressed, begin));
        assert!(!patience.refused(Pressed, begin + 29 * MS));
        assert!(patience.refused(Pressed, begin + 30 * MS));
    }

    #[test]
    fn progress_resets_the_clocks_08_73() {
        let (mut patience, begin) = patience();
        patience.refused(Pressed, begin);
        patience.refused(Pressed, begin + 29 * MS);
        patience.progress();
        assert!(!patience.refused(Pressed, begin + 40 * MS));
        assert!(!patience.refused(Pressed, begin + 69 * MS));
        assert!(patience.refused(Pressed, begin + 70 * MS));
    }

    #[test]
    fn subscribers_that_come_and_go_do_not_make_the_wait_endless() {
        let (mut patience, begin) = patience();
        let mut now = begin;
        let mut refusals = 0;
        while !patience.refused(NotConnected, now) && !patience.refused(Pressed, now + MS) {
            now += 2 * MS;
            refusals += 1;
        }
        assert!(refusals <= 40);
    }
}
