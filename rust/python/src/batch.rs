//! [`PyBatch`]: many whole messages, copied once into memory that the batch owns.
//!
//! Memoryviews, numpy arrays and Arrow arrays of a batch refer to that memory and keep it alive. After the last
//! reference is dropped, a later batch reuses the memory.

use std::ffi::CStr;
use std::ops::Range;
use std::sync::{Arc, Weak};

use aeron_client::{Batch as Messages, Columns};
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyCapsule, PyList, PySlice, PyTuple};

use crate::argument::{self, named};
use crate::buffers::{Exporter, Lent};
use crate::errors::{from_client, raise};
use crate::pool::{Pool, PooledMessages};

/// Whether the length of every message between these offsets is a multiple of `record_length`.
fn consist_of_records(offsets: &[i32], record_length: usize) -> bool {
    let is_whole =
        |length: i32| record_length > 0 && (length as usize).is_multiple_of(record_length);
    let [first, second, ..] = *offsets else {
        return record_length > 0;
    };
    // If all messages have the same length, which is usual, one division is enough.
    let length = second - first;
    if offsets.windows(2).all(|pair| pair[1] - pair[0] == length) {
        return is_whole(length);
    }
    offsets.iter().all(|offset| is_whole(offset - first))
}

/// Returns the module `numpy`, which is imported at the first call.
fn numpy(py: Python<'_>) -> PyResult<&Bound<'_, PyModule>> {
    static NUMPY: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    let import = || py.import("numpy").map(Bound::unbind);
    Ok(NUMPY.get_or_try_init(py, import)?.bind(py))
}

/// One column of the messages `range` of a batch, as memory that is lent to Python.
struct Column {
    batch: Arc<PooledMessages>,
    range: Range<usize>,
    kind: ColumnKind,
}

/// Offsets of a slice of a batch. The offsets begin with 0, so they are a copy.
struct Offsets(Vec<i32>);

impl Lent for Offsets {
    fn start(&self) -> *mut u8 {
        self.0.as_ptr().cast_mut().cast()
    }

    fn len(&self) -> usize {
        size_of_val(self.0.as_slice())
    }

    fn items(&self) -> (&'static CStr, usize) {
        (c"i", 4)
    }
}

#[derive(Clone, Copy)]
enum ColumnKind {
    Payload,
    Offsets,
    Positions,
    SessionIds,
    ReservedValues,
}

impl Column {
    fn bytes(&self) -> (*const u8, usize) {
        fn of<T>(column: &[T]) -> (*const u8, usize) {
            (column.as_ptr().cast(), size_of_val(column))
        }
        let (messages, range) = (self.batch.messages(), self.range.clone());
        match self.kind {
            ColumnKind::Payload => of(payload_of(messages, &range)),
            ColumnKind::Offsets => of(offsets_of(messages, &range)),
            ColumnKind::Positions => of(&messages.positions()[range]),
            ColumnKind::SessionIds => of(&messages.session_ids()[range]),
            ColumnKind::ReservedValues => of(&messages.reserved_values()[range]),
        }
    }
}

impl Lent for Column {
    fn start(&self) -> *mut u8 {
        self.bytes().0.cast_mut()
    }

    fn len(&self) -> usize {
        self.bytes().1
    }

    fn items(&self) -> (&'static CStr, usize) {
        match self.kind {
            ColumnKind::Payload => (c"B", 1),
            ColumnKind::Offsets | ColumnKind::SessionIds => (c"i", 4),
            ColumnKind::Positions | ColumnKind::ReservedValues => (c"q", 8),
        }
    }
}

/// Returns the offsets of the messages `range` in the batch's payload, and the end of the last message.
fn offsets_of<'a>(messages: &'a Messages, range: &Range<usize>) -> &'a [i32] {
    &messages.offsets()[range.start..=range.end]
}

fn payload_of<'a>(messages: &'a Messages, range: &Range<usize>) -> &'a [u8] {
    let offsets = messages.offsets();
    &messages.data()[offsets[range.start] as usize..offsets[range.end] as usize]
}

/// Many whole messages in contiguous memory.
///
/// Immutable, so thread-safe. A view keeps the memory of the batch alive.
///
/// `batch[i]` is the payload of a message as a read-only memoryview. `batch[i:j]` is a batch of the
/// messages from `i` to `j - 1`, which shares the memory of the whole batch. A slice with a step other than
/// 1 is a copy. Two batches are equal if their messages are equal, and a pickled batch has a copy of its
/// messages. pyarrow and other Arrow libraries read a batch without a copy.
///
/// Example:
///     ```python
///     batch = subscription.poll_batch()
///     print(len(batch), [bytes(payload) for payload in batch])
///     ```
#[pyclass(frozen, module = "aeron", name = "Batch", sequence)]
pub struct PyBatch {
    shared: Arc<PooledMessages>,
    /// Indexes of the batch's messages in `shared`.
    range: Range<usize>,
    stream_id: i32,
}

impl PyBatch {
    pub fn new(messages: Messages, pool: &Arc<Pool>, stream_id: i32) -> Self {
        Self::of(messages, Arc::downgrade(pool), stream_id)
    }

    fn of(messages: Messages, pool: Weak<Pool>, stream_id: i32) -> Self {
        Self {
            range: 0..messages.len(),
            shared: Arc::new(PooledMessages::new(messages, pool)),
            stream_id,
        }
    }

    /// Creates a batch from its columns.
    fn of_columns(columns: Columns, stream_id: i32) -> PyResult<Self> {
        let messages = Messages::from_columns(columns).map_err(|error| from_client(&error))?;
        Ok(Self::of(messages, Weak::new(), stream_id))
    }

    pub fn is_empty(&self) -> bool {
        self.range.is_empty()
    }

    fn messages(&self) -> &Messages {
        self.shared.messages()
    }

    fn payload_bytes(&self) -> &[u8] {
        payload_of(self.messages(), &self.range)
    }

    /// Returns positions, session ids and reserved values.
    fn columns(&self) -> (&[i64], &[i32], &[i64]) {
        let (messages, range) = (self.messages(), &self.range);
        (
            &messages.positions()[range.clone()],
            &messages.session_ids()[range.clone()],
            &messages.reserved_values()[range.clone()],
        )
    }

    /// Returns a copy of the offsets, which begins with 0 for a slice too.
    fn own_offsets(&self) -> Vec<i32> {
        let offsets = offsets_of(self.messages(), &self.range);
        let first = offsets.first().copied().unwrap_or_default();
        offsets.iter().map(|offset| offset - first).collect()
    }

    fn column<'py>(&self, py: Python<'py>, kind: ColumnKind) -> PyResult<Bound<'py, PyAny>> {
        let column = Column {
            batch: Arc::clone(&self.shared),
            range: self.range.clone(),
            kind,
        };
        Exporter::view(py, Arc::new(column)).map(|(_, view)| view)
    }

    fn message_view<'py>(&self, py: Python<'py>, index: isize) -> PyResult<Bound<'py, PyAny>> {
        let count = self.range.len() as isize;
        let place = if index < 0 { index + count } else { index };
        if !(0..count).contains(&place) {
            return Err(raise(
                "IndexRangeError",
                format!("no message {index}: the batch has {count}"),
            ));
        }
        let start = self.range.start + place as usize;
        let message = Column {
            batch: Arc::clone(&self.shared),
            range: start..start + 1,
            kind: ColumnKind::Payload,
        };
        Exporter::view(py, Arc::new(message)).map(|(_, view)| view)
    }

    /// Returns a batch of the messages of a slice. If the step is 1, the batch shares the memory; else it is a copy.
    fn slice(&self, slice: &Bound<'_, PySlice>) -> PyResult<Self> {
        let part = slice.indices(self.range.len() as isize)?;
        if part.step == 1 {
            let start = self.range.start + part.start as usize;
            return Ok(Self {
                shared: Arc::clone(&self.shared),
                range: start..start + part.slicelength,
                stream_id: self.stream_id,
            });
        }
        let first = self.range.start as isize + part.start;
        let places = (0..part.slicelength as isize).map(|number| first + number * part.step);
        self.gather(places.map(|place| place as usize))
    }

    /// Returns a copy of the messages with these indexes in `shared`.
    fn gather(&self, places: impl Iterator<Item = usize> + Clone) -> PyResult<Self> {
        let messages = self.messages();
        let message = |place| messages.message(place).unwrap_or_default();
        let mut columns = Columns {
            data: Vec::with_capacity(places.clone().map(|place| message(place).len()).sum()),
            offsets: vec![0],
            positions: places
                .clone()
                .map(|place| messages.positions()[place])
                .collect(),
            session_ids: places
                .clone()
                .map(|place| messages.session_ids()[place])
                .collect(),
            stream_ids: places
                .clone()
                .map(|place| messages.stream_ids()[place])
                .collect(),
            reserved_values: places
                .clone()
                .map(|place| messages.reserved_values()[place])
                .collect(),
        };
        for place in places {
            columns.data.extend_from_slice(message(place));
            // The cast loses nothing: the copy is not longer than the batch, and the offsets of the batch have 32 bits.
            columns.offsets.push(columns.data.len() as i32);
        }
        Self::of_columns(columns, self.stream_id)
    }
}

/// Defines the conversions between numbers and little-endian bytes, for pickles.
macro_rules! little_endian {
    ($name:ident, $numbers:ident, $type:ty) => {
        fn $name(numbers: &[$type]) -> Vec<u8> {
            numbers
                .iter()
                .flat_map(|number| number.to_le_bytes())
                .collect()
        }

        fn $numbers(bytes: &[u8]) -> Vec<$type> {
            let (numbers, _) = bytes.as_chunks();
            numbers
                .iter()
                .map(|number| <$type>::from_le_bytes(*number))
                .collect()
        }
    };
}
little_endian!(bytes_of_i32, i32_of_bytes, i32);
little_endian!(bytes_of_i64, i64_of_bytes, i64);

/// A pickled batch: the stream id, the payloads, and the columns as little-endian bytes.
type PickledBatch<'py> = (i32, Bound<'py, PyBytes>, Vec<u8>, Vec<u8>, Vec<u8>, Vec<u8>);

/// Restores a pickled batch.
#[pyfunction]
#[pyo3(name = "_batch_of_columns")]
pub fn batch_of_columns(
    #[pyo3(from_py_with = argument::stream_id)] stream_id: i32,
    #[pyo3(from_py_with = argument::payload)] payload: PyBackedBytes,
    #[pyo3(from_py_with = argument::offsets)] offsets: PyBackedBytes,
    #[pyo3(from_py_with = argument::positions)] positions: PyBackedBytes,
    #[pyo3(from_py_with = argument::session_ids)] session_ids: PyBackedBytes,
    #[pyo3(from_py_with = argument::reserved_values)] reserved_values: PyBackedBytes,
) -> PyResult<PyBatch> {
    let session_ids = i32_of_bytes(&session_ids);
    let columns = Columns {
        data: payload.to_vec(),
        offsets: i32_of_bytes(&offsets),
        positions: i64_of_bytes(&positions),
        stream_ids: vec![stream_id; session_ids.len()],
        session_ids,
        reserved_values: i64_of_bytes(&reserved_values),
    };
    PyBatch::of_columns(columns, stream_id)
}

#[pymethods]
impl PyBatch {
    fn __len__(&self) -> usize {
        self.range.len()
    }

    /// Returns the payload of a message as a read-only memoryview; for a slice, a batch. Negative indexes count from
    /// the end.
    fn __getitem__<'py>(
        &self,
        py: Python<'py>,
        index: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        match index.cast::<PySlice>() {
            Ok(slice) => Ok(Bound::new(py, self.slice(slice)?)?.into_any()),
            Err(_) => self.message_view(py, argument::index(index)?),
        }
    }

    /// Whether both batches have the same payloads, positions, session ids, reserved values and stream id.
    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        let Ok(other) = other.cast::<Self>() else {
            return false;
        };
        let other = other.get();
        self.stream_id == other.stream_id
            && self.columns() == other.columns()
            && self.own_offsets() == other.own_offsets()
            && self.payload_bytes() == other.payload_bytes()
    }

    /// Pickles a copy of the messages.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, PickledBatch<'py>)> {
        let restore = py
            .import(intern!(py, "aeron._aeron"))?
            .getattr(intern!(py, "_batch_of_columns"))?;
        let (positions, session_ids, reserved_values) = self.columns();
        let state = (
            self.stream_id,
            PyBytes::new(py, self.payload_bytes()),
            bytes_of_i32(&self.own_offsets()),
            bytes_of_i64(positions),
            bytes_of_i32(session_ids),
            bytes_of_i64(reserved_values),
        );
        Ok((restore, state))
    }

    /// Iterates over the payloads.
    fn __iter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        // SAFETY: the batch is a sequence and alive; the result is a new reference or null with an exception set.
        unsafe { Bound::from_owned_ptr_or_err(slf.py(), ffi::PySeqIter_New(slf.as_ptr())) }
    }

    /// All payloads, without gaps between them: a read-only memoryview of bytes.
    #[getter]
    fn payload<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.column(py, ColumnKind::Payload)
    }

    /// The offset of each message in `payload`, and of the end of the last message.
    ///
    /// A memoryview of 32-bit integers (format `i`), with one more item than there are messages.
    #[getter]
    fn offsets<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        if self.range.start == 0 {
            return self.column(py, ColumnKind::Offsets);
        }
        let offsets = Offsets(self.own_offsets());
        Exporter::view(py, Arc::new(offsets)).map(|(_, view)| view)
    }

    /// The stream position after each message, in bytes: a memoryview of 64-bit integers (format `q`).
    #[getter]
    fn positions<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.column(py, ColumnKind::Positions)
    }

    /// The session id of each message: a memoryview of 32-bit integers (format `i`).
    #[getter]
    fn session_ids<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.column(py, ColumnKind::SessionIds)
    }

    /// The reserved value of each message's first frame: a memoryview of 64-bit integers (format `q`).
    #[getter]
    fn reserved_values<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.column(py, ColumnKind::ReservedValues)
    }

    /// Stream id of all messages.
    #[getter]
    fn stream_id(&self) -> i32 {
        self.stream_id
    }

    /// Copies the payloads.
    ///
    /// Returns:
    ///     A list of `bytes`.
    fn to_list<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let messages = self.messages();
        let payload = |index| PyBytes::new(py, messages.message(index).unwrap_or_default());
        PyList::new(py, self.range.clone().map(payload))
    }

    /// Returns the payloads as a numpy array of records, without a copy.
    ///
    /// Args:
    ///     dtype: A numpy dtype. The length of each message must be a multiple of the dtype's length.
    ///
    /// Returns:
    ///     A read-only array.
    ///
    /// Raises:
    ///     InvalidArgumentError: If the length of a message is not a multiple of the dtype's length.
    ///     ArgumentTypeError: If `dtype` is not a dtype.
    ///
    /// Example:
    ///     ```python
    ///     trades = batch.as_records([("price", "<f8"), ("size", "<u4")])
    ///     ```
    fn as_records<'py>(
        &self,
        py: Python<'py>,
        dtype: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let numpy = numpy(py)?;
        let not_a_dtype = |error| named(error, dtype, "dtype", "a numpy dtype");
        let dtype = numpy.call_method1(intern!(py, "dtype"), (dtype,));
        let dtype = dtype.map_err(not_a_dtype)?;
        let record_length: usize = dtype.getattr(intern!(py, "itemsize"))?.extract()?;
        let offsets = offsets_of(self.messages(), &self.range);
        if !consist_of_records(offsets, record_length) {
            return Err(raise(
                "InvalidArgumentError",
                format!(
                    "not every message is a whole number of records of {record_length} bytes: {dtype}"
                ),
            ));
        }
        if self.payload_bytes().is_empty() {
            return numpy.call_method1(intern!(py, "empty"), (0, dtype));
        }
        numpy.call_method1(intern!(py, "frombuffer"), (self.payload(py)?, dtype))
    }

    /// Returns the Arrow schema: a struct of payload, position, session_id, stream_id and reserved_value.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        crate::arrow::schema_capsule(py)
    }

    /// Returns the batch as an Arrow struct array, without a copy of the payload. A requested schema is ignored, which
    /// the interface permits.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let _ = requested_schema;
        crate::arrow::array_capsules(py, &self.shared, &self.range, self.stream_id)
    }

    /// Returns the batch as an Arrow stream of one struct array, without a copy of the payload. Libraries that read
    /// only streams use it, such as DuckDB.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        crate::arrow::stream_capsule(py, &self.shared, &self.range, self.stream_id)
    }

    /// Returns an Arrow table of the messages, or of the records in them.
    ///
    /// Args:
    ///     layout: Layout of the records: a text such as `"ts ts_ns, px f64, sym char[8]"`, a structured numpy
    ///         dtype, or a pyarrow schema of types with a fixed length. `None` gives the payloads as bytes.
    ///
    /// Returns:
    ///     A `pyarrow.Table` with a column for each field, or with the column `payload`. Then follow `position`,
    ///     `session_id`, `stream_id` and `reserved_value`. A message of several records is several rows.
    ///
    /// Raises:
    ///     InvalidArgumentError: If the layout is not valid, or a message does not fit it.
    ///     ArgumentTypeError: If `layout` has another type.
    ///     ImportError: If pyarrow is not installed.
    ///
    /// Example:
    ///     ```python
    ///     table = batch.to_arrow("price f64, size u32")
    ///     ```
    #[pyo3(signature = (layout = None))]
    fn to_arrow<'py>(
        slf: &Bound<'py, Self>,
        layout: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let module = slf.py().import(intern!(slf.py(), "aeron._tables"))?;
        module.call_method1(intern!(slf.py(), "to_arrow"), (slf, layout))
    }

    /// Returns the first messages as an HTML table, for notebooks.
    fn _repr_html_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let module = slf.py().import(intern!(slf.py(), "aeron._html"))?;
        module.call_method1(intern!(slf.py(), "of_batch"), (slf,))
    }

    fn __repr__(&self) -> String {
        format!(
            "<Batch of {} messages, {} bytes, stream {}>",
            self.range.len(),
            self.payload_bytes().len(),
            self.stream_id
        )
    }
}
