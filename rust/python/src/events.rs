//! Python handlers of what the client's conductor reports.
//!
//! The conductor only queues them; they run on the client's dispatcher thread, or in `do_work` of a client without threads.
//! What a handler raises goes to the error handler.

use std::sync::Arc;

use aeron_client::{
    CloseHandler, CounterHandler, CountersReader, Error, ErrorHandler, Image, ImageHandler,
    PublicationErrorFrame, PublicationErrorHandler, SharedBuffer,
};
use pyo3::prelude::*;

use crate::calls::{CallArguments, call};
use crate::counters::PyCountersReader;
use crate::errors::from_client;
use crate::image::PyImage;

/// Takes the errors that nobody is waiting for. Without a handler they are shown by `sys.unraisablehook`.
#[derive(Clone, Default)]
pub struct ErrorReporter(Option<Arc<Py<PyAny>>>);

impl ErrorReporter {
    pub fn new(handler: Option<Py<PyAny>>) -> Self {
        Self(handler.map(Arc::new))
    }

    fn report(&self, py: Python<'_>, error: PyErr) {
        let Some(handler) = &self.0 else {
            return error.write_unraisable(py, None);
        };
        let handler = handler.bind(py);
        if let Err(error) = call(handler, (error.into_value(py),)) {
            error.write_unraisable(py, Some(handler));
        }
    }

    fn call<'py>(&self, handler: &Bound<'py, PyAny>, arguments: impl CallArguments<'py>) {
        if let Err(error) = call(handler, arguments) {
            self.report(handler.py(), error);
        }
    }

    /// Errors of the conductor.
    pub fn error_handler(&self) -> ErrorHandler {
        let reporter = self.clone();
        Arc::new(move |error: &Error| Python::attach(|py| reporter.report(py, from_client(error))))
    }

    /// `handler(image)`.
    pub fn image_handler(&self, handler: Py<PyAny>) -> ImageHandler {
        let reporter = self.clone();
        Arc::new(move |image: &Image| {
            Python::attach(|py| {
                reporter.call(handler.bind(py), (PyImage::new(image.clone()),));
            });
        })
    }

    /// `handler(counters_reader, registration_id, counter_id)`.
    pub fn counter_handler(&self, handler: Py<PyAny>) -> CounterHandler {
        let reporter = self.clone();
        Arc::new(
            move |reader: &CountersReader<SharedBuffer>, registration_id: i64, counter_id: i32| {
                Python::attach(|py| {
                    let reader = PyCountersReader::new(reader.clone());
                    reporter.call(handler.bind(py), (reader, registration_id, counter_id));
                });
            },
        )
    }

    /// `handler()`.
    pub fn close_handler(&self, handler: Py<PyAny>) -> CloseHandler {
        let reporter = self.clone();
        Arc::new(move || Python::attach(|py| reporter.call(handler.bind(py), ())))
    }

    /// `handler(error_frame)`.
    pub fn publication_error_handler(&self, handler: Py<PyAny>) -> PublicationErrorHandler {
        let reporter = self.clone();
        Arc::new(move |frame: &PublicationErrorFrame| {
            Python::attach(|py| {
                reporter.call(handler.bind(py), (PyPublicationErrorFrame::from(frame),));
            });
        })
    }
}

/// What a receiver reported to a publication. Immutable.
#[pyclass(
    frozen,
    get_all,
    module = "aeron._aeron",
    name = "PublicationErrorFrame"
)]
pub struct PyPublicationErrorFrame {
    /// Original registration id of the publication.
    registration_id: i64,
    /// Registration id of the destination, -1 if none.
    destination_registration_id: i64,
    /// Session id of the publication.
    session_id: i32,
    /// Stream id of the publication.
    stream_id: i32,
    /// Id of the receiver, -1 for IPC.
    receiver_id: i64,
    /// Group tag of the receiver, -1 if none.
    group_tag: i64,
    /// 13 when the image was rejected.
    error_code: i32,
    /// What the receiver said.
    error_message: String,
    /// Where the report came from, `None` where it is not known.
    source_address: Option<String>,
}

impl From<&PublicationErrorFrame> for PyPublicationErrorFrame {
    fn from(frame: &PublicationErrorFrame) -> Self {
        Self {
            registration_id: frame.registration_id,
            destination_registration_id: frame.destination_registration_id,
            session_id: frame.session_id,
            stream_id: frame.stream_id,
            receiver_id: frame.receiver_id,
            group_tag: frame.group_tag,
            error_code: frame.error_code,
            error_message: frame.error_message.clone(),
            source_address: frame.source_address.map(|address| address.to_string()),
        }
    }
}
