//! The sending methods of concurrent and exclusive publications.

use aeron_client::{BufferClaim, CloseCause, ExclusivePublication, OfferError, Publication};
use aeron_memory::buffer::SharedBuffer;
use aeron_memory::log::append::{Appended, MessageBatch};
use aeron_memory::log::{AppendError, LogFragment};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::argument::{self, named};
use crate::buffers::{LARGE_COPY_LENGTH, View, with_bytes};
use crate::calls::call;
use crate::claim::PyBufferClaim;
use crate::errors::{from_offer, raise};
use crate::fork::Process;
use crate::results::NotSent;
use crate::waiting::WaitPolicy;

type OfferResult<T> = Result<T, OfferError>;

/// A concurrent or exclusive publication.
pub trait Outlet: Sync {
    fn offer(&self, message: &[u8]) -> OfferResult<i64>;
    fn offer_parts(&self, parts: &[&[u8]]) -> OfferResult<i64>;
    fn offer_with(
        &self,
        message: &[u8],
        reserved_value: impl FnMut(LogFragment<'_, SharedBuffer>) -> i64,
    ) -> OfferResult<i64>;
    fn offer_batch<M: MessageBatch>(&self, messages: &M, first: usize) -> OfferResult<Appended>;
    fn try_claim(&self, length: usize) -> OfferResult<BufferClaim>;
    fn max_message_length(&self) -> usize;
    fn max_payload_length(&self) -> usize;
    fn position(&self) -> Result<i64, AppendError>;
    fn is_flushed(&self, position: i64) -> bool;
    fn close_cause(&self) -> CloseCause;
    fn is_connected(&self) -> bool;
    fn has_driver(&self) -> bool;
    fn generation(&self) -> u64;
    fn is_closed(&self) -> bool;
    fn stream(&self) -> (&str, i32);
}

macro_rules! outlets {
    ($($publication:ident),*) => {$(
        impl Outlet for $publication {
            #[inline]
            fn offer(&self, message: &[u8]) -> OfferResult<i64> {
                self.offer(message).map_err(OfferError::from)
            }

            fn offer_parts(&self, parts: &[&[u8]]) -> OfferResult<i64> {
                self.offer_parts(parts).map_err(OfferError::from)
            }

            fn offer_with(
                &self,
                message: &[u8],
                reserved_value: impl FnMut(LogFragment<'_, SharedBuffer>) -> i64,
            ) -> OfferResult<i64> {
                self.offer_with_reserved_value(message, reserved_value).map_err(OfferError::from)
            }

            fn offer_batch<M: MessageBatch>(&self, messages: &M, first: usize) -> OfferResult<Appended> {
                self.offer_batch(messages, first).map_err(OfferError::from)
            }

            fn try_claim(&self, length: usize) -> OfferResult<BufferClaim> {
                self.try_claim(length).map_err(OfferError::from)
            }

            fn position(&self) -> Result<i64, AppendError> {
                self.position()
            }

            fn is_flushed(&self, position: i64) -> bool {
                self.is_flushed(position)
            }

            fn max_message_length(&self) -> usize {
                self.max_message_length()
            }

            fn max_payload_length(&self) -> usize {
                self.max_payload_length()
            }

            fn close_cause(&self) -> CloseCause {
                self.close_cause()
            }

            fn is_connected(&self) -> bool {
                self.is_connected()
            }

            fn has_driver(&self) -> bool {
                self.has_driver()
            }

            fn generation(&self) -> u64 {
                self.generation()
            }

            fn is_closed(&self) -> bool {
                self.is_closed()
            }

            fn stream(&self) -> (&str, i32) {
                (self.channel(), self.stream_id())
            }
        }
    )*};
}
outlets!(Publication, ExclusivePublication);

/// Converts the outcome of an offer to the position, to one of the false constants, or to an exception.
#[inline]
pub fn answer(
    py: Python<'_>,
    outlet: &impl Outlet,
    outcome: OfferResult<i64>,
) -> PyResult<Py<PyAny>> {
    match outcome {
        Ok(position) => Ok(position.into_pyobject(py)?.into_any().unbind()),
        Err(error) => not_sent(py, outlet, error),
    }
}

#[cold]
fn not_sent(py: Python<'_>, outlet: &impl Outlet, error: OfferError) -> PyResult<Py<PyAny>> {
    if let OfferError::Append(error) = error
        && let Some(constant) = NotSent::get(py)?.constant(error)
    {
        return Ok(constant.clone_ref(py));
    }
    Err(from_offer(error, || outlet.close_cause()))
}

/// Whether a later attempt may succeed.
pub fn is_temporary(error: OfferError) -> bool {
    matches!(
        error,
        OfferError::Append(
            AppendError::NotConnected | AppendError::BackPressured | AppendError::AdminAction
        )
    )
}

/// Calls `f`, which copies `length` bytes. Releases the GIL if the copy is large.
fn copying<R: Send>(py: Python<'_>, length: usize, f: impl FnOnce() -> R + Send) -> R {
    if length > LARGE_COPY_LENGTH {
        py.detach(f)
    } else {
        f()
    }
}

#[inline]
pub fn offer(
    py: Python<'_>,
    outlet: &impl Outlet,
    message: &Bound<'_, PyAny>,
) -> PyResult<Py<PyAny>> {
    let outcome = with_bytes(message, "message", |bytes| {
        copying(py, bytes.len(), || outlet.offer(bytes))
    })?;
    answer(py, outlet, outcome)
}

/// Offers a message with a reserved value: an integer, or a function that returns one for each fragment's payload.
pub fn offer_reserved(
    py: Python<'_>,
    outlet: &impl Outlet,
    message: &Bound<'_, PyAny>,
    reserved_value: &Bound<'_, PyAny>,
) -> PyResult<Py<PyAny>> {
    let outcome = with_bytes(message, "message", |bytes| -> PyResult<_> {
        if !reserved_value.is_callable() {
            let value: i64 = argument::reserved_value(reserved_value)?;
            return Ok(outlet.offer_with(bytes, |_| value));
        }
        if bytes.len() > outlet.max_message_length() {
            return Ok(outlet.offer(bytes));
        }
        let values = reserved_values(reserved_value, bytes, outlet.max_payload_length())?;
        let mut values = values.iter();
        Ok(outlet.offer_with(bytes, |_| values.next().copied().unwrap_or_default()))
    })??;
    answer(py, outlet, outcome)
}

/// Returns the reserved value of each fragment of a message.
///
/// The function is called before any frame is claimed, because a claimed frame would have to be sent even if the
/// function raised.
fn reserved_values(
    supplier: &Bound<'_, PyAny>,
    message: &[u8],
    max_payload_length: usize,
) -> PyResult<Vec<i64>> {
    let process = Process::current();
    let value_of = |fragment: &[u8]| {
        let value = call(supplier, (PyBytes::new(supplier.py(), fragment),))?;
        // The function may have forked. The child must not send, because the log belongs to the parent.
        process.check()?;
        argument::reserved_value(&value)
    };
    if message.is_empty() {
        return Ok(vec![value_of(message)?]);
    }
    message.chunks(max_payload_length).map(value_of).collect()
}

pub fn offer_parts(
    py: Python<'_>,
    outlet: &impl Outlet,
    parts: &Bound<'_, PyAny>,
) -> PyResult<Py<PyAny>> {
    let not_iterable = |error| named(error, parts, "parts", "an iterable of bytes-like objects");
    let views = parts
        .try_iter()
        .map_err(not_iterable)?
        .enumerate()
        .map(|(index, part)| View::named(&part?, || format!("parts[{index}]")))
        .collect::<PyResult<Vec<_>>>()?;
    let parts: Vec<&[u8]> = views.iter().map(|view| view.bytes()).collect();
    let length = parts.iter().map(|part| part.len()).sum();
    let outcome = copying(py, length, || outlet.offer_parts(&parts));
    answer(py, outlet, outcome)
}

/// Offers the message until it is sent, and returns the position.
pub fn publish(
    py: Python<'_>,
    outlet: &impl Outlet,
    message: &Bound<'_, PyAny>,
    patience: WaitPolicy,
) -> PyResult<i64> {
    with_bytes(message, "message", |bytes| {
        retry(py, outlet, patience, || outlet.offer(bytes))
    })?
}

pub fn try_claim(
    py: Python<'_>,
    outlet: &impl Outlet,
    length: usize,
    direct: bool,
) -> PyResult<Py<PyAny>> {
    match outlet.try_claim(length) {
        Ok(claim) => {
            let claim = PyBufferClaim::new(py, claim, direct)?;
            Ok(Py::new(py, claim)?.into_any())
        }
        Err(error) => not_sent(py, outlet, error),
    }
}

/// Waits for a subscriber and for room, and claims a frame.
pub fn claim(
    py: Python<'_>,
    outlet: &impl Outlet,
    length: usize,
    patience: WaitPolicy,
    direct: bool,
) -> PyResult<PyBufferClaim> {
    let claim = retry(py, outlet, patience, || outlet.try_claim(length))?;
    PyBufferClaim::new(py, claim, direct)
}

fn retry<T: Send>(
    py: Python<'_>,
    outlet: &impl Outlet,
    patience: WaitPolicy,
    attempt: impl Fn() -> OfferResult<T> + Sync,
) -> PyResult<T> {
    let outcome = patience.wait(py, || match attempt() {
        Err(error) if is_temporary(error) => None,
        outcome => Some(outcome),
    })?;
    match outcome {
        Some(outcome) => outcome.map_err(|error| from_offer(error, || outlet.close_cause())),
        None => Err(timed_out(outlet)),
    }
}

/// Waits for a subscriber.
pub fn wait_connected(py: Python<'_>, outlet: &impl Outlet, patience: WaitPolicy) -> PyResult<()> {
    let connected = patience.wait(py, || match (outlet.is_closed(), outlet.is_connected()) {
        (true, _) => Some(Err(OfferError::Append(AppendError::Closed))),
        (_, true) => Some(Ok(())),
        _ => None,
    })?;
    match connected {
        Some(outcome) => outcome.map_err(|error| from_offer(error, || outlet.close_cause())),
        None => Err(timed_out(outlet)),
    }
}

/// Waits until all messages before the current position have left the publisher. Returns `false` if the time is up, or
/// if the client has lost its driver.
pub fn flush(py: Python<'_>, outlet: &impl Outlet, patience: WaitPolicy) -> PyResult<bool> {
    let closed = |error: AppendError| from_offer(error.into(), || outlet.close_cause());
    let generation = outlet.generation();
    let position = outlet.position().map_err(closed)?;
    let flushed = patience.wait(py, || {
        if outlet.is_closed() {
            return Some(Err(AppendError::Closed));
        }
        let is_flushed = outlet.is_flushed(position);
        // The position is one of the log of the lost driver, which nobody sends any more.
        if !outlet.has_driver() || outlet.generation() != generation {
            return Some(Ok(false));
        }
        is_flushed.then_some(Ok(true))
    })?;
    flushed.unwrap_or(Ok(false)).map_err(closed)
}

#[cold]
fn timed_out(outlet: &impl Outlet) -> PyErr {
    let (channel, stream_id) = outlet.stream();
    if outlet.is_connected() {
        let what = "the slowest subscriber does not keep up: nothing was sent within the timeout";
        raise(
            "BackPressureTimeoutError",
            format!("{channel}, stream {stream_id}: {what}"),
        )
    } else {
        let what = match outlet.has_driver() {
            true => {
                "no subscriber connected within the timeout; is one running on the same channel and stream?"
            }
            false => "the client has had no driver within the timeout; start one, or wait longer",
        };
        raise(
            "NotConnectedError",
            format!("{channel}, stream {stream_id}: {what}"),
        )
    }
}

/// Appends as many messages as there is room for, from index `first` on. Returns the number of appended messages. If no
/// message can be appended now, but a later attempt may succeed, the number is 0.
pub fn offer_batch<M: MessageBatch + Sync>(
    py: Python<'_>,
    outlet: &impl Outlet,
    messages: &M,
    first: usize,
    length: usize,
) -> PyResult<usize> {
    match copying(py, length, || outlet.offer_batch(messages, first)) {
        Ok(appended) => Ok(appended.messages),
        Err(error) if is_temporary(error) => Ok(0),
        Err(error) => Err(from_offer(error, || outlet.close_cause())),
    }
}
