//! [`PySbeColumns`]: decodes messages of a template to columns.

use std::sync::Arc;

use aeron_columns::read::{CORRUPT_RECORD, Mode};
use aeron_columns::sbe::{SbeColumns, messages_of_templates};
use aeron_columns::write::{Payloads, plain};
use aeron_sbe::plan::SbePlan;
use aeron_sbe::read::SbeHeader;
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BinaryArray, RecordBatch, RecordBatchOptions};
use arrow_schema::{DataType, Field, Schema};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyList};

use super::errors::invalid;
use crate::argument;
use crate::arrow::{arrays_of, schema_capsule_of, value_error};
use crate::buffers::View;
use crate::errors::raise;
use crate::malformed::MalformedTreatment;
use crate::pipeline::column_batch::PyColumnBatch;

/// The columns of a template. Immutable, so thread-safe.
#[pyclass(frozen, module = "aeron._pipeline", name = "_SbeColumns")]
pub struct PySbeColumns {
    columns: SbeColumns,
    all: Vec<Field>,
}

/// Record batches, and the numbers of skipped messages, malformed messages and unknown values of enums.
type Decoded = (Vec<PyColumnBatch>, u64, u64, u64);

impl PySbeColumns {
    pub(super) fn new(columns: SbeColumns) -> Self {
        let all = columns.fields().into_iter().chain(columns.header_fields());
        Self {
            all: all.collect(),
            columns,
        }
    }

    /// Returns the indexes of the columns with these names, or of the default columns. In the mode `Permissive` there
    /// is one more column, that of malformed messages.
    fn indexes(&self, names: Option<&[String]>, mode: Mode) -> PyResult<Vec<usize>> {
        let corrupt = (mode == Mode::Permissive).then_some(self.all.len());
        if corrupt.is_some() && self.all.iter().any(|field| field.name() == CORRUPT_RECORD) {
            let reason = format!(
                "malformed messages cannot be kept: the message has a field '{CORRUPT_RECORD}'"
            );
            return Err(invalid(reason));
        }
        let Some(names) = names else {
            let defaults = 0..self.columns.fields().len();
            return Ok(defaults.chain(corrupt).collect());
        };
        let index = |name: &String| {
            let found = self.all.iter().position(|field| field.name() == name);
            let corrupt = corrupt.filter(|_| name == CORRUPT_RECORD);
            found.or(corrupt).ok_or_else(|| {
                let known = self.all.iter().map(|field| field.name().as_str());
                let known = known.collect::<Vec<_>>().join(", ");
                invalid(format!("column '{name}' does not exist; there are {known}"))
            })
        };
        let mut indexes = Vec::with_capacity(names.len());
        for name in names {
            let found = index(name)?;
            if indexes.contains(&found) {
                return Err(invalid(format!(
                    "column '{name}' is there twice: name each column once"
                )));
            }
            indexes.push(found);
        }
        Ok(indexes)
    }

    fn schema_of(&self, indexes: &[usize], index: Option<&str>) -> Arc<Schema> {
        let index = index.map(|name| Field::new(name, DataType::UInt64, true));
        let field = |index: &usize| match self.all.get(*index) {
            Some(field) => field.clone(),
            None => Field::new(CORRUPT_RECORD, DataType::Binary, true),
        };
        let fields = indexes.iter().map(field);
        Arc::new(Schema::new(
            index.into_iter().chain(fields).collect::<Vec<_>>(),
        ))
    }
}

#[pymethods]
impl PySbeColumns {
    /// Names of all columns, with those of the header.
    #[getter]
    fn names(&self) -> Vec<&str> {
        self.all.iter().map(|field| field.name().as_str()).collect()
    }

    /// Decodes the messages of the template among `messages`: one message as bytes, or any Arrow data with a column of
    /// messages.
    #[pyo3(signature = (messages, *, columns = None, skip = 0, malformed = MalformedTreatment::FAIL, index = None, of = None))]
    #[allow(clippy::too_many_arguments, reason = "they are keywords in Python")]
    fn decode(
        &self,
        py: Python<'_>,
        messages: &Bound<'_, PyAny>,
        columns: Option<Vec<String>>,
        skip: usize,
        #[pyo3(from_py_with = argument::malformed)] malformed: MalformedTreatment,
        index: Option<&str>,
        of: Option<Vec<Vec<usize>>>,
    ) -> PyResult<Decoded> {
        let mode = malformed.0;
        let indexes = self.indexes(columns.as_deref(), mode)?;
        let schema = self.schema_of(&indexes, index);
        let decoded_columns = indexes.iter().copied();
        let decoded_columns = decoded_columns.filter(|index| *index < self.all.len());
        let decoded_columns: Vec<usize> = decoded_columns.collect();
        let arrays = messages_of(messages)?;
        let decode = || -> PyResult<Decoded> {
            let mut decoded = (Vec::with_capacity(arrays.len()), 0, 0, 0);
            let mut first = 0;
            for (number, array) in arrays.iter().enumerate() {
                let candidates = of
                    .as_ref()
                    .map(|of| of.get(number).map_or(&[][..], Vec::as_slice));
                let payloads = payloads_of(array)?;
                let found = self
                    .columns
                    .decode_messages(&payloads, candidates, &decoded_columns, skip, mode)
                    .map_err(|bad| {
                        let message = first as usize + bad.message;
                        invalid(format!("message {message}: {}", bad.reason))
                    })?;
                let message_indexes = index.map(|_| {
                    let indexes = found
                        .indexes()
                        .unary::<_, arrow_array::types::UInt64Type>(|it| it + first);
                    Arc::new(indexes) as ArrayRef
                });
                decoded.1 += found.skipped();
                decoded.2 += found.malformed();
                let rows = found.decoded.rows;
                let corrupt = || -> ArrayRef {
                    let corrupt = found.corrupt.clone();
                    Arc::new(corrupt.unwrap_or_else(|| BinaryArray::new_null(rows)))
                };
                let mut of_message = found.decoded.columns.into_iter();
                let columns = indexes.iter().filter_map(|index| match index {
                    index if *index < self.all.len() => of_message.next(),
                    _ => Some(corrupt()),
                });
                let columns = message_indexes.into_iter().chain(columns);
                let options = RecordBatchOptions::new().with_row_count(Some(rows));
                let batch = RecordBatch::try_new_with_options(
                    Arc::clone(&schema),
                    columns.collect(),
                    &options,
                );
                decoded
                    .0
                    .push(PyColumnBatch::new(batch.map_err(value_error)?));
                decoded.3 += found.decoded.unknown;
                first += array.len() as u64;
            }
            Ok(decoded)
        };
        py.detach(decode)
    }

    /// Returns the schema of the columns that are decoded by default.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule_of(py, &Schema::new(self.columns.fields()))
    }
}

/// Names of templates with the indexes of their messages in each array, the number of messages of other templates, and
/// the indexes of messages without a whole header.
pub(super) type SplitMessages = (Vec<(String, Vec<Vec<usize>>)>, u64, Vec<usize>);

/// Returns the indexes of the messages of each template that occurs in each array, the number of messages of other
/// templates, and the indexes of the messages without a whole header.
pub(super) fn split(
    plan: &SbePlan,
    messages: &Bound<'_, PyAny>,
    skip: usize,
) -> PyResult<SplitMessages> {
    let arrays = messages_of(messages)?;
    let mut of_templates: Vec<Vec<Vec<usize>>> = vec![Vec::new(); plan.templates.len()];
    let (mut others, mut short, mut first) = (0, Vec::new(), 0);
    for array in &arrays {
        let payloads = payloads_of(array)?;
        let (indexes, unknown) = messages_of_templates(plan, &payloads, skip);
        if unknown > 0 {
            let is_short = |index: &usize| {
                let message = payloads.at(*index).get(skip..).unwrap_or_default();
                SbeHeader::read(&plan.header, message).is_err()
            };
            let found = (0..payloads.count()).filter(is_short);
            let before = short.len();
            short.extend(found.map(|index| first + index));
            others += unknown - (short.len() - before) as u64;
        }
        first += payloads.count();
        for (all, indexes) in of_templates.iter_mut().zip(indexes) {
            all.push(indexes);
        }
    }
    let named = plan.templates.iter().zip(of_templates);
    let occurring = named.filter(|(_, all)| all.iter().any(|indexes| !indexes.is_empty()));
    let named = occurring.map(|(template, all)| (template.name.clone(), all));
    Ok((named.collect(), others, short))
}

/// Returns arrays of messages: the column `payload` of a batch of a subscription, the column `value` of a recording, an
/// array of bytes, one message, or a list of such objects. There is at least one array, so that there is a table.
pub(super) fn messages_of(messages: &Bound<'_, PyAny>) -> PyResult<Vec<ArrayRef>> {
    let mut arrays = Vec::new();
    match messages.cast::<PyList>() {
        Ok(list) => {
            for part in list.iter() {
                arrays.append(&mut part_of(&part)?);
            }
        }
        Err(_) => arrays = part_of(messages)?,
    }
    if arrays.is_empty() {
        arrays.push(Arc::new(BinaryArray::from_vec(Vec::new())));
    }
    Ok(arrays)
}

fn part_of(messages: &Bound<'_, PyAny>) -> PyResult<Vec<ArrayRef>> {
    if let Some(arrays) = arrays_of(messages)? {
        return arrays.iter().map(column_of).collect();
    }
    let view = View::bytes_of(messages).map_err(|error| {
        if !error.is_instance_of::<PyTypeError>(messages.py()) {
            return error;
        }
        let kind = messages.get_type().name();
        let kind = kind.map_or_else(|_| "object".to_owned(), |name| name.to_string());
        let expected = "a batch, Arrow data, the bytes of one message, or a list of them";
        raise(
            "ArgumentTypeError",
            format!("messages are a {kind}: pass {expected}"),
        )
    })?;
    let message: ArrayRef = Arc::new(BinaryArray::from_vec(vec![view.bytes()]));
    Ok(vec![message])
}

fn column_of(array: &ArrayRef) -> PyResult<ArrayRef> {
    let column = match array.as_struct_opt() {
        None => Some(array),
        Some(rows) => ["payload", "value"]
            .iter()
            .find_map(|name| rows.column_by_name(name)),
    };
    let column = column.ok_or_else(|| {
        let reason = "the data have no column 'payload' or 'value' of messages";
        raise("InvalidArgumentError", reason)
    })?;
    let column = plain(column);
    if column.null_count() > 0 {
        let reason = "a message is null: drop such rows first";
        return Err(raise("InvalidArgumentError", reason));
    }
    payloads_of(&column)?;
    Ok(column)
}

pub(super) fn payloads_of(column: &ArrayRef) -> PyResult<Payloads<'_>> {
    Payloads::of(column.as_ref()).ok_or_else(|| {
        let reason = format!("messages are bytes, not {}", column.data_type());
        raise("ArgumentTypeError", reason)
    })
}
