//! [`PyBufferClaim`]: a claimed frame of the log, which Python fills.
//!
//! A view of the log would stay writable as long as any slice or array of it exists, even after the message was
//! committed. So the view is private memory, unless the program passes `direct=True`.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aeron_client::{BufferClaim, ClaimAborted};
use aeron_memory::buffer::SharedBuffer;
use aeron_memory::log::Claim;
use aeron_memory::words::Words;
use pyo3::prelude::*;

use crate::argument;
use crate::buffers::{Exporter, Lent};
use crate::errors::raise;
use crate::fork::OfProcess;

/// A claimed frame of the log: a context manager around a writable memoryview of its payload.
///
/// The end of the `with` block commits the message. If the block raises, or the claim is dropped, the
/// message is aborted. Subscribers cannot read past an open claim, so commit or abort each claim soon. If the
/// client loses its driver, the claim is aborted, and the commit raises. One thread at a time may use a
/// claim: it is not thread-safe.
///
/// The view is private memory, all zero at first, which the commit copies into the log. Slices and arrays
/// of the view stay usable after the block, and do not change the message. With `direct=True` the view is
/// the log itself, without a copy. Then a slice or array that outlives the block stays writable: writing to
/// it overwrites the message, and later other messages and their headers.
///
/// Example:
///     ```python
///     with publication.claim(5) as view:
///         view[:] = b"hello"
///     ```
#[pyclass(frozen, module = "aeron", name = "BufferClaim")]
pub struct PyBufferClaim {
    inner: OfProcess<ClaimState>,
    length: usize,
    position: i64,
}

struct ClaimState {
    /// `None` after the end of the claim. Dropping a claim aborts the message.
    claim: Mutex<Option<BufferClaim>>,
    exporter: Py<Exporter>,
    view: Py<PyAny>,
    /// Memory of the view, which the commit copies into the log; `None` if the view is the log itself.
    private: Option<SharedBuffer>,
}

/// The memory of a claim's view: the payload in the log, or private memory.
struct ClaimedPayload {
    memory: SharedBuffer,
    offset: usize,
    length: usize,
}

impl Lent for ClaimedPayload {
    fn start(&self) -> *mut u8 {
        // The address cannot be outside the memory, because offset and length are those of the claim.
        self.memory.as_ptr().wrapping_add(self.offset)
    }

    fn len(&self) -> usize {
        self.length
    }

    fn is_writable(&self) -> bool {
        true
    }
}

impl PyBufferClaim {
    pub fn new(py: Python<'_>, claim: BufferClaim, direct: bool) -> PyResult<Self> {
        let (length, position) = (claim.payload_length(), claim.position());
        let private = (!direct).then(|| SharedBuffer::heap(length));
        let (memory, offset) = match &private {
            Some(memory) => (memory.clone(), 0),
            None => claim.with(|claim| (claim.term().clone(), claim.payload_offset())),
        };
        let payload = ClaimedPayload {
            memory,
            offset,
            length,
        };
        debug_assert!(payload.offset + length <= payload.memory.len());
        // If Python has no memory for a view, the claim is dropped.
        let (exporter, view) = Exporter::view(py, Arc::new(payload))?;
        let inner = ClaimState {
            claim: Mutex::new(Some(claim)),
            exporter: exporter.unbind(),
            view: view.unbind(),
            private,
        };
        Ok(Self {
            inner: OfProcess::new(inner),
            length,
            position,
        })
    }

    /// Ends the claim with `end`, which commits or aborts it, and releases the view.
    fn finish<R>(&self, py: Python<'_>, end: impl FnOnce(BufferClaim) -> R) -> PyResult<R> {
        let inner = self.inner.get()?;
        let claim = inner.lock().take().ok_or_else(finished)?;
        inner.exporter.get().expire(inner.view.bind(py));
        Ok(end(claim))
    }

    /// Changes a header field of an unfinished claim.
    fn with_claim(&self, change: impl FnOnce(&Claim<'_, SharedBuffer>)) -> PyResult<()> {
        let inner = self.inner.get()?;
        let changed = inner.lock().as_ref().map(|claim| claim.with(change));
        // The lock is released first, because creating the exception may run Python code that uses the claim.
        changed.ok_or_else(finished)
    }
}

impl ClaimState {
    fn lock(&self) -> MutexGuard<'_, Option<BufferClaim>> {
        self.claim.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl PyBufferClaim {
    fn __enter__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        Ok(self.inner.get()?.view.clone_ref(py))
    }

    /// Commits the message, or aborts it if the block raised. Does nothing if the block has already committed or
    /// aborted the message.
    fn __exit__(
        &self,
        py: Python<'_>,
        exception_type: &Bound<'_, PyAny>,
        _exception: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        if self.is_finished()? {
            Ok(())
        } else if exception_type.is_none() {
            self.commit(py).map(drop)
        } else {
            self.abort(py)
        }
    }

    /// The payload: a writable memoryview, which is released when the claim is finished.
    ///
    /// `BufferClaim` describes what happens to slices of the view.
    #[getter]
    fn view(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        Ok(self.inner.get()?.view.clone_ref(py))
    }

    /// Makes the message readable for subscribers.
    ///
    /// Returns:
    ///     The stream position after the message, in bytes.
    ///
    /// Raises:
    ///     ClaimAbortedError: If the client has lost its driver since the claim. The message was not sent.
    ///     AeronError: If the claim was committed or aborted already.
    fn commit(&self, py: Python<'_>) -> PyResult<i64> {
        let private = self.inner.get()?.private.as_ref();
        let committed = self.finish(py, |claim| {
            if let Some(memory) = private {
                let mut payload = vec![0; self.length];
                memory.copy_out(0, &mut payload);
                claim.put(0, &payload);
            }
            claim.commit()
        })?;
        committed.map_err(|aborted: ClaimAborted| raise("ClaimAbortedError", aborted.to_string()))
    }

    /// Turns the frame into padding, which subscribers skip.
    ///
    /// Raises:
    ///     AeronError: If the claim was committed or aborted already.
    fn abort(&self, py: Python<'_>) -> PyResult<()> {
        self.finish(py, BufferClaim::abort)
    }

    /// Whether the claim was committed or aborted.
    #[getter]
    fn is_finished(&self) -> PyResult<bool> {
        Ok(self.inner.get()?.lock().is_none())
    }

    /// Length of the payload, in bytes.
    #[getter]
    fn length(&self) -> usize {
        self.length
    }

    fn __len__(&self) -> usize {
        self.length
    }

    /// A claim is true, even with length 0. The other results of `try_claim` are false.
    fn __bool__(&self) -> bool {
        true
    }

    /// Stream position after the message, in bytes.
    #[getter]
    fn position(&self) -> i64 {
        self.position
    }

    /// Sets the frame's reserved value. The default is 0.
    ///
    /// Args:
    ///     value: A 64-bit integer.
    ///
    /// Raises:
    ///     AeronError: If the claim was committed or aborted already.
    fn set_reserved_value(
        &self,
        #[pyo3(from_py_with = argument::value)] value: i64,
    ) -> PyResult<()> {
        self.with_claim(|claim| claim.set_reserved_value(value))
    }

    /// Sets the frame's flags. The default is 0xC0, the flags of an unfragmented message.
    ///
    /// Args:
    ///     flags: The flags, 0 to 255.
    ///
    /// Raises:
    ///     AeronError: If the claim was committed or aborted already.
    fn set_flags(&self, #[pyo3(from_py_with = argument::flags)] flags: u8) -> PyResult<()> {
        self.with_claim(|claim| claim.set_flags(flags))
    }

    fn __repr__(&self) -> PyResult<String> {
        let state = if self.is_finished()? {
            "finished"
        } else {
            "open"
        };
        Ok(format!("<BufferClaim of {} bytes, {state}>", self.length))
    }
}

#[cold]
fn finished() -> PyErr {
    raise("AeronError", "the claim was committed or aborted already")
}
