//! [`PyLiveSource`]: the hooks of a live source, for Python.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aeron_client::Context;
use aeron_driver::MediaDriver;
use aeron_pipeline::error::{LiveCode, LiveError};
use aeron_pipeline::live::{LiveSettings, LiveSource, MakeContext};
use aeron_pipeline::planning::{PlanLimits, RangeCutting, RowKind};
use pyo3::prelude::*;

use super::client::ClientSettings;
use super::spark_error;
use crate::argument;
use crate::driver::launch_embedded;
use crate::errors::from_client;
use crate::exit::{self, Closable};
use crate::fork::OfProcess;

/// A live stream as a streaming query sees it: offsets and partitions as JSON text, recorded into a private archive.
///
/// Opens nothing before a batch is logged. The hooks are for one thread at a time; `close` may be called at any time,
/// also by a signal handler while a hook waits.
#[pyclass(frozen, module = "aeron._pipeline", name = "LiveSource")]
pub struct PyLiveSource {
    live: OfProcess<Arc<Live>>,
}

struct Live {
    source: LiveSource,
    driver: Arc<EmbeddedDriver>,
}

/// The embedded driver of one source, launched by the first connection.
#[derive(Default)]
struct EmbeddedDriver(Mutex<Option<MediaDriver>>);

impl Live {
    fn close(&self) {
        self.source.close();
        if let Some(mut driver) = self.driver.lock().take() {
            // Ignores an error: files that remain in the directory do no harm.
            let _ = driver.close();
        }
    }
}

impl Closable for Live {
    fn close_at_exit(&self) {
        self.close();
    }
}

impl EmbeddedDriver {
    fn lock(&self) -> MutexGuard<'_, Option<MediaDriver>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The directory of the driver, which is started if it does not run.
    fn directory(&self) -> Result<PathBuf, LiveError> {
        let mut driver = self.lock();
        let running = match driver.take() {
            Some(running) => running,
            None => launch_embedded().map_err(|error| {
                let reason = format!("option embeddedDriver: no driver can be started: {error}");
                LiveError::new(LiveCode::DriverTimeout, reason)
            })?,
        };
        Ok(driver.insert(running).context().dir.clone())
    }
}

/// How the receiver finds its driver.
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
    /// A source that has opened nothing. `client` has settings of the receiver's client; `record_length` is that of a
    /// typed row in bytes, `None` where each message is a row; `needs_timestamp` says whether rows have their arrival
    /// time.
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

    /// The empty set of a new private archive, which is not made; the same one whenever it is asked for.
    fn initial_offset(&self, py: Python<'_>) -> PyResult<String> {
        self.call(py, |source, _| source.initial_offset())
    }

    /// From now on no batch goes beyond what is there when the first one is asked for.
    fn prepare_for_available_now(&self, py: Python<'_>) -> PyResult<()> {
        self.call(py, |source, _| {
            source.prepare_for_available_now();
            Ok(())
        })
    }

    /// The end of the batch that begins at `start`; `start` itself if nothing comes within 100 ms. `limited` says
    /// whether the limits of a trigger hold.
    #[pyo3(signature = (start, *, limited = true))]
    fn latest_offset(&self, py: Python<'_>, start: &str, limited: bool) -> PyResult<String> {
        self.call(py, |source, interrupt| {
            source.latest_offset(start, limited, interrupt)
        })
    }

    /// The partitions of the batch from `start` to `end`, both logged by now. Opens the private archive that `end`
    /// names.
    fn partitions(&self, py: Python<'_>, start: &str, end: &str) -> PyResult<Vec<String>> {
        self.call(py, |source, interrupt| {
            source.partitions(start, end, interrupt)
        })
    }

    /// Lets go what lies before `end`.
    fn commit(&self, py: Python<'_>, end: &str) -> PyResult<()> {
        self.call(py, |source, _| source.commit(end))
    }

    /// The report that the user sees while the query runs.
    fn report(&self, py: Python<'_>) -> PyResult<String> {
        self.call(py, |source, _| source.report())
    }

    /// Lines for the log that were not taken yet.
    fn take_lines(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let live = self.live.get()?;
        Ok(py.detach(|| live.source.take_lines()))
    }

    /// Stops the recordings, removes the subscriptions and gives the archive free. Idempotent.
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
            // Closing waits for the thread of the source. Other Python threads can run in the meantime.
            Python::attach(|py| py.detach(|| live.close()));
        }
    }
}

#[cold]
fn from_live(error: &LiveError) -> PyErr {
    spark_error(error.code().name(), &error.to_string())
}
