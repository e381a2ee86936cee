//! [`PyLiveSource`]: the hooks of Spark's streaming source, for Python.

use std::path::PathBuf;
use std::sync::Arc;

use aeron_client::Context;
use aeron_pipeline::error::{LiveCode, LiveError};
use aeron_pipeline::live::{LiveSettings, LiveSource, MakeContext};
use aeron_pipeline::planning::{PlanLimits, RangeCutting, RowKind};
use pyo3::prelude::*;

use super::client::ClientSettings;
use super::embedded::EmbeddedDriver;
use crate::argument;
use crate::errors::{from_client, spark_error};
use crate::exit::{self, Closable};
use crate::fork::OfProcess;

/// The live source of a streaming query, which records its streams into a private archive.
///
/// Offsets and partitions are JSON texts. The source opens nothing before Spark has logged a batch. One thread at a
/// time may call the hooks. `close` may be called at any time, even by a signal handler while a hook waits.
#[pyclass(frozen, module = "aeron._pipeline", name = "LiveSource")]
pub struct PyLiveSource {
    live: OfProcess<Arc<Live>>,
}

struct Live {
    source: LiveSource,
    driver: Arc<EmbeddedDriver>,
}

impl Live {
    fn close(&self) {
        self.source.close();
        self.driver.close();
    }
}

impl Closable for Live {
    fn close_at_exit(&self) {
        self.close();
    }
}

/// Returns a function that creates the settings of the stream recorder's client.
fn make_context(client: ClientSettings, embedded: Option<Arc<EmbeddedDriver>>) -> MakeContext {
    Box::new(move || -> Result<Context, LiveError> {
        let mut context = client
            .to_context()
            .map_err(|error| LiveError::new(LiveCode::Option, error.to_string()))?;
        if let Some(driver) = &embedded {
            context.aeron_dir = driver.directory()?;
        }
        Ok(context)
    })
}

#[pymethods]
impl PyLiveSource {
    /// Creates a source. Opens no archive, driver or client.
    ///
    /// `client` has the settings of the stream recorder's client. `record_length` is the length of a record in bytes,
    /// or `None` if each message is a row. `needs_timestamp` says whether rows contain their arrival time.
    #[new]
    #[pyo3(signature = (
        channel, stream_ids, *, client = None, embedded_driver = false, archive_dir = None, max_retained_bytes = 1 << 30,
        max_rows_per_trigger = None, max_bytes_per_trigger = None, min_partitions = 1, max_rows_per_partition = None,
        record_length = None, fail_on_data_loss = true, needs_timestamp = true
    ))]
    #[allow(clippy::too_many_arguments, reason = "keywords of a Python class")]
    fn new(
        channel: String,
        stream_ids: Vec<i32>,
        client: Option<ClientSettings>,
        embedded_driver: bool,
        archive_dir: Option<PathBuf>,
        #[pyo3(from_py_with = argument::max_retained_bytes)] max_retained_bytes: u64,
        #[pyo3(from_py_with = argument::max_rows_per_trigger)] max_rows_per_trigger: Option<u64>,
        #[pyo3(from_py_with = argument::max_bytes_per_trigger)] max_bytes_per_trigger: Option<u64>,
        #[pyo3(from_py_with = argument::min_partitions)] min_partitions: usize,
        #[pyo3(from_py_with = argument::max_rows_per_partition)] max_rows_per_partition: Option<
            u64,
        >,
        #[pyo3(from_py_with = argument::record_length)] record_length: Option<u32>,
        fail_on_data_loss: bool,
        needs_timestamp: bool,
    ) -> PyResult<Self> {
        let client = client.unwrap_or_default();
        client.to_context().map_err(|error| from_client(&error))?;
        let driver = Arc::new(EmbeddedDriver::default());
        let embedded = embedded_driver.then(|| Arc::clone(&driver));
        let settings = LiveSettings {
            channel,
            stream_ids,
            make_context: make_context(client, embedded),
            archive_dir,
            max_retained_bytes,
            limits: PlanLimits {
                rows: max_rows_per_trigger,
                payload_bytes: max_bytes_per_trigger,
            },
            cutting: RangeCutting {
                min_partitions,
                max_rows: max_rows_per_partition,
                rows: record_length.map_or(RowKind::Messages, |length| RowKind::Records { length }),
            },
            fail_on_data_loss,
            needs_timestamp,
        };
        let source = LiveSource::new(settings).map_err(|error| from_live(&error))?;
        let live = Arc::new(Live { source, driver });
        exit::add_client(&live);
        Ok(Self {
            live: OfProcess::new(live),
        })
    }

    /// Returns the offset of a new, empty private archive, without creating the archive. Each call returns the same
    /// offset.
    fn initial_offset(&self, py: Python<'_>) -> PyResult<String> {
        self.call(py, |source, _| source.initial_offset())
    }

    /// Fixes the end of the query: no batch goes beyond the data that exists when the first batch is requested.
    fn prepare_for_available_now(&self, py: Python<'_>) -> PyResult<()> {
        self.call(py, |source, _| {
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
        self.call(py, |source, interrupt| {
            source.latest_offset(start, limited, interrupt)
        })
    }

    /// Returns the partitions of the batch from `start` to `end`. Spark must have logged both offsets.
    ///
    /// Opens the private archive of `end`.
    fn partitions(&self, py: Python<'_>, start: &str, end: &str) -> PyResult<Vec<String>> {
        self.call(py, |source, interrupt| {
            source.partitions(start, end, interrupt)
        })
    }

    /// Permits the deletion of the data before `end`.
    fn commit(&self, py: Python<'_>, end: &str) -> PyResult<()> {
        self.call(py, |source, _| source.commit(end))
    }

    /// Returns the progress report that the user sees while the query runs, as JSON.
    fn report(&self, py: Python<'_>) -> PyResult<String> {
        self.call(py, |source, _| source.report())
    }

    /// Removes and returns the lines for Python's log.
    fn take_lines(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let live = self.live.get()?;
        Ok(py.detach(|| live.source.take_lines()))
    }

    /// Stops the recordings, removes the subscriptions and unlocks the private archive. Idempotent.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let live = self.live.get()?;
        py.detach(|| live.close());
        Ok(())
    }
}

impl PyLiveSource {
    /// Calls a hook without the GIL. While the hook waits, it checks for signals.
    fn call<T: Send>(
        &self,
        py: Python<'_>,
        hook: impl FnOnce(&LiveSource, &mut dyn FnMut() -> bool) -> Result<T, LiveError> + Send,
    ) -> PyResult<T> {
        let live = self.live.get()?;
        let mut raised = None;
        let mut is_interrupted = || {
            raised = Python::attach(|py| py.check_signals()).err();
            raised.is_some()
        };
        let answer = py.detach(|| hook(&live.source, &mut is_interrupted));
        match raised {
            Some(raised) => Err(raised),
            None => answer.map_err(|error| from_live(&error)),
        }
    }
}

impl Drop for PyLiveSource {
    fn drop(&mut self) {
        if let Ok(live) = self.live.get() {
            // The close waits for the thread of the source, so it releases the GIL.
            Python::attach(|py| py.detach(|| live.close()));
        }
    }
}

#[cold]
fn from_live(error: &LiveError) -> PyErr {
    spark_error(error.code().name(), &error.to_string())
}
