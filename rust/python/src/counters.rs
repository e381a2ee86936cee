//! [`PyCounter`]: a counter that the client added. [`PyCountersReader`]: a reader of all counters of a driver.

use aeron_client::{Counter, CounterRecord, CountersReader, SharedBuffer};
use aeron_memory::counters::MAX_KEY_LENGTH;
use aeron_memory::counters::keys::{StreamKey, decode_local_address_key};
use aeron_memory::counters::meaning::{CounterKind, CounterMeaning, CounterSubject, CounterUnit};
use aeron_memory::counters::system::SystemCounter;
use aeron_memory::counters::types::{self, CounterType};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::argument;
use crate::attributes::attributes;
use crate::client::PyAeron;
use crate::errors::{because, raise};
use crate::fork::OfProcess;
use crate::snapshot::{Octets, snapshot};
use crate::with_block::with_block;

/// A counter that this client added. Thread-safe.
///
/// Closing the counter frees it, except that a static counter stays in the driver. Reading or writing a
/// closed counter raises `CounterClosedError`.
///
/// Example:
///     ```python
///     counter = client.add_counter(1001, "my counter")
///     counter.increment()
///     ```
#[pyclass(frozen, weakref, module = "aeron", name = "Counter")]
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

    fn get(&self) -> PyResult<&Counter> {
        self.inner.get()
    }

    /// Returns the counter if it is open. The record of a closed counter may already belong to another counter.
    #[inline]
    fn open(&self) -> PyResult<&Counter> {
        let counter = self.get()?;
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

attributes! {
    PyCounter from get

    /// Counter id.
    id: i32,

    /// Registration id of the counter in the driver.
    registration_id: i64,

    /// State of the counter's record: 1 allocated, -1 reclaimed.
    state: i32,

    /// Whether the counter is a static counter, which outlives the client.
    is_static: bool,

    /// Whether the counter or its client is closed.
    is_closed: bool,
}

with_block!(PyCounter);

#[pymethods]
impl PyCounter {
    /// Value, read with acquire order. Raises `CounterClosedError` if the counter is closed.
    #[getter]
    fn value(&self) -> PyResult<i64> {
        Ok(self.open()?.get())
    }

    /// Sets the value, with release order.
    ///
    /// Args:
    ///     value: A 64-bit integer.
    ///
    /// Raises:
    ///     CounterClosedError: If the counter is closed.
    fn set(&self, #[pyo3(from_py_with = argument::value)] value: i64) -> PyResult<()> {
        self.open()?.set(value);
        Ok(())
    }

    /// Adds 1 to the value.
    ///
    /// Returns:
    ///     The value before the call.
    ///
    /// Raises:
    ///     CounterClosedError: If the counter is closed.
    fn increment(&self) -> PyResult<i64> {
        Ok(self.open()?.fetch_add(1))
    }

    /// Subtracts 1 from the value.
    ///
    /// Returns:
    ///     The value before the call.
    ///
    /// Raises:
    ///     CounterClosedError: If the counter is closed.
    fn decrement(&self) -> PyResult<i64> {
        Ok(self.open()?.fetch_add(-1))
    }

    /// Adds an integer to the value.
    ///
    /// Args:
    ///     delta: A 64-bit integer.
    ///
    /// Returns:
    ///     The value before the call.
    ///
    /// Raises:
    ///     CounterClosedError: If the counter is closed.
    fn get_and_add(&self, #[pyo3(from_py_with = argument::delta)] delta: i64) -> PyResult<i64> {
        Ok(self.open()?.fetch_add(delta))
    }

    /// Sets the value to `new` if it is `current`, in one atomic step.
    ///
    /// Args:
    ///     current: The expected value.
    ///     new: The new value.
    ///
    /// Returns:
    ///     `True` if the value was set.
    ///
    /// Raises:
    ///     CounterClosedError: If the counter is closed.
    fn compare_and_set(
        &self,
        #[pyo3(from_py_with = argument::current)] current: i64,
        #[pyo3(from_py_with = argument::new)] new: i64,
    ) -> PyResult<bool> {
        Ok(self.open()?.compare_and_set(current, new))
    }

    /// Sets the value to `proposed` if `proposed` is greater. Not atomic: use it only if the counter has one writer.
    ///
    /// Args:
    ///     proposed: A 64-bit integer.
    ///
    /// Returns:
    ///     `True` if the value was changed.
    ///
    /// Raises:
    ///     CounterClosedError: If the counter is closed.
    fn propose_max(
        &self,
        #[pyo3(from_py_with = argument::proposed)] proposed: i64,
    ) -> PyResult<bool> {
        Ok(self.open()?.propose_max(proposed))
    }

    /// Label that tools show.
    #[getter]
    fn label(&self) -> PyResult<Option<String>> {
        Ok(self.open()?.label())
    }

    /// Closes the counter without waiting for the driver. Idempotent.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let counter = self.inner.get()?;
        py.detach(|| counter.close());
        Ok(())
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
    /// A counter and its value at one moment. Immutable. Comparison and pickling use the values.
    PyCounterSnapshot("CounterSnapshot") {
        /// Counter id.
        id: i32,
        /// Type of the counter.
        type_id: i32,
        /// Value.
        value: i64,
        /// Label that tools show.
        label: String,
        /// Key of the counter, padded with zeros to 112 bytes.
        key: Octets,
        /// Registration id of the counter.
        registration_id: i64,
        /// Id of the client that owns the counter; -1 if no client owns it.
        owner_id: i64,
        /// Id of the object to which the counter belongs. The kind of object depends on the counter's type.
        reference_id: i64,
    }

    /// Name in lower case with underscores, for example `publisher_limit`; `None` if the type is unknown. All counters
    /// of a type have the same name, except system counters and the indicators of congestion control.
    #[getter]
    fn name(&self) -> Option<String> {
        self.meaning().map(|meaning| meaning.name)
    }

    /// Kind of the value: `"counter"` (a total), `"gauge"`, `"position"`, `"state"` (a code) or `"timestamp"`; `None`
    /// if it is unknown.
    #[getter]
    fn kind(&self) -> Option<&'static str> {
        self.meaning()?.kind.map(CounterKind::name)
    }

    /// Unit of the value: `"bytes"`, `"nanoseconds"` or `"milliseconds"`; `None` for a number without a unit, and for
    /// an unknown type.
    #[getter]
    fn unit(&self) -> Option<&'static str> {
        self.meaning()?.unit.and_then(CounterUnit::name)
    }

    /// Channel of the stream or endpoint; `None` if the type has no channel. Key and label have room for the beginning
    /// of a long channel. This is the longer one of the two.
    #[getter]
    fn channel(&self) -> Option<String> {
        self.subject().channel
    }

    /// Whether `channel` is complete. Without a channel, the value is `False`.
    #[getter]
    fn is_channel_complete(&self) -> bool {
        self.subject().is_channel_complete
    }

    /// Stream id; `None` if the type has none.
    #[getter]
    fn stream_id(&self) -> Option<i32> {
        self.subject().stream_id
    }

    /// Session id; `None` if the type has none.
    #[getter]
    fn session_id(&self) -> Option<i32> {
        self.subject().session_id
    }

    /// Recording id; `None` if the type has none.
    #[getter]
    fn recording_id(&self) -> Option<i64> {
        self.subject().recording_id
    }

    /// Registration id in the key of a stream's counter.
    #[getter(_stream_registration_id)]
    fn stream_registration_id(&self) -> i64 {
        StreamKey::decode(&self.padded_key()).registration_id
    }

    /// Id of the channel's status counter, and the address, in the key of a bound address.
    #[getter(_bound_address)]
    fn bound_address(&self) -> (i32, String) {
        decode_local_address_key(&self.padded_key())
    }

    fn __repr__(&self) -> String {
        format!(
            "<CounterSnapshot {}: {} - {}>",
            self.id, self.value, self.label
        )
    }
}

/// A row of the table of counters: type id, id of a system counter, name, kind, unit, and description.
type MeaningRow = (
    i32,
    Option<i32>,
    String,
    Option<&'static str>,
    Option<&'static str>,
    &'static str,
);

/// Returns a row for each system counter and each type of counters that has a name.
#[pyfunction]
#[pyo3(name = "_counter_meanings")]
pub fn counter_meanings() -> Vec<MeaningRow> {
    let row = |type_id, counter_id: Option<i32>, help| {
        let meaning = CounterMeaning::of(type_id, counter_id.unwrap_or(0), "")?;
        let unit = meaning.unit.and_then(CounterUnit::name);
        let kind = meaning.kind.map(CounterKind::name);
        Some((type_id, counter_id, meaning.name, kind, unit, help))
    };
    let system = SystemCounter::ALL.iter();
    let system = system.map(|counter| row(types::SYSTEM, Some(counter.id()), counter.text()));
    let known = types::ALL
        .iter()
        .map(|CounterType { id, help, .. }| row(*id, None, help.trim()));
    let cluster = types::CLUSTER.iter().map(|(id, _)| row(*id, None, ""));
    system.chain(known).chain(cluster).flatten().collect()
}

impl PyCounterSnapshot {
    fn meaning(&self) -> Option<CounterMeaning> {
        CounterMeaning::of(self.type_id, self.id, &self.label)
    }

    fn subject(&self) -> CounterSubject {
        CounterSubject::of(self.type_id, &self.padded_key(), &self.label)
    }

    /// A key that was passed to the constructor may have any length.
    fn padded_key(&self) -> [u8; MAX_KEY_LENGTH] {
        let mut key = [0; MAX_KEY_LENGTH];
        let length = self.key.0.len().min(key.len());
        key[..length].copy_from_slice(&self.key.0[..length]);
        key
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

/// A reader of the counters of a driver and all its clients.
///
/// Iterating over the reader yields a `CounterSnapshot` of each allocated counter. Thread-safe.
///
/// Example:
///     ```python
///     for counter in client.counters_reader:
///         print(counter.label, counter.value)
///     ```
#[pyclass(frozen, module = "aeron", name = "CountersReader")]
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
                    "there is no counter with id {id}; the ids are within 0 to {}",
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

    /// The highest possible counter id.
    #[getter]
    fn max_counter_id(&self) -> PyResult<i32> {
        Ok(self.inner.get()?.max_counter_id())
    }

    /// Returns the state of a counter's record.
    ///
    /// Args:
    ///     id: Counter id.
    ///
    /// Returns:
    ///     0 unused, 1 allocated, -1 reclaimed.
    ///
    /// Raises:
    ///     IndexRangeError: If `id` is not within 0 to `max_counter_id`.
    fn state(&self, #[pyo3(from_py_with = argument::id)] id: i32) -> PyResult<i32> {
        self.of(id, |reader| reader.state(id))
    }

    /// Returns the value of a counter, with acquire order.
    ///
    /// Args:
    ///     id: Counter id.
    ///
    /// Returns:
    ///     The value.
    ///
    /// Raises:
    ///     IndexRangeError: If `id` is not within 0 to `max_counter_id`.
    fn value(&self, #[pyo3(from_py_with = argument::id)] id: i32) -> PyResult<i64> {
        self.of(id, |reader| reader.value(id))
    }

    /// Returns the type of a counter.
    ///
    /// Args:
    ///     id: Counter id.
    ///
    /// Returns:
    ///     The type id.
    ///
    /// Raises:
    ///     IndexRangeError: If there is no counter with this id.
    fn type_id(&self, #[pyo3(from_py_with = argument::id)] id: i32) -> PyResult<i32> {
        self.of(id, |reader| reader.type_id(id))
    }

    /// Returns the label of a counter.
    ///
    /// Args:
    ///     id: Counter id.
    ///
    /// Returns:
    ///     The label that tools show.
    ///
    /// Raises:
    ///     IndexRangeError: If there is no counter with this id.
    fn label(&self, #[pyo3(from_py_with = argument::id)] id: i32) -> PyResult<String> {
        self.of(id, |reader| reader.label(id))
    }

    /// Returns the key of a counter. The key distinguishes counters of the same type.
    ///
    /// Args:
    ///     id: Counter id.
    ///
    /// Returns:
    ///     112 bytes.
    ///
    /// Raises:
    ///     IndexRangeError: If there is no counter with this id.
    fn key<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = argument::id)] id: i32,
    ) -> PyResult<Bound<'py, PyBytes>> {
        self.of(id, |reader| reader.key(id))
            .map(|key| PyBytes::new(py, &key))
    }

    /// Returns the registration id of a counter.
    ///
    /// Args:
    ///     id: Counter id.
    ///
    /// Returns:
    ///     The registration id.
    ///
    /// Raises:
    ///     IndexRangeError: If `id` is not within 0 to `max_counter_id`.
    fn registration_id(&self, #[pyo3(from_py_with = argument::id)] id: i32) -> PyResult<i64> {
        self.of(id, |reader| Some(reader.counter(id)?.registration_id()))
    }

    /// Returns the owner of a counter.
    ///
    /// Args:
    ///     id: Counter id.
    ///
    /// Returns:
    ///     The id of the client; -1 if no client owns the counter.
    ///
    /// Raises:
    ///     IndexRangeError: If `id` is not within 0 to `max_counter_id`.
    fn owner_id(&self, #[pyo3(from_py_with = argument::id)] id: i32) -> PyResult<i64> {
        self.of(id, |reader| Some(reader.counter(id)?.owner_id()))
    }

    /// Returns the id of the object to which a counter belongs. The kind of object depends on the counter's type.
    ///
    /// Args:
    ///     id: Counter id.
    ///
    /// Returns:
    ///     The reference id.
    ///
    /// Raises:
    ///     IndexRangeError: If `id` is not within 0 to `max_counter_id`.
    fn reference_id(&self, #[pyo3(from_py_with = argument::id)] id: i32) -> PyResult<i64> {
        self.of(id, |reader| Some(reader.counter(id)?.reference_id()))
    }

    /// Returns the time after which a reclaimed record may be used again.
    ///
    /// Args:
    ///     id: Counter id.
    ///
    /// Returns:
    ///     Milliseconds since the epoch; `NOT_FREE_TO_REUSE` if the counter is in use.
    ///
    /// Raises:
    ///     IndexRangeError: If `id` is not within 0 to `max_counter_id`.
    fn free_for_reuse_deadline_ms(
        &self,
        #[pyo3(from_py_with = argument::id)] id: i32,
    ) -> PyResult<i64> {
        self.of(id, |reader| reader.free_for_reuse_deadline_ms(id))
    }

    /// Finds a counter by type and registration id.
    ///
    /// Args:
    ///     type_id: Type of the counter.
    ///     registration_id: Registration id of the counter.
    ///
    /// Returns:
    ///     The counter id; -1 if there is no such counter.
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

    /// Finds a counter by its registration id.
    ///
    /// Args:
    ///     registration_id: Registration id of the counter.
    ///
    /// Returns:
    ///     The counter id; -1 if there is no such counter.
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

    /// Takes a snapshot of all allocated counters.
    ///
    /// Returns:
    ///     A list in the order of the counter ids.
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

    /// Returns a snapshot as an HTML table, for notebooks.
    fn _repr_html_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let module = slf.py().import("aeron._html")?;
        module.call_method1("of_counters", (slf,))
    }

    /// Iterates over a snapshot.
    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, pyo3::types::PyIterator>> {
        self.snapshot()?.into_pyobject(py)?.try_iter()
    }
}
