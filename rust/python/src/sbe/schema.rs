//! [`PySbeSchema`]: a schema with its plan.

use std::collections::BTreeMap;
use std::sync::Arc;

use aeron_columns::sbe::{
    SbeColumnOptions, SbeColumns, SbeDecimalColumn, SbeEncoder, SbeEnumColumn, SbeSetColumn,
};
use aeron_columns::write::EncodedRows;
use aeron_sbe::plan::{SbePlan, SbePlanOptions, SbeTemplate, SbeTimeUnit};
use aeron_sbe::read::SbeHeader;
use aeron_sbe::schema::SbeSchema;
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BinaryArray, RecordBatch};
use arrow_buffer::{Buffer, OffsetBuffer};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyTuple};

use super::block::PySbeBlock;
use super::columns::{PySbeColumns, SplitMessages};
use super::errors::{invalid, malformed};
use super::into_python::{ElementRow, describe};
use super::into_sbe::record_of;
use super::source::after;
use super::unsuitable::UnsuitableValue;
use crate::arrow::{arrays_of, value_error};
use crate::buffers::with_bytes;
use crate::errors::raise;
use crate::pipeline::column_batch::PyColumnBatch;

/// A checked SBE schema. Immutable, so thread-safe.
#[pyclass(frozen, module = "aeron._pipeline", name = "_SbeSchema")]
pub struct PySbeSchema {
    schema: SbeSchema,
    plan: Arc<SbePlan>,
    /// Blocks of the templates, in the order of the plan.
    blocks: Vec<Py<PySbeBlock>>,
}

#[pymethods]
impl PySbeSchema {
    #[new]
    #[pyo3(signature = (text, *, loader = None, timestamps = None, decimals = None))]
    fn new(
        py: Python<'_>,
        text: &str,
        loader: Option<Py<PyAny>>,
        timestamps: Option<BTreeMap<String, String>>,
        decimals: Option<BTreeMap<String, String>>,
    ) -> PyResult<Self> {
        let mut failure = None;
        let mut load = |name: &str| -> Result<String, String> {
            let Some(loader) = &loader else {
                return Err("a schema from text includes no files: pass a path".to_owned());
            };
            let text = Python::attach(|py| loader.call1(py, (name,))?.extract::<String>(py));
            text.map_err(|error| {
                let reason = error.to_string();
                failure.get_or_insert(error);
                reason
            })
        };
        let schema = SbeSchema::parse_with(text, &mut load);
        if let Some(error) = failure {
            return Err(error);
        }
        let schema = schema.map_err(|error| invalid(error.to_string()))?;
        let options = SbePlanOptions {
            timestamps: units(timestamps.unwrap_or_default())?,
            decimals: decimals.unwrap_or_default(),
        };
        let plan = SbePlan::new(&schema, &options).map_err(|error| invalid(error.to_string()))?;
        let plan = Arc::new(plan);
        let templates = 0..plan.templates.len();
        let blocks = templates.map(|index| Py::new(py, PySbeBlock::of_template(&plan, index)));
        Ok(Self {
            schema,
            blocks: blocks.collect::<PyResult<_>>()?,
            plan,
        })
    }

    /// Package of the schema; empty if it has none.
    #[getter]
    fn package(&self) -> &str {
        &self.schema.package
    }

    /// Id of the schema.
    #[getter]
    fn id(&self) -> u32 {
        self.schema.id
    }

    /// Version of the schema.
    #[getter]
    fn version(&self) -> u32 {
        self.schema.version
    }

    /// Version of the schema for people; `None` if it has none.
    #[getter]
    fn semantic_version(&self) -> Option<&str> {
        self.schema.semantic_version.as_deref()
    }

    /// Description of the schema; `None` if it has none.
    #[getter]
    fn description(&self) -> Option<&str> {
        self.schema.description.as_deref()
    }

    /// Parts of the schema without the effect that their author may expect.
    #[getter]
    fn warnings(&self) -> Vec<String> {
        let warnings = self.schema.warnings.iter();
        warnings.map(ToString::to_string).collect()
    }

    /// Name, id, first version, length of the block and description of each template.
    #[getter]
    fn templates(&self) -> Vec<(String, u32, u32, usize, Option<String>)> {
        let templates = self.plan.templates.iter();
        let row = |template: &SbeTemplate| {
            (
                template.name.clone(),
                template.id,
                template.since_version,
                template.block.block_length,
                template.description.clone(),
            )
        };
        templates.map(row).collect()
    }

    /// Returns the elements of a template: depth, name, type, offset, presence and first version of each.
    fn describe(&self, name: &str) -> PyResult<Vec<ElementRow>> {
        Ok(describe(&self.template(name)?.block))
    }

    /// Returns the name of the template of a message; `None` if the schema does not have it.
    fn template_of(&self, message: &Bound<'_, PyAny>, skip: usize) -> PyResult<Option<&str>> {
        let index = with_bytes(message, "message", |bytes| self.find(after(bytes, skip)))??;
        Ok(index.map(|index| self.plan.templates[index].name.as_str()))
    }

    /// Returns the blocks of the messages, in the order of the templates.
    #[getter]
    fn blocks<'py>(&self, py: Python<'py>) -> Vec<Bound<'py, PySbeBlock>> {
        let blocks = self.blocks.iter();
        blocks.map(|block| block.bind(py).clone()).collect()
    }

    /// Decodes a message. Returns an object of the class of its template in `classes`, which are in the order of the
    /// templates.
    fn decode<'py>(
        &self,
        message: &Bound<'py, PyAny>,
        skip: usize,
        classes: &Bound<'py, PyTuple>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let find = |message: &[u8]| {
            let bytes = after(message, skip);
            self.find(bytes)?.ok_or_else(|| self.unknown(bytes))
        };
        let index = with_bytes(message, "message", find)??;
        let block = self.blocks[index].bind(message.py());
        classes.get_item(index)?.call1((block, message, skip))
    }

    /// Encodes the rows of Arrow data. Returns the messages as a record batch with a column `value`, for each batch of
    /// the data; `None` if the object is no Arrow data.
    fn encode_arrow(
        &self,
        py: Python<'_>,
        name: &str,
        rows: &Bound<'_, PyAny>,
    ) -> PyResult<Option<Vec<PyColumnBatch>>> {
        let encoder = SbeEncoder::new(&self.plan, name);
        let encoder = encoder.map_err(|error| invalid(error.to_string()))?;
        let Some(arrays) = arrays_of(rows)? else {
            return Ok(None);
        };
        let encode = || {
            let mut first = 0;
            let batches = arrays.iter().map(|array| {
                let rows = array.as_struct_opt().filter(|rows| rows.null_count() == 0);
                let rows = rows.ok_or_else(|| {
                    raise(
                        "ArgumentTypeError",
                        "only rows of columns become messages: pass a table",
                    )
                })?;
                let mut encoded = EncodedRows::default();
                let written = encoder.encode(&RecordBatch::from(rows.clone()), &mut encoded);
                written.map_err(|error| match error.row {
                    Some(row) => invalid(format!("message {}: {error}", first + row)),
                    None => invalid(error.to_string()),
                })?;
                first += rows.len();
                value_batch(encoded)
            });
            batches.collect::<PyResult<Vec<_>>>()
        };
        py.detach(encode).map(Some)
    }

    /// Encodes a dictionary for each message. Returns the messages as a record batch with a column `value`.
    fn encode(&self, name: &str, messages: &Bound<'_, PyList>) -> PyResult<PyColumnBatch> {
        let template = self.template(name)?;
        let mut encoded = EncodedRows::default();
        encoded.offsets.push(0);
        for (index, message) in messages.iter().enumerate() {
            let record = record_of(&template.block, &message);
            let record = record.map_err(|error| error.in_message(index))?;
            let written = template.encode(&record, &mut encoded.bytes);
            written.map_err(|error| invalid(format!("message {index}: {error}")))?;
            let end = i32::try_from(encoded.bytes.len());
            let end = end.map_err(|_| invalid("the messages take more than 2 GiB".to_owned()))?;
            encoded.offsets.push(end);
        }
        value_batch(encoded)
    }

    /// Encodes a dictionary as one message.
    fn encode_one<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        message: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let template = self.template(name)?;
        let record = record_of(&template.block, message).map_err(UnsuitableValue::into_error)?;
        let mut bytes = Vec::new();
        let encoded = template.encode(&record, &mut bytes);
        encoded.map_err(|error| invalid(error.to_string()))?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Returns the length of a message. `sizes` has the number of entries of groups and the length of data, by name.
    fn encoded_length(&self, name: &str, sizes: BTreeMap<String, usize>) -> PyResult<usize> {
        let template = self.template(name)?;
        let groups = template.block.groups.iter().map(|group| &group.name);
        let data = template.block.data.iter().map(|data| &data.name);
        let mut known = groups.clone().chain(data.clone());
        let unknown = sizes.keys().find(|name| !known.any(|known| known == *name));
        if let Some(unknown) = unknown {
            let reason = format!("{name} has no group or data '{unknown}'");
            return Err(raise("InvalidArgumentError", reason));
        }
        let size = |name: &String| sizes.get(name).copied().unwrap_or_default();
        let groups: Vec<usize> = groups.map(size).collect();
        let data: Vec<usize> = data.map(size).collect();
        template
            .check_sizes(&groups, &data)
            .map_err(|error| invalid(error.to_string()))?;
        Ok(template.encoded_length(&groups, &data))
    }

    /// Name, offset and format of each field of a template that takes bytes, as numpy writes formats. The format of a
    /// composite is a list of this kind and its length.
    fn formats<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyList>> {
        super::fixed::formats(py, &self.template(name)?.block.fields)
    }

    /// Names, offsets and formats of the numbers in the header, and the length of the header.
    #[getter]
    fn header_formats(&self) -> (Vec<(&'static str, usize, String)>, usize) {
        super::fixed::header_formats(&self.plan)
    }

    /// Returns the blocks of the messages of a template, one after the other, and their number.
    fn fixed_blocks(
        &self,
        name: &str,
        messages: &Bound<'_, PyAny>,
        skip: usize,
        drop: bool,
    ) -> PyResult<(PyColumnBatch, usize)> {
        super::fixed::blocks(&self.plan, self.template(name)?, messages, skip, drop)
    }

    /// Returns the columns of a template.
    #[allow(clippy::too_many_arguments, reason = "they are keywords in Python")]
    #[pyo3(signature = (
        name, *, group = None, decimal_scale = Some(9), sets = "names", enums = "names", refuse_unknown = false,
        for_spark = false
    ))]
    fn columns(
        &self,
        name: &str,
        group: Option<&str>,
        decimal_scale: Option<u8>,
        sets: &str,
        enums: &str,
        refuse_unknown: bool,
        for_spark: bool,
    ) -> PyResult<PySbeColumns> {
        let options = SbeColumnOptions {
            for_spark,
            decimals: decimal_column(decimal_scale)?,
            sets: set_column(sets)?,
            enums: enum_column(enums)?,
            refuses_unknown: refuse_unknown,
        };
        let columns = SbeColumns::new(&self.plan, name, group, options);
        let columns = columns.map_err(|error| invalid(error.to_string()))?;
        Ok(PySbeColumns::new(columns))
    }

    /// Returns the indexes of the messages of each template that occurs, the number of messages of other templates, and
    /// the indexes of the messages without a whole header.
    fn split(&self, messages: &Bound<'_, PyAny>, skip: usize) -> PyResult<SplitMessages> {
        super::columns::split(&self.plan, messages, skip)
    }
}

impl PySbeSchema {
    fn template(&self, name: &str) -> PyResult<&SbeTemplate> {
        self.plan
            .template(name)
            .ok_or_else(|| invalid(format!("the schema has no message '{name}'")))
    }

    /// Returns the index of the template of a message.
    fn find(&self, message: &[u8]) -> PyResult<Option<usize>> {
        let header = SbeHeader::read(&self.plan.header, message).map_err(malformed)?;
        if header.schema_id != u64::from(self.plan.schema_id) {
            return Ok(None);
        }
        Ok(self.plan.index_of(header.template_id))
    }

    fn unknown(&self, message: &[u8]) -> PyErr {
        let header = SbeHeader::read(&self.plan.header, message);
        let (id, schema) = header.map_or((0, 0), |it| (it.template_id, it.schema_id));
        invalid(format!(
            "the message has template {id} of schema {schema}, which schema {} does not have",
            self.schema.id
        ))
    }
}

pub(super) fn units(names: BTreeMap<String, String>) -> PyResult<BTreeMap<String, SbeTimeUnit>> {
    let unit = |(field, name): (String, String)| {
        let unit = SbeTimeUnit::from_name(&name);
        let unit = unit.ok_or_else(|| {
            invalid(format!(
                "timestamps: '{name}' of field '{field}' is no unit: use s, ms, us or ns"
            ))
        })?;
        Ok((field, unit))
    };
    names.into_iter().map(unit).collect()
}

pub(super) fn decimal_column(scale: Option<u8>) -> PyResult<SbeDecimalColumn> {
    match scale {
        None => Ok(SbeDecimalColumn::Float),
        Some(scale @ 0..=38) => Ok(SbeDecimalColumn::Scale(scale)),
        Some(scale) => Err(invalid(format!(
            "decimal_scale={scale} is more than 38: pass 0 to 38, or None for floats"
        ))),
    }
}

pub(super) fn enum_column(name: &str) -> PyResult<SbeEnumColumn> {
    match name {
        "names" => Ok(SbeEnumColumn::Names),
        "integer" => Ok(SbeEnumColumn::Integer),
        _ => Err(invalid(format!(
            "enums='{name}': expected names or integer"
        ))),
    }
}

pub(super) fn set_column(name: &str) -> PyResult<SbeSetColumn> {
    match name {
        "names" => Ok(SbeSetColumn::Names),
        "booleans" => Ok(SbeSetColumn::Booleans),
        "integer" => Ok(SbeSetColumn::Integer),
        _ => Err(invalid(format!(
            "sets='{name}': expected names, booleans or integer"
        ))),
    }
}

fn value_batch(encoded: EncodedRows) -> PyResult<PyColumnBatch> {
    let offsets = OffsetBuffer::new(encoded.offsets.into());
    let values = BinaryArray::new(offsets, Buffer::from_vec(encoded.bytes), None);
    let value: ArrayRef = Arc::new(values);
    let batch = RecordBatch::try_from_iter([("value", value)]).map_err(value_error)?;
    Ok(PyColumnBatch::new(batch))
}
