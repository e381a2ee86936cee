//! [`Condition`]: what a coroutine waits for, in a form that can be looked at without Python.

use std::sync::Arc;

use pyo3::prelude::*;

use crate::fork::OfProcess;

/// Answers whether there is something to do. From any thread; takes no GIL.
pub type Look = Arc<dyn Fn() -> bool + Send + Sync>;

/// Whether a wait is over: called from Python, or watched by a timer. Immutable, so thread-safe.
#[pyclass(frozen, module = "aeron._aeron", name = "_Condition")]
pub struct Condition(OfProcess<Look>);

impl Condition {
    pub fn new(look: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self(OfProcess::new(Arc::new(look)))
    }

    pub fn look(&self) -> PyResult<&Look> {
        self.0.get()
    }
}

#[pymethods]
impl Condition {
    /// Looks without the GIL: what a look drops, such as the handlers of an operation that failed, is dropped after it.
    fn __call__(&self, py: Python<'_>) -> PyResult<bool> {
        let look = self.look()?;
        Ok(py.detach(|| look()))
    }
}
