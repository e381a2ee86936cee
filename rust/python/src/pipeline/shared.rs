//! Bindings for the recordings of a running archive: connections, the source of a query, and partitions.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use aeron_columns::read::RowCounts;
use aeron_pipeline::error::{LiveCode, LiveError};
use aeron_pipeline::planning::{PlanLimits, RangeCutting, RowKind};
use aeron_pipeline::shared::{
    ArchiveAccess, ArchiveConnections, ChannelSelection, QueryReader, ReadPositions, RowFilter,
    SharedBatch, SharedPartition, SharedPartitionReader, SharedSelection, SharedSettings,
    SharedSource, ValueRanges, plan_shared,
};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;

use super::client::ClientSettings;
use super::column_batch::PyColumnBatch;
use super::embedded::EmbeddedDriver;
use super::partition::projection_of;
use super::row_counts::row_counts;
use crate::argument;
use crate::errors::{raise, spark_error};
use crate::exit::{self, Closable};
use crate::fork::OfProcess;
use crate::malformed::MalformedTreatment;
use crate::signals::{interruption, is_interrupted};

/// Settings of the connection to an archive, read from a Python dictionary.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct ArchiveSettings {
    client: ClientSettings,
    embedded_driver: bool,
    control_channel: String,
    control_stream_id: i32,
    response_channel: String,
    response_stream_id: i32,
    replay_channel: String,
    replay_stream_id: i32,
    credentials: Option<PyBackedBytes>,
    timeout_ms: u64,
}

/// Selection of the recordings, from a Python dictionary: `recording_ids`, or else `channel` and `stream_ids`.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct SelectionSettings {
    channel: Option<String>,
    stream_ids: Vec<i32>,
    recording_ids: Option<Vec<(i64, i64)>>,
}

impl SelectionSettings {
    fn into_selection(self) -> SharedSelection {
        match self.recording_ids {
            Some(ranges) => SharedSelection::Ids(ranges),
            None => SharedSelection::Channel(ChannelSelection {
                fragment: self.channel.unwrap_or_default(),
                stream_ids: self.stream_ids,
            }),
        }
    }
}

/// Clients of archives that the sources and tasks of this process share. Thread-safe.
///
/// A connection stays open after the end of a task. It is closed after `idle_ms` milliseconds without use, and at the
/// end of the interpreter. All connections with an embedded driver share one driver.
#[pyclass(frozen, module = "aeron._pipeline", name = "ArchiveConnections")]
pub struct PyArchiveConnections {
    inner: OfProcess<Arc<Connections>>,
}

struct Connections {
    connections: ArchiveConnections,
    driver: Arc<EmbeddedDriver>,
}

impl Closable for Connections {
    fn close_at_exit(&self) {
        self.connections.close();
        self.driver.close();
    }
}

#[pymethods]
impl PyArchiveConnections {
    #[new]
    #[pyo3(signature = (idle_ms = 30_000))]
    fn new(#[pyo3(from_py_with = argument::idle_ms)] idle_ms: u64) -> Self {
        let inner = Arc::new(Connections {
            connections: ArchiveConnections::new(Duration::from_millis(idle_ms)),
            driver: Arc::default(),
        });
        exit::add_client(&inner);
        Self {
            inner: OfProcess::new(inner),
        }
    }

    /// Closes all connections, even if tasks use them, and the embedded driver. Idempotent.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let inner = self.inner.get()?;
        py.detach(|| inner.close_at_exit());
        Ok(())
    }

    /// Returns the number of open connections.
    fn __len__(&self) -> PyResult<usize> {
        Ok(self.inner.get()?.connections.count())
    }

    /// Whether the connections belong to this process, and not to the parent process of a fork.
    #[getter]
    fn is_usable(&self) -> bool {
        !self.inner.is_foreign()
    }
}

impl PyArchiveConnections {
    /// Returns the access for these settings, on the connections of this object.
    fn access(&self, settings: ArchiveSettings) -> PyResult<Access> {
        let inner = self.inner.get()?;
        let ArchiveSettings {
            client,
            embedded_driver,
            ..
        } = settings;
        let embedded = embedded_driver.then(|| Arc::clone(&inner.driver));
        let driver = match &embedded {
            Some(_) => "embedded".to_owned(),
            None => client.name(),
        };
        let make_context = Box::new(move || {
            let context = client.to_context();
            let mut context =
                context.map_err(|error| LiveError::new(LiveCode::Option, error.to_string()))?;
            context.interrupt_check = Some(Arc::new(is_interrupted));
            if let Some(driver) = &embedded {
                context.aeron_dir = driver.directory()?;
            }
            Ok(context)
        });
        let access = ArchiveAccess {
            make_context,
            driver,
            control_channel: settings.control_channel,
            control_stream_id: settings.control_stream_id,
            response_channel: settings.response_channel,
            response_stream_id: settings.response_stream_id,
            replay_channel: settings.replay_channel,
            replay_stream_id: settings.replay_stream_id,
            credentials: settings
                .credentials
                .map_or_else(Vec::new, |credentials| credentials.to_vec()),
            timeout: Duration::from_millis(settings.timeout_ms),
        };
        Ok(Access {
            access: Arc::new(access),
            connections: inner.connections.clone(),
        })
    }
}

/// Settings of the connection to an archive, and the connections to use.
struct Access {
    access: Arc<ArchiveAccess>,
    connections: ArchiveConnections,
}

/// The source of a streaming query on the recordings of a running archive.
///
/// Offsets and partitions are JSON texts. One thread at a time may call the hooks. `close` may be called at any time,
/// even by a signal handler while a hook waits. `close` does not close the connections.
#[pyclass(frozen, module = "aeron._pipeline", name = "SharedSource")]
pub struct PySharedSource {
    source: OfProcess<SharedSource>,
}

#[pymethods]
impl PySharedSource {
    /// Creates a source. Opens no connection.
    ///
    /// `starting_offsets` is a text that `check_offsets` accepts. `record_length` is the length of a record in bytes,
    /// or `None` if each message is a row. `directory` is the archive's directory, if it may be on this machine.
    /// `needs_timestamp` says whether rows contain their arrival time. `reader` is the name under which the archive
    /// keeps the committed positions. This named reader expires after `reader_max_age_ms` milliseconds without a
    /// commit.
    #[new]
    #[pyo3(signature = (
        connections, archive, selection, *, starting_offsets = "latest", directory = None, max_rows_per_trigger = None,
        max_bytes_per_trigger = None, min_partitions = 1, max_rows_per_partition = None, record_length = None,
        fail_on_data_loss = true, needs_timestamp = true, reader = None, reader_max_age_ms = None
    ))]
    #[allow(clippy::too_many_arguments, reason = "keywords of a Python class")]
    fn new(
        connections: &PyArchiveConnections,
        archive: ArchiveSettings,
        selection: SelectionSettings,
        starting_offsets: &str,
        directory: Option<PathBuf>,
        #[pyo3(from_py_with = argument::max_rows_per_trigger)] max_rows_per_trigger: Option<u64>,
        #[pyo3(from_py_with = argument::max_bytes_per_trigger)] max_bytes_per_trigger: Option<u64>,
        #[pyo3(from_py_with = argument::min_partitions)] min_partitions: Option<usize>,
        #[pyo3(from_py_with = argument::max_rows_per_partition)] max_rows_per_partition: Option<
            u64,
        >,
        #[pyo3(from_py_with = argument::record_length)] record_length: Option<u32>,
        fail_on_data_loss: bool,
        needs_timestamp: bool,
        reader: Option<String>,
        reader_max_age_ms: Option<i64>,
    ) -> PyResult<Self> {
        let Access {
            access,
            connections,
        } = connections.access(archive)?;
        let source = SharedSource::new(SharedSettings {
            access,
            connections,
            selection: selection.into_selection(),
            starting: positions(starting_offsets)?,
            limits: PlanLimits {
                rows: max_rows_per_trigger,
                payload_bytes: max_bytes_per_trigger,
            },
            cutting: RangeCutting {
                min_partitions: min_partitions.unwrap_or(1),
                max_rows: max_rows_per_partition,
                rows: row_kind(record_length),
            },
            fail_on_data_loss,
            directory,
            needs_timestamp,
            reader: reader.map(|name| QueryReader {
                name,
                max_age_ms: reader_max_age_ms,
            }),
            is_interrupted,
        });
        Ok(Self {
            source: OfProcess::new(source),
        })
    }

    /// Returns the offset of a query whose start is not known yet. Each call returns the same offset.
    fn initial_offset(&self, py: Python<'_>) -> PyResult<String> {
        self.call(py, SharedSource::initial_offset)
    }

    /// Fixes the end of the query: no batch goes beyond the data that exists when the first batch is requested.
    fn prepare_for_available_now(&self, py: Python<'_>) -> PyResult<()> {
        self.call(py, |source| {
            source.prepare_for_available_now();
            Ok(())
        })
    }

    /// Returns the end of the batch that begins at `start`. If no data arrives within 100 ms, returns `start`
    /// itself.
    ///
    /// `limited` says whether the limits of a trigger apply.
    #[pyo3(signature = (start, *, limited = true))]
    fn latest_offset(&self, py: Python<'_>, start: &str, limited: bool) -> PyResult<String> {
        self.call(py, |source| source.latest_offset(start, limited))
    }

    /// Returns the partitions of the batch from `start` to `end`. Spark must have logged both offsets.
    fn partitions(&self, py: Python<'_>, start: &str, end: &str) -> PyResult<Vec<String>> {
        self.call(py, |source| source.partitions(start, end))
    }

    /// Stores the positions of `end` in the named reader, if there is one.
    fn commit(&self, py: Python<'_>, end: &str) -> PyResult<()> {
        self.call(py, |source| source.commit(end))
    }

    /// Returns the progress report that the user sees while the query runs, as JSON.
    fn report(&self, py: Python<'_>) -> PyResult<String> {
        self.call(py, SharedSource::report)
    }

    /// Removes and returns the lines for Python's log.
    fn take_lines(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let source = self.source.get()?;
        Ok(py.detach(|| source.take_lines()))
    }

    /// Refuses further calls of hooks. Idempotent.
    fn close(&self) -> PyResult<()> {
        self.source.get()?.close();
        Ok(())
    }
}

impl PySharedSource {
    /// Calls a hook without the GIL.
    fn call<T: Send>(
        &self,
        py: Python<'_>,
        hook: impl FnOnce(&SharedSource) -> Result<T, LiveError> + Send,
    ) -> PyResult<T> {
        let source = self.source.get()?;
        py.detach(|| hook(source))
            .map_err(|error| from_live(&error))
    }
}

/// Checks a text that names positions in recordings. Raises ``InvalidArgumentError`` with the reason.
#[pyfunction]
pub fn check_offsets(text: &str) -> PyResult<()> {
    positions(text).map(|_| ())
}

/// Conditions on the columns of rows, read from a Python dictionary: inclusive ranges of values, or `None`.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct FilterSettings {
    recording_id: Option<Vec<(i64, i64)>>,
    stream_id: Option<Vec<(i64, i64)>>,
    session_id: Option<Vec<(i64, i64)>>,
    position: Option<Vec<(i64, i64)>>,
    timestamp: Option<Vec<(i64, i64)>>,
}

impl FilterSettings {
    fn into_filter(self) -> RowFilter {
        let ranges =
            |values: Option<Vec<(i64, i64)>>| values.map(ValueRanges::new).unwrap_or_default();
        RowFilter {
            recording_id: ranges(self.recording_id),
            stream_id: ranges(self.stream_id),
            session_id: ranges(self.session_id),
            position: ranges(self.position),
            timestamp_us: ranges(self.timestamp),
        }
    }
}

/// Plans a batch query on an archive's recordings. Returns its partitions, as texts for `SharedPartitionReader`, and
/// lines for Python's log.
///
/// Each message is in exactly one partition. Without limits each segment is a partition. With `filter`, segments and
/// recordings without a matching row are left out. Raises ``AeronSparkError``.
#[pyfunction]
#[pyo3(signature = (
    connections, archive, selection, *, starting_offsets = "earliest", ending_offsets = "latest", directory = None,
    min_partitions = None, max_rows_per_partition = None, record_length = None, needs_timestamp = true, filter = None
))]
#[allow(clippy::too_many_arguments, reason = "keywords of a Python function")]
pub fn plan_archive(
    py: Python<'_>,
    connections: &PyArchiveConnections,
    archive: ArchiveSettings,
    selection: SelectionSettings,
    starting_offsets: &str,
    ending_offsets: &str,
    directory: Option<PathBuf>,
    #[pyo3(from_py_with = argument::min_partitions)] min_partitions: Option<usize>,
    #[pyo3(from_py_with = argument::max_rows_per_partition)] max_rows_per_partition: Option<u64>,
    #[pyo3(from_py_with = argument::record_length)] record_length: Option<u32>,
    needs_timestamp: bool,
    filter: Option<FilterSettings>,
) -> PyResult<(Vec<String>, Vec<String>)> {
    let Access {
        access,
        connections,
    } = connections.access(archive)?;
    let batch = SharedBatch {
        access,
        connections,
        selection: selection.into_selection(),
        starting: positions(starting_offsets)?,
        ending: positions(ending_offsets)?,
        min_partitions,
        max_rows: max_rows_per_partition,
        rows: row_kind(record_length),
        directory,
        needs_timestamp,
        filter: filter.map(FilterSettings::into_filter).unwrap_or_default(),
    };
    let plan = py.detach(|| plan_shared(&batch));
    let plan = plan.map_err(|error| from_live(&error))?;
    Ok((plan.partitions, plan.lines))
}

/// An iterator over the rows of a partition of a running archive, as record batches with exactly the given schema.
///
/// If `directory` is the directory of the archive, the iterator reads the archive's files. Otherwise the iterator
/// starts a replay. The other arguments are those of `PartitionReader`. Errors have the classes of
/// ``aeron.spark.errors``. Thread-safe. The iterator waits and decodes without the GIL.
#[pyclass(frozen, module = "aeron._pipeline", name = "SharedPartitionReader")]
pub struct PySharedPartitionReader {
    reader: OfProcess<Mutex<SharedPartitionReader>>,
}

row_counts!(PySharedPartitionReader);

#[pymethods]
impl PySharedPartitionReader {
    #[new]
    #[pyo3(signature = (
        connections, archive, partition, schema, *, directory = None, value_format = "binary", value_schema = None,
        malformed = MalformedTreatment::FAIL, verify_checksums = true
    ))]
    #[allow(clippy::too_many_arguments, reason = "keywords of a Python class")]
    fn new(
        py: Python<'_>,
        connections: &PyArchiveConnections,
        archive: ArchiveSettings,
        partition: &str,
        schema: &Bound<'_, PyAny>,
        directory: Option<PathBuf>,
        value_format: &str,
        value_schema: Option<&str>,
        #[pyo3(from_py_with = argument::malformed)] malformed: MalformedTreatment,
        verify_checksums: bool,
    ) -> PyResult<Self> {
        let partition = SharedPartition::from_json(partition)
            .map_err(|error| raise("InvalidArgumentError", error.to_string()))?;
        let mode = malformed.0;
        let projection = projection_of(schema, value_format, value_schema, mode)?;
        let Access {
            access,
            connections,
        } = connections.access(archive)?;
        let directory = directory.as_deref();
        let reader = py.detach(|| {
            SharedPartitionReader::new(
                &connections,
                &access,
                directory,
                &partition,
                projection,
                mode,
                verify_checksums,
            )
        });
        let reader = reader.map_err(|error| from_live(&error))?;
        Ok(Self {
            reader: OfProcess::new(Mutex::new(reader)),
        })
    }

    /// Whether the rows are from a replay, and not from files.
    #[getter]
    fn is_replay(&self, py: Python<'_>) -> PyResult<bool> {
        let reader = self.reader.get()?;
        Ok(py.detach(|| lock(reader).is_replay()))
    }

    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<PyColumnBatch>> {
        let reader = self.reader.get()?;
        match py.detach(|| lock(reader).next_batch()) {
            Ok(batch) => Ok(batch.map(PyColumnBatch::new)),
            Err(error) => Err(from_live(&error)),
        }
    }
}

impl PySharedPartitionReader {
    fn counts(&self, py: Python<'_>) -> PyResult<RowCounts> {
        let reader = self.reader.get()?;
        Ok(py.detach(|| lock(reader).counts()))
    }
}

fn lock(reader: &Mutex<SharedPartitionReader>) -> MutexGuard<'_, SharedPartitionReader> {
    reader.lock().unwrap_or_else(PoisonError::into_inner)
}

fn positions(text: &str) -> PyResult<ReadPositions> {
    ReadPositions::parse(text).map_err(|error| raise("InvalidArgumentError", error.to_string()))
}

fn row_kind(record_length: Option<u32>) -> RowKind {
    record_length.map_or(RowKind::Messages, |length| RowKind::Records { length })
}

#[cold]
fn from_live(error: &LiveError) -> PyErr {
    match error.code() {
        LiveCode::Interrupted => interruption(),
        code => spark_error(code.name(), &error.to_string()),
    }
}
