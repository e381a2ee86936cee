//! Bindings of SBE schemas, on which `aeron.sbe` is built.

mod attribute;
mod block;
mod columns;
mod entries;
mod errors;
mod fixed;
pub mod format;
mod into_python;
mod into_sbe;
mod record;
mod schema;
mod source;
mod time;
mod unsuitable;
mod values;

use pyo3::prelude::*;

/// Adds the classes of schemas to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<attribute::PySbeAttribute>()?;
    module.add_class::<block::PySbeBlock>()?;
    module.add_class::<columns::PySbeColumns>()?;
    module.add_class::<entries::PySbeEntries>()?;
    module.add_class::<record::PySbeRecord>()?;
    module.add_class::<schema::PySbeSchema>()
}
