//! [`Credentials`]: the credentials for an archive, as bytes or from a function of the program.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aeron_archive::client::CredentialsSupplier;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;

use crate::argument::wrong_type;
use crate::events::{EventHandler, WeakHandler};

/// Credentials: bytes, or a function. The function is first called with `None`, and later with the archive's challenge.
#[derive(Default)]
pub struct Credentials {
    /// Credentials of the first connection. If there is no function, every connection uses them.
    encoded: Vec<u8>,
    /// Whether a connection has used `encoded`.
    is_used: AtomicBool,
    function: Option<Arc<WeakHandler>>,
    /// The exception that the function raised, until it is taken.
    error: Mutex<Option<PyErr>>,
}

/// Credentials, and the function that returns them. The owner of this value shows the function to the garbage
/// collector.
#[derive(Default)]
pub struct GivenCredentials {
    pub supplier: Arc<Credentials>,
    pub function: Option<EventHandler>,
}

impl GivenCredentials {
    pub fn read(value: &Bound<'_, PyAny>, name: &str) -> PyResult<Self> {
        if let Ok(bytes) = value.extract::<PyBackedBytes>() {
            let supplier = Credentials {
                encoded: bytes.to_vec(),
                ..Credentials::default()
            };
            return Ok(Self {
                supplier: Arc::new(supplier),
                function: None,
            });
        }
        if !value.is_callable() {
            return Err(wrong_type(
                value,
                name,
                "bytes, or a function that returns bytes",
            ));
        }
        Self::of(value)
    }

    /// Calls the function for the first time, on the thread of the program. An exception is raised at once.
    fn of(function: &Bound<'_, PyAny>) -> PyResult<Self> {
        let encoded = call_for_bytes(function, None)?;
        let handler = EventHandler::new(function.py(), function.clone().unbind())?;
        let supplier = Credentials {
            encoded,
            function: Some(handler.weak()),
            ..Credentials::default()
        };
        Ok(Self {
            supplier: Arc::new(supplier),
            function: Some(handler),
        })
    }
}

fn call_for_bytes(function: &Bound<'_, PyAny>, challenge: Option<&[u8]>) -> PyResult<Vec<u8>> {
    let challenge = challenge.map(|bytes| PyBytes::new(function.py(), bytes));
    let answer = function.call1((challenge,))?;
    let bytes = answer.extract::<PyBackedBytes>().map_err(|_| {
        wrong_type(
            &answer,
            "credentials",
            "bytes, which the function must return",
        )
    })?;
    Ok(bytes.to_vec())
}

impl Credentials {
    /// Calls the function for another owner, and returns new credentials. Returns `None` if there is no function.
    pub fn for_another(&self, py: Python<'_>) -> PyResult<Option<GivenCredentials>> {
        let function = self.function.as_ref().and_then(|it| it.get(py));
        function.map(|it| GivenCredentials::of(&it)).transpose()
    }

    /// Returns whether this handler is the function that returns the credentials.
    pub fn is_function(&self, handler: &EventHandler) -> bool {
        let function = self.function.as_ref();
        function.is_some_and(|function| Arc::ptr_eq(function, &handler.weak()))
    }

    /// Removes and returns the exception that the function raised.
    pub fn take_error(&self) -> Option<PyErr> {
        lock(&self.error).take()
    }

    /// Calls the function, and keeps its exception if it raises. Returns no bytes if there is no function.
    fn ask(&self, challenge: Option<&[u8]>) -> Vec<u8> {
        match Python::try_attach(|py| self.call(py, challenge)) {
            Some(Ok(bytes)) => bytes,
            Some(Err(error)) => {
                *lock(&self.error) = Some(error);
                Vec::new()
            }
            None => Vec::new(),
        }
    }

    fn call(&self, py: Python<'_>, challenge: Option<&[u8]>) -> PyResult<Vec<u8>> {
        match self.function.as_ref().and_then(|it| it.get(py)) {
            Some(function) => call_for_bytes(&function, challenge),
            None => Ok(Vec::new()),
        }
    }
}

impl CredentialsSupplier for Credentials {
    fn encoded_credentials(&self) -> Vec<u8> {
        let is_first = !self.is_used.swap(true, Ordering::Relaxed);
        match is_first || self.function.is_none() {
            true => self.encoded.clone(),
            false => self.ask(None),
        }
    }

    fn on_challenge(&self, encoded_challenge: &[u8]) -> Vec<u8> {
        self.ask(Some(encoded_challenge))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
