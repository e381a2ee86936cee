//! Clocks: wall-clock time in milliseconds and monotonic time in nanoseconds. A cached variant of each clock shows the
//! time of its last update.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, clock_gettime};

/// Clock that shows milliseconds since 1 January 1970 UTC. Its time may jump when the machine's time is set.
pub trait EpochClock: Send + Sync {
    /// Returns the current time in milliseconds.
    fn time_ms(&self) -> i64;

    /// Returns the current time in microseconds, with the precision of the clock.
    fn time_us(&self) -> i64 {
        self.time_ms().saturating_mul(1_000)
    }
}

/// Clock that shows nanoseconds since an arbitrary moment. Its time never goes back, and is the same for all processes
/// of the machine.
pub trait NanoClock: Send + Sync {
    /// Returns the current time in nanoseconds.
    fn nano_time(&self) -> i64;
}

/// The machine's wall clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemEpochClock;

/// The machine's monotonic clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemNanoClock;

/// A wall clock that shows the time of its last update. Its owner updates it once in each duty cycle.
#[derive(Debug, Default)]
pub struct CachedEpochClock(CachedTime);

/// A monotonic clock that shows the time of its last update. Its owner updates it once in each duty cycle.
#[derive(Debug, Default)]
pub struct CachedNanoClock(CachedTime);

impl EpochClock for SystemEpochClock {
    fn time_ms(&self) -> i64 {
        match SystemTime::now().duration_since(UNIX_EPOCH) {
            Ok(since) => since.as_millis() as i64,
            Err(before) => -(before.duration().as_millis() as i64),
        }
    }

    fn time_us(&self) -> i64 {
        match SystemTime::now().duration_since(UNIX_EPOCH) {
            Ok(since) => since.as_micros() as i64,
            Err(before) => -(before.duration().as_micros() as i64),
        }
    }
}

impl NanoClock for SystemNanoClock {
    fn nano_time(&self) -> i64 {
        let now = clock_gettime(ClockId::Monotonic);
        now.tv_sec * 1_000_000_000 + now.tv_nsec
    }
}

impl EpochClock for CachedEpochClock {
    fn time_ms(&self) -> i64 {
        self.0.get()
    }
}

impl NanoClock for CachedNanoClock {
    fn nano_time(&self) -> i64 {
        self.0.get()
    }
}

impl CachedEpochClock {
    /// Creates a clock that shows `time_ms`.
    pub fn new(time_ms: i64) -> Self {
        Self(CachedTime(AtomicI64::new(time_ms)))
    }

    /// Sets the time. Only one thread may set the time; any thread may read the time.
    pub fn update(&self, time_ms: i64) {
        self.0.set(time_ms);
    }

    /// Advances the time. Only one thread may set the time; any thread may read the time.
    pub fn advance(&self, by_ms: i64) {
        self.0.advance(by_ms);
    }
}

impl CachedNanoClock {
    /// Creates a clock that shows `time_ns`.
    pub fn new(time_ns: i64) -> Self {
        Self(CachedTime(AtomicI64::new(time_ns)))
    }

    /// Sets the time. Only one thread may set the time; any thread may read the time.
    pub fn update(&self, time_ns: i64) {
        self.0.set(time_ns);
    }

    /// Advances the time. Only one thread may set the time; any thread may read the time.
    pub fn advance(&self, by_ns: i64) {
        self.0.advance(by_ns);
    }
}

#[derive(Debug, Default)]
struct CachedTime(AtomicI64);

impl CachedTime {
    fn get(&self) -> i64 {
        self.0.load(Ordering::Acquire)
    }

    fn set(&self, time: i64) {
        self.0.store(time, Ordering::Release);
    }

    /// Uses a load and a store instead of an atomic addition, because only one thread writes.
    fn advance(&self, by: i64) {
        self.set(self.0.load(Ordering::Relaxed).wrapping_add(by));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_monotonic_clock_does_not_go_back() {
        let times: Vec<_> = (0..1_000).map(|_| SystemNanoClock.nano_time()).collect();
        assert!(times.is_sorted());
    }

    #[test]
    fn the_microseconds_of_a_wall_clock_match_its_milliseconds() {
        let before = SystemEpochClock.time_ms();
        let now_us = SystemEpochClock.time_us();
        let after = SystemEpochClock.time_ms();
        assert!((before * 1_000..(after + 1) * 1_000).contains(&now_us));
        let cached = CachedEpochClock::new(7);
        assert_eq!(cached.time_us(), 7_000);
    }

    #[test]
    fn the_wall_clock_counts_milliseconds_since_1970() {
        let year_2020_ms = 1_577_836_800_000;
        let year_2200_ms = 7_258_118_400_000;
        assert!((year_2020_ms..year_2200_ms).contains(&SystemEpochClock.time_ms()));
    }

    #[test]
    fn cached_clocks_keep_their_time_until_an_update() {
        let epoch = CachedEpochClock::new(5);
        epoch.advance(2);
        assert_eq!(epoch.time_ms(), 7);
        epoch.update(3);
        assert_eq!(epoch.time_ms(), 3);

        let nano = CachedNanoClock::default();
        nano.update(10);
        nano.advance(-1);
        assert_eq!(nano.nano_time(), 9);
    }
}
