//! Idle strategies: what a loop does when there was nothing to do.
//!
//! Spinning answers fastest and burns a processor; parking costs nothing and answers late; backing off begins with the first
//! and ends with the second.

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

    /// There is work again: the next wait is as short as the first one.
    fn reset(&mut self) {}

    /// The short name of the strategy.
    fn alias(&self) -> &'static str;

    /// Waits if nothing was done, else resets.
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

/// Parks the thread. An unpark (a runner that is closed) ends it early.
pub(crate) fn park_ns(duration_ns: u64) {
    std::thread::park_timeout(Duration::from_nanos(duration_ns));
}
