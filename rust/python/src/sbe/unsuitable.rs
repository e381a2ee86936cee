//! [`UnsuitableValue`]: why a Python object is not the value of an element, with the path of the element.

use pyo3::exceptions::{PyException, PyKeyboardInterrupt};
use pyo3::prelude::*;

use crate::errors::raise;

/// Longest text of a value in an error, in characters.
const MAX_SHOWN: usize = 80;

/// Why a Python object is not the value of an element.
pub(super) enum UnsuitableValue {
    /// The object has the wrong type, or its value is not possible.
    Refused {
        /// Name of the exception's class.
        class: &'static str,
        /// Path of the element, such as `legs[1].price`; empty for the message.
        path: String,
        /// The rule that the object breaks.
        reason: String,
    },
    /// Python code has raised an exception that is not about the value.
    Raised(PyErr),
}

impl UnsuitableValue {
    /// The object has the wrong type.
    pub(super) fn of_type(value: &Bound<'_, PyAny>, expected: &str) -> Self {
        let kind = value.get_type().name();
        let kind = kind.map_or_else(|_| "object".to_owned(), |name| name.to_string());
        Self::Refused {
            class: "ArgumentTypeError",
            path: String::new(),
            reason: format!("{} is a {kind}: pass {expected}", shown(value)),
        }
    }

    /// The value is not possible.
    pub(super) fn value(reason: String) -> Self {
        Self::Refused {
            class: "InvalidArgumentError",
            path: String::new(),
            reason,
        }
    }

    /// Adds the name of the element, or of the entry, that contains the value.
    pub(super) fn within(self, name: &str) -> Self {
        match self {
            Self::Refused {
                class,
                path,
                reason,
            } => {
                let path = match path.is_empty() || path.starts_with('[') {
                    true => format!("{name}{path}"),
                    false => format!("{name}.{path}"),
                };
                Self::Refused {
                    class,
                    path,
                    reason,
                }
            }
            raised @ Self::Raised(_) => raised,
        }
    }

    /// Returns the exception for a message of a list.
    pub(super) fn in_message(self, index: usize) -> PyErr {
        self.with_prefix(&format!("message {index}: "))
    }

    /// Returns the exception.
    pub(super) fn into_error(self) -> PyErr {
        self.with_prefix("")
    }

    fn with_prefix(self, prefix: &str) -> PyErr {
        match self {
            Self::Refused {
                class,
                path,
                reason,
            } if path.is_empty() => raise(class, format!("{prefix}{reason}")),
            Self::Refused {
                class,
                path,
                reason,
            } => raise(class, format!("{prefix}field '{path}': {reason}")),
            Self::Raised(error) => error,
        }
    }
}

impl From<PyErr> for UnsuitableValue {
    fn from(error: PyErr) -> Self {
        Self::Raised(error)
    }
}

/// Returns the `repr` of a value, cut to a length for errors.
pub(super) fn shown(value: &Bound<'_, PyAny>) -> String {
    let Ok(text) = value.repr() else {
        return "the value".to_owned();
    };
    let text = text.to_string_lossy();
    match text.char_indices().nth(MAX_SHOWN) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.into_owned(),
    }
}

/// Replaces an exception about the value by `refused`. Others, such as an interruption, remain.
pub(super) fn about_value(
    error: PyErr,
    py: Python<'_>,
    refused: impl FnOnce() -> UnsuitableValue,
) -> UnsuitableValue {
    let is_other =
        !error.is_instance_of::<PyException>(py) || error.is_instance_of::<PyKeyboardInterrupt>(py);
    match is_other {
        true => UnsuitableValue::Raised(error),
        false => refused(),
    }
}
