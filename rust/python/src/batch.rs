//! [`Batch`]: many whole messages, copied once into memory that the batch owns.
//!
//! Everything that is handed out, memoryviews, numpy arrays and Arrow arrays, refers to that memory and keeps it alive. The
//! memory of a batch that nobody refers to any more is used again by a later one.

use std::ffi::CStr;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use aeron_client::Batch as Messages;
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyList, PySlice, PyTuple};

use crate::argument;
use crate::buffers::{Exporter, Lent};
use crate::errors::raise;

/// Memory of finished batches that is kept for later ones, for each subscription.
const POOLED_BATCHES: usize = 4;
/// Batches longer than this are not kept, in bytes.
const POOLED_LENGTH: usize = 16 << 20;

/// Memory for batches, used again and again. Thread-safe.
#[derive(Default)]
pub struct Pool(Mutex<Vec<Messages>>);

impl Pool {
    /// An empty batch.
    pub fn take(&self) -> Messages {
        let mut messages = self
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop()
            .unwrap_or_default();
        messages.clear();
        messages
    }

    pub fn give_back(&self, messages: Messages) {
        let mut free = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if free.len() < POOLED_BATCHES && messages.data().len() <= POOLED_LENGTH {
            free.push(messages);
        }
    }
}

/// Messages that go back to their pool when nobody refers to them any more.
pub struct Shared {
    messages: Messages,
    pool: Weak<Pool>,
}

impl Shared {
    pub fn messages(&self) -> &Messages {
        &self.messages
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if let Some(pool) = self.pool.upgrade() {
            pool.give_back(std::mem::take(&mut self.messages));
        }
    }
}

/// Whether every message is a whole number of records of this length.
fn consist_of_records(messages: &Messages, record_length: usize) -> bool {
    let is_whole = |length: usize| record_length > 0 && length.is_multiple_of(record_length);
    match messages.uniform_length() {
        // By far the most frequent case, and without a division for each message.
        Some(length) => is_whole(length),
        None => messages
            .offsets()
            .iter()
            .all(|offset| is_whole(*offset as usize)),
    }
}

/// The module, imported once.
fn numpy(py: Python<'_>) -> PyResult<&Bound<'_, PyModule>> {
    static NUMPY: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    let import = || py.import("numpy").map(Bound::unbind);
    Ok(NUMPY.get_or_try_init(py, import)?.bind(py))
}

/// One column as memory for Python.
struct Column {
    batch: Arc<Shared>,
    kind: ColumnKind,
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
        let messages = self.batch.messages();
        match self.kind {
            ColumnKind::Payload => of(messages.data()),
            ColumnKind::Offsets => of(messages.offsets()),
            ColumnKind::Positions => of(messages.positions()),
            ColumnKind::SessionIds => of(messages.session_ids()),
            ColumnKind::ReservedValues => of(messages.reserved_values()),
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

/// Many whole messages. Immutable, so thread-safe; what it hands out stays valid as long as it is held.
#[pyclass(frozen, module = "aeron._aeron", sequence)]
pub struct Batch {
    shared: Arc<Shared>,
    stream_id: i32,
}

impl Batch {
    pub fn new(messages: Messages, pool: &Arc<Pool>, stream_id: i32) -> Self {
        Self {
            shared: Arc::new(Shared {
                messages,
                pool: Arc::downgrade(pool),
            }),
            stream_id,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.messages().is_empty()
    }

    fn messages(&self) -> &Messages {
        self.shared.messages()
    }

    fn column<'py>(&self, py: Python<'py>, kind: ColumnKind) -> PyResult<Bound<'py, PyAny>> {
        let column = Column {
            batch: Arc::clone(&self.shared),
            kind,
        };
        Exporter::view(py, Arc::new(column)).map(|(_, view)| view)
    }
}

impl Batch {
    fn message_view<'py>(&self, py: Python<'py>, index: isize) -> PyResult<Bound<'py, PyAny>> {
        let count = self.messages().len() as isize;
        let index = if index < 0 { index + count } else { index };
        if !(0..count).contains(&index) {
            return Err(raise(
                "IndexRangeError",
                format!("the batch has {count} messages"),
            ));
        }
        let offsets = self.messages().offsets();
        let range = pyo3::types::PySlice::new(
            py,
            offsets[index as usize] as isize,
            offsets[index as usize + 1] as isize,
            1,
        );
        self.payload(py)?.get_item(range)
    }
}

#[pymethods]
impl Batch {
    fn __len__(&self) -> usize {
        self.messages().len()
    }

    /// The payload of a message, as a read-only memoryview; for a slice a list of them. Negative indexes count from the end.
    fn __getitem__<'py>(
        &self,
        py: Python<'py>,
        index: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let Ok(slice) = index.cast::<PySlice>() else {
            return self.message_view(py, argument::index(index)?);
        };
        let range = slice.indices(self.messages().len() as isize)?;
        let views = (0..range.slicelength as isize)
            .map(|number| self.message_view(py, range.start + number * range.step))
            .collect::<PyResult<Vec<_>>>()?;
        Ok(PyList::new(py, views)?.into_any())
    }

    /// Iterates over the payloads.
    fn __iter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        // SAFETY: the batch is a sequence and alive; the result is a new reference or null with an exception set.
        unsafe { Bound::from_owned_ptr_or_err(slf.py(), ffi::PySeqIter_New(slf.as_ptr())) }
    }

    /// All payloads, one after another: a read-only memoryview of bytes.
    #[getter]
    fn payload<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.column(py, ColumnKind::Payload)
    }

    /// Where each message begins in `payload`, and at last where the last one ends: a memoryview of 32-bit integers, one more
    /// than there are messages.
    #[getter]
    fn offsets<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.column(py, ColumnKind::Offsets)
    }

    /// The stream position after each message: a memoryview of 64-bit integers.
    #[getter]
    fn positions<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.column(py, ColumnKind::Positions)
    }

    /// The session each message came from: a memoryview of 32-bit integers.
    #[getter]
    fn session_ids<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.column(py, ColumnKind::SessionIds)
    }

    /// The reserved value of each message's first frame: a memoryview of 64-bit integers.
    #[getter]
    fn reserved_values<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.column(py, ColumnKind::ReservedValues)
    }

    /// The stream that all messages came from.
    #[getter]
    fn stream_id(&self) -> i32 {
        self.stream_id
    }

    /// The payloads as a list of `bytes`: a copy.
    fn to_list<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let messages = self.messages();
        let payload = |index| PyBytes::new(py, messages.message(index).unwrap_or_default());
        PyList::new(py, (0..messages.len()).map(payload))
    }

    /// The payloads as a read-only numpy array of records, without a copy.
    fn as_records<'py>(
        &self,
        py: Python<'py>,
        dtype: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let numpy = numpy(py)?;
        let dtype = numpy.call_method1(intern!(py, "dtype"), (dtype,))?;
        let record_length: usize = dtype.getattr(intern!(py, "itemsize"))?.extract()?;
        if !consist_of_records(self.messages(), record_length) {
            return Err(raise(
                "InvalidArgumentError",
                format!(
                    "not every message is a whole number of records of {record_length} bytes: {dtype}"
                ),
            ));
        }
        if self.messages().data().is_empty() {
            return numpy.call_method1(intern!(py, "empty"), (0, dtype));
        }
        numpy.call_method1(intern!(py, "frombuffer"), (self.payload(py)?, dtype))
    }

    /// The Arrow schema: a struct of payload, position, session_id, stream_id and reserved_value.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        crate::arrow::schema_capsule(py)
    }

    /// The batch as an Arrow struct array, whose payload is not copied. A requested schema is not looked at.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let _ = requested_schema;
        crate::arrow::array_capsules(py, &self.shared, self.stream_id)
    }

    fn __repr__(&self) -> String {
        let messages = self.messages();
        format!(
            "<Batch of {} messages, {} bytes, stream {}>",
            messages.len(),
            messages.data().len(),
            self.stream_id
        )
    }
}
