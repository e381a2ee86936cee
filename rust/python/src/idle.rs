//! Idle strategies for loops written in Python.

use std::sync::{Mutex, PoisonError};

use aeron_agent::{
    BackoffIdleStrategy, BusySpinIdleStrategy, IdleStrategy, IdleStrategySpec, NoOpIdleStrategy,
    SleepingIdleStrategy, SleepingMillisIdleStrategy, YieldingIdleStrategy,
};
use pyo3::prelude::*;

use crate::argument;
use crate::errors::raise;

/// The behaviour of a loop that finds no work.
///
/// Use one strategy for each loop. Calling the object is the same as calling `idle`. Thread-safe.
///
/// Example:
///     ```python
///     idle = aeron.BackoffIdleStrategy()
///     while running:
///         idle(subscription.poll(handler))
///     ```
#[pyclass(frozen, subclass, module = "aeron", name = "IdleStrategy")]
pub struct PyIdleStrategy {
    strategy: Mutex<Box<dyn IdleStrategy>>,
    /// Whether other Python threads can run during a wait.
    releases_gil: bool,
}

impl PyIdleStrategy {
    fn holding_gil(strategy: impl IdleStrategy + 'static) -> Self {
        Self {
            strategy: Mutex::new(Box::new(strategy)),
            releases_gil: false,
        }
    }

    fn releasing_gil(strategy: impl IdleStrategy + 'static) -> Self {
        Self {
            strategy: Mutex::new(Box::new(strategy)),
            releases_gil: true,
        }
    }

    fn with<R: Send>(
        &self,
        py: Python<'_>,
        f: impl FnOnce(&mut Box<dyn IdleStrategy>) -> R + Send,
    ) -> R {
        // A strategy that releases the GIL does so before it takes the lock. Otherwise two threads that share the
        // strategy could wait for each other: one with the lock for the GIL, and the other with the GIL for the lock.
        let locked = || f(&mut self.strategy.lock().unwrap_or_else(PoisonError::into_inner));
        if self.releases_gil {
            py.detach(locked)
        } else {
            locked()
        }
    }
}

#[pymethods]
impl PyIdleStrategy {
    /// Creates an idle strategy from its name and arguments.
    ///
    /// Name and arguments are texts, as in the driver's settings `AERON_*_IDLE_STRATEGY` and
    /// `AERON_*_IDLE_STRATEGY_INIT_ARGS`.
    ///
    /// Args:
    ///     name: `spin`, `yield`, `backoff`, `sleep-ns`, `sleep-ms` or `noop`.
    ///     arguments: Arguments of the strategy. `None` stands for its defaults.
    ///
    /// Returns:
    ///     The strategy.
    ///
    /// Raises:
    ///     ConfigurationError: If the name is not known, or the arguments are not valid.
    #[staticmethod]
    #[pyo3(signature = (name, arguments = None))]
    fn parse(
        #[pyo3(from_py_with = argument::name)] name: String,
        #[pyo3(from_py_with = argument::arguments)] arguments: Option<String>,
    ) -> PyResult<Self> {
        let spec = IdleStrategySpec::parse(&name, arguments.as_deref())
            .map_err(|error| raise("ConfigurationError", error.to_string()))?;
        Ok(Self {
            strategy: Mutex::new(spec.build()),
            releases_gil: true,
        })
    }

    /// Waits if there was no work, else resets the strategy.
    ///
    /// Args:
    ///     work_count: The amount of work of the last duty cycle. If it is 0 or less, the call waits.
    #[pyo3(signature = (work_count = 0))]
    fn idle(&self, py: Python<'_>, #[pyo3(from_py_with = argument::work_count)] work_count: i64) {
        if work_count > 0 {
            self.reset(py);
        } else {
            self.with(py, |strategy| strategy.idle_once());
        }
    }

    /// Resets the strategy: the next wait is as short as the first wait.
    fn reset(&self, py: Python<'_>) {
        self.with(py, |strategy| strategy.reset());
    }

    /// Calls `idle`, so that a loop can be written as `while not publication.offer(data): idle()`.
    #[pyo3(signature = (work_count = 0))]
    fn __call__(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = argument::work_count)] work_count: i64,
    ) {
        self.idle(py, work_count);
    }

    /// Short name of the strategy.
    #[getter]
    fn alias(&self, py: Python<'_>) -> &'static str {
        self.with(py, |strategy| strategy.alias())
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        format!("<IdleStrategy {}>", self.alias(py))
    }
}

/// Defines one Python class for each strategy.
macro_rules! strategies {
    ($($(#[$doc:meta])* $class:ident($python:literal) ($($argument:ident: $type:ty = $default:tt),*) $gil:ident $make:expr;)*) => {$(
        $(#[$doc])*
        #[pyclass(frozen, extends = PyIdleStrategy, module = "aeron", name = $python)]
        pub struct $class;

        #[pymethods]
        impl $class {
            #[new]
            #[pyo3(signature = ($($argument = $default),*))]
            fn new($(#[pyo3(from_py_with = argument::$argument)] $argument: $type),*) -> PyClassInitializer<Self> {
                PyClassInitializer::from(PyIdleStrategy::$gil($make)).add_subclass(Self)
            }
        }
    )*};
}

strategies! {
    /// Spins: the shortest wait, which occupies a core and keeps the GIL. Use one for each loop. Thread-safe.
    PyBusySpin("BusySpinIdleStrategy") () holding_gil BusySpinIdleStrategy;
    /// Yields to other threads, without sleeping. Use one for each loop. Thread-safe.
    PyYielding("YieldingIdleStrategy") () releasing_gil YieldingIdleStrategy;
    /// Does nothing, and keeps the GIL. Use one for each loop. Thread-safe.
    PyNoOp("NoOpIdleStrategy") () holding_gil NoOpIdleStrategy;
    /// Spins, then yields, then parks, each time for longer. After work, the strategy starts again with spins.
    ///
    /// Use one for each loop. Thread-safe.
    ///
    /// Args:
    ///     max_spins: Number of spins before the first yield.
    ///     max_yields: Number of yields before the first park.
    ///     min_park_ns: Length of the first park, in nanoseconds. Each park is twice as long as the previous
    ///         park.
    ///     max_park_ns: Length of the longest park, in nanoseconds.
    ///     max_idle_park_ns: Length of the longest park after a second without work, in nanoseconds. 0 stands
    ///         for `max_park_ns`.
    PyBackoff("BackoffIdleStrategy") (
        max_spins: u64 = 10,
        max_yields: u64 = 5,
        min_park_ns: u64 = 1_000,
        max_park_ns: u64 = 1_000_000,
        max_idle_park_ns: u64 = 0
    ) releasing_gil
        BackoffIdleStrategy::new(max_spins, max_yields, min_park_ns, max_park_ns).with_max_idle_park(max_idle_park_ns);
    /// Sleeps for nanoseconds. Use one for each loop. Thread-safe.
    ///
    /// Args:
    ///     period_ns: Length of a sleep, in nanoseconds.
    PySleeping("SleepingIdleStrategy") (period_ns: u64 = 1_000) releasing_gil SleepingIdleStrategy::new(period_ns);
    /// Sleeps for milliseconds. Use one for each loop. Thread-safe.
    ///
    /// Args:
    ///     period_ms: Length of a sleep, in milliseconds.
    PySleepingMillis("SleepingMillisIdleStrategy") (period_ms: u64 = 1) releasing_gil SleepingMillisIdleStrategy::new(period_ms);
}
