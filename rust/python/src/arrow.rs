//! Converts between Rust's and Python's Arrow arrays, through the Arrow C data interface.

use std::ops::Range;
use std::ptr::NonNull;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi, to_ffi};
use arrow_array::ffi_stream::{ArrayStreamReader, FFI_ArrowArrayStream};
use arrow_array::{
    Array, ArrayRef, BinaryArray, Int32Array, Int64Array, RecordBatch, RecordBatchIterator,
    StructArray, make_array,
};
use arrow_buffer::{Buffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType, Field, Fields, Schema};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyTuple};

use crate::errors::raise;
use crate::pool::PooledMessages;

/// Name of a capsule that holds a schema, as the interface requires.
const SCHEMA_CAPSULE: &std::ffi::CStr = c"arrow_schema";
/// Name of a capsule that holds a stream of arrays.
pub const STREAM_CAPSULE: &std::ffi::CStr = c"arrow_array_stream";
/// Name of a capsule that holds an array.
const ARRAY_CAPSULE: &std::ffi::CStr = c"arrow_array";

fn fields() -> Fields {
    [
        ("payload", DataType::Binary),
        ("position", DataType::Int64),
        ("session_id", DataType::Int32),
        ("stream_id", DataType::Int32),
        ("reserved_value", DataType::Int64),
    ]
    .into_iter()
    .map(|(name, kind)| Field::new(name, kind, false))
    .collect()
}

/// Returns the schema of a [`PyBatch`](crate::batch::PyBatch).
pub fn schema_capsule(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    let schema = FFI_ArrowSchema::try_from(DataType::Struct(fields())).map_err(value_error)?;
    Ok(PyCapsule::new_with_value(py, schema, SCHEMA_CAPSULE)?.into_any())
}

/// Returns the messages `range` of a batch as a schema and an array. All columns except the stream id refer to the
/// batch's memory.
pub fn array_capsules<'py>(
    py: Python<'py>,
    batch: &Arc<PooledMessages>,
    range: &Range<usize>,
    stream_id: i32,
) -> PyResult<Bound<'py, PyTuple>> {
    capsules(
        py,
        struct_array(batch, range, stream_id).map_err(value_error)?,
    )
}

/// Returns the messages `range` of a batch as a stream of one array.
pub fn stream_capsule<'py>(
    py: Python<'py>,
    batch: &Arc<PooledMessages>,
    range: &Range<usize>,
    stream_id: i32,
) -> PyResult<Bound<'py, PyCapsule>> {
    let rows = RecordBatch::from(struct_array(batch, range, stream_id).map_err(value_error)?);
    let schema = rows.schema();
    let batches = RecordBatchIterator::new([Ok(rows)], schema);
    let stream = FFI_ArrowArrayStream::new(Box::new(batches));
    PyCapsule::new_with_value(py, stream, STREAM_CAPSULE)
}

/// Returns a record batch as a schema and an array, which shares the record batch's memory.
pub fn batch_capsules<'py>(py: Python<'py>, batch: &RecordBatch) -> PyResult<Bound<'py, PyTuple>> {
    capsules(py, StructArray::from(batch.clone()))
}

fn capsules(py: Python<'_>, array: StructArray) -> PyResult<Bound<'_, PyTuple>> {
    let (array, schema) = to_ffi(&array.into_data()).map_err(value_error)?;
    let schema = PyCapsule::new_with_value(py, schema, SCHEMA_CAPSULE)?;
    let array = PyCapsule::new_with_value(py, array, ARRAY_CAPSULE)?;
    PyTuple::new(py, [schema, array])
}

/// Returns a schema in a capsule that Arrow libraries can read.
pub fn schema_capsule_of<'py>(py: Python<'py>, schema: &Schema) -> PyResult<Bound<'py, PyCapsule>> {
    let schema = FFI_ArrowSchema::try_from(schema).map_err(value_error)?;
    PyCapsule::new_with_value(py, schema, SCHEMA_CAPSULE)
}

/// Returns the schema of an object with `__arrow_c_schema__`.
pub fn schema_of(object: &Bound<'_, PyAny>) -> PyResult<Schema> {
    let Some(method) = object.getattr_opt(pyo3::intern!(object.py(), "__arrow_c_schema__"))? else {
        return Err(raise("ArgumentTypeError", "an Arrow schema is needed"));
    };
    let capsule: Bound<'_, PyCapsule> = method.call0()?.extract()?;
    let schema = capsule
        .pointer_checked(Some(SCHEMA_CAPSULE))?
        .cast::<FFI_ArrowSchema>();
    // SAFETY: the name states the type of the capsule's content, and the capsule keeps the content alive during the
    // read.
    Schema::try_from(unsafe { schema.as_ref() }).map_err(value_error)
}

fn struct_array(
    batch: &Arc<PooledMessages>,
    range: &Range<usize>,
    stream_id: i32,
) -> Result<StructArray, ArrowError> {
    let messages = batch.messages();
    let count = range.len();
    let offsets = OffsetBuffer::new(ScalarBuffer::new(
        buffer(batch, &messages.offsets()[range.start..=range.end]),
        0,
        count + 1,
    ));
    let arrays: Vec<ArrayRef> = vec![
        Arc::new(BinaryArray::try_new(
            offsets,
            buffer(batch, messages.data()),
            None,
        )?),
        Arc::new(Int64Array::new(
            ScalarBuffer::new(
                buffer(batch, &messages.positions()[range.clone()]),
                0,
                count,
            ),
            None,
        )),
        Arc::new(Int32Array::new(
            ScalarBuffer::new(
                buffer(batch, &messages.session_ids()[range.clone()]),
                0,
                count,
            ),
            None,
        )),
        Arc::new(Int32Array::from_value(stream_id, count)),
        Arc::new(Int64Array::new(
            ScalarBuffer::new(
                buffer(batch, &messages.reserved_values()[range.clone()]),
                0,
                count,
            ),
            None,
        )),
    ];
    StructArray::try_new_with_length(fields(), arrays, None, count)
}

/// Returns a column as an Arrow buffer, without a copy.
fn buffer<T>(batch: &Arc<PooledMessages>, column: &[T]) -> Buffer {
    let start = NonNull::from(column).cast();
    // SAFETY: the column belongs to the batch. The buffer owns a reference to the batch, which is immutable.
    unsafe { Buffer::from_custom_allocation(start, size_of_val(column), Arc::clone(batch) as _) }
}

/// Returns the arrays of an object with `__arrow_c_array__` or `__arrow_c_stream__`, and `None` for any other object.
/// Reads the whole stream, without the GIL. Raises the same errors as [`array_of`].
pub fn arrays_of(object: &Bound<'_, PyAny>) -> PyResult<Option<Vec<ArrayRef>>> {
    if let Some(array) = array_of(object)? {
        return Ok(Some(vec![array]));
    }
    let py = object.py();
    let Some(method) = object.getattr_opt(pyo3::intern!(py, "__arrow_c_stream__"))? else {
        return Ok(None);
    };
    let capsule: Bound<'_, PyCapsule> = method.call0()?.extract()?;
    let stream = capsule
        .pointer_checked(Some(STREAM_CAPSULE))?
        .cast::<FFI_ArrowArrayStream>();
    // SAFETY: the name states the type of the capsule's content. `from_raw` moves the stream out and marks the
    // capsule's stream as released, as the interface requires.
    let stream = unsafe { FFI_ArrowArrayStream::from_raw(stream.as_ptr()) };
    let arrays = py.detach(|| -> Result<Vec<ArrayRef>, ArrowError> {
        ArrayStreamReader::try_new(stream)?.collect()
    });
    let arrays = arrays.map_err(value_error)?.into_iter();
    arrays.map(checked).collect::<PyResult<_>>().map(Some)
}

/// Returns the array of an object with `__arrow_c_array__`, and `None` for any other object. Raises `ValueError` for an
/// inconsistent array. Not every inconsistency is found, because the interface does not pass the lengths of buffers.
pub fn array_of(object: &Bound<'_, PyAny>) -> PyResult<Option<ArrayRef>> {
    let py = object.py();
    let Some(method) = object.getattr_opt(pyo3::intern!(py, "__arrow_c_array__"))? else {
        return Ok(None);
    };
    let (schema, array): (Bound<'_, PyCapsule>, Bound<'_, PyCapsule>) =
        method.call0()?.extract()?;
    let schema = schema
        .pointer_checked(Some(SCHEMA_CAPSULE))?
        .cast::<FFI_ArrowSchema>();
    let array = array
        .pointer_checked(Some(ARRAY_CAPSULE))?
        .cast::<FFI_ArrowArray>();
    // SAFETY: the name states the type of the capsule's content. `from_raw` moves the array out and marks the capsule's
    // array as released, as the interface requires.
    let array = unsafe { FFI_ArrowArray::from_raw(array.as_ptr()) };
    if array.is_released() {
        let reason = "this Arrow array was read before and is now empty: ask for it anew each time";
        return Err(raise("InvalidArgumentError", reason));
    }
    // SAFETY: array and schema are from one call of `__arrow_c_array__`, and the capsule keeps the schema alive.
    let data = unsafe { from_ffi(array, schema.as_ref()) }.map_err(value_error)?;
    data.validate().map_err(value_error)?;
    checked(make_array(data)).map(Some)
}

/// Checks an array of another library, so that no later read is outside of its buffers.
fn checked(array: ArrayRef) -> PyResult<ArrayRef> {
    let data = array.to_data();
    // Views and keys of dictionaries are checked one by one.
    match has_indexes(array.data_type()) {
        true => data.validate_full(),
        false => data.validate(),
    }
    .map_err(value_error)?;
    if !has_sound_offsets(&array) {
        let reason = "an Arrow array whose offsets do not ascend cannot be read: see its validate(full=True)";
        return Err(raise("InvalidArgumentError", reason));
    }
    Ok(array)
}

fn has_indexes(kind: &DataType) -> bool {
    match kind {
        DataType::BinaryView | DataType::Utf8View | DataType::Dictionary(..) => true,
        DataType::Struct(fields) => fields.iter().any(|field| has_indexes(field.data_type())),
        _ => false,
    }
}

/// Whether the offsets of all byte and text columns ascend. Readers slice the data at these offsets without a check.
fn has_sound_offsets(array: &dyn Array) -> bool {
    match array.data_type() {
        DataType::Binary => array.as_binary::<i32>().value_offsets().is_sorted(),
        DataType::LargeBinary => array.as_binary::<i64>().value_offsets().is_sorted(),
        DataType::Utf8 => array.as_string::<i32>().value_offsets().is_sorted(),
        DataType::LargeUtf8 => array.as_string::<i64>().value_offsets().is_sorted(),
        DataType::Struct(_) => {
            let mut columns = array.as_struct().columns().iter();
            columns.all(|column| has_sound_offsets(column))
        }
        _ => true,
    }
}

/// Returns the exception for an error of the Arrow library.
pub fn value_error(error: ArrowError) -> PyErr {
    raise("InvalidArgumentError", error.to_string())
}
