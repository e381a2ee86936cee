//! Python handlers for events of the client's conductor.
//!
//! The conductor only queues the calls. They run on the client's dispatcher thread, or in `do_work` of a client without
//! threads. An exception of a handler is passed to the client's error handler.

use std::cell::Cell;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aeron_client::{ClientErrorHandler, Error};
use pyo3::prelude::*;
use pyo3::types::{PyWeakrefMethods, PyWeakrefReference};

use crate::calls::{CallArguments, call, drop_in_python, show_unraisable, stopping_on_unwind};
use crate::connection::DISPATCHER_NAME;
use crate::errors::from_client;

/// A function of the application that native code calls. Python's garbage collector sees the function through the
/// objects that own the handler. A handler that was cleared is no longer called.
pub struct EventHandler {
    owned: Py<OwnedFunction>,
    weak: Arc<WeakHandler>,
}

impl EventHandler {
    pub fn new(py: Python<'_>, function: Py<PyAny>) -> PyResult<Self> {
        let function: Function = Arc::new(Mutex::new(Some(function)));
        let owned = Bound::new(py, OwnedFunction(Arc::clone(&function)))?;
        let weak = WeakHandler {
            owned: PyWeakrefReference::new(owned.as_any())?.unbind(),
            function,
        };
        Ok(Self {
            owned: owned.unbind(),
            weak: Arc::new(weak),
        })
    }

    /// Returns the same handler, for another owner.
    pub fn clone_ref(&self, py: Python<'_>) -> Self {
        Self {
            owned: self.owned.clone_ref(py),
            weak: Arc::clone(&self.weak),
        }
    }

    /// Releases the function.
    pub fn clear(&self) {
        self.weak.clear();
    }

    /// Returns the function, unless it was released.
    pub fn function<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyAny>> {
        self.weak.get(py)
    }

    /// Whether there is still a function to call.
    pub fn is_set(&self) -> bool {
        lock(&self.weak.function).is_some()
    }

    /// Returns the handler in the form for native code, which must not keep the function alive.
    pub fn weak(&self) -> Arc<WeakHandler> {
        Arc::clone(&self.weak)
    }

    /// Shows the function to the garbage collector.
    pub fn visit(&self, visit: &pyo3::PyVisit<'_>) -> Result<(), pyo3::PyTraverseError> {
        visit.call(&self.owned)
    }
}

/// Returns the same handlers, for another owner.
pub fn clone_all(py: Python<'_>, handlers: &[EventHandler]) -> Vec<EventHandler> {
    handlers
        .iter()
        .map(|handler| handler.clone_ref(py))
        .collect()
}

type Function = Arc<Mutex<Option<Py<PyAny>>>>;

fn lock(function: &Function) -> MutexGuard<'_, Option<Py<PyAny>>> {
    function.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Releases the function. The function is dropped without the lock, because dropping it may run any code.
fn clear(function: &Function) {
    let function = lock(function).take();
    drop(function);
}

/// The part of a handler that is visible to the garbage collector. Owners of the handler have strong references to
/// this object, and native code has weak references.
#[pyclass(frozen, weakref, module = "aeron._aeron", name = "_Handler")]
struct OwnedFunction(Function);

#[pymethods]
impl OwnedFunction {
    fn __traverse__(&self, visit: pyo3::PyVisit<'_>) -> Result<(), pyo3::PyTraverseError> {
        // If another thread uses the function now, the function counts as reachable.
        match self.0.try_lock() {
            Ok(function) => visit.call(&*function),
            Err(_) => Ok(()),
        }
    }

    fn __clear__(&self) {
        clear(&self.0);
    }
}

impl Drop for OwnedFunction {
    fn drop(&mut self) {
        // Native code may still refer to the handler, so it is cleared.
        clear(&self.0);
    }
}

/// A handler in the form for native code.
///
/// The garbage collector clears garbage objects one after the other, and other threads may run in between. A garbage
/// function may already have lost its globals, and calling it would crash. The collector first clears weak references
/// to garbage. So the function is called only if the weak reference is alive.
pub struct WeakHandler {
    owned: Py<PyWeakrefReference>,
    function: Function,
}

impl WeakHandler {
    /// Returns the function, unless it was released or is garbage.
    pub fn get<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyAny>> {
        let _owned = self.owned.bind(py).upgrade()?;
        let function = lock(&self.function);
        function.as_ref().map(|function| function.bind(py).clone())
    }

    fn clear(&self) {
        clear(&self.function);
    }
}

/// A handler that native code owns. When native code drops the handler, the function is released.
pub struct Registered {
    handler: Arc<WeakHandler>,
    reporter: ErrorReporter,
}

impl Registered {
    pub fn call<'py>(&self, py: Python<'py>, arguments: impl CallArguments<'py>) {
        let Some(function) = self.handler.get(py) else {
            return;
        };
        match call(&function, arguments) {
            Ok(result) => drop_in_python(result),
            Err(error) => self.reporter.report(py, error),
        }
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        self.handler.clear();
    }
}

/// Receives the errors that no call can raise. If there is no handler, `sys.unraisablehook` shows them.
#[derive(Clone, Default)]
pub struct ErrorReporter(Option<Arc<WeakHandler>>);

impl ErrorReporter {
    pub fn new(handler: &EventHandler) -> Self {
        Self(Some(Arc::clone(&handler.weak)))
    }

    /// Passes the error to the handler. Without a handler, `sys.unraisablehook` shows the error.
    pub fn report(&self, py: Python<'_>, error: PyErr) {
        let Some(handler) = self.0.as_ref().and_then(|handler| handler.get(py)) else {
            return show_unraisable(py, error, None);
        };
        match call(&handler, (error.into_value(py),)) {
            Ok(result) => drop_in_python(result),
            Err(error) => show_unraisable(py, error, Some(&handler)),
        }
    }

    /// Releases the handler.
    pub fn clear(&self) {
        if let Some(handler) = &self.0 {
            handler.clear();
        }
    }

    /// Returns `handler` in the form for a native handler. Its exceptions are reported here.
    pub fn register(&self, handler: &EventHandler) -> Registered {
        Registered {
            handler: Arc::clone(&handler.weak),
            reporter: self.clone(),
        }
    }

    /// Returns a handler for errors of the conductor.
    pub fn error_handler(&self) -> ClientErrorHandler {
        let reporter = self.clone();
        Arc::new(move |error: &Error| attach(|py| reporter.report(py, from_client(error))))
    }
}

/// Runs `f` with the GIL. A dispatcher thread first gets its name in `threading`, which would otherwise call the thread
/// `Dummy-1`.
pub fn attach(f: impl FnOnce(Python<'_>)) {
    thread_local! {
        static IS_NAMED: Cell<bool> = const { Cell::new(false) };
    }
    let run = |py: Python<'_>| {
        let is_dispatcher = std::thread::current().name() == Some(DISPATCHER_NAME);
        if is_dispatcher && !IS_NAMED.get() {
            // If naming fails, the thread keeps the name `Dummy-1`. Only logs show the difference.
            IS_NAMED.set(name_thread(py).unwrap_or(true));
        }
        f(py);
    };
    // The outer guard is for objects that are dropped while the thread attaches. The inner guard stops the thread
    // before the thread detaches, because detaching fails after the interpreter has ended.
    stopping_on_unwind(|| Python::attach(|py| stopping_on_unwind(|| run(py))));
}

/// Names this thread if the program has imported `threading`. Returns whether the program has imported it.
///
/// The module is not imported here, because `threading` regards the thread that imports it as the main thread. The
/// end of the interpreter would then wait for this thread.
fn name_thread(py: Python<'_>) -> PyResult<bool> {
    let modules = py.import("sys")?.getattr("modules")?;
    let Ok(threading) = modules.get_item("threading") else {
        return Ok(false);
    };
    let thread = threading.call_method0("current_thread")?;
    thread.setattr("name", DISPATCHER_NAME)?;
    Ok(true)
}
