//! Bindings of SBE schemas, on which `aeron.sbe` is built.

mod columns;
mod format;
mod into_python;
mod into_sbe;
mod schema;
mod time;
mod unsuitable;

use pyo3::prelude::*;

pub use format::{sbe_encoder, sbe_format};

/// Adds the classes of schemas to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<columns::PySbeColumns>()?;
    module.add_class::<schema::PySbeSchema>()
}
