//! [`PyPendingOperation`]: what was asked of the driver and is not finished.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread::{self, ThreadId};

use aeron_client::PendingOperation;
use pyo3::exceptions::PyBaseException;
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::PyType;

use crate::argument;
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
    owned: Owned,
}

/// The operation and its result. No Python object is made or dropped while the lock of `Inner` is held: either may run the garbage
/// collector and so any Python code, which would wait for the lock if it uses the same operation.
struct Inner {
    operation: Box<dyn Operation>,
    outcome: Outcome,
}

/// The Python object of the result.
enum Outcome {
    /// The operation is finished, and the program has not asked for its result.
    NotMade,
    /// This thread makes the object, without the lock.
    BeingMade(ThreadId),
    /// The exception is kept as an object, because a `PyErr` cannot be shown to the garbage collector.
    Made(Result<Py<PyAny>, Py<PyBaseException>>),
}

/// Makes the Python object of a result. Called once, without the lock.
pub type Make = Box<dyn FnOnce(Python<'_>, &Owned) -> PyResult<Py<PyAny>> + Send>;

/// The Python objects that an operation owns, for its result.
#[derive(Default)]
pub struct Owned {
    /// Keeps the client open until the operation is gone.
    client: Option<Py<PyAeron>>,
    /// Handlers of the client or subscription that is being added.
    handlers: Vec<Handler>,
}

impl Owned {
    pub fn handlers(&self) -> &[Handler] {
        &self.handlers
    }

    pub fn client<'py>(&self, py: Python<'py>) -> PyResult<&Bound<'py, PyAeron>> {
        let client = self.client.as_ref().map(|client| client.bind(py));
        client.ok_or_else(|| raise("AeronError", "the operation has no client"))
    }
}

/// A pending operation of any result.
pub trait Operation: Send {
    /// Goes on without waiting; returns whether the operation is finished. Needs no GIL.
    fn poll(&mut self) -> bool;
    /// Takes what makes the Python object of the result. Called once, when the operation is finished.
    fn take_result(&mut self) -> Make;
    fn cancel(&mut self) -> bool;
    fn correlation_id(&self) -> i64;
    fn check_may_wait(&self) -> aeron_client::Result<()>;
}

struct Typed<T, F> {
    operation: PendingOperation<T>,
    /// `None` once the result is taken.
    convert: Option<F>,
}

impl<T, F> Operation for Typed<T, F>
where
    T: Clone + Send + 'static,
    F: FnOnce(Python<'_>, &Owned, T) -> PyResult<Py<PyAny>> + Send + 'static,
{
    fn poll(&mut self) -> bool {
        let is_pending = |operation: &mut PendingOperation<T>| matches!(operation.poll(), Ok(None));
        if !is_pending(&mut self.operation) {
            return true;
        }
        // A driver without threads has not read the command before it is run.
        self.operation.run_driver() && !is_pending(&mut self.operation)
    }

    fn take_result(&mut self) -> Make {
        let (result, convert) = (self.operation.poll(), self.convert.take());
        Box::new(move |py, owned| match (result, convert) {
            (Ok(Some(value)), Some(convert)) => convert(py, owned, value),
            (Ok(_), _) => Err(raise("AeronError", "the operation is not finished")),
            (Err(error), _) => Err(from_client(&error)),
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
    /// An operation of an open client. `convert` makes the Python object of the result; it refers to no Python object, which
    /// the garbage collector would not see.
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

    /// An operation whose result has handlers, as [`new`](Self::new). `convert` finds them in [`Owned`].
    pub fn with_handlers<T: Clone + Send + 'static>(
        what: String,
        operation: PendingOperation<T>,
        max_idle_park_ns: u64,
        handlers: Vec<Handler>,
        convert: impl FnOnce(Python<'_>, &Owned, T) -> PyResult<Py<PyAny>> + Send + 'static,
    ) -> Self {
        let operation = Box::new(Typed {
            operation,
            convert: Some(convert),
        });
        Self::of_kind(what, operation, max_idle_park_ns, handlers)
    }

    /// An operation of another kind, whose result has handlers.
    pub fn of_kind(
        what: String,
        operation: Box<dyn Operation>,
        max_idle_park_ns: u64,
        handlers: Vec<Handler>,
    ) -> Self {
        let inner = Inner {
            operation,
            outcome: Outcome::NotMade,
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

    /// Names the client of the operation.
    pub fn of(mut self, client: &Bound<'_, PyAeron>) -> Self {
        self.owned.client = Some(client.clone().unbind());
        self
    }

    /// Waits for the result.
    pub fn wait(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<Py<PyAny>> {
        let patience = Patience::new(timeout, self.max_idle_park_ns)?;
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

    /// Returns the object of a finished operation's result. The first thread that asks makes it, the others wait for that.
    fn take_object(&self, py: Python<'_>, inner: &Mutex<Inner>) -> PyResult<Py<PyAny>> {
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
                    let patience = Patience::new(None, self.max_idle_park_ns)?;
                    patience
                        .wait_without_gil(py, || (!lock(inner).is_being_made()).then_some(()))?;
                }
            }
        }
    }

    /// Makes the object of the result without the lock, and stores it.
    fn make(
        &self,
        py: Python<'_>,
        inner: &Mutex<Inner>,
        make: Make,
    ) -> Result<Py<PyAny>, Py<PyBaseException>> {
        let result = make(py, &self.owned).map_err(|error| error.into_value(py));
        let kept = clone_result(py, &result);
        lock_attached(py, inner).outcome = Outcome::Made(kept);
        result
    }
}

/// Returns the object of a result, or raises its exception once more.
fn again(py: Python<'_>, result: Result<Py<PyAny>, Py<PyBaseException>>) -> PyResult<Py<PyAny>> {
    result.map_err(|error| {
        let error = PyErr::from_value(error.into_bound(py).into_any());
        // Each raise adds its frames to those of the raises before.
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

/// Locks if no other thread has the lock.
fn try_lock(inner: &Mutex<Inner>) -> Option<MutexGuard<'_, Inner>> {
    match inner.try_lock() {
        Ok(inner) => Some(inner),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

/// The next step of a thread that wants the result.
enum Next {
    Made(Result<Py<PyAny>, Py<PyBaseException>>),
    Make(Make),
    BeingMade(ThreadId),
}

impl Inner {
    fn poll(&mut self) -> bool {
        !matches!(self.outcome, Outcome::NotMade) || self.operation.poll()
    }

    /// Returns the result of a finished operation, or has the caller make it.
    fn next(&mut self, py: Python<'_>) -> Next {
        match &self.outcome {
            Outcome::Made(result) => Next::Made(clone_result(py, result)),
            Outcome::BeingMade(thread) => Next::BeingMade(*thread),
            Outcome::NotMade => {
                self.outcome = Outcome::BeingMade(thread::current().id());
                Next::Make(self.operation.take_result())
            }
        }
    }

    fn cancel(&mut self) -> bool {
        matches!(self.outcome, Outcome::NotMade) && self.operation.cancel()
    }

    fn is_being_made(&self) -> bool {
        matches!(self.outcome, Outcome::BeingMade(_))
    }

    fn state(&self) -> &'static str {
        match &self.outcome {
            Outcome::NotMade | Outcome::BeingMade(_) => "pending",
            Outcome::Made(Ok(_)) => "finished",
            Outcome::Made(Err(_)) => "failed",
        }
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
    fn result(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = argument::timeout)] timeout: Option<f64>,
    ) -> PyResult<Py<PyAny>> {
        self.wait(py, timeout)
    }

    /// Cancels the operation. Returns whether that took effect: not once the operation is done, and not for removals,
    /// rejections and static counters, which go on.
    fn cancel(&self, py: Python<'_>) -> PyResult<bool> {
        let inner = self.inner.get()?;
        Ok(py.detach(|| lock(inner).cancel()))
    }

    /// Whether the operation is done, for a wait of an event loop.
    #[getter(_is_done)]
    fn is_done(&self) -> PyResult<Condition> {
        let inner = Arc::clone(self.inner.get()?);
        // A loop must not wait for the lock: its next look comes soon.
        let look = move || try_lock(&inner).is_some_and(|mut inner| inner.poll());
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
        // An object that another thread uses just now counts as reachable.
        let Some(inner) = try_lock(self.inner.anywhere()) else {
            return Ok(());
        };
        match &inner.outcome {
            Outcome::Made(Ok(result)) => visit.call(result)?,
            Outcome::Made(Err(error)) => visit.call(error)?,
            Outcome::NotMade | Outcome::BeingMade(_) => {}
        }
        Ok(())
    }
}
