//! Calls a Python handler for each message, and assembles fragments into messages for the handler.

use std::cell::RefCell;
use std::sync::{Arc, Mutex, TryLockError};

use aeron_client::{Action, Fragment, FragmentAssembler, SharedBuffer, TryPollError};
use pyo3::ffi;
use pyo3::prelude::*;

use crate::argument::{self, Callable, check_callable};
use crate::buffers::{Exporter, Lent};
use crate::calls::call_with_two;
use crate::errors::{from_client, raise};
use crate::fork::Process;
use crate::header::PyHeader;

/// The result of a controlled handler, which determines the next step of the poll. Immutable.
#[pyclass(
    frozen,
    eq,
    eq_int,
    hash,
    module = "aeron",
    name = "Action",
    from_py_object
)]
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[allow(clippy::upper_case_acronyms, reason = "constants in Python")]
pub enum PyAction {
    /// The message is not consumed. The poll of this image ends, and a later poll delivers the message again.
    ABORT = 1,
    /// The message is consumed, and the poll of this image ends.
    BREAK = 2,
    /// The message is consumed, the position is published at once, and the poll continues.
    COMMIT = 3,
    /// The message is consumed, and the poll continues.
    CONTINUE = 4,
}

#[pymethods]
impl PyAction {
    /// Pickles the action by its name, so that unpickling returns the same object.
    #[allow(clippy::type_complexity, reason = "a function and its arguments")]
    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyAny>, &'static str))> {
        let name = match *slf.borrow() {
            PyAction::ABORT => "ABORT",
            PyAction::BREAK => "BREAK",
            PyAction::COMMIT => "COMMIT",
            PyAction::CONTINUE => "CONTINUE",
        };
        let getattr = slf.py().import("builtins")?.getattr("getattr")?;
        Ok((getattr, (slf.as_any().get_type().into_any(), name)))
    }
}

impl From<PyAction> for Action {
    fn from(action: PyAction) -> Self {
        match action {
            PyAction::ABORT => Action::Abort,
            PyAction::BREAK => Action::Break,
            PyAction::COMMIT => Action::Commit,
            PyAction::CONTINUE => Action::Continue,
        }
    }
}

/// Joins the fragments of long messages. Pass the assembler to `poll` in place of the handler.
///
/// The assembler keeps incomplete messages between polls, so use one assembler for all polls of a
/// subscription. One thread at a time may use it. If there is no memory for the first fragment of a poll,
/// the poll raises `MemoryError`, and the next poll delivers that fragment again.
///
/// Example:
///     ```python
///     assembler = aeron.FragmentAssembler(lambda payload, header: print(payload))
///     subscription.poll(assembler)
///     ```
#[pyclass(frozen, module = "aeron", name = "FragmentAssembler")]
pub struct PyFragmentAssembler {
    handler: Py<PyAny>,
    assembler: Mutex<FragmentAssembler>,
}

impl PyFragmentAssembler {
    fn with<R>(&self, f: impl FnOnce(&mut FragmentAssembler) -> R) -> PyResult<R> {
        match self.assembler.try_lock() {
            Ok(mut assembler) => Ok(f(&mut assembler)),
            Err(TryLockError::Poisoned(poisoned)) => Ok(f(&mut poisoned.into_inner())),
            Err(TryLockError::WouldBlock) => Err(raise(
                "ReentrantCallError",
                "the fragment assembler is in use by another poll",
            )),
        }
    }
}

#[pymethods]
impl PyFragmentAssembler {
    #[new]
    fn new(#[pyo3(from_py_with = argument::handler)] handler: Callable) -> Self {
        Self {
            handler: handler.0,
            assembler: Mutex::default(),
        }
    }

    /// The handler that gets the whole messages.
    #[getter]
    fn handler(&self, py: Python<'_>) -> Py<PyAny> {
        self.handler.clone_ref(py)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!(
            "<FragmentAssembler for {}>",
            self.handler.bind(py).repr()?
        ))
    }

    /// Frees the buffer of a session. An incomplete message of the session is dropped.
    ///
    /// Args:
    ///     session_id: Session id of the publisher.
    ///
    /// Returns:
    ///     `True` if the session had a buffer.
    ///
    /// Raises:
    ///     ReentrantCallError: If a poll uses the assembler.
    fn free_session_buffer(
        &self,
        #[pyo3(from_py_with = argument::session_id)] session_id: i32,
    ) -> PyResult<bool> {
        self.with(|assembler| assembler.free_session_buffer(session_id))
    }

    /// Frees all buffers. Incomplete messages are dropped.
    ///
    /// Raises:
    ///     ReentrantCallError: If a poll uses the assembler.
    fn clear(&self) -> PyResult<()> {
        self.with(FragmentAssembler::clear)
    }

    fn __traverse__(&self, visit: pyo3::PyVisit<'_>) -> Result<(), pyo3::PyTraverseError> {
        visit.call(&self.handler)
    }
}

/// The function that a poll calls with each fragment.
pub type OnFragment<'a> = dyn FnMut(Fragment<'_>) -> PyResult<Action> + 'a;

/// Raises if the handler is neither callable nor an assembler. Needed by polls that may end before they use the
/// handler.
pub fn check_handler(handler: &Bound<'_, PyAny>) -> PyResult<()> {
    match handler.is_exact_instance_of::<PyFragmentAssembler>() {
        true => Ok(()),
        false => check_callable(handler, "handler"),
    }
}

/// A Python handler during one poll.
pub struct PollHandler<'a, 'py> {
    function: &'a Bound<'py, PyAny>,
    header: &'a Bound<'py, PyHeader>,
    /// Whether the function gets the payload as `bytes`. Otherwise it gets a memoryview, which is released when the
    /// function returns.
    copies: bool,
    /// The error if there was no memory for a message. Such a message is not consumed.
    out_of_memory: RefCell<Option<PyErr>>,
}

impl<'a, 'py> PollHandler<'a, 'py> {
    /// Calls `poll` with a function that passes each fragment to `handler`. If `handler` is an assembler, the
    /// assembler's handler gets whole messages.
    ///
    /// If there is no memory for a message, the poll ends before that message. If the poll has consumed nothing
    /// before that message, the poll raises `MemoryError`.
    pub fn run(
        handler: &'a Bound<'py, PyAny>,
        header: &'a Bound<'py, PyHeader>,
        copies: bool,
        poll: impl FnOnce(&mut OnFragment<'_>) -> Result<usize, TryPollError<PyErr>>,
        answer: impl Fn(Bound<'py, PyAny>) -> PyResult<Action>,
    ) -> PyResult<usize> {
        let assembling = handler.cast_exact::<PyFragmentAssembler>().ok();
        let function = match assembling {
            Some(assembling) => assembling.get().handler.bind(handler.py()),
            None => {
                check_callable(handler, "handler")?;
                handler
            }
        };
        let this = PollHandler {
            function,
            header,
            copies,
            out_of_memory: RefCell::default(),
        };
        let outcome = match assembling {
            None => poll(&mut |fragment| this.call(&fragment, &answer)),
            Some(assembling) => assembling.get().with(|assembler| {
                poll(&mut |fragment| this.assemble(assembler, fragment, &answer))
            })?,
        };
        header.get().expire();
        if let (Ok(0), Some(error)) = (&outcome, this.out_of_memory.take()) {
            return Err(error);
        }
        outcome.map_err(|error| match error {
            TryPollError::Poll(error) => from_client(&error),
            TryPollError::Handler(error) => error,
        })
    }

    /// Adds a fragment to its message, and calls the handler if the message is then complete. If the handler raises,
    /// the message is consumed.
    fn assemble(
        &self,
        assembler: &mut FragmentAssembler,
        fragment: Fragment<'_>,
        answer: impl Fn(Bound<'py, PyAny>) -> PyResult<Action>,
    ) -> PyResult<Action> {
        let mut raised = None;
        let action = assembler.on_controlled_fragment(fragment, |message| {
            self.call(&message, &answer).unwrap_or_else(|error| {
                raised = Some(error);
                Action::Break
            })
        });
        if let Some(error) = assembler.take_out_of_memory() {
            self.out_of_memory.replace(Some(from_client(&error)));
        }
        raised.map_or(Ok(action), Err)
    }

    #[inline]
    fn call(
        &self,
        fragment: &Fragment<'_>,
        answer: impl Fn(Bound<'py, PyAny>) -> PyResult<Action>,
    ) -> PyResult<Action> {
        let process = Process::current();
        self.header.get().show(fragment.header());
        let result = match self.copies {
            true => match copy(self.function.py(), fragment) {
                Ok(payload) => call_with_two(self.function, &payload, self.header.as_any()),
                Err(error) => {
                    self.out_of_memory.replace(Some(error));
                    return Ok(Action::Abort);
                }
            },
            false => self.call_with_view(fragment),
        };
        // The handler may have forked. The child must not continue the poll, because the log belongs to the parent.
        process.check()?;
        result.and_then(answer)
    }

    fn call_with_view(&self, fragment: &Fragment<'_>) -> PyResult<Bound<'py, PyAny>> {
        let (exporter, view) =
            Exporter::view(self.function.py(), Arc::new(LentPayload::of(fragment)))?;
        let result = call_with_two(self.function, &view, self.header.as_any());
        if !exporter.get().expire(&view) && result.is_ok() {
            let reason =
                "a view of the log was kept when its handler returned: copy what is needed later";
            return Err(raise("ViewError", reason));
        }
        result
    }
}

/// Returns the payload as `bytes`.
#[inline]
fn copy<'py>(py: Python<'py>, fragment: &Fragment<'_>) -> PyResult<Bound<'py, PyAny>> {
    let (start, length) = (fragment.as_ptr().cast(), fragment.len() as ffi::Py_ssize_t);
    // SAFETY: `length` bytes at `start` are valid while the fragment is borrowed. Python copies them into a new object.
    // The result is a new reference, or null with an exception set.
    unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyBytes_FromStringAndSize(start, length)) }
}

/// A payload that is lent to a handler: a part of a term or of an assembler's memory. This value keeps that memory
/// alive.
struct LentPayload {
    memory: SharedBuffer,
    offset: usize,
    length: usize,
}

impl LentPayload {
    fn of(fragment: &Fragment<'_>) -> Self {
        let (memory, offset) = fragment.memory();
        Self {
            memory: memory.clone(),
            offset,
            length: fragment.len(),
        }
    }
}

impl Lent for LentPayload {
    fn start(&self) -> *mut u8 {
        self.memory.as_ptr().wrapping_add(self.offset)
    }

    fn len(&self) -> usize {
        self.length
    }
}

/// Ignores the result of a plain handler, and continues the poll.
pub fn always_continue(_result: Bound<'_, PyAny>) -> PyResult<Action> {
    Ok(Action::Continue)
}

/// Converts the result of a controlled handler: an action, or `None`, which stands for [`Action::Continue`].
pub fn action_of(result: Bound<'_, PyAny>) -> PyResult<Action> {
    if result.is_none() {
        return Ok(Action::Continue);
    }
    result.extract::<PyAction>().map(Action::from).map_err(|_| {
        raise(
            "ArgumentTypeError",
            format!(
                "a controlled handler returns an aeron.Action or None, not {}",
                result.get_type()
            ),
        )
    })
}
