//! [`RetentionClock`]: the time by which retention measures ages, and whether this time is trusted.

use std::fmt;

/// Maximum difference between the wall clock and the monotonic clock within a run, in milliseconds. A larger difference
/// is a step.
pub const STEP_LIMIT_MS: i64 = 60_000;
/// Maximum time between the last known time of the previous run and a start, in milliseconds. After a longer time, the
/// wall clock may be wrong.
pub const START_LIMIT_MS: i64 = 3_600_000;
/// Interval in nanoseconds at which a trusted clock takes over the wall clock. Without it, the sum of many small
/// corrections would look like a step.
const AGREEMENT_INTERVAL_NS: i64 = 3_600_000_000_000;
const NS_PER_MS: i64 = 1_000_000;

/// One moment by both clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Wall clock in milliseconds since the epoch.
    pub wall_ms: i64,
    /// Monotonic clock in nanoseconds.
    pub now_ns: i64,
}

/// The knowledge of an archive about the time before its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EarlierTime {
    /// The last known time of the previous run in milliseconds since the epoch; `None` for a new archive.
    pub last_ms: Option<i64>,
    /// Time of running in nanoseconds for which a doubt of the previous run still lasts; 0 if there was no doubt.
    pub remaining_ns: i64,
}

/// Why the wall clock is not trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockDoubt {
    /// The archive started at a time that is too far from the last known time.
    Start {
        /// Time from the last known time to the start, in milliseconds; negative if the start was before.
        by_ms: i64,
    },
    /// The wall clock was set while the archive was running.
    Step {
        /// Difference from the monotonic clock in milliseconds; negative if the wall clock was set back.
        by_ms: i64,
    },
    /// An earlier run ended before the doubt of that run did.
    Earlier,
}

/// A change of the trust.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockChange {
    /// Deletion by age and expiry of readers wait from now on.
    Doubted(ClockDoubt),
    /// The wall clock is trusted again.
    Trusted,
}

/// The time by which retention measures ages.
///
/// Within a run, this time grows with the monotonic clock. A difference of more than [`STEP_LIMIT_MS`] from the wall
/// clock is a step, and a start more than [`START_LIMIT_MS`] after the last known time may be one too. After both, the
/// clock is doubted: nothing is old, until the archive has run for `wait_ns` without a further step, until the step is
/// undone, or until a user trusts the clock. A start before the last known time is doubted too: data of this run get
/// early times, and would look old as soon as the clock is corrected.
#[derive(Clone, Debug)]
pub struct RetentionClock {
    wait_ns: i64,
    now: Moment,
    /// Last moment at which both clocks agreed.
    agreed: Moment,
    /// Such a moment before the step that is in doubt.
    before_step: Option<Moment>,
    /// The reason and the end of the doubt, by the monotonic clock.
    doubt: Option<(ClockDoubt, i64)>,
    /// Ages of readers begin at this time at the earliest, because no reader could commit before.
    readers_since_ms: i64,
}

impl RetentionClock {
    /// Creates the clock of an archive that starts at `now`. A doubt lasts for `wait_ns` nanoseconds of running; with
    /// 0, the wall clock is always trusted.
    pub fn new(now: Moment, earlier: EarlierTime, wait_ns: i64) -> Self {
        debug_assert!(
            wait_ns >= 0,
            "the wait of {wait_ns} ns until a clock is trusted must not be negative"
        );
        let mut clock = Self {
            wait_ns,
            now,
            agreed: now,
            before_step: None,
            doubt: None,
            readers_since_ms: now.wall_ms,
        };
        let by_ms = earlier
            .last_ms
            .map_or(0, |last_ms| now.wall_ms.saturating_sub(last_ms));
        if !(-STEP_LIMIT_MS..=START_LIMIT_MS).contains(&by_ms) {
            clock.doubt(ClockDoubt::Start { by_ms }, wait_ns);
        } else if earlier.remaining_ns > 0 {
            clock.doubt(ClockDoubt::Earlier, earlier.remaining_ns.min(wait_ns));
        }
        clock
    }

    /// Sets the current time. Returns whether the trust has changed.
    pub fn update(&mut self, now: Moment) -> Option<ClockChange> {
        debug_assert!(
            now.now_ns >= self.now.now_ns,
            "the monotonic clock must not go back from {} to {} ns",
            self.now.now_ns,
            now.now_ns
        );
        self.now = now;
        let by_ms = self.agreed.difference_ms(now);
        if !is_step(by_ms) {
            return match self.doubt {
                Some((_, until_ns)) if now.now_ns >= until_ns => self.trust(),
                None if now.now_ns - self.agreed.now_ns >= AGREEMENT_INTERVAL_NS => {
                    self.agreed = now;
                    None
                }
                _ => None,
            };
        }
        if self.doubt.is_none() {
            self.before_step = Some(self.agreed);
        }
        self.agreed = now;
        let is_undone = |before: Moment| !is_step(before.difference_ms(now));
        if self.before_step.is_some_and(is_undone) {
            self.before_step = None;
            self.doubt = None;
            return Some(ClockChange::Trusted);
        }
        self.doubt(ClockDoubt::Step { by_ms }, self.wait_ns)
            .map(ClockChange::Doubted)
    }

    /// Trusts the wall clock from now on. Returns whether the trust has changed.
    pub fn trust(&mut self) -> Option<ClockChange> {
        self.before_step = None;
        self.doubt.take()?;
        self.agreed = self.now;
        // The readers committed by a clock that may have been wrong, so each gets its whole maximum age again.
        self.readers_since_ms = self.now.wall_ms;
        Some(ClockChange::Trusted)
    }

    /// Returns the time by which ages are measured, in milliseconds since the epoch. In doubt, this is the wall clock.
    pub fn now_ms(&self) -> i64 {
        match self.doubt {
            Some(_) => self.now.wall_ms,
            None => self.agreed.wall_at_ms(self.now.now_ns),
        }
    }

    /// Returns why the wall clock is not trusted; `None` if it is trusted.
    pub fn doubted(&self) -> Option<ClockDoubt> {
        self.doubt.map(|(reason, _)| reason)
    }

    /// Returns the time of running in nanoseconds for which the doubt still lasts; 0 if there is no doubt.
    pub fn remaining_ns(&self) -> i64 {
        self.doubt
            .map_or(0, |(_, until_ns)| (until_ns - self.now.now_ns).max(0))
    }

    /// Returns the time in milliseconds for which a reader with its last commit at `committed_ms` did not commit
    /// although the archive was running. Returns `None` if this time is not known, because the clock is not trusted.
    pub fn reader_age_ms(&self, committed_ms: i64) -> Option<i64> {
        let since_ms = committed_ms.max(self.readers_since_ms);
        let age_ms = self.now_ms().saturating_sub(since_ms);
        self.doubt.is_none().then_some(age_ms)
    }

    fn doubt(&mut self, reason: ClockDoubt, wait_ns: i64) -> Option<ClockDoubt> {
        if self.wait_ns == 0 {
            return None;
        }
        let until_ns = self.now.now_ns.saturating_add(wait_ns);
        debug_assert!(
            (1..=self.wait_ns).contains(&wait_ns),
            "a doubt must end after at most {} ns, not after {wait_ns} ns",
            self.wait_ns
        );
        self.doubt = Some((reason, until_ns));
        Some(reason)
    }
}

impl Moment {
    /// Returns the time that the wall clock shows at `now_ns` if it is not set in between.
    fn wall_at_ms(self, now_ns: i64) -> i64 {
        self.wall_ms
            .saturating_add((now_ns - self.now_ns) / NS_PER_MS)
    }

    /// Returns by how much the wall clock was set since this moment.
    fn difference_ms(self, now: Self) -> i64 {
        now.wall_ms.saturating_sub(self.wall_at_ms(now.now_ns))
    }
}

fn is_step(by_ms: i64) -> bool {
    !(-STEP_LIMIT_MS..=STEP_LIMIT_MS).contains(&by_ms)
}

impl fmt::Display for ClockDoubt {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Start { by_ms } if *by_ms < 0 => write!(
                formatter,
                "the archive started {} before the last known time",
                Span(by_ms.saturating_neg())
            ),
            Self::Start { by_ms } => write!(
                formatter,
                "the archive started {} after the last known time",
                Span(*by_ms)
            ),
            Self::Step { by_ms } if *by_ms < 0 => write!(
                formatter,
                "the wall clock was set back by {}",
                Span(by_ms.saturating_neg())
            ),
            Self::Step { by_ms } => write!(
                formatter,
                "the wall clock was set forward by {}",
                Span(*by_ms)
            ),
            Self::Earlier => formatter.write_str("an earlier run did not trust the wall clock"),
        }
    }
}

/// A duration in milliseconds, shown in its largest whole unit.
pub struct Span(pub i64);

impl fmt::Display for Span {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (length, unit) = match self.0 {
            172_800_000.. => (self.0 / 86_400_000, "days"),
            7_200_000.. => (self.0 / 3_600_000, "hours"),
            120_000.. => (self.0 / 60_000, "minutes"),
            _ => (self.0 / 1_000, "seconds"),
        };
        write!(formatter, "{length} {unit}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY_MS: i64 = 24 * 3_600_000;
    const DAY_NS: i64 = DAY_MS * NS_PER_MS;
    const START: Moment = Moment {
        wall_ms: 1_000 * DAY_MS,
        now_ns: 7,
    };

    /// Returns the moment after `ran_ms` of running, at which the wall clock was set by `by_ms`.
    fn at(ran_ms: i64, by_ms: i64) -> Moment {
        Moment {
            wall_ms: START.wall_ms + ran_ms + by_ms,
            now_ns: START.now_ns + ran_ms * NS_PER_MS,
        }
    }

    fn started(last_by_ms: i64, remaining_ns: i64) -> RetentionClock {
        let earlier = EarlierTime {
            last_ms: Some(START.wall_ms + last_by_ms),
            remaining_ns,
        };
        RetentionClock::new(START, earlier, DAY_NS)
    }

    #[test]
    fn a_start_near_the_last_known_time_is_trusted_and_one_far_from_it_is_not() {
        for (last_by_ms, is_trusted) in [
            (0, true),
            (-START_LIMIT_MS, true),
            (-START_LIMIT_MS - 1, false),
            (STEP_LIMIT_MS, true),
            (STEP_LIMIT_MS + 1, false),
            (30 * DAY_MS, false),
            (i64::MAX - START.wall_ms, false),
        ] {
            let clock = started(last_by_ms, 0);
            assert_eq!(clock.doubted().is_none(), is_trusted, "{last_by_ms}");
        }
        let new = RetentionClock::new(START, EarlierTime::default(), DAY_NS);
        assert_eq!((new.doubted(), new.now_ms()), (None, START.wall_ms));
    }

    #[test]
    fn a_doubt_lasts_for_the_wait_also_over_starts() {
        let mut clock = started(-30 * DAY_MS, 0);
        assert_eq!(clock.remaining_ns(), DAY_NS);
        assert_eq!(clock.update(at(DAY_MS - 1, 0)), None);
        assert_eq!(clock.update(at(DAY_MS, 0)), Some(ClockChange::Trusted));
        assert_eq!(
            (clock.remaining_ns(), clock.now_ms()),
            (0, at(DAY_MS, 0).wall_ms)
        );
        let mut later = started(0, 5 * NS_PER_MS);
        assert_eq!(later.doubted(), Some(ClockDoubt::Earlier));
        assert_eq!(later.update(at(4, 0)), None);
        assert_eq!(later.update(at(5, 0)), Some(ClockChange::Trusted));
    }

    #[test]
    fn a_doubt_from_before_the_start_lasts_at_most_for_the_wait_of_this_start() {
        let mut clock = started(0, 2 * DAY_NS);
        assert_eq!(clock.remaining_ns(), DAY_NS);
        assert_eq!(clock.update(at(DAY_MS, 0)), Some(ClockChange::Trusted));
    }

    #[test]
    fn a_step_of_more_than_a_minute_is_doubted_and_ages_do_not_grow_by_it() {
        for by_ms in [
            -30 * DAY_MS,
            -STEP_LIMIT_MS - 1,
            STEP_LIMIT_MS + 1,
            30 * DAY_MS,
        ] {
            let mut clock = started(0, 0);
            let doubt = ClockDoubt::Step { by_ms };
            assert_eq!(
                clock.update(at(10, by_ms)),
                Some(ClockChange::Doubted(doubt))
            );
            assert_eq!(clock.reader_age_ms(START.wall_ms), None);
            // A second step begins the wait again.
            assert!(clock.update(at(DAY_MS, 3 * by_ms)).is_some());
            assert_eq!(clock.remaining_ns(), DAY_NS);
            // The clock is right again.
            assert_eq!(clock.update(at(DAY_MS + 5, 0)), Some(ClockChange::Trusted));
            assert_eq!(clock.reader_age_ms(START.wall_ms), Some(DAY_MS + 5));
        }
        let mut clock = started(0, 0);
        assert_eq!(clock.update(at(10, STEP_LIMIT_MS)), None);
        assert_eq!(clock.now_ms(), at(10, 0).wall_ms);
    }

    #[test]
    fn small_corrections_add_up_without_a_doubt() {
        let mut clock = started(0, 0);
        for hour in 1..1_000 {
            assert_eq!(clock.update(at(hour * 3_600_000, hour * 1_000)), None);
        }
        assert_eq!(clock.now_ms(), at(999 * 3_600_000, 999_000).wall_ms);
    }

    #[test]
    fn readers_get_their_whole_age_again_when_a_step_becomes_trusted() {
        let mut clock = started(0, 0);
        clock.update(at(10, 30 * DAY_MS));
        clock.trust();
        assert_eq!(clock.reader_age_ms(START.wall_ms), Some(0));
        clock.update(at(15, 30 * DAY_MS));
        assert_eq!(clock.reader_age_ms(START.wall_ms), Some(5));
        assert_eq!(clock.trust(), None);
    }

    #[test]
    fn without_a_wait_every_clock_is_trusted() {
        let earlier = EarlierTime {
            last_ms: Some(0),
            remaining_ns: 0,
        };
        let mut clock = RetentionClock::new(START, earlier, 0);
        assert_eq!(clock.update(at(10, 30 * DAY_MS)), None);
        assert_eq!(clock.now_ms(), at(10, 30 * DAY_MS).wall_ms);
    }
}
