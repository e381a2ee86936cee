//! [`PySbeEntries`]: a group of a decoded message.

use std::fmt::Display;
use std::sync::Arc;

use aeron_sbe::plan::{SbeBlockPlan, SbeGroup};
use aeron_sbe::read::{SbeEntries, SbePlace};
use pyo3::exceptions::{PyIndexError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyList, PySlice, PyType};

use super::block::PySbeBlock;
use super::errors::malformed;
use super::record::PySbeRecord;

/// The entries of a group of a decoded message or entry. Immutable, so thread-safe.
#[pyclass(frozen, subclass, module = "aeron._pipeline", name = "_SbeEntries")]
pub struct PySbeEntries {
    record: Py<PySbeRecord>,
    /// Index of the group in the block of the record.
    index: usize,
    entries: SbeEntries,
    entry: Py<PyType>,
    block: Py<PySbeBlock>,
}

impl PySbeEntries {
    /// The message or entry with this group.
    pub(super) fn record(&self) -> &Py<PySbeRecord> {
        &self.record
    }

    /// Returns the plan of the entries if `block` is their block.
    pub(super) fn block_of_entries(&self, block: &PySbeBlock) -> PyResult<Arc<SbeBlockPlan>> {
        let own = &self.group().block;
        match Arc::ptr_eq(own, block.block()) {
            true => Ok(Arc::clone(own)),
            false => Err(PyTypeError::new_err("the block is not that of the entries")),
        }
    }

    /// Returns the place of an entry.
    pub(super) fn place(&self, py: Python<'_>, index: usize) -> PyResult<SbePlace> {
        let group = self.group();
        let place = self.record.get().source().with(py, |message| {
            let place = self.entries.get(group, index, message);
            place.map_err(malformed)
        })?;
        place.ok_or_else(|| self.missing(index))
    }

    fn missing(&self, index: impl Display) -> PyErr {
        let (name, count) = (&self.group().name, self.entries.len());
        let reason = format!("entry {index} of group '{name}' does not exist: it has {count}");
        PyIndexError::new_err(reason)
    }

    fn group(&self) -> &SbeGroup {
        &self.record.get().block().groups[self.index]
    }

    fn entry<'py>(slf: &Bound<'py, Self>, index: usize) -> PyResult<Bound<'py, PyAny>> {
        let this = slf.get();
        this.entry.bind(slf.py()).call1((&this.block, slf, index))
    }
}

#[pymethods]
impl PySbeEntries {
    #[new]
    fn new(
        record: Bound<'_, PySbeRecord>,
        index: usize,
        block: Py<PySbeBlock>,
        entry: Py<PyType>,
    ) -> PyResult<Self> {
        let this = record.get();
        if index >= this.block().groups.len() {
            return Err(PyIndexError::new_err(format!("there is no group {index}")));
        }
        let entries = this.source().with(record.py(), |message| {
            let entries = this.place().entries(this.block(), index, message);
            entries.map_err(malformed)
        })?;
        Ok(Self {
            record: record.unbind(),
            index,
            entries,
            entry,
            block,
        })
    }

    /// Name of the group.
    #[getter]
    fn _name(&self) -> &str {
        &self.group().name
    }

    /// The message or entry with this group.
    #[getter]
    fn _record(&self, py: Python<'_>) -> Py<PySbeRecord> {
        self.record.clone_ref(py)
    }

    fn __len__(&self) -> usize {
        self.entries.len()
    }

    fn __getitem__<'py>(
        slf: &Bound<'py, Self>,
        key: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let count = slf.get().entries.len() as isize;
        if let Ok(slice) = key.cast::<PySlice>() {
            let slice = slice.indices(count)?;
            let indexes = (0..slice.slicelength as isize).map(|it| slice.start + it * slice.step);
            let entries = indexes.map(|index| Self::entry(slf, index as usize));
            let entries = entries.collect::<PyResult<Vec<_>>>()?;
            return Ok(PyList::new(slf.py(), entries)?.into_any());
        }
        let index = key.extract::<isize>()?;
        let from_start = if index < 0 { index + count } else { index };
        match (0..count).contains(&from_start) {
            true => Self::entry(slf, from_start as usize),
            false => Err(slf.get().missing(index)),
        }
    }

    fn __iter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        // SAFETY: the group is alive. The result is a new reference, or null with an exception set.
        unsafe { Bound::from_owned_ptr_or_err(slf.py(), ffi::PySeqIter_New(slf.as_ptr())) }
    }
}
