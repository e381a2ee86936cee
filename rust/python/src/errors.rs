//! Converts errors of client, driver and log to the exceptions of `aeron.exceptions` and `aeron.spark.errors`.

use aeron_client::{CloseCause, Error, OfferError};
use aeron_memory::log::AppendError;
use pyo3::exceptions::PyMemoryError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyModule, PyType};

use crate::signals::interruption;

static EXCEPTIONS: PyOnceLock<Py<PyModule>> = PyOnceLock::new();

fn exceptions(py: Python<'_>) -> PyResult<&Bound<'_, PyModule>> {
    let module =
        EXCEPTIONS.get_or_try_init(py, || py.import("aeron.exceptions").map(Bound::unbind))?;
    Ok(module.bind(py))
}

/// Returns an exception of the class `name` of `aeron.exceptions`.
#[cold]
pub fn raise(name: &'static str, message: impl Into<String>) -> PyErr {
    let message = message.into();
    Python::attach(|py| {
        let class =
            exceptions(py).and_then(|module| Ok(module.getattr(name)?.cast_into::<PyType>()?));
        class.map_or_else(|error| error, |class| PyErr::from_type(class, (message,)))
    })
}

/// Returns the exception for an error of the client.
#[cold]
pub fn from_client(error: &Error) -> PyErr {
    let message = error.to_string();
    match error {
        Error::Registration {
            correlation_id,
            code,
            message,
        } => registration(code.value(), message, *correlation_id),
        Error::ChannelEndpoint { .. } => raise("ChannelEndpointError", message),
        Error::DriverTimeout(_) | Error::HeartbeatCounterClosed { .. } => {
            raise("DriverTimeoutError", message)
        }
        Error::ClientTimeout { .. } => raise("ClientTimeoutError", message),
        Error::ServiceTimeout { .. } => raise("ConductorServiceTimeoutError", message),
        Error::ClientClosed(cause) => {
            because(raise("ClientClosedError", "the client is closed"), cause)
        }
        Error::ResourceClosed { resource, cause } => {
            let class = match *resource {
                "Publication" => "PublicationClosedError",
                "Subscription" => "SubscriptionClosedError",
                "Image" => "ImageClosedError",
                "Counter" => "CounterClosedError",
                _ => "ClientClosedError",
            };
            because(raise(class, message), cause)
        }
        Error::ReentrantCall | Error::InUse(_) => raise("ReentrantCallError", message),
        Error::InvalidArgument(_) | Error::InvalidCommand { .. } => {
            raise("InvalidArgumentError", message)
        }
        Error::Configuration(_) | Error::VersionMismatch { .. } => {
            raise("ConfigurationError", message)
        }
        Error::InvalidCncFile { .. } | Error::Io { .. } => raise("DriverError", message),
        Error::CorruptLog { .. } => raise("CorruptLogError", message),
        Error::PositionCounterClosed { .. } => raise("ImageClosedError", message),
        Error::OutOfMemory { .. } => PyMemoryError::new_err(message),
        Error::Forked => raise("ForkedError", message),
        Error::Interrupted => interruption(),
        Error::OperationCancelled => raise("OperationCancelledError", message),
        _ => raise("AeronError", message),
    }
}

/// Returns the exception for an error of a publication's log. If a later attempt may succeed, offers do not call this
/// function: they return a constant or try again.
#[cold]
pub fn from_append(error: AppendError, cause: impl FnOnce() -> CloseCause) -> PyErr {
    match error {
        AppendError::Closed => {
            let cause = cause();
            let refusal = cause.0.as_deref().filter(|error| is_refusal(error));
            let text = match refusal {
                Some(error) => format!("the next driver has refused the publication: {error}"),
                None => "the publication is closed".to_owned(),
            };
            because(raise("PublicationClosedError", text), &cause)
        }
        AppendError::MaxPositionExceeded => raise("MaxPositionExceededError", error.to_string()),
        AppendError::TooLong { .. } => raise("MessageTooLongError", error.to_string()),
        AppendError::Corrupt(_) => raise("CorruptLogError", error.to_string()),
        AppendError::InvalidBlock(_) => raise("InvalidArgumentError", error.to_string()),
        AppendError::NotConnected | AppendError::BackPressured | AppendError::AdminAction => {
            raise("AeronError", error.to_string())
        }
    }
}

/// Whether the cause of a close is the refusal of a driver, after the client has lost the driver before.
pub fn is_refusal(error: &Error) -> bool {
    matches!(error, Error::Registration { .. })
}

/// As [`from_append`], for an offer. An offer also fails if another thread uses an exclusive publication.
#[cold]
pub fn from_offer(error: OfferError, cause: impl FnOnce() -> CloseCause) -> PyErr {
    match error {
        OfferError::Append(error) => from_append(error, cause),
        OfferError::InUse => raise("ReentrantCallError", error.to_string()),
    }
}

/// Returns `error`, with the reason of the close as its `__cause__` if there is one.
pub fn because(error: PyErr, cause: &CloseCause) -> PyErr {
    if let Some(cause) = &cause.0 {
        Python::attach(|py| error.set_cause(py, Some(from_client(cause))));
    }
    error
}

fn registration(code: i32, message: &str, correlation_id: i64) -> PyErr {
    Python::attach(|py| {
        let make = exceptions(py).and_then(|module| module.getattr("registration_error"));
        make.and_then(|make| make.call1((code, message, correlation_id)))
            .map_or_else(|error| error, PyErr::from_value)
    })
}

/// Returns the exception of `aeron.spark.errors` for this code, with this message.
#[cold]
pub fn spark_error(code: &str, message: &str) -> PyErr {
    Python::attach(|py| {
        let make = py
            .import("aeron.spark.errors")
            .and_then(|module| module.getattr("spark_error"));
        make.and_then(|make| make.call1((code, message)))
            .map_or_else(|error| error, PyErr::from_value)
    })
}
