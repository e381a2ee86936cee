//! The exception for messages and schemas that are not valid.

use aeron_sbe::read::SbeMalformed;
use pyo3::prelude::*;

use crate::errors::raise;

pub(super) fn invalid(text: String) -> PyErr {
    raise("InvalidArgumentError", text)
}

pub(super) fn malformed(reason: SbeMalformed) -> PyErr {
    invalid(reason.to_string())
}
