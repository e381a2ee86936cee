//! Idle strategies: how a loop waits when it has no work.
//!
//! Spinning reacts fastest and uses a whole processor. Parking uses almost no processor time and reacts late. Backing
//! off begins with spinning and ends with parking.

mod backoff;
mod controllable;
mod simple;
mod spec;

pub use backoff::BackoffIdleStrategy;
pub use controllable::ControllableIdleStrategy;
pub use simple::{
    BusySpinIdleStrategy, NoOpIdleStrategy, SleepingIdleStrategy, SleepingMillisIdleStrategy,
    YieldingIdleStrategy,
};
pub use spec::{IdleStrategyError, IdleStrategySpec};

use std::time::Duration;

/// Decides how a loop waits. Owned by one loop.
pub trait IdleStrategy: Send {
    /// Waits once.
    fn idle_once(&mut self);

    /// Resets the strategy after work was found: the next wait is as short as the first one.
    fn reset(&mut self) {}

    /// Returns the short name of the strategy.
    fn alias(&self) -> &'static str;

    /// Waits if `work_count` is 0, else resets.
    fn idle(&mut self, work_count: usize) {
        if work_count > 0 {
            self.reset();
        } else {
            self.idle_once();
        }
    }
}

impl<I: IdleStrategy + ?Sized> IdleStrategy for Box<I> {
    fn idle_once(&mut self) {
        (**self).idle_once();
    }

    fn reset(&mut self) {
        (**self).reset();
    }

    fn alias(&self) -> &'static str {
        (**self).alias()
    }

    fn idle(&mut self, work_count: usize) {
        (**self).idle(work_count);
    }
}

/// Parks the thread. An unpark ends the park early, for example when a runner is closed.
pub(crate) fn park_ns(duration_ns: u64) {
    std::thread::park_timeout(Duration::from_nanos(duration_ns));
}
