//! Bindings of the crate `aeron-pipeline`, on which `aeron.spark` is built.

pub mod arrow_offer;
mod client;
pub mod column_batch;
mod embedded;
mod layout;
mod live;
mod partition;
mod recordings;
pub mod row_counts;
mod shared;
mod sink;

use pyo3::prelude::*;

/// Adds the pipeline's classes to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<layout::PyLayout>()?;
    module.add_class::<live::PyLiveSource>()?;
    module.add_class::<column_batch::PyColumnBatch>()?;
    module.add_class::<partition::PyPartitionReader>()?;
    module.add_class::<sink::PySharedPublications>()?;
    module.add_class::<shared::PyArchiveConnections>()?;
    module.add_class::<shared::PySharedSource>()?;
    module.add_class::<shared::PySharedPartitionReader>()?;
    module.add_function(wrap_pyfunction!(shared::check_offsets, module)?)?;
    module.add_function(wrap_pyfunction!(shared::plan_archive, module)?)?;
    module.add_function(wrap_pyfunction!(recordings::ended_archives, module)?)?;
    module.add_function(wrap_pyfunction!(recordings::plan_recordings, module)?)?;
    module.add_class::<sink::PySinkTask>()
}
