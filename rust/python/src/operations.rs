//! [`PyPendingOperation`]: what was asked of the driver and is not finished.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aeron_client::PendingOperation;
use pyo3::exceptions::PyBaseException;
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::PyType;

use crate::client::PyAeron;
use crate::condition::Condition;
use crate::errors::{from_client, raise};
use crate::events::Handler;
use crate::fork::OfProcess;
use crate::waiting::Patience;

/// An operation that waits for the driver. Its command was sent by the call that returned it.
///
/// `await operation` and `operation.result(timeout)` return the result, any number of times; `operation.done()` looks. A
/// refusal because an endpoint is just closing (code 10) is retried within the driver timeout. In a program that runs the
/// client's conductor itself, all three run it.
///
/// `cancel()`, cancelling the task that awaits, and dropping the operation unfinished undo it: what the driver adds
/// nevertheless is removed when its answer comes. `asyncio.shield(operation)` protects it from the task's cancellation.
/// Thread-safe.
#[pyclass(frozen, weakref, module = "aeron._aeron", name = "PendingOperation")]
pub struct PyPendingOperation {
    inner: OfProcess<Arc<Mutex<Inner>>>,
    what: String,
    max_idle_park_ns: u64,
    /// Keeps the client open until the operation is gone.
    client: Option<Py<PyAeron>>,
    /// Handlers of the subscription that is being added.
    handlers: Vec<Handler>,
}

struct Inner {
    operation: Box<dyn Operation>,
    /// The exception is kept as an object, because a `PyErr` cannot be shown to the garbage collector.
    outcome: Option<Result<Py<PyAny>, Py<PyBaseException>>>,
}

/// A pending operation of any result.
trait Operation: Send {
    /// Goes on without waiting; returns whether the operation is finished. Needs no GIL.
    fn poll(&mut self) -> bool;
    /// The result of a finished operation.
    fn result(
        &mut self,
        py: Python<'_>,
        client: Option<&Bound<'_, PyAeron>>,
    ) -> PyResult<Py<PyAny>>;
    fn cancel(&mut self) -> bool;
    fn correlation_id(&self) -> i64;
    fn check_may_wait(&self) -> aeron_client::Result<()>;
}

struct Typed<T, F> {
    operation: PendingOperation<T>,
    convert: F,
}

impl<T, F> Operation for Typed<T, F>
where
    T: Clone + Send,
    F: Fn(Python<'_>, Option<&Bound<'_, PyAeron>>, T) -> PyResult<Py<PyAny>> + Send,
{
    fn poll(&mut self) -> bool {
        let is_pending = |operation: &mut PendingOperation<T>| matches!(operation.poll(), Ok(None));
        if !is_pending(&mut self.operation) {
            return true;
        }
        // A driver without threads has not read the command before it is run.
        self.operation.run_driver() && !is_pending(&mut self.operation)
    }

    fn result(
        &mut self,
        py: Python<'_>,
        client: Option<&Bound<'_, PyAeron>>,
    ) -> PyResult<Py<PyAny>> {
        match self.operation.poll() {
            Ok(Some(value)) => (self.convert)(py, client, value),
            Ok(None) => Err(raise("AeronError", "the operation is not finished")),
            Err(error) => Err(from_client(&error)),
        }
    }

    fn cancel(&mut self) -> bool {
        self.operation.cancel()
    }

    fn correlation_id(&self) -> i64 {
        self.operation.correlation_id()
    }

    fn check_may_wait(&self) -> aeron_client::Result<()> {
        self.operation.check_may_wait()
    }
}

impl PyPendingOperation {
    /// An operation of an open client. `convert` makes the Python object of the result; it refers to no Python object, which
    /// the garbage collector would not see.
    pub fn new<T: Clone + Send + 'static>(
        what: String,
        operation: PendingOperation<T>,
        client: &Bound<'_, PyAeron>,
        convert: impl Fn(&Bound<'_, PyAeron>, T) -> PyResult<Py<PyAny>> + Send + 'static,
    ) -> Self {
        let convert = move |_: Python<'_>, client: Option<&Bound<'_, PyAeron>>, value| {
            let client =
                client.ok_or_else(|| raise("AeronError", "the operation has no client"))?;
            convert(client, value)
        };
        let mut this = Self::of(what, operation, client.get().max_idle_park_ns(), convert);
        this.client = Some(client.clone().unbind());
        this
    }

    /// An operation whose result is the client, or none.
    pub fn without_client<T: Clone + Send + 'static>(
        what: String,
        operation: PendingOperation<T>,
        max_idle_park_ns: u64,
        convert: impl Fn(Python<'_>, T) -> PyResult<Py<PyAny>> + Send + 'static,
    ) -> Self {
        let convert =
            move |py: Python<'_>, _: Option<&Bound<'_, PyAeron>>, value| convert(py, value);
        Self::of(what, operation, max_idle_park_ns, convert)
    }

    fn of<T: Clone + Send + 'static>(
        what: String,
        operation: PendingOperation<T>,
        max_idle_park_ns: u64,
        convert: impl Fn(Python<'_>, Option<&Bound<'_, PyAeron>>, T) -> PyResult<Py<PyAny>>
        + Send
        + 'static,
    ) -> Self {
        let operation = Box::new(Typed { operation, convert });
        let inner = Inner {
            operation,
            outcome: None,
        };
        Self {
            inner: OfProcess::new(Arc::new(Mutex::new(inner))),
            what,
            max_idle_park_ns,
            client: None,
            handlers: Vec::new(),
        }
    }

    /// Shows the handlers of the subscription to the garbage collector.
    pub fn with_handlers(mut self, handlers: Vec<Handler>) -> Self {
        self.handlers = handlers;
        self
    }

    /// Waits for the result.
    pub fn wait(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<Py<PyAny>> {
        let patience = Patience::new(timeout, self.max_idle_park_ns)?;
        let inner = self.inner.get()?;
        if !py.detach(|| lock(inner).poll()) {
            let may_wait = lock_attached(py, inner).operation.check_may_wait();
            may_wait.map_err(|error| from_client(&error))?;
            let finished = patience.wait_without_gil(py, || lock(inner).poll().then_some(()))?;
            if finished.is_none() {
                let reason = format!(
                    "{} is not finished after {} s: it goes on; call result() again or cancel()",
                    self.what,
                    timeout.unwrap_or_default()
                );
                return Err(raise("OperationTimeoutError", reason));
            }
        }
        let client = self.client.as_ref().map(|client| client.bind(py));
        lock_attached(py, inner).result(py, client)
    }
}

/// The result of an operation that has none.
pub fn nothing(client: &Bound<'_, PyAeron>, (): ()) -> PyResult<Py<PyAny>> {
    Ok(client.py().None())
}

/// Locks without the GIL; a panic of another holder does not matter, because every holder leaves its data whole.
fn lock(inner: &Mutex<Inner>) -> MutexGuard<'_, Inner> {
    inner.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Locks with the GIL, which is let go while another thread has the lock: that one may need the GIL to go on.
fn lock_attached<'a>(py: Python<'_>, inner: &'a Mutex<Inner>) -> MutexGuard<'a, Inner> {
    inner
        .lock_py_attached(py)
        .unwrap_or_else(PoisonError::into_inner)
}

impl Inner {
    fn poll(&mut self) -> bool {
        self.outcome.is_some() || self.operation.poll()
    }

    fn result(
        &mut self,
        py: Python<'_>,
        client: Option<&Bound<'_, PyAeron>>,
    ) -> PyResult<Py<PyAny>> {
        let operation = &mut self.operation;
        let outcome = self.outcome.get_or_insert_with(|| {
            let result = operation.result(py, client);
            result.map_err(|error| error.into_value(py))
        });
        match outcome {
            Ok(value) => Ok(value.clone_ref(py)),
            Err(error) => {
                let error = PyErr::from_value(error.bind(py).clone().into_any());
                // Each raise adds its frames to those of the raises before.
                error.set_traceback(py, None);
                Err(error)
            }
        }
    }

    /// Whether a result was made, which shows the handlers to the garbage collector from then on.
    fn has_result(&self) -> bool {
        matches!(self.outcome, Some(Ok(_)))
    }
}

#[pymethods]
impl PyPendingOperation {
    /// Id of the command, -1 if the operation needs none. A command that is sent again after a temporary refusal has another
    /// id.
    #[getter]
    fn correlation_id(&self, py: Python<'_>) -> PyResult<i64> {
        let inner = lock_attached(py, self.inner.get()?);
        Ok(inner.operation.correlation_id())
    }

    /// Returns whether the operation succeeded, failed or was cancelled. Never blocks.
    fn done(&self, py: Python<'_>) -> PyResult<bool> {
        let inner = self.inner.get()?;
        Ok(py.detach(|| lock(inner).poll()))
    }

    /// Waits up to `timeout` seconds (`None`: without a limit) and returns the result, the same at each call.
    ///
    /// Raises what the operation failed with, or `OperationTimeoutError`, which does not cancel it.
    #[pyo3(signature = (timeout = None))]
    fn result(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<Py<PyAny>> {
        self.wait(py, timeout)
    }

    /// Cancels the operation. Returns whether that took effect: not once the operation is done, and not for removals,
    /// rejections and static counters, which go on.
    fn cancel(&self, py: Python<'_>) -> PyResult<bool> {
        let inner = self.inner.get()?;
        Ok(py.detach(|| {
            let mut inner = lock(inner);
            inner.outcome.is_none() && inner.operation.cancel()
        }))
    }

    /// Whether the operation is done, for a wait of an event loop.
    #[getter(_is_done)]
    fn is_done(&self) -> PyResult<Condition> {
        let inner = Arc::clone(self.inner.get()?);
        // With the GIL or without it, so it must not wait for the lock: the next look comes soon.
        let look = move || inner.try_lock().is_ok_and(|mut inner| inner.poll());
        Ok(Condition::new(look))
    }

    fn __await__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let finished = slf.py().import("aeron.aio")?;
        finished
            .call_method1("finished", (slf,))?
            .call_method0("__await__")
    }

    /// `async with`: the result, closed at the end of the block.
    fn __aenter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py()
            .import("aeron.aio")?
            .call_method1("finished", (slf,))
    }

    fn __aexit__<'py>(
        slf: &Bound<'py, Self>,
        _type: &Bound<'py, PyAny>,
        _error: &Bound<'py, PyAny>,
        _traceback: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        slf.py()
            .import("aeron.aio")?
            .call_method1("leave", (slf.get().wait(slf.py(), Some(0.0))?,))
    }

    /// `PendingOperation[Publication]` in annotations.
    #[classmethod]
    fn __class_getitem__<'py>(
        class: &Bound<'py, PyType>,
        key: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let types = class.py().import("types")?;
        types.call_method1("GenericAlias", (class, key))
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let inner = lock_attached(py, self.inner.anywhere());
        let state = match &inner.outcome {
            None => "pending",
            Some(Ok(_)) => "finished",
            Some(Err(_)) => "failed",
        };
        let id = inner.operation.correlation_id();
        format!(
            "<PendingOperation {}, correlation id {id}, {state}>",
            self.what
        )
    }

    fn __traverse__(&self, visit: pyo3::PyVisit<'_>) -> Result<(), pyo3::PyTraverseError> {
        visit.call(&self.client)?;
        // An object that another thread uses just now counts as reachable.
        let Ok(inner) = self.inner.anywhere().try_lock() else {
            return Ok(());
        };
        match &inner.outcome {
            Some(Ok(result)) => visit.call(result)?,
            Some(Err(error)) => visit.call(error)?,
            None => {}
        }
        if !inner.has_result() {
            // A function that is shown twice and referred to once would be taken for garbage while it is in use.
            for handler in &self.handlers {
                handler.visit(&visit)?;
            }
        }
        Ok(())
    }

    fn __clear__(&self) {
        let inner = self.inner.anywhere().try_lock();
        let are_handlers_ours = inner.is_ok_and(|inner| !inner.has_result());
        if are_handlers_ours {
            self.handlers.iter().for_each(Handler::clear);
        }
    }
}
