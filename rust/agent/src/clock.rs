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

/// Age of a heartbeat that another process writes, by the monotonic clock.
///
/// A heartbeat is a time of the wall clock. If its age was computed from the wall clock, a step of this clock would
/// make every heartbeat too old. So the age begins when a new heartbeat is seen.
#[derive(Debug, Clone)]
pub struct HeartbeatAge {
    heartbeat_ms: i64,
    written_ns: i64,
    seen_ns: i64,
}

/// Detects that the wall clock was set.
#[derive(Debug, Clone, Default)]
pub struct ClockSteps {
    /// Wall clock minus monotonic clock at the last call, in milliseconds.
    offset_ms: Option<i64>,
}

/// A larger change of the difference between both clocks is a step, in milliseconds. Both clocks are read one after the
/// other, so a thread that does not run in between sees a difference too.
const STEP_LIMIT_MS: i64 = 1_000;

impl HeartbeatAge {
    /// Creates the age of a heartbeat that is fresh at `now_ns`.
    pub fn new(heartbeat_ms: i64, now_ns: i64) -> Self {
        Self {
            heartbeat_ms,
            written_ns: now_ns,
            seen_ns: now_ns,
        }
    }

    /// Returns the age in nanoseconds of the heartbeat that is read at `now_ms` (epoch) and `now_ns` (monotonic).
    pub fn update(&mut self, heartbeat_ms: i64, now_ms: i64, now_ns: i64) -> i64 {
        if heartbeat_ms != self.heartbeat_ms {
            // The heartbeat was written after the last call. The wall clock says when, unless it was set in between.
            let since_ns = (now_ns - self.seen_ns).max(0);
            let age_ns = now_ms
                .saturating_sub(heartbeat_ms)
                .saturating_mul(1_000_000);
            self.heartbeat_ms = heartbeat_ms;
            self.written_ns = now_ns - age_ns.clamp(0, since_ns);
        }
        self.seen_ns = now_ns;
        now_ns - self.written_ns
    }
}

impl ClockSteps {
    /// Returns whether the wall clock was set by more than a second since the last call. The time is `now_ms` (epoch)
    /// and `now_ns` (monotonic).
    pub fn was_set(&mut self, now_ms: i64, now_ns: i64) -> bool {
        let offset_ms = now_ms.wrapping_sub(now_ns / 1_000_000);
        let before_ms = self.offset_ms.replace(offset_ms);
        before_ms.is_some_and(|before_ms| offset_ms.abs_diff(before_ms) > STEP_LIMIT_MS as u64)
    }
}

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
    fn the_age_of_a_heartbeat_grows_with_the_monotonic_clock_alone() {
        const MS: i64 = 1_000_000;
        let mut age = HeartbeatAge::new(5_000, 70 * MS);
        assert_eq!(age.update(5_000, 5_009, 80 * MS), 10 * MS);
        // A new heartbeat, written 3 ms ago.
        assert_eq!(age.update(5_017, 5_020, 90 * MS), 3 * MS);
        // Steps of the wall clock.
        assert_eq!(age.update(5_017, 3_605_030, 100 * MS), 13 * MS);
        assert_eq!(age.update(5_017, -90_000, 110 * MS), 23 * MS);
        // A new heartbeat in a time with a step was written after the last call.
        assert_eq!(age.update(5_040, 3_605_050, 120 * MS), 10 * MS);
        assert_eq!(age.update(3_605_055, 5_060, 130 * MS), 0);
        assert_eq!(age.update(i64::MIN, i64::MAX, 140 * MS), 10 * MS);
    }

    #[test]
    fn a_step_of_the_wall_clock_is_detected_once() {
        let mut steps = ClockSteps::default();
        for (now_ms, now_ns, was_set) in [
            (1_000_000, 7, false),
            (1_000_900, 900_000_007, false),
            (1_060_901, 901_000_007, true),
            (1_060_902, 902_000_007, false),
            (1_000_903, 903_000_007, true),
            (1_001_903, 903_000_007, false),
            (i64::MIN, 904_000_007, true),
        ] {
            assert_eq!(steps.was_set(now_ms, now_ns), was_set, "{now_ms}");
        }
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
