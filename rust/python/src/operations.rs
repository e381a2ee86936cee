//! [`PyPendingOperation`]: a request to a driver or an archive, and later its result.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread::{self, ThreadId};

use aeron_client::{Error, Operation, OperationError, PendingOperation};
use pyo3::exceptions::PyBaseException;
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::PyType;

use crate::argument;
use crate::client::PyAeron;
use crate::condition::Condition;
use crate::errors::{from_client, raise};
use crate::events::EventHandler;
use crate::fork::OfProcess;
use crate::waiting::WaitPolicy;

/// A request to a driver or an archive. Thread-safe.
///
/// The call that returned the operation has sent the request. Some operations of an archive, such as
/// `async_wait_recorded` and `async_commit_reader`, send more requests, or first ask the archive for its
/// capabilities. These operations make progress only while the program awaits them, or calls `result` or `done`.
///
/// `await operation` and `operation.result(timeout)` return the result, any number of times. If the driver
/// refuses the request because an endpoint is still closing (code 10), the client sends the request again,
/// for up to the driver timeout. If the client has no threads, `await`, `result` and `done` run its
/// conductor.
///
/// An operation is cancelled by `cancel()`, by cancelling the task that awaits the operation, or by dropping
/// the operation before its end. If the driver adds the object nevertheless, the client removes the object.
/// `asyncio.shield(operation)` protects the operation from the task's cancellation.
///
/// Example:
///     ```python
///     operation = client.async_add_publication("aeron:ipc", 1001)
///     publication = operation.result(timeout=5)
///     ```
#[pyclass(frozen, weakref, module = "aeron", name = "PendingOperation")]
pub struct PyPendingOperation {
    inner: OfProcess<Arc<Mutex<OperationState>>>,
    what: String,
    max_idle_park_ns: u64,
    owned: Owned,
}

/// The operation and its result.
///
/// While the lock of `OperationState` is held, no Python object is created or dropped. Both may run the garbage
/// collector and so any Python code. Code that uses the same operation would then wait for the lock for ever.
struct OperationState {
    operation: Box<dyn AnyOperation>,
    outcome: OperationOutcome,
}

/// The Python object of the result.
enum OperationOutcome {
    /// The object does not exist yet: the operation is pending, or no thread has taken the result.
    NotMade,
    /// This thread creates the object, without the lock.
    BeingMade(ThreadId),
    /// The exception is kept as an object, because a `PyErr` cannot be shown to the garbage collector.
    Made(Result<Py<PyAny>, Py<PyBaseException>>),
}

/// Creates the Python object of a result. Called once, without the lock.
type ResultBuilder = Box<dyn FnOnce(Python<'_>, &Owned) -> PyResult<Py<PyAny>> + Send>;

/// The Python objects that an operation keeps alive for its result.
#[derive(Default)]
pub struct Owned {
    /// Keeps the client open until the operation is dropped.
    client: Option<Py<PyAeron>>,
    /// Handlers of the client or subscription that is being added.
    handlers: Vec<EventHandler>,
}

impl Owned {
    pub fn handlers(&self) -> &[EventHandler] {
        &self.handlers
    }

    pub fn client<'py>(&self, py: Python<'py>) -> PyResult<&Bound<'py, PyAeron>> {
        let client = self.client.as_ref().map(|client| client.bind(py));
        client.ok_or_else(|| raise("AeronError", "the operation has no client"))
    }
}

/// A pending operation with a result of any type.
trait AnyOperation: Send {
    /// Continues the operation without waiting. Returns whether it is finished. Needs no GIL.
    fn poll(&mut self) -> bool;
    /// Returns the function that creates the Python object of the result. Called once, after the operation has
    /// finished.
    fn take_result(&mut self) -> ResultBuilder;
    fn cancel(&mut self) -> bool;
    fn correlation_id(&self) -> i64;
    fn check_may_wait(&self) -> aeron_client::Result<()>;
}

struct Typed<T, E, F> {
    operation: Operation<T, E>,
    /// `None` once the result is taken.
    convert: Option<F>,
}

impl<T, E, F> AnyOperation for Typed<T, E, F>
where
    T: Clone + Send + 'static,
    E: OperationError + Send + 'static,
    F: FnOnce(Python<'_>, &Owned, Result<T, E>) -> PyResult<Py<PyAny>> + Send + 'static,
{
    fn poll(&mut self) -> bool {
        let is_finished = |operation: &mut Operation<T, E>| {
            // The operation keeps its result and its error. After a passing error, it is not finished.
            let _ = operation.poll();
            operation.is_finished()
        };
        is_finished(&mut self.operation)
            // A driver without threads reads the command only when the driver is run.
            || self.operation.run_driver() && is_finished(&mut self.operation)
    }

    fn take_result(&mut self) -> ResultBuilder {
        let (result, convert) = (self.operation.poll(), self.convert.take());
        Box::new(move |py, owned| match (result.transpose(), convert) {
            (Some(result), Some(convert)) => convert(py, owned, result),
            _ => Err(raise("AeronError", "the operation is not finished")),
        })
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
    /// Creates an operation of an open client. `convert` creates the Python object of the result. `convert` must
    /// not own Python objects, because the garbage collector would not see them.
    pub fn new<T: Clone + Send + 'static>(
        what: String,
        operation: PendingOperation<T>,
        client: &Bound<'_, PyAeron>,
        convert: impl FnOnce(&Bound<'_, PyAeron>, T) -> PyResult<Py<PyAny>> + Send + 'static,
    ) -> Self {
        let convert = move |py: Python<'_>, owned: &Owned, value| convert(owned.client(py)?, value);
        let max_idle_park_ns = client.get().max_idle_park_ns();
        Self::with_handlers(what, operation, max_idle_park_ns, Vec::new(), convert).of(client)
    }

    /// As [`new`](Self::new), for a result with handlers. `convert` finds the handlers in [`Owned`].
    pub fn with_handlers<T: Clone + Send + 'static>(
        what: String,
        operation: PendingOperation<T>,
        max_idle_park_ns: u64,
        handlers: Vec<EventHandler>,
        convert: impl FnOnce(Python<'_>, &Owned, T) -> PyResult<Py<PyAny>> + Send + 'static,
    ) -> Self {
        let convert = move |py: Python<'_>, owned: &Owned, result: Result<T, Error>| {
            convert(py, owned, result.map_err(|error| from_client(&error))?)
        };
        Self::of_result(what, operation, max_idle_park_ns, handlers, convert)
    }

    /// As [`with_handlers`](Self::with_handlers), for any operation, such as a request to an archive. `convert` also
    /// creates the exception of an error.
    pub fn of_result<T: Clone + Send + 'static, E: OperationError + Send + 'static>(
        what: String,
        operation: Operation<T, E>,
        max_idle_park_ns: u64,
        handlers: Vec<EventHandler>,
        convert: impl FnOnce(Python<'_>, &Owned, Result<T, E>) -> PyResult<Py<PyAny>> + Send + 'static,
    ) -> Self {
        let operation = Typed {
            operation,
            convert: Some(convert),
        };
        let inner = OperationState {
            operation: Box::new(operation),
            outcome: OperationOutcome::NotMade,
        };
        Self {
            inner: OfProcess::new(Arc::new(Mutex::new(inner))),
            what,
            max_idle_park_ns,
            owned: Owned {
                client: None,
                handlers,
            },
        }
    }

    /// Sets the client that the operation keeps open.
    pub fn of(mut self, client: &Bound<'_, PyAeron>) -> Self {
        self.owned.client = Some(client.clone().unbind());
        self
    }

    /// Waits for the result.
    pub fn wait(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<Py<PyAny>> {
        let patience = WaitPolicy::new(timeout, self.max_idle_park_ns)?;
        let inner = self.inner.get()?;
        if !py.detach(|| lock(inner).poll()) {
            let may_wait = py.detach(|| lock(inner).operation.check_may_wait());
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
        self.take_object(py, inner)
    }

    /// Returns the object of a finished operation's result. The first caller creates the object, and other threads wait
    /// for it.
    fn take_object(&self, py: Python<'_>, inner: &Mutex<OperationState>) -> PyResult<Py<PyAny>> {
        loop {
            let next = lock_attached(py, inner).next(py);
            match next {
                Next::Made(result) => return again(py, result),
                Next::Make(make) => return again(py, self.make(py, inner, make)),
                Next::BeingMade(thread) if thread == thread::current().id() => {
                    let reason = format!(
                        "the result of {} is being made on this thread: ask for it later",
                        self.what
                    );
                    return Err(raise("ReentrantCallError", reason));
                }
                Next::BeingMade(_) => {
                    let patience = WaitPolicy::new(None, self.max_idle_park_ns)?;
                    patience
                        .wait_without_gil(py, || (!lock(inner).is_being_made()).then_some(()))?;
                }
            }
        }
    }

    /// Creates the object of the result without the lock, and stores it.
    fn make(
        &self,
        py: Python<'_>,
        inner: &Mutex<OperationState>,
        make: ResultBuilder,
    ) -> Result<Py<PyAny>, Py<PyBaseException>> {
        let result = make(py, &self.owned).map_err(|error| error.into_value(py));
        let kept = clone_result(py, &result);
        lock_attached(py, inner).outcome = OperationOutcome::Made(kept);
        result
    }
}

/// Returns the object of a result, or raises its exception again.
fn again(py: Python<'_>, result: Result<Py<PyAny>, Py<PyBaseException>>) -> PyResult<Py<PyAny>> {
    result.map_err(|error| {
        let error = PyErr::from_value(error.into_bound(py).into_any());
        // Without this, each raise would add its frames to the traceback of the earlier raises.
        error.set_traceback(py, None);
        error
    })
}

fn clone_result(
    py: Python<'_>,
    result: &Result<Py<PyAny>, Py<PyBaseException>>,
) -> Result<Py<PyAny>, Py<PyBaseException>> {
    match result {
        Ok(object) => Ok(object.clone_ref(py)),
        Err(error) => Err(error.clone_ref(py)),
    }
}

/// Returns `None`, as the result of an operation without a value.
pub fn nothing(client: &Bound<'_, PyAeron>, (): ()) -> PyResult<Py<PyAny>> {
    Ok(client.py().None())
}

/// Locks without the GIL. A panic of another thread that held the lock is ignored, because the data is always
/// consistent.
fn lock(inner: &Mutex<OperationState>) -> MutexGuard<'_, OperationState> {
    inner.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Locks for a caller that has the GIL. Releases the GIL while another thread has the lock, because that thread may
/// need the GIL to continue.
fn lock_attached<'a>(
    py: Python<'_>,
    inner: &'a Mutex<OperationState>,
) -> MutexGuard<'a, OperationState> {
    inner
        .lock_py_attached(py)
        .unwrap_or_else(PoisonError::into_inner)
}

/// Locks if no other thread has the lock.
fn try_lock(inner: &Mutex<OperationState>) -> Option<MutexGuard<'_, OperationState>> {
    match inner.try_lock() {
        Ok(inner) => Some(inner),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

/// The next step of a thread that wants the result.
enum Next {
    Made(Result<Py<PyAny>, Py<PyBaseException>>),
    Make(ResultBuilder),
    BeingMade(ThreadId),
}

impl OperationState {
    fn poll(&mut self) -> bool {
        !matches!(self.outcome, OperationOutcome::NotMade) || self.operation.poll()
    }

    /// Returns the next step for the caller of a finished operation.
    fn next(&mut self, py: Python<'_>) -> Next {
        match &self.outcome {
            OperationOutcome::Made(result) => Next::Made(clone_result(py, result)),
            OperationOutcome::BeingMade(thread) => Next::BeingMade(*thread),
            OperationOutcome::NotMade => {
                self.outcome = OperationOutcome::BeingMade(thread::current().id());
                Next::Make(self.operation.take_result())
            }
        }
    }

    fn cancel(&mut self) -> bool {
        matches!(self.outcome, OperationOutcome::NotMade) && self.operation.cancel()
    }

    fn is_being_made(&self) -> bool {
        matches!(self.outcome, OperationOutcome::BeingMade(_))
    }

    fn state(&self) -> &'static str {
        match &self.outcome {
            OperationOutcome::NotMade | OperationOutcome::BeingMade(_) => "pending",
            OperationOutcome::Made(Ok(_)) => "finished",
            OperationOutcome::Made(Err(_)) => "failed",
        }
    }
}

#[pymethods]
impl PyPendingOperation {
    /// Correlation id of the command; -1 if the operation has no command.
    ///
    /// A command that is sent again after a temporary refusal has a new id.
    #[getter]
    fn correlation_id(&self, py: Python<'_>) -> PyResult<i64> {
        let inner = lock_attached(py, self.inner.get()?);
        Ok(inner.operation.correlation_id())
    }

    /// Returns whether the operation is over: it succeeded, failed or was cancelled. Never blocks.
    ///
    /// Returns:
    ///     `True` if the operation is over.
    fn done(&self, py: Python<'_>) -> PyResult<bool> {
        let inner = self.inner.get()?;
        Ok(py.detach(|| lock(inner).poll()))
    }

    /// Waits for the result.
    ///
    /// Args:
    ///     timeout: Seconds to wait. `None` waits without a limit.
    ///
    /// Returns:
    ///     The result. Each call returns the same object.
    ///
    /// Raises:
    ///     OperationTimeoutError: If the operation is not over within `timeout`. The operation continues.
    ///     OperationCancelledError: If the operation was cancelled.
    ///     AeronError: If the operation failed. The method without `async_` would raise the same class.
    #[pyo3(signature = (timeout = None))]
    fn result(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = argument::timeout)] timeout: Option<f64>,
    ) -> PyResult<Py<PyAny>> {
        self.wait(py, timeout)
    }

    /// Cancels the operation.
    ///
    /// Returns:
    ///     `True` if the operation was cancelled. `False` if it is over, or if it cannot be cancelled
    ///     (removals, rejections and static counters).
    fn cancel(&self, py: Python<'_>) -> PyResult<bool> {
        let inner = self.inner.get()?;
        Ok(py.detach(|| lock(inner).cancel()))
    }

    /// A condition that is true if the operation is over, for an event loop that waits for the operation.
    #[getter(_is_done)]
    fn is_done(&self) -> PyResult<Condition> {
        let inner = Arc::clone(self.inner.get()?);
        // The event loop must not block on the lock. If the lock is taken, the loop checks again soon.
        let look = move || try_lock(&inner).is_some_and(|mut inner| inner.poll());
        Ok(Condition::new(look))
    }

    fn __await__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let finished = slf.py().import("aeron.aio")?;
        finished
            .call_method1("finished", (slf,))?
            .call_method0("__await__")
    }

    /// Starts `async with`: returns the result, which `__aexit__` closes at the end of the block.
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

    /// Allows `PendingOperation[Publication]` in annotations.
    #[classmethod]
    fn __class_getitem__<'py>(
        class: &Bound<'py, PyType>,
        key: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let types = class.py().import("types")?;
        types.call_method1("GenericAlias", (class, key))
    }

    /// Never blocks: in a forked child the lock may be held by a thread that the child does not have.
    fn __repr__(&self) -> String {
        let inner = self.inner.get().ok().map(|inner| try_lock(inner));
        let state = match inner {
            None => "of the parent process".to_owned(),
            Some(None) => "in use by another thread".to_owned(),
            Some(Some(inner)) => format!(
                "correlation id {}, {}",
                inner.operation.correlation_id(),
                inner.state()
            ),
        };
        format!("<PendingOperation {}, {state}>", self.what)
    }

    fn __traverse__(&self, visit: pyo3::PyVisit<'_>) -> Result<(), pyo3::PyTraverseError> {
        visit.call(&self.owned.client)?;
        for handler in &self.owned.handlers {
            handler.visit(&visit)?;
        }
        // If another thread uses the operation now, its result counts as reachable.
        let Some(inner) = try_lock(self.inner.anywhere()) else {
            return Ok(());
        };
        match &inner.outcome {
            OperationOutcome::Made(Ok(result)) => visit.call(result)?,
            OperationOutcome::Made(Err(error)) => visit.call(error)?,
            OperationOutcome::NotMade | OperationOutcome::BeingMade(_) => {}
        }
        Ok(())
    }
}
