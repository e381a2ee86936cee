//! [`ControllableIdleStrategy`]: a strategy that can be changed from outside while the loop runs.

use super::{IdleStrategy, park_ns};

/// `controllable`: before each wait, reads the number of the strategy, for example from a counter of the driver.
///
/// 1 does nothing, 2 spins, and 3 yields. 0 (not controlled), 4 (park) and unknown values park for 1 µs.
pub struct ControllableIdleStrategy<S> {
    status: S,
}

/// Length of a park in nanoseconds.
const PARK_NS: u64 = 1_000;

impl<S: Fn() -> i64 + Send> ControllableIdleStrategy<S> {
    /// Creates a strategy that follows the value of `status`.
    pub fn new(status: S) -> Self {
        Self { status }
    }

    fn choice(&self) -> Choice {
        match (self.status)() {
            1 => Choice::NoOp,
            2 => Choice::Spin,
            3 => Choice::Yield,
            _ => Choice::Park,
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Choice {
    NoOp,
    Spin,
    Yield,
    Park,
}

impl<S: Fn() -> i64 + Send> IdleStrategy for ControllableIdleStrategy<S> {
    fn idle_once(&mut self) {
        match self.choice() {
            Choice::NoOp => {}
            Choice::Spin => std::hint::spin_loop(),
            Choice::Yield => std::thread::yield_now(),
            Choice::Park => park_ns(PARK_NS),
        }
    }

    fn alias(&self) -> &'static str {
        "controllable"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicI64, Ordering};

    #[test]
    fn the_strategy_follows_the_status_indicator_03_121() {
        let status = AtomicI64::new(0);
        let strategy = ControllableIdleStrategy::new(|| status.load(Ordering::Relaxed));
        let choices = [0, 1, 2, 3, 4, -1, 99].map(|value| {
            status.store(value, Ordering::Relaxed);
            strategy.choice()
        });
        let [zero, one, two, three, four, negative, unknown] = choices;
        assert_eq!(
            [one, two, three],
            [Choice::NoOp, Choice::Spin, Choice::Yield]
        );
        assert_eq!(
            [zero, four, negative, unknown],
            [Choice::Park, Choice::Park, Choice::Park, Choice::Park]
        );
    }
}
