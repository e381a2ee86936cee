//! [`PyCounter`] and [`PyCountersReader`].

use aeron_client::{Counter, CounterRecord, CountersReader, SharedBuffer};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::argument;
use crate::client::PyAeron;
use crate::errors::{because, raise};
use crate::fork::OfProcess;
use crate::snapshot::{Octets, snapshot};

/// A counter that this client added. Thread-safe.
///
/// A static counter stays in the driver when it is closed; any other is freed. Reading or writing a closed one raises.
#[pyclass(frozen, weakref, module = "aeron._aeron", name = "Counter")]
pub struct PyCounter {
    inner: OfProcess<Counter>,
    /// Keeps the client open as long as the counter is in use.
    client: Py<PyAeron>,
}

impl PyCounter {
    pub fn new(counter: Counter, client: &Bound<'_, PyAeron>) -> Self {
        Self {
            inner: OfProcess::new(counter),
            client: client.clone().unbind(),
        }
    }

    /// The counter, as long as it is open: its record may belong to another one afterwards.
    #[inline]
    fn open(&self) -> PyResult<&Counter> {
        let counter = self.inner.get()?;
        if counter.is_closed() {
            let (id, registration_id) = (counter.id(), counter.registration_id());
            let reason = format!(
                "counter {id} (registration id {registration_id}) is closed: add another one"
            );
            return Err(because(
                raise("CounterClosedError", reason),
                &counter.close_cause(),
            ));
        }
        Ok(counter)
    }
}

#[pymethods]
impl PyCounter {
    /// The value, with acquire order.
    #[getter]
    fn value(&self) -> PyResult<i64> {
        Ok(self.open()?.get())
    }

    /// Sets the value, with release order.
    fn set(&self, #[pyo3(from_py_with = argument::value)] value: i64) -> PyResult<()> {
        self.open()?.set(value);
        Ok(())
    }

    /// Adds one; answers the value before.
    fn increment(&self) -> PyResult<i64> {
        Ok(self.open()?.fetch_add(1))
    }

    /// Takes one away; answers the value before.
    fn decrement(&self) -> PyResult<i64> {
        Ok(self.open()?.fetch_add(-1))
    }

    /// Adds `delta`; answers the value before.
    fn get_and_add(&self, #[pyo3(from_py_with = argument::delta)] delta: i64) -> PyResult<i64> {
        Ok(self.open()?.fetch_add(delta))
    }

    /// Sets `new` if the value is `current`; answers whether it was.
    fn compare_and_set(
        &self,
        #[pyo3(from_py_with = argument::current)] current: i64,
        #[pyo3(from_py_with = argument::new)] new: i64,
    ) -> PyResult<bool> {
        Ok(self.open()?.compare_and_set(current, new))
    }

    /// Raises the value to `proposed` if it is lower; answers whether it was. For one writer.
    fn propose_max(
        &self,
        #[pyo3(from_py_with = argument::proposed)] proposed: i64,
    ) -> PyResult<bool> {
        Ok(self.open()?.propose_max(proposed))
    }

    /// The counter id.
    #[getter]
    fn id(&self) -> PyResult<i32> {
        Ok(self.inner.get()?.id())
    }

    /// Names the counter to the driver.
    #[getter]
    fn registration_id(&self) -> PyResult<i64> {
        Ok(self.inner.get()?.registration_id())
    }

    /// The text that tools show.
    #[getter]
    fn label(&self) -> PyResult<Option<String>> {
        Ok(self.open()?.label())
    }

    /// State of the counter's record: 1 allocated, -1 reclaimed.
    #[getter]
    fn state(&self) -> PyResult<i32> {
        Ok(self.inner.get()?.state())
    }

    /// Whether the counter outlives the client.
    #[getter]
    fn is_static(&self) -> PyResult<bool> {
        Ok(self.inner.get()?.is_static())
    }

    /// Whether the counter, or its client, is closed.
    #[getter]
    fn is_closed(&self) -> PyResult<bool> {
        Ok(self.inner.get()?.is_closed())
    }

    /// Closes the counter without waiting for the driver. Idempotent.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let counter = self.inner.get()?;
        py.detach(|| counter.close());
        Ok(())
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        _type: &Bound<'_, PyAny>,
        _error: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        self.close(py)
    }

    fn __repr__(&self) -> String {
        let counter = self.inner.anywhere();
        format!(
            "<Counter {}{}>",
            counter.id(),
            if counter.is_closed() { ", closed" } else { "" }
        )
    }

    fn __traverse__(&self, visit: pyo3::PyVisit<'_>) -> Result<(), pyo3::PyTraverseError> {
        visit.call(&self.client)
    }
}

snapshot! {
    /// A counter at one moment. Immutable; pickled and compared by its values.
    PyCounterSnapshot("CounterSnapshot") {
        /// The counter id.
        id: i32,
        /// Its type, which says what it counts.
        type_id: i32,
        /// Its value.
        value: i64,
        /// The text that tools show.
        label: String,
        /// 112 bytes: the key that was given, then zeros.
        key: Octets,
        /// The registration that it was made for.
        registration_id: i64,
        /// The client that owns it, -1 for none.
        owner_id: i64,
        /// The id to which it refers, by its type.
        reference_id: i64,
    }

    fn __repr__(&self) -> String {
        format!(
            "<CounterSnapshot {}: {} - {}>",
            self.id, self.value, self.label
        )
    }
}

impl From<CounterRecord> for PyCounterSnapshot {
    fn from(record: CounterRecord) -> Self {
        Self {
            id: record.id,
            type_id: record.type_id,
            value: record.value,
            label: record.label,
            key: Octets(record.key.to_vec()),
            registration_id: record.registration_id,
            owner_id: record.owner_id,
            reference_id: record.reference_id,
        }
    }
}

/// Reads the counters of a driver and all its clients. Thread-safe.
#[pyclass(frozen, module = "aeron._aeron", name = "CountersReader")]
pub struct PyCountersReader {
    inner: OfProcess<CountersReader<SharedBuffer>>,
}

impl PyCountersReader {
    pub fn new(reader: CountersReader<SharedBuffer>) -> Self {
        Self {
            inner: OfProcess::new(reader),
        }
    }

    fn of<T>(
        &self,
        id: i32,
        value: impl FnOnce(&CountersReader<SharedBuffer>) -> Option<T>,
    ) -> PyResult<T> {
        let reader = self.inner.get()?;
        value(reader).ok_or_else(|| {
            raise(
                "IndexRangeError",
                format!(
                    "counter id {id} is not within 0 to {}",
                    reader.max_counter_id()
                ),
            )
        })
    }
}

#[pymethods]
impl PyCountersReader {
    #[classattr]
    const NULL_COUNTER_ID: i32 = -1;
    #[classattr]
    const RECORD_UNUSED: i32 = 0;
    #[classattr]
    const RECORD_ALLOCATED: i32 = 1;
    #[classattr]
    const RECORD_RECLAIMED: i32 = -1;
    #[classattr]
    const NOT_FREE_TO_REUSE: i64 = i64::MAX;

    /// The highest id that a counter can have.
    #[getter]
    fn max_counter_id(&self) -> PyResult<i32> {
        Ok(self.inner.get()?.max_counter_id())
    }

    /// State of a record: 0 unused, 1 allocated, -1 reclaimed.
    fn state(&self, #[pyo3(from_py_with = argument::id)] id: i32) -> PyResult<i32> {
        self.of(id, |reader| reader.state(id))
    }

    /// The value, with acquire order.
    fn value(&self, #[pyo3(from_py_with = argument::id)] id: i32) -> PyResult<i64> {
        self.of(id, |reader| reader.value(id))
    }

    /// What the counter counts.
    fn type_id(&self, #[pyo3(from_py_with = argument::id)] id: i32) -> PyResult<i32> {
        self.of(id, |reader| reader.type_id(id))
    }

    /// The text that tools show.
    fn label(&self, #[pyo3(from_py_with = argument::id)] id: i32) -> PyResult<String> {
        self.of(id, |reader| reader.label(id))
    }

    /// The 112 bytes that tell counters of one type apart.
    fn key<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = argument::id)] id: i32,
    ) -> PyResult<Bound<'py, PyBytes>> {
        self.of(id, |reader| reader.key(id))
            .map(|key| PyBytes::new(py, &key))
    }

    /// Names the counter to the driver.
    fn registration_id(&self, #[pyo3(from_py_with = argument::id)] id: i32) -> PyResult<i64> {
        self.of(id, |reader| Some(reader.counter(id)?.registration_id()))
    }

    /// The client that owns the counter, -1 for none.
    fn owner_id(&self, #[pyo3(from_py_with = argument::id)] id: i32) -> PyResult<i64> {
        self.of(id, |reader| Some(reader.counter(id)?.owner_id()))
    }

    /// What the counter refers to.
    fn reference_id(&self, #[pyo3(from_py_with = argument::id)] id: i32) -> PyResult<i64> {
        self.of(id, |reader| Some(reader.counter(id)?.reference_id()))
    }

    /// When a reclaimed record may be used again, in milliseconds of the epoch.
    fn free_for_reuse_deadline_ms(
        &self,
        #[pyo3(from_py_with = argument::id)] id: i32,
    ) -> PyResult<i64> {
        self.of(id, |reader| reader.free_for_reuse_deadline_ms(id))
    }

    /// The id of the counter with this type and registration, -1 if there is none.
    fn find_by_type_id_and_registration_id(
        &self,
        #[pyo3(from_py_with = argument::type_id)] type_id: i32,
        #[pyo3(from_py_with = argument::registration_id)] registration_id: i64,
    ) -> PyResult<i32> {
        Ok(self
            .inner
            .get()?
            .find_by_registration(type_id, registration_id)
            .unwrap_or(Self::NULL_COUNTER_ID))
    }

    /// The id of the first counter with this registration, -1 if there is none.
    fn find_by_registration_id(
        &self,
        #[pyo3(from_py_with = argument::registration_id)] registration_id: i64,
    ) -> PyResult<i32> {
        let reader = self.inner.get()?;
        let found = reader
            .records()
            .find(|record| record.registration_id == registration_id);
        Ok(found.map_or(Self::NULL_COUNTER_ID, |record| record.id))
    }

    /// All counters in use, in the order of their ids.
    fn snapshot(&self) -> PyResult<Vec<PyCounterSnapshot>> {
        Ok(self
            .inner
            .get()?
            .records()
            .map(PyCounterSnapshot::from)
            .collect())
    }

    fn __repr__(&self) -> PyResult<String> {
        let reader = self.inner.get()?;
        Ok(format!(
            "<CountersReader of {} counters, at most {}>",
            reader.records().count(),
            reader.max_counter_id() + 1
        ))
    }

    /// Iterates over a snapshot.
    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, pyo3::types::PyIterator>> {
        self.snapshot()?.into_pyobject(py)?.try_iter()
    }
}
