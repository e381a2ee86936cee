//! Times as arguments, positions that were found by time, and warnings about them.

use std::ffi::CString;

use aeron_archive::client::TimedPosition;
use pyo3::exceptions::{PyTypeError, PyUserWarning};
use pyo3::prelude::*;

use crate::argument::Argument;
use crate::errors::raise;
use crate::snapshot::snapshot;

/// A time in microseconds since the epoch. Python passes a datetime with a time zone, or a `numpy.datetime64`.
#[derive(Clone, Copy)]
pub struct EpochMicroseconds(pub i64);

impl Argument for EpochMicroseconds {
    fn convert(value: &Bound<'_, PyAny>, name: &str) -> PyResult<Self> {
        let times = value.py().import("aeron._times")?;
        let converted = times.call_method1("epoch_us", (value, name));
        let time_us = converted.map_err(|error| {
            let text = error.value(value.py()).to_string();
            match error.is_instance_of::<PyTypeError>(value.py()) {
                true => raise("ArgumentTypeError", text),
                false => raise("InvalidArgumentError", text),
            }
        })?;
        time_us.extract().map(Self)
    }
}

snapshot! {
    /// A position of a recording that was found by time. Immutable. Comparison and pickling use the values.
    PyFoundPosition("FoundPosition") {
        /// Id of the recording.
        recording_id: i64,
        /// Position between two messages, in bytes.
        position: i64,
        /// Arrival time of the first message after the position, in microseconds since the epoch. `None` if the time is
        /// not known, or if there is no such message.
        timestamp_us: Option<i64>,
        /// Whether the position is only the start or end of a segment, because the archive has no index for the time.
        is_approximate: bool,
    }

    fn __repr__(&self) -> String {
        format!(
            "FoundPosition(recording_id={}, position={}, timestamp_us={}, is_approximate={})",
            self.recording_id,
            self.position,
            self.timestamp_us.map_or_else(|| "None".to_owned(), |time| time.to_string()),
            if self.is_approximate { "True" } else { "False" },
        )
    }
}

impl From<TimedPosition> for PyFoundPosition {
    fn from(found: TimedPosition) -> Self {
        Self {
            recording_id: found.recording_id,
            position: found.position,
            timestamp_us: found.timestamp_us,
            is_approximate: found.is_approximate,
        }
    }
}

/// Warns that a replay has whole segments instead of a range of time.
pub fn warn_approximate(py: Python<'_>, recording_id: i64) -> PyResult<()> {
    let text = format!(
        "recording {recording_id} has no index for the range of time: the replay has whole segments, and may begin earlier and end later"
    );
    let text = CString::new(text).unwrap_or_default();
    PyErr::warn(py, &py.get_type::<PyUserWarning>(), &text, 1)
}
