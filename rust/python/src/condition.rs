//! [`Condition`]: the condition for which a coroutine waits. It can be checked without Python.

use std::sync::Arc;

use pyo3::prelude::*;

use crate::fork::OfProcess;

/// A function that returns whether a wait is over. Thread-safe; takes no GIL.
pub type ReadinessCheck = Arc<dyn Fn() -> bool + Send + Sync>;

/// A check of whether a wait is over. Python calls the object, or a timer calls the check repeatedly. Immutable, so
/// thread-safe.
#[pyclass(frozen, module = "aeron._aeron", name = "_Condition")]
pub struct Condition(OfProcess<ReadinessCheck>);

impl Condition {
    pub fn new(look: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self(OfProcess::new(Arc::new(look)))
    }

    pub fn look(&self) -> PyResult<&ReadinessCheck> {
        self.0.get()
    }
}

#[pymethods]
impl Condition {
    /// Checks the condition without the GIL. Python objects that the check releases, such as the handlers of a failed
    /// operation, are dropped after the check.
    fn __call__(&self, py: Python<'_>) -> PyResult<bool> {
        let look = self.look()?;
        Ok(py.detach(|| look()))
    }
}
