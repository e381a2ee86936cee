//! [`MalformedTreatment`]: an argument that says how malformed messages are treated.

use aeron_columns::read::Mode;
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::argument::{Argument, wrong_type};

/// Treatment of malformed messages and records: `fail`, `drop` or `keep`.
pub struct MalformedTreatment(pub Mode);

impl MalformedTreatment {
    /// The default of all parameters.
    pub const FAIL: Self = Self(Mode::FailFast);
}

impl Argument for MalformedTreatment {
    fn convert(value: &Bound<'_, PyAny>, name: &str) -> PyResult<Self> {
        let text = value.cast::<PyString>().ok();
        match text.map(|text| text.to_string_lossy()).as_deref() {
            Some("fail") => Ok(Self(Mode::FailFast)),
            Some("drop") => Ok(Self(Mode::DropMalformed)),
            Some("keep") => Ok(Self(Mode::Permissive)),
            _ => Err(wrong_type(value, name, "\"fail\", \"drop\" or \"keep\"")),
        }
    }
}
