//! Methods that offer messages to a recorded publisher.

use aeron_archive::client::RecordedOfferError;
use aeron_client::{AppendError, Appended, MessageBatch};
use pyo3::prelude::*;

use super::super::single_caller::CallInProgress;
use super::{PyRecordedPublisher, in_use, refused};
use crate::argument;
use crate::buffers::{LARGE_COPY_LENGTH, with_bytes};
use crate::calls::call_aio;
use crate::errors::raise;
use crate::results::NotSent;
use crate::source::{self, Sink};

/// Passes batches of messages to a publisher.
struct PublisherBatchSink<'a, 'py> {
    py: Python<'py>,
    publisher: &'a PyRecordedPublisher,
    accepted_any: bool,
}

impl Sink for PublisherBatchSink<'_, '_> {
    fn take<M: MessageBatch + Sync>(
        &mut self,
        messages: &M,
        first: usize,
        length: usize,
    ) -> PyResult<usize> {
        let shared = self.publisher.get()?;
        let offer = || shared.publisher.call(|it| it.offer_batch(messages, first));
        let outcome = match length > LARGE_COPY_LENGTH {
            true => self.py.detach(offer),
            false => offer(),
        };
        match outcome {
            Ok(Some(Ok(Appended { messages, .. }))) => {
                self.accepted_any |= messages > 0;
                Ok(messages)
            }
            Ok(None) => Ok(0),
            Ok(Some(Err(error))) if is_temporary(&error) => Ok(0),
            // If messages were accepted before the error, `offer_batch` returns their number instead of raising the
            // error. The program resumes after these messages.
            Ok(Some(Err(_))) | Err(CallInProgress) if self.accepted_any => Ok(0),
            Ok(Some(Err(error))) => Err(refused(&error)),
            Err(CallInProgress) => Err(in_use()),
        }
    }
}

fn is_temporary(error: &RecordedOfferError) -> bool {
    matches!(
        error,
        RecordedOfferError::Append(AppendError::NotConnected | AppendError::BackPressured)
    )
}

#[pymethods]
impl PyRecordedPublisher {
    /// Accepts one message, and sends it if possible. Never blocks.
    ///
    /// The call also takes one step of the publisher, and runs the handlers of the publisher.
    ///
    /// Args:
    ///     message: Any object with the buffer protocol.
    ///
    /// Returns:
    ///     The stream position after the message in bytes. Or `BACK_PRESSURED` if the buffer is full, or
    ///     `NOT_CONNECTED` if the recording was not found or started yet. Both are false in a condition, and mean
    ///     that the message was not accepted.
    ///
    /// Raises:
    ///     RecordedPublisherError: If the publisher has failed.
    ///     PublicationClosedError: If the publisher is closed.
    ///     MessageTooLongError: If the message is longer than the maximum message length, or than the buffer.
    ///     MaxPositionExceededError: If the stream is at its largest position. Record another stream.
    ///     ReentrantCallError: If another call is under way.
    ///
    /// Example:
    ///     ```python
    ///     if not publisher.offer(b"hello"):
    ///         print("not accepted: try again")
    ///     ```
    fn offer(&self, message: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let (shared, py) = (self.get()?, message.py());
        self.tell(py)?;
        let outcome = with_bytes(message, "message", |bytes| {
            let offer = || shared.publisher.call(|it| it.offer(bytes));
            match bytes.len() > LARGE_COPY_LENGTH {
                true => py.detach(offer),
                false => offer(),
            }
        })?;
        let constant = |error| {
            let not_sent = NotSent::get(py)?.constant(error);
            Ok(not_sent.map_or_else(|| py.None(), |constant| constant.clone_ref(py)))
        };
        match outcome {
            Ok(Some(Ok(position))) => Ok(position.into_pyobject(py)?.into_any().unbind()),
            Ok(None) => constant(AppendError::BackPressured),
            Ok(Some(Err(RecordedOfferError::Append(
                error @ (AppendError::NotConnected | AppendError::BackPressured),
            )))) => constant(error),
            Ok(Some(Err(error))) => Err(refused(&error)),
            Err(CallInProgress) => Err(in_use()),
        }
    }

    /// Accepts as many messages as the buffer has room for. Never blocks.
    ///
    /// Args:
    ///     messages: A list of buffers, a two-dimensional array, an array of records, an Arrow array, or one
    ///         buffer with `offsets`.
    ///     offsets: Offsets of the messages in the buffer `messages`, and the offset of the last message's end,
    ///         in bytes.
    ///     start: Index of the first message to send.
    ///
    /// Returns:
    ///     The number of messages that were accepted. Resume at `start` plus that number.
    ///
    /// Raises:
    ///     RecordedPublisherError: If the publisher has failed.
    ///     PublicationClosedError: If the publisher is closed.
    ///     MessageTooLongError: If a message is longer than the maximum message length, or than the buffer.
    ///     MaxPositionExceededError: If the stream is at its largest position. Record another stream.
    ///     ReentrantCallError: If another call is under way.
    #[pyo3(signature = (messages, *, offsets = None, start = 0))]
    fn offer_batch(
        &self,
        messages: &Bound<'_, PyAny>,
        offsets: Option<&Bound<'_, PyAny>>,
        #[pyo3(from_py_with = argument::start)] start: usize,
    ) -> PyResult<usize> {
        self.tell(messages.py())?;
        let mut sink = PublisherBatchSink {
            py: messages.py(),
            publisher: self,
            accepted_any: false,
        };
        source::send(messages, offsets, start, &mut sink)
    }

    /// Waits until the recording is found or started and the buffer has room, and accepts one message.
    ///
    /// The message may still be unrecorded when the call returns; see `wait_recorded`.
    ///
    /// Args:
    ///     message: Any object with the buffer protocol.
    ///     timeout: Seconds to wait. `None` waits without a limit.
    ///
    /// Returns:
    ///     The stream position after the message, in bytes.
    ///
    /// Raises:
    ///     NotConnectedError: If the recording is not found or started within `timeout`.
    ///     BackPressureTimeoutError: If the buffer has no room within `timeout`.
    ///     RecordedPublisherError: If the publisher fails.
    ///     PublicationClosedError: If the publisher is closed.
    ///     MessageTooLongError: If the message is longer than the maximum message length, or than the buffer.
    ///     MaxPositionExceededError: If the stream is at its largest position. Record another stream.
    ///     ReentrantCallError: If another call is under way.
    #[pyo3(signature = (message, timeout = None))]
    fn publish(
        &self,
        message: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = argument::timeout)] timeout: Option<f64>,
    ) -> PyResult<i64> {
        let py = message.py();
        self.tell(py)?;
        let outcome = with_bytes(message, "message", |bytes| {
            self.wait(py, timeout, |publisher| match publisher.offer(bytes) {
                Err(error) if is_temporary(&error) => None,
                outcome => Some(outcome),
            })
        })??;
        match outcome {
            Some(outcome) => outcome.map_err(|error| refused(&error)),
            None => Err(self.not_accepted()),
        }
    }

    /// Waits until the recording is found or started and the buffer has room, and accepts one message.
    ///
    /// The wait does not block the event loop.
    ///
    /// Args:
    ///     message: Any object with the buffer protocol.
    ///
    /// Returns:
    ///     A coroutine that returns the stream position after the message, in bytes.
    ///
    /// Raises:
    ///     RecordedPublisherError: If the publisher fails.
    ///     PublicationClosedError: If the publisher is closed.
    ///     MessageTooLongError: If the message is longer than the maximum message length, or than the buffer.
    ///     MaxPositionExceededError: If the stream is at its largest position. Record another stream.
    ///     ReentrantCallError: If another call is under way.
    fn offer_async<'py>(
        slf: &Bound<'py, Self>,
        message: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        call_aio(slf.py(), "offer", (slf, message))
    }

    /// Accepts all messages from index `start` on without blocking the event loop.
    ///
    /// Args:
    ///     messages: A list of buffers, a two-dimensional array, an array of records, an Arrow array, or one
    ///         buffer with `offsets`.
    ///     offsets: Offsets of the messages in the buffer `messages`, and the offset of the last message's end,
    ///         in bytes.
    ///     start: Index of the first message to send.
    ///
    /// Returns:
    ///     A coroutine that returns the number of messages. If the coroutine is cancelled or fails, the
    ///     attribute `sent` of the exception is the number of messages that were accepted.
    ///
    /// Raises:
    ///     RecordedPublisherError: If the publisher fails.
    ///     PublicationClosedError: If the publisher is closed.
    ///     MessageTooLongError: If a message is longer than the maximum message length, or than the buffer.
    ///     MaxPositionExceededError: If the stream is at its largest position. Record another stream.
    ///     ReentrantCallError: If another call is under way.
    #[pyo3(signature = (messages, *, offsets = None, start = 0))]
    fn offer_batch_async<'py>(
        slf: &Bound<'py, Self>,
        messages: &Bound<'py, PyAny>,
        offsets: Option<&Bound<'py, PyAny>>,
        #[pyo3(from_py_with = argument::start)] start: usize,
    ) -> PyResult<Bound<'py, PyAny>> {
        call_aio(slf.py(), "offer_batch", (slf, messages, offsets, start))
    }
}

impl PyRecordedPublisher {
    /// Returns the exception for a message that was not accepted within a timeout.
    fn not_accepted(&self) -> PyErr {
        let shared = self.shared.anywhere();
        if shared.status.recording_id().is_some() && shared.status.unrecorded().messages > 0 {
            let stream = self.stream_text();
            let what = "the buffer is full, and the archive has not recorded enough";
            return raise(
                "BackPressureTimeoutError",
                format!("{stream}: {what} within the timeout"),
            );
        }
        self.not_connected()
    }
}
