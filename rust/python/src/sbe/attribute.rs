//! [`PySbeAttribute`]: the descriptor by which a class of decoded messages or entries reads an element.

use std::sync::Arc;

use aeron_sbe::plan::SbeBlockPlan;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyType;

use super::block::PySbeBlock;
use super::record::PySbeRecord;

/// An element of a block.
pub(super) enum Element {
    /// A field, by its index.
    Field(usize),
    /// Variable data, by their index.
    Data(usize),
    /// A group.
    Group {
        index: usize,
        /// Class of the group in Python.
        sequence: Py<PyType>,
        /// Class of an entry.
        entry: Py<PyType>,
        block: Py<PySbeBlock>,
    },
}

/// Reads an element of decoded messages or entries. Immutable, so thread-safe.
#[pyclass(frozen, module = "aeron._pipeline", name = "_SbeAttribute")]
pub struct PySbeAttribute {
    block: Arc<SbeBlockPlan>,
    element: Element,
}

impl PySbeAttribute {
    pub(super) fn new(block: &Arc<SbeBlockPlan>, element: Element) -> Self {
        Self {
            block: Arc::clone(block),
            element,
        }
    }
}

#[pymethods]
impl PySbeAttribute {
    fn __get__<'py>(
        slf: &Bound<'py, Self>,
        object: &Bound<'py, PyAny>,
        _class: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let this = slf.get();
        if object.is_none() {
            return Ok(slf.as_any().clone());
        }
        let record = object.cast::<PySbeRecord>().ok();
        let record = record.filter(|record| record.get().is_of(&this.block));
        let Some(record) = record else {
            let kind = object.get_type().name()?;
            let name = this.name();
            let reason = format!("'{name}' is an attribute of other messages, not of a {kind}");
            return Err(PyTypeError::new_err(reason));
        };
        match &this.element {
            Element::Field(index) => record.get().field(slf.py(), *index),
            Element::Data(index) => record.get().data(slf.py(), *index),
            Element::Group {
                index,
                sequence,
                entry,
                block,
            } => sequence
                .bind(slf.py())
                .call1((record, *index, block, entry)),
        }
    }

    fn __repr__(&self) -> String {
        format!("<attribute '{}'>", self.name())
    }

    fn __traverse__(&self, visit: pyo3::PyVisit<'_>) -> Result<(), pyo3::PyTraverseError> {
        if let Element::Group {
            sequence, entry, ..
        } = &self.element
        {
            visit.call(sequence)?;
            visit.call(entry)?;
        }
        Ok(())
    }
}

impl PySbeAttribute {
    fn name(&self) -> &str {
        match &self.element {
            Element::Field(index) => &self.block.fields[*index].name,
            Element::Data(index) => &self.block.data[*index].name,
            Element::Group { index, .. } => &self.block.groups[*index].name,
        }
    }
}
