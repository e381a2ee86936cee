//! [`PySbeRecord`]: a decoded message or group entry. It reads an element from its bytes when the element is used.

use std::sync::Arc;

use aeron_sbe::number::SbeNumber;
use aeron_sbe::plan::SbeBlockPlan;
use aeron_sbe::read::SbePlace;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use super::block::PySbeBlock;
use super::entries::PySbeEntries;
use super::errors::malformed;
use super::into_python::{data_object, field_object};
use super::source::HeldBytes;
use super::values::Values;

/// A decoded message or group entry. It reads its elements from the bytes of the message. Immutable, so thread-safe.
#[pyclass(frozen, subclass, module = "aeron._pipeline", name = "_SbeRecord")]
pub struct PySbeRecord {
    block: Arc<SbeBlockPlan>,
    source: HeldBytes,
    place: SbePlace,
    /// The group with this entry, and the entry's index; `None` for a message.
    group: Option<(Py<PySbeEntries>, usize)>,
}

impl PySbeRecord {
    pub(super) fn is_of(&self, block: &Arc<SbeBlockPlan>) -> bool {
        Arc::ptr_eq(&self.block, block)
    }

    pub(super) fn block(&self) -> &Arc<SbeBlockPlan> {
        &self.block
    }

    pub(super) fn place(&self) -> &SbePlace {
        &self.place
    }

    pub(super) fn source(&self) -> &HeldBytes {
        &self.source
    }

    /// Returns the value of a field.
    #[inline]
    pub(super) fn field<'py>(&self, py: Python<'py>, index: usize) -> PyResult<Bound<'py, PyAny>> {
        let field = &self.block.fields[index];
        self.source.with(py, |message| {
            let block = self.place.block(message).map_err(malformed)?;
            let exponent = |levels_up, index| self.number(levels_up, index, message);
            field_object(py, field, block, exponent)
        })
    }

    /// Returns the value of variable data.
    pub(super) fn data<'py>(&self, py: Python<'py>, index: usize) -> PyResult<Bound<'py, PyAny>> {
        self.source.with(py, |message| {
            let bytes = self.place.data(&self.block, index, message);
            data_object(py, &self.block.data[index], bytes.map_err(malformed)?)
        })
    }

    /// Returns the number of a field of the block this number of levels outwards.
    pub(super) fn number(
        &self,
        levels_up: usize,
        index: usize,
        message: &[u8],
    ) -> Option<SbeNumber> {
        let mut holder = self;
        for _ in 0..levels_up {
            let (group, _) = holder.group.as_ref()?;
            holder = group.get().record().get();
        }
        let block = holder.place.block(message).ok()?;
        holder.block.number(index, block)
    }

    fn of_message(block: &PySbeBlock, message: &Bound<'_, PyAny>, skip: usize) -> PyResult<Self> {
        let template = block.template();
        let template = template.ok_or_else(|| PyTypeError::new_err("an entry needs its group"))?;
        let source = HeldBytes::new(message, skip);
        let place = source.with(message.py(), |message| {
            SbePlace::of_message(template, message).map_err(malformed)
        })?;
        Ok(Self {
            block: Arc::clone(block.block()),
            source,
            place,
            group: None,
        })
    }

    fn of_entry(
        block: &PySbeBlock,
        group: &Bound<'_, PySbeEntries>,
        index: usize,
    ) -> PyResult<Self> {
        let record = group.get().record().get();
        Ok(Self {
            block: group.get().block_of_entries(block)?,
            source: record.source.clone_ref(group.py()),
            place: group.get().place(group.py(), index)?,
            group: Some((group.clone().unbind(), index)),
        })
    }
}

#[pymethods]
impl PySbeRecord {
    /// Creates a message from an object with its bytes and the number of bytes before it, or an entry from its group
    /// and its index.
    #[new]
    fn new(
        block: &Bound<'_, PySbeBlock>,
        source: &Bound<'_, PyAny>,
        position: usize,
    ) -> PyResult<Self> {
        match source.cast::<PySbeEntries>() {
            Ok(group) => Self::of_entry(block.get(), group, position),
            Err(_) => Self::of_message(block.get(), source, position),
        }
    }

    /// Returns all values by name, with lists of dicts for groups. They are copies, which outlive the buffer.
    pub(super) fn as_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        Values::of(py, self)
    }

    /// Returns the bytes of the message, from its header to the end of the buffer.
    fn _message<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        self.source.message(py)
    }

    /// The group of the entry; `None` for a message.
    #[getter]
    fn _group(&self, py: Python<'_>) -> Option<Py<PySbeEntries>> {
        self.group.as_ref().map(|(group, _)| group.clone_ref(py))
    }

    /// Index of the entry in its group; 0 for a message.
    #[getter]
    fn _index(&self) -> usize {
        self.group.as_ref().map_or(0, |(_, index)| *index)
    }
}
