//! Idle strategies that keep no state between waits.

use std::time::Duration;

use super::{IdleStrategy, park_ns};

/// `spin`: executes the processor's pause instruction. Reacts faster than a strategy that yields or parks, and uses a
/// whole processor.
#[derive(Debug, Clone, Copy, Default)]
pub struct BusySpinIdleStrategy;

/// `yield`: gives the processor to another thread that is ready.
#[derive(Debug, Clone, Copy, Default)]
pub struct YieldingIdleStrategy;

/// `noop`: does nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoOpIdleStrategy;

/// `sleep-ns`: parks for a fixed number of nanoseconds.
#[derive(Debug, Clone, Copy)]
pub struct SleepingIdleStrategy {
    period_ns: u64,
}

/// `sleep-ms`: parks for a fixed number of milliseconds.
#[derive(Debug, Clone, Copy)]
pub struct SleepingMillisIdleStrategy {
    period_ms: u64,
}

impl SleepingIdleStrategy {
    /// Parks for `period_ns` nanoseconds each time.
    pub fn new(period_ns: u64) -> Self {
        Self { period_ns }
    }
}

impl Default for SleepingIdleStrategy {
    fn default() -> Self {
        Self::new(1_000)
    }
}

impl SleepingMillisIdleStrategy {
    /// Parks for `period_ms` milliseconds each time.
    pub fn new(period_ms: u64) -> Self {
        Self { period_ms }
    }
}

impl Default for SleepingMillisIdleStrategy {
    fn default() -> Self {
        Self::new(1)
    }
}

impl IdleStrategy for BusySpinIdleStrategy {
    fn idle_once(&mut self) {
        std::hint::spin_loop();
    }

    fn alias(&self) -> &'static str {
        "spin"
    }
}

impl IdleStrategy for YieldingIdleStrategy {
    fn idle_once(&mut self) {
        std::thread::yield_now();
    }

    fn alias(&self) -> &'static str {
        "yield"
    }
}

impl IdleStrategy for NoOpIdleStrategy {
    fn idle_once(&mut self) {}

    fn alias(&self) -> &'static str {
        "noop"
    }
}

impl IdleStrategy for SleepingIdleStrategy {
    fn idle_once(&mut self) {
        park_ns(self.period_ns);
    }

    fn alias(&self) -> &'static str {
        "sleep-ns"
    }
}

impl IdleStrategy for SleepingMillisIdleStrategy {
    fn idle_once(&mut self) {
        std::thread::park_timeout(Duration::from_millis(self.period_ms));
    }

    fn alias(&self) -> &'static str {
        "sleep-ms"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn each_strategy_has_its_alias_03_121() {
        let strategies: [Box<dyn IdleStrategy>; 5] = [
            Box::new(BusySpinIdleStrategy),
            Box::new(YieldingIdleStrategy),
            Box::new(NoOpIdleStrategy),
            Box::new(SleepingIdleStrategy::default()),
            Box::new(SleepingMillisIdleStrategy::default()),
        ];
        assert_eq!(
            strategies.map(|strategy| strategy.alias()),
            ["spin", "yield", "noop", "sleep-ns", "sleep-ms"]
        );
    }

    #[test]
    fn sleeping_defaults_to_a_microsecond_and_a_millisecond_03_121() {
        assert_eq!(SleepingIdleStrategy::default().period_ns, 1_000);
        assert_eq!(SleepingMillisIdleStrategy::default().period_ms, 1);
    }

    #[test]
    fn a_sleeping_strategy_waits_only_if_the_work_count_is_0() {
        let mut strategy = SleepingMillisIdleStrategy::new(20);
        let start = Instant::now();
        strategy.idle(1);
        let after_work = start.elapsed();
        strategy.idle(0);
        assert!(
            after_work < Duration::from_millis(20) && start.elapsed() >= Duration::from_millis(20)
        );
    }
}
