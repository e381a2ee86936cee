//! [`PySbeBlock`]: a block of a template, from which Python makes the class of decoded messages or group entries.

use std::sync::Arc;

use aeron_sbe::plan::{SbeBlockPlan, SbeGroup, SbePlan, SbeTemplate};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::PyType;

use super::attribute::{Element, PySbeAttribute};

/// A block of a template: that of its messages, or that of the entries of a group. Immutable, so thread-safe.
#[pyclass(frozen, module = "aeron._pipeline", name = "_SbeBlock")]
pub struct PySbeBlock {
    plan: Arc<SbePlan>,
    /// Index of the template in the plan.
    template: usize,
    block: Arc<SbeBlockPlan>,
    /// Name of the message or group.
    name: String,
}

impl PySbeBlock {
    /// Returns the block of a template's messages.
    pub(super) fn of_template(plan: &Arc<SbePlan>, template: usize) -> Self {
        Self {
            plan: Arc::clone(plan),
            template,
            block: Arc::clone(&plan.templates[template].block),
            name: plan.templates[template].name.clone(),
        }
    }

    pub(super) fn block(&self) -> &Arc<SbeBlockPlan> {
        &self.block
    }

    /// Returns the template if this is the block of its messages.
    pub(super) fn template(&self) -> Option<&SbeTemplate> {
        let template = &self.plan.templates[self.template];
        Arc::ptr_eq(&template.block, &self.block).then_some(template)
    }
}

#[pymethods]
impl PySbeBlock {
    /// Name of the message or group.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    /// Names of the fields, groups and data, in their order.
    #[getter]
    fn names(&self) -> Vec<&str> {
        let fields = self.block.fields.iter().map(|field| &field.name);
        let groups = self.block.groups.iter().map(|group| &group.name);
        let data = self.block.data.iter().map(|data| &data.name);
        fields
            .chain(groups)
            .chain(data)
            .map(String::as_str)
            .collect()
    }

    /// Blocks of the entries of the groups, in their order.
    #[getter]
    fn groups(&self) -> Vec<Self> {
        let groups = self.block.groups.iter();
        groups.map(|group| self.of_group(group)).collect()
    }

    /// Returns the descriptor of the field or data with this index in `names`.
    fn value(&self, index: usize) -> PyResult<PySbeAttribute> {
        let (fields, groups) = (self.block.fields.len(), self.block.groups.len());
        let element = match index.checked_sub(fields + groups) {
            Some(data) if data < self.block.data.len() => Element::Data(data),
            None if index < fields => Element::Field(index),
            _ => return Err(self.missing("field or data", index)),
        };
        Ok(PySbeAttribute::new(&self.block, element))
    }

    /// Returns the descriptor of the group with this index in `groups`. `sequence` is the class of the group, and
    /// `entry` that of its entries.
    fn group(
        &self,
        py: Python<'_>,
        index: usize,
        sequence: Py<PyType>,
        entry: Py<PyType>,
    ) -> PyResult<PySbeAttribute> {
        let group = self.block.groups.get(index);
        let group = group.ok_or_else(|| self.missing("group", index))?;
        let element = Element::Group {
            index,
            sequence,
            entry,
            block: Py::new(py, self.of_group(group))?,
        };
        Ok(PySbeAttribute::new(&self.block, element))
    }
}

impl PySbeBlock {
    fn of_group(&self, group: &SbeGroup) -> Self {
        Self {
            plan: Arc::clone(&self.plan),
            template: self.template,
            block: Arc::clone(&group.block),
            name: group.name.clone(),
        }
    }

    fn missing(&self, kind: &str, index: usize) -> PyErr {
        PyIndexError::new_err(format!("{} has no {kind} {index}", self.name))
    }
}
