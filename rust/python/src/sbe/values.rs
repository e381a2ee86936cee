//! [`Values`]: all values of a decoded message or entry as a dictionary.

use std::sync::Arc;

use aeron_sbe::limits::MAX_DECODED_VALUES;
use aeron_sbe::number::SbeNumber;
use aeron_sbe::plan::SbeBlockPlan;
use aeron_sbe::read::{SbeMalformed, SbePlace};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use super::errors::malformed;
use super::into_python::{data_object, field_object};
use super::record::PySbeRecord;

/// Reads all values of a message or entry.
pub(super) struct Values<'a, 'py> {
    py: Python<'py>,
    record: &'a PySbeRecord,
    message: &'a [u8],
    /// The block of the record, and the blocks of the entries that are being read.
    blocks: Vec<(Arc<SbeBlockPlan>, SbePlace)>,
    /// Number of values so far.
    count: usize,
}

impl<'py> Values<'_, 'py> {
    /// Returns the values of a record by name.
    pub(super) fn of(py: Python<'py>, record: &PySbeRecord) -> PyResult<Bound<'py, PyDict>> {
        record.source().with(py, |message| {
            let mut values = Values {
                py,
                record,
                message,
                blocks: Vec::new(),
                count: 0,
            };
            values.of_block(record.block(), record.place().clone())
        })
    }

    fn of_block(
        &mut self,
        plan: &Arc<SbeBlockPlan>,
        place: SbePlace,
    ) -> PyResult<Bound<'py, PyDict>> {
        self.count += 1 + plan.fields.len() + plan.groups.len() + plan.data.len();
        if self.count > MAX_DECODED_VALUES {
            let limit = MAX_DECODED_VALUES;
            return Err(malformed(SbeMalformed::Values { limit }));
        }
        let values = PyDict::new(self.py);
        let block = place.block(self.message).map_err(malformed)?;
        self.blocks.push((Arc::clone(plan), place.clone()));
        for field in &plan.fields {
            let exponent = |levels_up, index| self.number(levels_up, index);
            let value = field_object(self.py, field, block, exponent)?;
            values.set_item(&field.name, value)?;
        }
        for (index, group) in plan.groups.iter().enumerate() {
            let entries = place.entries(plan, index, self.message);
            let entries = entries.map_err(malformed)?;
            let list = PyList::empty(self.py);
            for index in 0..entries.len() {
                let entry = entries.get(group, index, self.message).map_err(malformed)?;
                if let Some(entry) = entry {
                    list.append(self.of_block(&group.block, entry)?)?;
                }
            }
            values.set_item(&group.name, list)?;
        }
        for (index, data) in plan.data.iter().enumerate() {
            let bytes = place.data(plan, index, self.message).map_err(malformed)?;
            values.set_item(&data.name, data_object(self.py, data, bytes)?)?;
        }
        self.blocks.pop();
        Ok(values)
    }

    /// Returns the number of a field of the block this number of levels outwards.
    fn number(&self, levels_up: usize, index: usize) -> Option<SbeNumber> {
        match self.blocks.iter().rev().nth(levels_up) {
            Some((plan, place)) => plan.number(index, place.block(self.message).ok()?),
            None => {
                let above = levels_up + 1 - self.blocks.len();
                self.record.number(above, index, self.message)
            }
        }
    }
}
