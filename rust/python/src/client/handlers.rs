//! Handlers of a client: their native forms, and the methods that add and remove them.

use std::sync::{Arc, PoisonError};

use aeron_client::{
    CloseHandler, CounterHandler, CountersReader, Image, ImageHandler, SharedBuffer,
};
use pyo3::prelude::*;

use super::PyAeron;
use crate::argument::{self, Callable};
use crate::counters::PyCountersReader;
use crate::events::{ErrorReporter, EventHandler, attach};
use crate::image::PyImage;

/// Returns a native handler that calls `handler(image)`.
pub(super) fn image_handler(reporter: &ErrorReporter, handler: &EventHandler) -> ImageHandler {
    let registered = reporter.register(handler);
    Arc::new(move |image: &Image| {
        attach(|py| registered.call(py, (PyImage::new(image.clone()),)));
    })
}

/// Returns a native handler that calls `handler(counters_reader, registration_id, counter_id)`.
pub(super) fn counter_handler(reporter: &ErrorReporter, handler: &EventHandler) -> CounterHandler {
    let registered = reporter.register(handler);
    Arc::new(
        move |reader: &CountersReader<SharedBuffer>, registration_id: i64, counter_id: i32| {
            attach(|py| {
                let reader = PyCountersReader::new(reader.clone());
                registered.call(py, (reader, registration_id, counter_id));
            });
        },
    )
}

/// Returns a native handler that calls `handler()`.
pub(super) fn close_handler(reporter: &ErrorReporter, handler: &EventHandler) -> CloseHandler {
    let registered = reporter.register(handler);
    Arc::new(move || attach(|py| registered.call(py, ())))
}

impl PyAeron {
    /// Creates a handler that the client owns. Also drops the client's handlers that native code has released.
    fn keep(&self, py: Python<'_>, handler: Callable) -> PyResult<EventHandler> {
        let handler = EventHandler::new(py, handler.0)?;
        let kept = handler.clone_ref(py);
        let mut handlers = self.handlers.lock().unwrap_or_else(PoisonError::into_inner);
        let (set, gone) = handlers
            .drain(..)
            .chain([kept])
            .partition(EventHandler::is_set);
        *handlers = set;
        // Python objects are dropped without the lock, because a finalizer may call this client.
        drop(handlers);
        drop::<Vec<_>>(gone);
        Ok(handler)
    }
}

/// Defines methods in pairs: a method that adds a handler with this native form, and a method that removes it.
macro_rules! handler_methods {
    ($($(#[doc = $doc:literal])+ $add:ident, $remove:ident as $native:ident)*) => {
        #[pymethods]
        impl PyAeron {$(
            $(#[doc = $doc])+
            fn $add(
                &self,
                py: Python<'_>,
                #[pyo3(from_py_with = argument::handler)] handler: Callable,
            ) -> PyResult<i64> {
                let aeron = self.get()?;
                let handler = self.keep(py, handler)?;
                Ok(aeron.$add($native(&self.reporter, &handler)))
            }

            #[doc = concat!("Removes a handler that `", stringify!($add), "` added.")]
            ///
            /// Args:
            #[doc = concat!("    handler_id: Id that `", stringify!($add), "` returned.")]
            ///
            /// Returns:
            ///     `True` if the client had the handler.
            fn $remove(
                &self,
                #[pyo3(from_py_with = argument::handler_id)] handler_id: i64,
            ) -> PyResult<bool> {
                Ok(self.get()?.$remove(handler_id))
            }
        )*}
    };
}

handler_methods! {
    /// Adds a handler that is called for each new counter of any client.
    ///
    /// Args:
    ///     handler: Called as `handler(counters_reader, registration_id, counter_id)` on the client's
    ///         handler thread.
    ///
    /// Returns:
    ///     An id for the removal of the handler.
    add_available_counter_handler, remove_available_counter_handler as counter_handler

    /// Adds a handler that is called for each freed counter of any client.
    ///
    /// Args:
    ///     handler: Called as `handler(counters_reader, registration_id, counter_id)` on the client's
    ///         handler thread.
    ///
    /// Returns:
    ///     An id for the removal of the handler.
    add_unavailable_counter_handler, remove_unavailable_counter_handler as counter_handler

    /// Adds a handler that is called once when the client is closed, by the program or by an error.
    ///
    /// Args:
    ///     handler: Called without arguments.
    ///
    /// Returns:
    ///     An id for the removal of the handler.
    add_close_handler, remove_close_handler as close_handler
}
