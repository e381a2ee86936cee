//! Converts errors of an archive and its client to the exceptions of `aeron.exceptions`.

use aeron_archive::client::{
    ArchiveClientError, PersistentSubscriptionError, RecordedPublisherError, ReplayMergeError,
};
use aeron_archive::ownership::OwnershipError;
use aeron_archive::server::ArchiveStartError;
use aeron_archive::server::context::ARCHIVE_SETTINGS;
use pyo3::prelude::*;

use crate::errors::{from_client, raise};

/// Returns the exception for an error of an archive's client.
#[cold]
pub fn from_archive(error: &ArchiveClientError) -> PyErr {
    let message = error.to_string();
    match error {
        ArchiveClientError::Refused {
            correlation_id,
            code,
            ..
        } => refusal(*code, &message, *correlation_id),
        ArchiveClientError::ConnectTimeout { .. } => raise("ArchiveTimeoutError", message),
        ArchiveClientError::Timeout { correlation_id, .. } => {
            with_correlation_id(raise("ArchiveTimeoutError", message), *correlation_id)
        }
        ArchiveClientError::EmptyTimeRange { .. } => raise("EmptyTimeRangeError", message),
        ArchiveClientError::Disconnected => raise("ArchiveDisconnectedError", message),
        ArchiveClientError::Closed => raise("ArchiveClosedError", message),
        ArchiveClientError::NotSupported { .. } => raise("NotSupportedByArchiveError", message),
        ArchiveClientError::ReentrantCall => raise("ReentrantCallError", message),
        ArchiveClientError::OperationCancelled => raise("OperationCancelledError", message),
        ArchiveClientError::InvalidChannel { .. } | ArchiveClientError::InvalidArgument(_) => {
            raise("InvalidArgumentError", message)
        }
        ArchiveClientError::Configuration(_) => raise("ConfigurationError", message),
        ArchiveClientError::Client(error) => from_client(error),
        _ => raise("ArchiveError", message),
    }
}

/// Returns the exception for an error of a persistent subscription. If an error of the archive or the client led to it,
/// that error is the `__cause__`.
#[cold]
pub fn from_persistent(error: &PersistentSubscriptionError) -> PyErr {
    let (cause, code) = match error {
        PersistentSubscriptionError::Refused { source, .. }
        | PersistentSubscriptionError::Archive(source) => {
            (Some(from_archive(source)), code_of(source))
        }
        PersistentSubscriptionError::Resource { source, .. } => (Some(from_client(source)), None),
        _ => (None, None),
    };
    caused(
        raise("PersistentSubscriptionError", error.to_string()),
        cause,
        error.reason().name(),
        code,
    )
}

/// Returns the exception for an error of a recorded publisher. If an error of the archive or the client led to it, that
/// error is the `__cause__`.
#[cold]
pub fn from_publisher(error: &RecordedPublisherError) -> PyErr {
    let (cause, code) = match error {
        RecordedPublisherError::Refused { source } | RecordedPublisherError::Archive { source } => {
            (Some(from_archive(source)), code_of(source))
        }
        RecordedPublisherError::Client { source }
        | RecordedPublisherError::Publication { source } => (Some(from_client(source)), None),
        _ => (None, None),
    };
    caused(
        raise("RecordedPublisherError", error.to_string()),
        cause,
        error.reason(),
        code,
    )
}

/// Returns an exception with its cause, and with the attributes `reason` and `code`.
fn caused(raised: PyErr, cause: Option<PyErr>, reason: &str, code: Option<i64>) -> PyErr {
    Python::attach(|py| {
        raised.set_cause(py, cause);
        let value = raised.value(py);
        let reason = value.setattr("reason", reason);
        let code = code.map_or(Ok(()), |code| value.setattr("code", code));
        reason
            .and(code)
            .map_or_else(|failure| failure, |()| raised.clone_ref(py))
    })
}

/// Returns the archive's error code, if the archive refused a request.
const fn code_of(error: &ArchiveClientError) -> Option<i64> {
    match error {
        ArchiveClientError::Refused { code, .. } => Some(*code),
        _ => None,
    }
}

/// Returns the exception for a merge that was refused or has failed.
#[cold]
pub fn from_merge(error: &ReplayMergeError) -> PyErr {
    let message = error.to_string();
    match error {
        ReplayMergeError::IpcChannel
        | ReplayMergeError::NotManual { .. }
        | ReplayMergeError::NoEndpoint { .. } => raise("InvalidArgumentError", message),
        ReplayMergeError::NoProgress { .. } => raise("ArchiveTimeoutError", message),
        ReplayMergeError::Refused {
            correlation_id,
            code,
            ..
        } => refusal(*code, &message, *correlation_id),
        ReplayMergeError::NotConnected => raise("ArchiveDisconnectedError", message),
        ReplayMergeError::Archive(error) => from_archive(error),
        _ => raise("ArchiveError", message),
    }
}

/// Returns the exception for an archive that does not start.
#[cold]
pub fn from_start(error: &ArchiveStartError) -> PyErr {
    let message = error.to_string();
    match error {
        ArchiveStartError::Configuration(error) => {
            raise("ConfigurationError", in_keywords(error.property, &message))
        }
        ArchiveStartError::Objects { .. } => raise(
            "ConfigurationError",
            in_keywords("aeron.archive.objects.url", &message),
        ),
        ArchiveStartError::ControlChannel(_) => raise("ConfigurationError", message),
        ArchiveStartError::Ownership(error) => from_ownership(error),
        ArchiveStartError::ArchiveIdInUse { .. } => raise("ArchiveActiveError", message),
        ArchiveStartError::Client(error) => from_client(error),
        _ => raise("ArchiveDirectoryError", message),
    }
}

/// Returns the exception for a directory that an archive cannot use.
#[cold]
pub fn from_ownership(error: &OwnershipError) -> PyErr {
    let class = match error {
        OwnershipError::InUse { .. } | OwnershipError::Active { .. } => "ArchiveActiveError",
        _ => "ArchiveDirectoryError",
    };
    raise(class, error.to_string())
}

/// Replaces property names by the keywords of `Archive` in the error text of a refused setting. Appends the name of
/// the refused property.
fn in_keywords(property: &str, message: &str) -> String {
    let mut settings: Vec<_> = ARCHIVE_SETTINGS.iter().collect();
    // Longer properties are replaced first, because some properties begin with the name of another property.
    settings.sort_by_key(|setting| std::cmp::Reverse(setting.property.len()));
    let text = settings.iter().fold(message.to_owned(), |text, setting| {
        text.replace(setting.property, setting.name)
    });
    format!("{text} (property {property})")
}

fn refusal(code: i64, message: &str, correlation_id: i64) -> PyErr {
    Python::attach(|py| {
        let make = py
            .import("aeron.exceptions")
            .and_then(|module| module.getattr("archive_error"));
        make.and_then(|make| make.call1((code, message, correlation_id)))
            .map_or_else(|error| error, PyErr::from_value)
    })
}

fn with_correlation_id(error: PyErr, correlation_id: i64) -> PyErr {
    Python::attach(|py| {
        let set = error.value(py).setattr("correlation_id", correlation_id);
        set.map_or_else(|failure| failure, |()| error)
    })
}
