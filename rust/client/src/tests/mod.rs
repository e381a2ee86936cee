//! Tests of the client, with a driver in virtual time.

mod assembling;
mod batches;
mod connecting;
mod counters;
mod idle_work;
mod images;
mod publications;
mod reconnecting;
mod requests;
mod runtime;

use std::sync::{Arc, Mutex};

use crate::context::Context;
use crate::error::Error;
use crate::lock::lock;

/// A log of the calls of handlers, in order.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    pub(crate) fn add(&self, line: impl Into<String>) {
        lock(&self.0).push(line.into());
    }

    /// Returns the entries since the last call.
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut lock(&self.0))
    }

    /// Sets the handlers of a context, except the handler of publication errors, to write to this log.
    pub(crate) fn attach(&self, context: &mut Context) {
        let log = self.clone();
        context.error_handler = Arc::new(move |error| log.add(format!("error {}", error.code())));
        let log = self.clone();
        context.available_image_handler = Some(Arc::new(move |image| {
            assert!(!image.is_closed());
            log.add(format!("available {}", image.session_id()));
        }));
        let log = self.clone();
        context.unavailable_image_handler = Some(Arc::new(move |image| {
            assert!(image.is_closed());
            log.add(format!(
                "unavailable {} at {}",
                image.session_id(),
                image.position()
            ));
        }));
        let log = self.clone();
        context.available_counter_handler = Some(Arc::new(move |_, registration_id, _| {
            log.add(format!("counter {registration_id}"))
        }));
        let log = self.clone();
        context.unavailable_counter_handler = Some(Arc::new(move |_, registration_id, _| {
            log.add(format!("no counter {registration_id}"))
        }));
        let log = self.clone();
        context.close_handler = Some(Arc::new(move || log.add("closed")));
    }
}

/// Returns the code and the text of an error, or `ok`.
pub(crate) fn text<T>(result: Result<T, Error>) -> String {
    match result {
        Ok(_) => "ok".to_owned(),
        Err(error) => format!("{}: {error}", error.code()),
    }
}
