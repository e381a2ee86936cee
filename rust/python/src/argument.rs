//! Arguments that are checked one by one, so that an error names its parameter, the value and the limits.
//!
//! PyO3's own conversions say neither: `can't convert negative int to unsigned`.

use std::fmt::Display;

use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;

use crate::errors::raise;

/// A type that Python code passes as an argument of a name.
pub trait Argument: Sized {
    /// Converts the argument `name`.
    fn convert(value: &Bound<'_, PyAny>, name: &str) -> PyResult<Self>;
}

macro_rules! integers {
    ($($type:ty),*) => {$(
        impl Argument for $type {
            #[inline]
            fn convert(value: &Bound<'_, PyAny>, name: &str) -> PyResult<Self> {
                value
                    .extract()
                    .map_err(|error| not_an_integer(error, value, name, <$type>::MIN, <$type>::MAX))
            }
        }
    )*};
}
integers!(u8, i32, u32, i64, u64, isize, usize);

impl<T: Argument> Argument for Option<T> {
    fn convert(value: &Bound<'_, PyAny>, name: &str) -> PyResult<Self> {
        if value.is_none() {
            return Ok(None);
        }
        T::convert(value, name).map(Some)
    }
}

/// A function of the application.
pub struct Callable(pub Py<PyAny>);

impl Argument for Callable {
    fn convert(value: &Bound<'_, PyAny>, name: &str) -> PyResult<Self> {
        check_callable(value, name)?;
        Ok(Self(value.clone().unbind()))
    }
}

/// Refuses the argument `name` if it cannot be called.
#[inline]
pub fn check_callable(value: &Bound<'_, PyAny>, name: &str) -> PyResult<()> {
    if value.is_callable() {
        return Ok(());
    }
    Err(not_callable(value, name))
}

#[cold]
fn not_callable(value: &Bound<'_, PyAny>, name: &str) -> PyErr {
    raise(
        "ArgumentTypeError",
        format!("{name}={} is not callable: pass a function", shown(value)),
    )
}

#[cold]
fn not_an_integer(
    error: PyErr,
    value: &Bound<'_, PyAny>,
    name: &str,
    min: impl Display,
    max: impl Display,
) -> PyErr {
    let py = value.py();
    if error.is_instance_of::<PyOverflowError>(py) {
        let reason = format!("{name}={} is not within {min} to {max}", shown(value));
        return raise("ArgumentRangeError", reason);
    }
    if error.is_instance_of::<PyTypeError>(py) {
        let reason = format!("{name}={} is not an integer", shown(value));
        return raise("ArgumentTypeError", reason);
    }
    error
}

/// The value as Python shows it.
fn shown(value: &Bound<'_, PyAny>) -> String {
    value.repr().map_or_else(
        |_| format!("<{}>", value.get_type()),
        |text| text.to_string_lossy().into_owned(),
    )
}

/// For each parameter name a function for `#[pyo3(from_py_with = ...)]`.
macro_rules! parameters {
    ($($name:ident),* $(,)?) => {$(
        #[inline]
        pub fn $name<T: Argument>(value: &Bound<'_, PyAny>) -> PyResult<T> {
            T::convert(value, stringify!($name))
        }
    )*};
}
parameters!(
    after_ns,
    attempt,
    batch_id,
    block_length_limit,
    connect_timeout_ms,
    current,
    delta,
    flags,
    fragment_limit,
    group_min_size,
    group_tag,
    handler,
    handler_id,
    id,
    idle_ms,
    index,
    initial_term_id,
    interval_ns,
    length,
    limit,
    limit_position,
    max_bytes,
    max_bytes_per_trigger,
    max_idle_park_ns,
    max_park_ns,
    max_retained_bytes,
    max_rows_per_partition,
    max_rows_per_trigger,
    max_spins,
    max_yields,
    min_park_ns,
    min_partitions,
    new,
    offer_timeout_ms,
    offset,
    owner_id,
    reference_id,
    on_available_image,
    on_unavailable_image,
    partition,
    period_ms,
    period_ns,
    position,
    proposed,
    receiver_timeout_ns,
    record_length,
    records_per_message,
    registration_id,
    reserved_value,
    session_id,
    since_ms,
    spin_ns,
    start,
    stream_id,
    term_id,
    term_length,
    term_offset,
    timeout_ms,
    type_id,
    value,
    work_count,
    correlation_id,
);
