//! Backing off: spin, then yield, then park for longer and longer.

use super::{IdleStrategy, park_ns};

/// `backoff`: spins a few times, then yields a few times, then parks, twice as long each time up to a maximum.
///
/// With [`with_max_idle_park`](BackoffIdleStrategy::with_max_idle_park) a loop that has parked for a second in all without any work
/// parks for longer still, so that an idle process costs next to nothing.
///
/// With [`with_busy_yields`](BackoffIdleStrategy::with_busy_yields) a loop that keeps finding work yields for longer before it parks:
/// where other threads take the processors, a short park lasts until one of them gives way, and the work waits.
#[derive(Debug, Clone)]
pub struct BackoffIdleStrategy {
    max_spins: u64,
    max_yields: u64,
    min_park_ns: u64,
    max_park_ns: u64,
    max_idle_park_ns: u64,
    busy_yields: u64,
    /// How often it yields this time, from `max_yields` to `busy_yields`.
    yields_now: u64,
    state: State,
}

/// Without work for this long in parks, the strategy goes up to `max_idle_park_ns`.
const IDLE_AFTER_NS: u64 = 1_000_000_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    NotIdle,
    Spinning { spins: u64 },
    Yielding { yields: u64 },
    Parking { period_ns: u64, parked_ns: u64 },
}

/// What one wait does.
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
    /// How often it spins and yields by default.
    pub const DEFAULT_MAX_SPINS: u64 = 10;
    /// How often it yields by default, as the C driver (Agrona's own default is 5).
    pub const DEFAULT_MAX_YIELDS: u64 = 20;
    /// The first park by default.
    pub const DEFAULT_MIN_PARK_NS: u64 = 1_000;
    /// The longest park by default.
    pub const DEFAULT_MAX_PARK_NS: u64 = 1_000_000;

    /// Spins, yields, then parks from `min_park_ns` to `max_park_ns`.
    pub fn new(max_spins: u64, max_yields: u64, min_park_ns: u64, max_park_ns: u64) -> Self {
        Self {
            max_spins,
            max_yields,
            min_park_ns,
            max_park_ns,
            max_idle_park_ns: max_park_ns,
            busy_yields: max_yields,
            yields_now: max_yields,
            state: State::NotIdle,
        }
    }

    /// Each wait that ends before the second park doubles the yields of the next one up to `busy_yields`; a longer one brings
    /// them back to `max_yields`. A value under `max_yields` has no effect.
    pub fn with_busy_yields(mut self, busy_yields: u64) -> Self {
        self.busy_yields = busy_yields.max(self.max_yields);
        self
    }

    /// After a second without work the parks go on doubling up to `max_idle_park_ns`; a value under `max_park_ns` has no effect.
    pub fn with_max_idle_park(mut self, max_idle_park_ns: u64) -> Self {
        self.max_idle_park_ns = max_idle_park_ns.max(self.max_park_ns);
        self
    }

    /// The time parked is the sum of the periods: a clock would cost more than a wait, and real parks are never shorter.
    fn next_wait(&mut self) -> Wait {
        let (state, wait) = match self.state {
            State::NotIdle => (State::Spinning { spins: 1 }, Wait::Not),
            State::Spinning { spins } if spins < self.max_spins => {
                (State::Spinning { spins: spins + 1 }, Wait::Spin)
            }
            State::Spinning { .. } => (State::Yielding { yields: 0 }, Wait::Spin),
            State::Yielding { yields } if yields < self.yields_now => {
                (State::Yielding { yields: yields + 1 }, Wait::Yield)
            }
            State::Yielding { .. } => (
                State::Parking {
                    period_ns: self.min_park_ns,
                    parked_ns: 0,
                },
                Wait::Not,
            ),
            State::Parking {
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
                    State::Parking {
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
            State::NotIdle => self.yields_now,
            State::Parking { parked_ns, .. } if parked_ns > self.min_park_ns => self.max_yields,
            _ => self.yields_now.saturating_mul(2).min(self.busy_yields),
        };
        self.state = State::NotIdle;
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

    #[test]
    fn work_begins_it_anew_03_121() {
        let mut strategy = BackoffIdleStrategy::new(1, 1, 100, 800);
        let first = waits(&mut strategy, 8);
        strategy.idle(1);
        assert_eq!(waits(&mut strategy, 8), first);
    }

    #[test]
    fn defaults_are_those_of_the_c_driver_03_121() {
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

    #[test]
    fn after_a_second_of_parking_it_parks_for_longer_until_there_is_work() {
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
    fn while_work_keeps_coming_it_yields_for_longer_before_it_parks() {
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
        assert_eq!(yields, 2, "a longer wait ends that");
    }

    #[test]
    fn without_the_option_the_longest_park_stays_for_ever() {
        let mut strategy = BackoffIdleStrategy::new(0, 0, 1_000_000_000, 1_000_000_000);
        assert_eq!(
            waits(&mut strategy, 8).last(),
            Some(&Wait::ParkNs(1_000_000_000))
        );
    }
}
