//! Parses idle strategies: a name as in `AERON_CONDUCTOR_IDLE_STRATEGY`, and arguments as in
//! `AERON_CONDUCTOR_IDLE_STRATEGY_INIT_ARGS`.

use super::{
    BackoffIdleStrategy, BusySpinIdleStrategy, IdleStrategy, NoOpIdleStrategy,
    SleepingIdleStrategy, SleepingMillisIdleStrategy, YieldingIdleStrategy,
};
use crate::value::parse_duration_ns;

/// An idle strategy and its settings, as a value for configurations. [`build`](Self::build) creates the strategy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdleStrategySpec {
    /// `spin`
    BusySpin,
    /// `yield`
    Yielding,
    /// `noop`
    NoOp,
    /// `sleep-ns`
    Sleeping {
        /// Length of each park in nanoseconds.
        period_ns: u64,
    },
    /// `sleep-ms`
    SleepingMillis {
        /// Length of each park in milliseconds.
        period_ms: u64,
    },
    /// `backoff`
    Backoff {
        /// Number of spins.
        max_spins: u64,
        /// Number of yields after the spins.
        max_yields: u64,
        /// Length of the first park in nanoseconds.
        min_park_ns: u64,
        /// Maximum length of a park in nanoseconds.
        max_park_ns: u64,
        /// Maximum length of a park after a second without work, in nanoseconds. A value up to `max_park_ns` disables
        /// longer parks.
        max_idle_park_ns: u64,
        /// Maximum number of yields while work is frequent. A value up to `max_yields` disables additional yields.
        busy_yields: u64,
    },
}

/// Reason why a name and its arguments are not an idle strategy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdleStrategyError {
    /// No strategy has this name.
    #[error(
        "could not find idle strategy {0}: use one of backoff, yield, spin, noop, sleep-ns, sleeping, sleep-ms"
    )]
    UnknownName(String),
    /// The arguments are invalid for the strategy.
    #[error("invalid idle strategy arguments: {name}={arguments}, expected {expected}")]
    BadArguments {
        /// Name of the strategy.
        name: String,
        /// The arguments as given.
        arguments: String,
        /// Expected form of the arguments.
        expected: &'static str,
    },
}

impl IdleStrategySpec {
    /// Returns the strategy for a name: an alias, a name of the C driver, or the name of an Agrona class.
    ///
    /// `backoff` takes `maxSpins-maxYields-minPark-maxPark` (default `10-20-1us-1ms`). `sleep-ns` and `sleeping` take a
    /// duration (default 1 ns, as in the C driver). `sleep-ms` takes a number of milliseconds (default 1). The others
    /// ignore arguments: the class `SleepingIdleStrategy` always parks for 1 µs.
    pub fn parse(name: &str, arguments: Option<&str>) -> Result<Self, IdleStrategyError> {
        let bad_arguments = |expected| IdleStrategyError::BadArguments {
            name: name.to_owned(),
            arguments: arguments.unwrap_or_default().to_owned(),
            expected,
        };
        match name.strip_prefix("org.agrona.concurrent.").unwrap_or(name) {
            "spin" | "aeron_idle_strategy_busy_spinning" | "BusySpinIdleStrategy" => {
                Ok(Self::BusySpin)
            }
            "yield" | "aeron_idle_strategy_yielding" | "YieldingIdleStrategy" => Ok(Self::Yielding),
            "noop" | "aeron_idle_strategy_noop" | "NoOpIdleStrategy" => Ok(Self::NoOp),
            "sleeping" | "sleep-ns" | "aeron_idle_strategy_sleeping" => {
                let period_ns = arguments
                    .map_or(Some(1), duration_ns)
                    .ok_or_else(|| bad_arguments("a duration"))?;
                Ok(Self::Sleeping { period_ns })
            }
            "SleepingIdleStrategy" => Ok(Self::Sleeping { period_ns: 1_000 }),
            "sleep-ms" | "SleepingMillisIdleStrategy" => {
                let period_ms = arguments.map_or(Some(1), |text| text.parse().ok());
                Ok(Self::SleepingMillis {
                    period_ms: period_ms
                        .ok_or_else(|| bad_arguments("a number of milliseconds"))?,
                })
            }
            "backoff" | "aeron_idle_strategy_backoff" | "BackoffIdleStrategy" => arguments
                .map_or(Some(Self::default()), parse_backoff)
                .ok_or_else(|| bad_arguments("maxSpins-maxYields-minPark-maxPark")),
            _ => Err(IdleStrategyError::UnknownName(name.to_owned())),
        }
    }

    /// Creates a strategy for one loop.
    pub fn build(self) -> Box<dyn IdleStrategy> {
        match self {
            Self::BusySpin => Box::new(BusySpinIdleStrategy),
            Self::Yielding => Box::new(YieldingIdleStrategy),
            Self::NoOp => Box::new(NoOpIdleStrategy),
            Self::Sleeping { period_ns } => Box::new(SleepingIdleStrategy::new(period_ns)),
            Self::SleepingMillis { period_ms } => {
                Box::new(SleepingMillisIdleStrategy::new(period_ms))
            }
            Self::Backoff {
                max_spins,
                max_yields,
                min_park_ns,
                max_park_ns,
                max_idle_park_ns,
                busy_yields,
            } => Box::new(
                BackoffIdleStrategy::new(max_spins, max_yields, min_park_ns, max_park_ns)
                    .with_max_idle_park(max_idle_park_ns)
                    .with_busy_yields(busy_yields),
            ),
        }
    }
}

/// The C driver's backoff strategy.
impl Default for IdleStrategySpec {
    fn default() -> Self {
        Self::Backoff {
            max_spins: BackoffIdleStrategy::DEFAULT_MAX_SPINS,
            max_yields: BackoffIdleStrategy::DEFAULT_MAX_YIELDS,
            min_park_ns: BackoffIdleStrategy::DEFAULT_MIN_PARK_NS,
            max_park_ns: BackoffIdleStrategy::DEFAULT_MAX_PARK_NS,
            max_idle_park_ns: BackoffIdleStrategy::DEFAULT_MAX_PARK_NS,
            busy_yields: BackoffIdleStrategy::DEFAULT_MAX_YIELDS,
        }
    }
}

fn parse_backoff(arguments: &str) -> Option<IdleStrategySpec> {
    let fields: Vec<_> = arguments.split('-').collect();
    let [max_spins, max_yields, min_park, max_park] = fields[..] else {
        return None;
    };
    let max_yields = max_yields.parse().ok()?;
    let max_park_ns = duration_ns(max_park)?;
    Some(IdleStrategySpec::Backoff {
        max_spins: max_spins.parse().ok()?,
        max_yields,
        min_park_ns: duration_ns(min_park)?,
        max_park_ns,
        max_idle_park_ns: max_park_ns,
        busy_yields: max_yields,
    })
}

fn duration_ns(text: &str) -> Option<u64> {
    parse_duration_ns(text).ok()?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(name: &str, arguments: Option<&str>) -> IdleStrategySpec {
        IdleStrategySpec::parse(name, arguments).unwrap()
    }

    #[test]
    fn every_name_of_the_c_driver_is_known_03_121() {
        use IdleStrategySpec::*;
        let names = [
            ("sleeping", Sleeping { period_ns: 1 }),
            ("sleep-ns", Sleeping { period_ns: 1 }),
            ("aeron_idle_strategy_sleeping", Sleeping { period_ns: 1 }),
            ("yield", Yielding),
            ("aeron_idle_strategy_yielding", Yielding),
            ("spin", BusySpin),
            ("aeron_idle_strategy_busy_spinning", BusySpin),
            ("noop", NoOp),
            ("aeron_idle_strategy_noop", NoOp),
            ("backoff", IdleStrategySpec::default()),
            ("aeron_idle_strategy_backoff", IdleStrategySpec::default()),
        ];
        for (name, expected) in names {
            assert_eq!(parsed(name, None), expected, "{name}");
        }
    }

    #[test]
    fn each_class_name_of_agrona_is_a_name_of_its_strategy() {
        let names = [
            ("BusySpinIdleStrategy", "spin"),
            ("YieldingIdleStrategy", "yield"),
            ("NoOpIdleStrategy", "noop"),
            ("SleepingIdleStrategy", "sleep-ns"),
            ("SleepingMillisIdleStrategy", "sleep-ms"),
            ("BackoffIdleStrategy", "backoff"),
        ];
        for (class, alias) in names {
            assert_eq!(
                parsed(&format!("org.agrona.concurrent.{class}"), None)
                    .build()
                    .alias(),
                alias
            );
        }
        assert_eq!(
            parsed("SleepingIdleStrategy", None),
            IdleStrategySpec::Sleeping { period_ns: 1_000 }
        );
    }

    #[test]
    fn arguments_set_the_fields_of_the_strategy_03_121() {
        assert_eq!(
            parsed("sleep-ns", Some("1ms")),
            IdleStrategySpec::Sleeping {
                period_ns: 1_000_000
            }
        );
        assert_eq!(
            parsed("sleep-ms", Some("5")),
            IdleStrategySpec::SleepingMillis { period_ms: 5 }
        );
        assert_eq!(
            parsed("backoff", Some("1-2-3us-4ms")),
            IdleStrategySpec::Backoff {
                max_spins: 1,
                max_yields: 2,
                min_park_ns: 3_000,
                max_park_ns: 4_000_000,
                max_idle_park_ns: 4_000_000,
                busy_yields: 2
            }
        );
        assert_eq!(parsed("spin", Some("whatever")), IdleStrategySpec::BusySpin);
    }

    /// If the name of a strategy is unknown or its arguments are malformed, the driver refuses to start. The driver's
    /// own tests check this.
    #[test]
    fn unknown_names_and_malformed_arguments_are_refused() {
        let unknown = IdleStrategySpec::parse("Backoff", None);
        assert_eq!(
            unknown,
            Err(IdleStrategyError::UnknownName("Backoff".to_owned()))
        );
        for (name, arguments) in [
            ("backoff", "1-2-3"),
            ("backoff", "1-2-3-4-5"),
            ("backoff", "x-2-3-4"),
            ("backoff", "1-2-3h-4"),
            ("backoff", ""),
            ("sleeping", "soon"),
            ("sleep-ms", "1ms"),
        ] {
            let refused = IdleStrategySpec::parse(name, Some(arguments));
            assert!(
                matches!(refused, Err(IdleStrategyError::BadArguments { .. })),
                "{name} {arguments}"
            );
        }
    }
}
