//! The result of an offer: the new position, one of three false constants, or an exception.

use aeron_memory::log::AppendError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

/// The constants of `aeron.results`, looked up once.
pub struct NotSent {
    not_connected: Py<PyAny>,
    back_pressured: Py<PyAny>,
    admin_action: Py<PyAny>,
}

static NOT_SENT: PyOnceLock<NotSent> = PyOnceLock::new();

impl NotSent {
    pub fn get(py: Python<'_>) -> PyResult<&'static NotSent> {
        NOT_SENT.get_or_try_init(py, || {
            let module = py.import("aeron.results")?;
            let constant = |name: &str| module.getattr(name).map(Bound::unbind);
            Ok(NotSent {
                not_connected: constant("NOT_CONNECTED")?,
                back_pressured: constant("BACK_PRESSURED")?,
                admin_action: constant("ADMIN_ACTION")?,
            })
        })
    }

    /// Returns the constant for an error after which a later attempt may succeed, and `None` for any other error.
    pub fn constant(&self, error: AppendError) -> Option<&Py<PyAny>> {
        match error {
            AppendError::NotConnected => Some(&self.not_connected),
            AppendError::BackPressured => Some(&self.back_pressured),
            AppendError::AdminAction => Some(&self.admin_action),
            _ => None,
        }
    }
}
