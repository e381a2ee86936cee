//! The sink for Python: tasks that publish rows, and the publications that the tasks of a process share.

use std::sync::Arc;
use std::time::Duration;

use aeron_client::{Aeron, Context};
use aeron_columns::write::{
    MAX_PARTITIONS, MessageKey, RecordRows, ReservedValue, RowEncoding, ValueColumn,
};
use aeron_pipeline::sink::{
    Receipt, SharedPublications, Sharing, SinkError, SinkSettings, SinkTask,
};
use arrow_array::cast::AsArray;
use arrow_array::{Array, RecordBatch};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::client::ClientSettings;
use super::layout;
use crate::argument;
use crate::arrow::array_of;
use crate::errors::{from_client, raise, spark_error};
use crate::exit::{self, Closable};
use crate::fork::OfProcess;
use crate::signals::{interruption, is_interrupted};

/// Clients and publications that the tasks of this process share. Thread-safe.
///
/// Clients and publications stay open after the end of a task. They are closed after `idle_ms` milliseconds without
/// use, and at the end of the interpreter.
#[pyclass(frozen, module = "aeron._pipeline", name = "SharedPublications")]
pub struct PySharedPublications {
    inner: OfProcess<Arc<ClosedAtExit>>,
}

struct ClosedAtExit(SharedPublications);

impl Closable for ClosedAtExit {
    fn close_at_exit(&self) {
        self.0.close();
    }
}

impl PySharedPublications {
    fn get(&self) -> PyResult<&SharedPublications> {
        self.inner.get().map(|inner| &inner.0)
    }
}

#[pymethods]
impl PySharedPublications {
    #[new]
    #[pyo3(signature = (idle_ms = 30_000))]
    fn new(#[pyo3(from_py_with = argument::idle_ms)] idle_ms: u64) -> Self {
        let publications = SharedPublications::new(Duration::from_millis(idle_ms));
        let inner = Arc::new(ClosedAtExit(publications));
        exit::add_client(&inner);
        Self {
            inner: OfProcess::new(inner),
        }
    }

    /// Creates a task that publishes the rows of one partition on a channel. The task opens nothing before the first
    /// row.
    ///
    /// `client` has the settings of a new client. It is not used if a client is already connected to the driver. With
    /// `exclusive`, the task has a session of its own, with the session id of the channel.
    #[pyo3(signature = (
        channel,
        stream_id,
        *,
        query,
        partition,
        attempt = 0,
        connect_timeout_ms = 10_000,
        offer_timeout_ms = 30_000,
        reserved_value = "zero",
        batch_id = 0,
        value_format = "struct",
        value_schema = None,
        records_per_message = 1,
        client = None,
        exclusive = false,
    ))]
    #[allow(clippy::too_many_arguments, reason = "they are keywords in Python")]
    fn task(
        &self,
        channel: String,
        #[pyo3(from_py_with = argument::stream_id)] stream_id: Option<i32>,
        query: String,
        #[pyo3(from_py_with = argument::partition)] partition: u32,
        #[pyo3(from_py_with = argument::attempt)] attempt: u32,
        #[pyo3(from_py_with = argument::connect_timeout_ms)] connect_timeout_ms: u64,
        #[pyo3(from_py_with = argument::offer_timeout_ms)] offer_timeout_ms: u64,
        reserved_value: &str,
        #[pyo3(from_py_with = argument::batch_id)] batch_id: u64,
        value_format: &str,
        value_schema: Option<&str>,
        #[pyo3(from_py_with = argument::records_per_message)] records_per_message: usize,
        client: Option<ClientSettings>,
        exclusive: bool,
    ) -> PyResult<PySinkTask> {
        let client = client.unwrap_or_default();
        let settings = SinkSettings {
            directory: context(&client)
                .map_err(|error| from_client(&error))?
                .aeron_dir,
            connect: Box::new(move || Aeron::connect(context(&client)?)),
            is_interrupted,
            channel,
            stream_id,
            sharing: match exclusive {
                true => Sharing::Exclusive,
                false => Sharing::Shared,
            },
            query,
            partition,
            attempt,
            connect_timeout: Duration::from_millis(connect_timeout_ms),
            offer_timeout: Duration::from_millis(offer_timeout_ms),
            reserved_value: reserved(reserved_value, batch_id, partition)?,
            encoding: encoding(value_format, value_schema, records_per_message)?,
        };
        let task = SinkTask::new(settings, self.get()?.clone());
        Ok(PySinkTask {
            inner: OfProcess::new(task.into()),
        })
    }

    /// Closes all clients and publications, even if tasks use them. Idempotent.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let publications = self.get()?;
        py.detach(|| publications.close());
        Ok(())
    }

    /// Returns the number of open publications.
    fn __len__(&self) -> PyResult<usize> {
        Ok(self.get()?.count())
    }

    /// Whether the publications belong to this process, and not to the parent process of a fork.
    #[getter]
    fn is_usable(&self) -> bool {
        !self.inner.is_foreign()
    }
}

/// Publishes the rows of one partition. One thread at a time may use it.
#[pyclass(frozen, module = "aeron._pipeline", name = "SinkTask")]
pub struct PySinkTask {
    inner: OfProcess<std::sync::Mutex<SinkTask>>,
}

impl PySinkTask {
    /// Calls `f` with the task, without the GIL.
    fn with<R: Send>(
        &self,
        py: Python<'_>,
        f: impl FnOnce(&mut SinkTask) -> Result<R, SinkError> + Send,
    ) -> PyResult<R> {
        let task = self.inner.get()?;
        let outcome = py.detach(|| {
            let mut task = task
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner);
            f(&mut task)
        });
        outcome.map_err(|error| from_sink(&error))
    }
}

#[pymethods]
impl PySinkTask {
    /// Publishes the rows of a record batch. Waits for subscribers and for room, without the GIL.
    fn write(&self, batch: &Bound<'_, PyAny>) -> PyResult<()> {
        let rows = record_batch(batch)?;
        self.with(batch.py(), |task| task.write(&rows))
    }

    /// Publishes the remaining rows, which wait in messages that are not full.
    ///
    /// With `drain`, waits until the subscribers on this machine have read all messages, and until the driver has sent
    /// all messages over UDP.
    ///
    /// Returns the numbers of published `rows`, `messages` and `bytes`, and the published `streams`: stream id, session
    /// id, first position, last position and number of rows of each stream.
    #[pyo3(signature = (*, drain = false))]
    fn finish<'py>(&self, py: Python<'py>, drain: bool) -> PyResult<Bound<'py, PyDict>> {
        let receipt = self.with(py, |task| task.finish(drain))?;
        to_dict(py, &receipt)
    }

    /// The numbers and streams that `finish` returns, for the rows that were published so far.
    #[getter]
    fn published<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let receipt = self.with(py, |task| Ok(task.receipt()))?;
        to_dict(py, &receipt)
    }
}

/// Returns the context of a client whose waits check for signals.
fn context(client: &ClientSettings) -> Result<Context, aeron_client::Error> {
    let mut context = client.to_context()?;
    context.interrupt_check = Some(Arc::new(is_interrupted));
    Ok(context)
}

fn reserved(kind: &str, batch_id: u64, partition: u32) -> PyResult<ReservedValue> {
    match kind {
        "zero" => Ok(ReservedValue::Zero),
        "column" => Ok(ReservedValue::Column),
        "dedup" => {
            let key = MessageKey::new(batch_id, partition);
            key.map(ReservedValue::Keys).ok_or_else(|| {
                let reason = format!(
                    "partition {partition}: reservedValue=dedup numbers at most {MAX_PARTITIONS} partitions; coalesce them, \
                     or use reservedValue=zero"
                );
                spark_error("RECORD", &reason)
            })
        }
        _ => Err(spark_error(
            "OPTION",
            &format!(
                "option reservedValue: unknown value, got '{kind}'; expected zero, column or dedup"
            ),
        )),
    }
}

/// Returns the encoding of a `value_schema`, which is a record layout, or an SBE schema with the name of a template.
fn encoding(
    value_format: &str,
    value_schema: Option<&str>,
    records_per_message: usize,
) -> PyResult<Box<dyn RowEncoding>> {
    let Some(text) = value_schema else {
        return Ok(Box::new(ValueColumn));
    };
    if value_format == "sbe" {
        return Ok(Box::new(crate::sbe::format::sbe_encoder(text)?));
    }
    Ok(Box::new(RecordRows {
        layout: layout::parse(text)?,
        records_per_message: records_per_message.max(1),
    }))
}

/// Returns the record batch of an object with `__arrow_c_array__`.
fn record_batch(object: &Bound<'_, PyAny>) -> PyResult<RecordBatch> {
    let array = array_of(object)?;
    let rows = array.as_ref().and_then(|array| array.as_struct_opt());
    let rows = rows.filter(|rows| rows.null_count() == 0);
    let rows = rows.ok_or_else(|| raise("ArgumentTypeError", "expected an Arrow record batch"))?;
    Ok(RecordBatch::from(rows))
}

fn to_dict<'py>(py: Python<'py>, receipt: &Receipt) -> PyResult<Bound<'py, PyDict>> {
    let streams: Vec<(i32, i32, i64, i64, u64)> = receipt
        .streams
        .iter()
        .map(|stream| {
            (
                stream.stream_id,
                stream.session_id,
                stream.first_position,
                stream.last_position,
                stream.rows,
            )
        })
        .collect();
    let dict = PyDict::new(py);
    dict.set_item("rows", receipt.rows)?;
    dict.set_item("messages", receipt.messages)?;
    dict.set_item("bytes", receipt.bytes)?;
    dict.set_item("streams", streams)?;
    Ok(dict)
}

fn from_sink(error: &SinkError) -> PyErr {
    match error {
        SinkError::Interrupted(_) => interruption(),
        error => spark_error(error.code(), &error.to_string()),
    }
}
