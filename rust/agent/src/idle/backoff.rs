//! [`BackoffIdleStrategy`]: spins, then yields, then parks for increasing times.

use super::{IdleStrategy, park_ns};

/// `backoff`: spins a few times, then yields a few times, then parks, twice as long each time up to a maximum.
///
/// [`with_max_idle_park`](BackoffIdleStrategy::with_max_idle_park) allows longer parks after a second without work, so
/// that an idle process uses almost no processor time.
///
/// [`with_busy_yields`](BackoffIdleStrategy::with_busy_yields) allows more yields before the first park while work is
/// frequent. If other threads use all processors, even a short park lasts until one of these threads yields. The next
/// work is then delayed.
#[derive(Debug, Clone)]
pub struct BackoffIdleStrategy {
    max_spins: u64,
    max_yields: u64,
    min_park_ns: u64,
    max_park_ns: u64,
    max_idle_park_ns: u64,
    busy_yields: u64,
    /// Number of yields in the current time without work, from `max_yields` to `busy_yields`.
    yields_now: u64,
    state: BackoffState,
}

/// After this total time of parks without work, the parks grow up to `max_idle_park_ns`.
const IDLE_AFTER_NS: u64 = 1_000_000_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BackoffState {
    NotIdle,
    Spinning { spins: u64 },
    Yielding { yields: u64 },
    Parking { period_ns: u64, parked_ns: u64 },
}

/// Action of one wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wait {
    Not,
    Spin,
    Yield,
    ParkNs(u64),
}

impl BackoffIdleStrategy {
    /// The short name of the strategy.
    pub const ALIAS: &str = "backoff";
    /// Default number of spins.
    pub const DEFAULT_MAX_SPINS: u64 = 10;
    /// Default number of yields, as in the C driver (Agrona's default is 5).
    pub const DEFAULT_MAX_YIELDS: u64 = 20;
    /// Default length of the first park.
    pub const DEFAULT_MIN_PARK_NS: u64 = 1_000;
    /// Default maximum length of a park.
    pub const DEFAULT_MAX_PARK_NS: u64 = 1_000_000;

    /// Creates a strategy that spins, yields, then parks from `min_park_ns` to `max_park_ns`.
    pub fn new(max_spins: u64, max_yields: u64, min_park_ns: u64, max_park_ns: u64) -> Self {
        Self {
            max_spins,
            max_yields,
            min_park_ns,
            max_park_ns,
            max_idle_park_ns: max_park_ns,
            busy_yields: max_yields,
            yields_now: max_yields,
            state: BackoffState::NotIdle,
        }
    }

    /// If a time without work ends before the second park, the next time without work has twice as many yields, up to
    /// `busy_yields`. After a longer time without work, the number is `max_yields` again. If `busy_yields` is below
    /// `max_yields`, it has no effect.
    pub fn with_busy_yields(mut self, busy_yields: u64) -> Self {
        self.busy_yields = busy_yields.max(self.max_yields);
        self
    }

    /// After a second without work, the parks continue to double up to `max_idle_park_ns`. A value below `max_park_ns`
    /// has no effect.
    pub fn with_max_idle_park(mut self, max_idle_park_ns: u64) -> Self {
        self.max_idle_park_ns = max_idle_park_ns.max(self.max_park_ns);
        self
    }

    /// Returns the next wait. The total time of parks is the sum of the requested times, because reading a clock would
    /// cost more than a wait. Real parks are never shorter than requested.
    fn next_wait(&mut self) -> Wait {
        let (state, wait) = match self.state {
            BackoffState::NotIdle => (BackoffState::Spinning { spins: 1 }, Wait::Not),
            BackoffState::Spinning { spins } if spins < self.max_spins => {
                (BackoffState::Spinning { spins: spins + 1 }, Wait::Spin)
            }
            BackoffState::Spinning { .. } => (BackoffState::Yielding { yields: 0 }, Wait::Spin),
            BackoffState::Yielding { yields } if yields < self.yields_now => {
                (BackoffState::Yielding { yields: yields + 1 }, Wait::Yield)
            }
            BackoffState::Yielding { .. } => (
                BackoffState::Parking {
                    period_ns: self.min_park_ns,
                    parked_ns: 0,
                },
                Wait::Not,
            ),
            BackoffState::Parking {
                period_ns,
                parked_ns,
            } => {
                let parked_ns = parked_ns.saturating_add(period_ns);
                let longest_ns = if parked_ns < IDLE_AFTER_NS {
                    self.max_park_ns
                } else {
                    self.max_idle_park_ns
                };
                (
                    BackoffState::Parking {
                        period_ns: period_ns.saturating_mul(2).min(longest_ns),
                        parked_ns,
                    },
                    Wait::ParkNs(period_ns),
                )
            }
        };
        self.state = state;
        wait
    }
}

impl Default for BackoffIdleStrategy {
    fn default() -> Self {
        Self::new(
            Self::DEFAULT_MAX_SPINS,
            Self::DEFAULT_MAX_YIELDS,
            Self::DEFAULT_MIN_PARK_NS,
            Self::DEFAULT_MAX_PARK_NS,
        )
    }
}

impl IdleStrategy for BackoffIdleStrategy {
    fn idle_once(&mut self) {
        match self.next_wait() {
            Wait::Not => {}
            Wait::Spin => std::hint::spin_loop(),
            Wait::Yield => std::thread::yield_now(),
            Wait::ParkNs(period_ns) => park_ns(period_ns),
        }
    }

    fn reset(&mut self) {
        self.yields_now = match self.state {
            BackoffState::NotIdle => self.yields_now,
            BackoffState::Parking { parked_ns, .. } if parked_ns > self.min_park_ns => {
                self.max_yields
            }
            _ => self.yields_now.saturating_mul(2).min(self.busy_yields),
        };
        self.state = BackoffState::NotIdle;
    }

    fn alias(&self) -> &'static str {
        Self::ALIAS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waits(strategy: &mut BackoffIdleStrategy, count: usize) -> Vec<Wait> {
        (0..count).map(|_| strategy.next_wait()).collect()
    }

    #[test]
    fn spins_then_yields_then_parks_twice_as_long_each_time_03_121() {
        let mut strategy = BackoffIdleStrategy::new(2, 3, 100, 350);
        let expected = [
            Wait::Not,
            Wait::Spin,
            Wait::Spin,
            Wait::Yield,
            Wait::Yield,
            Wait::Yield,
            Wait::Not,
            Wait::ParkNs(100),
            Wait::ParkNs(200),
            Wait::ParkNs(350),
            Wait::ParkNs(350),
        ];
        assert_eq!(waits(&mut strategy, expected.len()), expected);
    }

    /// After work, the strategy begins with its first step again.
    #[test]
    fn work_resets_the_idle_strategy_03_121() {
        let mut strategy = BackoffIdleStrategy::new(1, 1, 100, 800);
        let first = waits(&mut strategy, 8);
        strategy.idle(1);
        assert_eq!(waits(&mut strategy, 8), first);
    }

    #[test]
    fn the_defaults_equal_the_defaults_of_the_c_driver_03_121() {
        let mut strategy = BackoffIdleStrategy::default();
        let waits = waits(&mut strategy, 60);
        assert_eq!(waits.iter().filter(|wait| **wait == Wait::Spin).count(), 10);
        assert_eq!(
            waits.iter().filter(|wait| **wait == Wait::Yield).count(),
            20
        );
        let parks: Vec<_> = waits
            .iter()
            .filter_map(|wait| {
                if let Wait::ParkNs(ns) = wait {
                    Some(*ns)
                } else {
                    None
                }
            })
            .collect();
        assert_eq!(
            (parks[0], parks[1], *parks.last().unwrap()),
            (1_000, 2_000, 1_000_000)
        );
        assert_eq!(strategy.alias(), "backoff");
    }

    /// After a second of parks, `max_idle_park_ns` is the limit of a park instead of `max_park_ns`.
    #[test]
    fn after_a_second_of_parks_the_parks_grow_until_there_is_work() {
        let mut strategy = BackoffIdleStrategy::default().with_max_idle_park(10_000_000);
        let mut parked_ns = 0;
        let mut longest_before_ns = 0;
        while parked_ns < 1_000_000_000 {
            if let Wait::ParkNs(period_ns) = strategy.next_wait() {
                parked_ns += period_ns;
                longest_before_ns = longest_before_ns.max(period_ns);
            }
        }
        assert_eq!(longest_before_ns, 1_000_000);
        let after = waits(&mut strategy, 5)
            .into_iter()
            .map(|wait| if let Wait::ParkNs(ns) = wait { ns } else { 0 });
        assert_eq!(
            after.collect::<Vec<_>>(),
            [2_000_000, 4_000_000, 8_000_000, 10_000_000, 10_000_000]
        );
        strategy.reset();
        assert_eq!(strategy.next_wait(), Wait::Not);
    }

    #[test]
    fn while_work_is_frequent_the_strategy_yields_more_before_it_parks() {
        let mut strategy = BackoffIdleStrategy::new(0, 2, 100, 800).with_busy_yields(7);
        let mut yields_until_first_park = || {
            let waits = std::iter::repeat_with(|| strategy.next_wait());
            let waits = waits.take_while(|wait| !matches!(wait, Wait::ParkNs(_)));
            let yields = waits.filter(|wait| *wait == Wait::Yield).count();
            strategy.reset();
            yields
        };
        let yields: Vec<_> = (0..4).map(|_| yields_until_first_park()).collect();
        assert_eq!(yields, [2, 4, 7, 7]);
        while strategy.next_wait() != Wait::ParkNs(200) {}
        strategy.reset();
        let waits = waits(&mut strategy, 20);
        let yields = waits.iter().filter(|wait| **wait == Wait::Yield).count();
        assert_eq!(
            yields, 2,
            "a wait with a second park resets the number of yields"
        );
    }

    /// Without `with_max_idle_park`, a park is never longer than `max_park_ns`.
    #[test]
    fn without_max_idle_park_no_park_exceeds_max_park() {
        let mut strategy = BackoffIdleStrategy::new(0, 0, 1_000_000_000, 1_000_000_000);
        assert_eq!(
            waits(&mut strategy, 8).last(),
            Some(&Wait::ParkNs(1_000_000_000))
        );
    }
}
