//! Idle strategies for loops written in Python.

use std::sync::{Mutex, PoisonError};

use aeron_agent::{
    BackoffIdleStrategy, BusySpinIdleStrategy, IdleStrategy, IdleStrategySpec, NoOpIdleStrategy,
    SleepingIdleStrategy, SleepingMillisIdleStrategy, YieldingIdleStrategy,
};
use pyo3::prelude::*;

use crate::argument;
use crate::errors::raise;

/// Decides what a loop does when there was nothing to do. Meant for one loop; thread-safe.
#[pyclass(frozen, subclass, module = "aeron._aeron", name = "IdleStrategy")]
pub struct PyIdleStrategy {
    strategy: Mutex<Box<dyn IdleStrategy>>,
    /// Whether waiting gives other Python threads a chance to run.
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
        // The lock is taken without the GIL, so that two threads that share a strategy cannot wait for each other.
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
    /// The strategy of this name (`spin`, `yield`, `backoff`, `sleep-ns`, `sleep-ms`, `noop`) with these arguments, both in
    /// the language of `AERON_*_IDLE_STRATEGY` and its `_INIT_ARGS`.
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

    /// Waits if `work_count` is 0 or less, else starts over.
    #[pyo3(signature = (work_count = 0))]
    fn idle(&self, py: Python<'_>, #[pyo3(from_py_with = argument::work_count)] work_count: i64) {
        if work_count > 0 {
            self.reset(py);
        } else {
            self.with(py, |strategy| strategy.idle_once());
        }
    }

    /// There is work again: the next wait is as short as the first one.
    fn reset(&self, py: Python<'_>) {
        self.with(py, |strategy| strategy.reset());
    }

    /// `while not publication.offer(data): idle()`.
    #[pyo3(signature = (work_count = 0))]
    fn __call__(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = argument::work_count)] work_count: i64,
    ) {
        self.idle(py, work_count);
    }

    /// The short name of the strategy.
    #[getter]
    fn alias(&self, py: Python<'_>) -> &'static str {
        self.with(py, |strategy| strategy.alias())
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        format!("<IdleStrategy {}>", self.alias(py))
    }
}

/// One Python class for each strategy.
macro_rules! strategies {
    ($($(#[$doc:meta])* $class:ident($python:literal) ($($argument:ident: $type:ty = $default:tt),*) $gil:ident $make:expr;)*) => {$(
        $(#[$doc])*
        #[pyclass(frozen, extends = PyIdleStrategy, module = "aeron._aeron", name = $python)]
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
    /// Spins: the shortest wait, and a whole core. Holds the GIL. For one loop; thread-safe.
    PyBusySpin("BusySpinIdleStrategy") () holding_gil BusySpinIdleStrategy;
    /// Lets other threads run, without sleeping. For one loop; thread-safe.
    PyYielding("YieldingIdleStrategy") () releasing_gil YieldingIdleStrategy;
    /// Does nothing. For one loop; thread-safe.
    PyNoOp("NoOpIdleStrategy") () holding_gil NoOpIdleStrategy;
    /// Spins, then yields, then parks for longer and longer; starts over when there is work. For one loop; thread-safe.
    ///
    /// `max_idle_park_ns`: after a second without work parks grow up to this; 0 keeps them at `max_park_ns`.
    PyBackoff("BackoffIdleStrategy") (
        max_spins: u64 = 10,
        max_yields: u64 = 5,
        min_park_ns: u64 = 1_000,
        max_park_ns: u64 = 1_000_000,
        max_idle_park_ns: u64 = 0
    ) releasing_gil
        BackoffIdleStrategy::new(max_spins, max_yields, min_park_ns, max_park_ns).with_max_idle_park(max_idle_park_ns);
    /// Sleeps for `period_ns` nanoseconds. For one loop; thread-safe.
    PySleeping("SleepingIdleStrategy") (period_ns: u64 = 1_000) releasing_gil SleepingIdleStrategy::new(period_ns);
    /// Sleeps for `period_ms` milliseconds. For one loop; thread-safe.
    PySleepingMillis("SleepingMillisIdleStrategy") (period_ms: u64 = 1) releasing_gil SleepingMillisIdleStrategy::new(period_ms);
}
