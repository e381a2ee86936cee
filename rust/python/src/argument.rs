//! Conversion of Python arguments. An error names the parameter, the value and the limits.
//!
//! The errors of PyO3's own conversions name none of these. An example is `can't convert negative int to unsigned`.
//! Two kinds of errors stay as Python raises them, without the name of the parameter. One is the `UnicodeEncodeError`
//! for a str argument that cannot be encoded as UTF-8. The other is an error that the `__index__` of an integer
//! argument raises, except a `TypeError` or an `OverflowError`.

use std::fmt::Display;
use std::path::PathBuf;

use pyo3::PyTypeInfo;
use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyString, PyType};

use crate::errors::raise;

/// Maximum length of the text of a value in an error, in characters. After a truncated text, `...` follows.
const MAX_SHOWN: usize = 120;

/// A Rust type into which an argument of a Python call is converted.
pub trait Argument: Sized {
    /// Converts `value`, which is the argument of the parameter `name`.
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

/// Types for which every failed conversion has the same error: the value is not of this type.
macro_rules! typed {
    ($($type:ty: $kind:literal),* $(,)?) => {$(
        impl Argument for $type {
            fn convert(value: &Bound<'_, PyAny>, name: &str) -> PyResult<Self> {
                value.extract().map_err(|_| wrong_type(value, name, $kind))
            }
        }
    )*};
}
typed! {
    bool: "True or False",
    PathBuf: "a path: pass a str or an os.PathLike",
    PyBackedBytes: "bytes",
    Py<PyBytes>: "bytes",
    Vec<String>: "a list of str",
}

impl Argument for f64 {
    #[inline]
    fn convert(value: &Bound<'_, PyAny>, name: &str) -> PyResult<Self> {
        value
            .extract::<f64>()
            .map_err(|error| not_a_float(&error, value, name))
    }
}

impl Argument for String {
    fn convert(value: &Bound<'_, PyAny>, name: &str) -> PyResult<Self> {
        let text = value.cast::<PyString>();
        let text = text.map_err(|_| wrong_type(value, name, "a str"))?;
        // A str may contain half of a surrogate pair. Such a str cannot be encoded as UTF-8, so `to_str` raises.
        Ok(text.to_str()?.to_owned())
    }
}

impl Argument for Py<PyAny> {
    fn convert(value: &Bound<'_, PyAny>, _name: &str) -> PyResult<Self> {
        Ok(value.clone().unbind())
    }
}

/// An object of a class of this module.
pub struct Instance<T>(pub Py<T>);

impl<T: PyTypeInfo> Argument for Instance<T> {
    fn convert(value: &Bound<'_, PyAny>, name: &str) -> PyResult<Self> {
        value.cast::<T>().map_or_else(
            |_| Err(not_an_instance(value, name, &T::type_object(value.py()))),
            |object| Ok(Self(object.clone().unbind())),
        )
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
    wrong_type(value, name, "callable: pass a function")
}

#[cold]
fn not_an_instance(value: &Bound<'_, PyAny>, name: &str, class: &Bound<'_, PyType>) -> PyErr {
    let class = class.name();
    let class = class.map_or_else(
        |_| String::new(),
        |name| name.to_string_lossy().into_owned(),
    );
    wrong_type(value, name, &format!("an object of the class {class}"))
}

/// Returns the error for an argument that is not `kind`. The text names the parameter, the value and the valid kind.
#[cold]
pub fn wrong_type(value: &Bound<'_, PyAny>, name: &str, kind: &str) -> PyErr {
    raise(
        "ArgumentTypeError",
        format!("{name}={} is not {kind}", shown(value)),
    )
}

/// Returns the error for an argument whose use raised `error`. A plain `TypeError`, such as one of another library, is
/// replaced by an error that names the parameter.
#[cold]
pub fn named(error: PyErr, value: &Bound<'_, PyAny>, name: &str, kind: &str) -> PyErr {
    let py = value.py();
    // Subclasses of `TypeError`, such as those of this package, are already precise.
    if error.get_type(py).is(py.get_type::<PyTypeError>()) {
        return wrong_type(value, name, kind);
    }
    error
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
        return wrong_type(value, name, "an integer");
    }
    error
}

#[cold]
fn not_a_float(error: &PyErr, value: &Bound<'_, PyAny>, name: &str) -> PyErr {
    // An integer or a fraction may be too large.
    if error.is_instance_of::<PyOverflowError>(value.py()) {
        let (value, max) = (shown(value), f64::MAX);
        let reason = format!("{name}={value} is not within -{max:e} to {max:e}");
        return raise("ArgumentRangeError", reason);
    }
    wrong_type(value, name, "a number")
}

/// Returns the `repr` of the value. If it is longer than [`MAX_SHOWN`] characters, it is truncated and ends with `...`.
pub fn shown(value: &Bound<'_, PyAny>) -> String {
    let mut text = value.repr().map_or_else(
        |_| format!("<{}>", value.get_type()),
        |text| text.to_string_lossy().into_owned(),
    );
    if let Some((end, _)) = text.char_indices().nth(MAX_SHOWN) {
        text.truncate(end);
        text.push_str("...");
    }
    text
}

/// Defines one function for each parameter name, for use in `#[pyo3(from_py_with = ...)]`.
macro_rules! parameters {
    ($($name:ident),* $(,)?) => {$(
        #[inline]
        pub fn $name<T: Argument>(value: &Bound<'_, PyAny>) -> PyResult<T> {
            T::convert(value, stringify!($name))
        }
    )*};
}
parameters!(
    admin_action,
    aeron_dir,
    after_ns,
    allowed_position,
    archive,
    arguments,
    attempt,
    auto_stop,
    back_pressured,
    batch_id,
    block_length_limit,
    bounding_limit_counter_id,
    challenge,
    channel,
    channel_tag_id,
    client,
    columns,
    committed_timestamp_ms,
    connect_timeout_ms,
    control_session_id,
    copied_position,
    copy,
    correlation_id,
    current,
    data,
    delta,
    destination,
    destination_registration_id,
    direct,
    directory,
    driver,
    dry_run,
    dst_recording_id,
    encoded_credentials,
    error_code,
    error_message,
    file_io_max_length,
    first_observation_ms,
    flags,
    fragment_limit,
    frame,
    from_index,
    from_position,
    from_recording_id,
    gap_from,
    gap_to,
    group_min_size,
    group_tag,
    handler,
    handler_id,
    header,
    held_by,
    id,
    idle_ms,
    index,
    initial_term_id,
    interval_ns,
    is_approximate,
    is_purge,
    key,
    kind,
    label,
    last_observation_ms,
    layout,
    length,
    limit,
    limit_position,
    live_destination,
    local_start_position,
    malformed,
    max_age_ms,
    max_bytes,
    max_bytes_per_trigger,
    max_idle_park_ns,
    max_lag_bytes,
    max_park_ns,
    max_retained_bytes,
    max_rows_per_partition,
    max_rows_per_trigger,
    max_spins,
    max_yields,
    media,
    metadata,
    min_park_ns,
    min_partitions,
    min_recording_id,
    mtu_length,
    name,
    new,
    new_start_position,
    not_connected,
    observation_count,
    offer_timeout_ms,
    offset,
    offsets,
    on_available_image,
    on_failure,
    on_unavailable_image,
    original_channel,
    owner_id,
    partition,
    path,
    payload,
    payload_length,
    period_ms,
    period_ns,
    position,
    positions,
    predecessor_id,
    progress_timeout,
    proposed,
    rate,
    reader,
    reason,
    receiver_id,
    receiver_timeout_ns,
    record_length,
    recorded,
    recording_id,
    records_per_message,
    reference_id,
    registration_id,
    replay_channel,
    replay_destination,
    replay_session_id,
    replication_channel,
    replication_id,
    replication_session_id,
    reserved_value,
    reserved_values,
    scan_over_zeroes,
    segment_file_length,
    session_id,
    session_ids,
    signal,
    since,
    since_ms,
    source,
    source_address,
    source_identity,
    speed,
    spin_ns,
    spy,
    src_control_channel,
    src_control_stream_id,
    src_recording_id,
    src_response_channel,
    start,
    start_position,
    start_timestamp_ms,
    stop_position,
    stop_timestamp_ms,
    stream_id,
    stripped_channel,
    subscription,
    subscription_id,
    subscription_tag_id,
    term_buffer_length,
    term_id,
    term_length,
    term_offset,
    text,
    timeout,
    timeout_ms,
    timestamp_us,
    to_position,
    token,
    total_bytes_lost,
    trust_clock,
    type_id,
    until,
    value,
    verify_checksums,
    work_count,
);
