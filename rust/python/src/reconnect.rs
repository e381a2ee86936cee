//! The argument `reconnect` of `aeron.connect`, and the reports of a client that has connected again.
//!
//! The classes are in `aeron._reconnect`.

use std::sync::Arc;
use std::time::Duration;

use aeron_client::{
    DisconnectHandler, Error, LostStreamKind, Reconnect, ReconnectHandler, ReconnectReport,
    StreamReport,
};
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyDict, PyTuple};

use crate::argument::wrong_type;
use crate::errors::{from_client, raise};
use crate::events::{ErrorReporter, EventHandler, attach};

/// Reads the argument `reconnect`: a bool or an `aeron.Reconnect`.
pub fn policy(value: &Bound<'_, PyAny>) -> PyResult<Option<Reconnect>> {
    if let Ok(is_on) = value.extract::<bool>() {
        return Ok(is_on.then(Reconnect::default));
    }
    let class = class(value.py(), "Reconnect")?;
    if !value.is_instance(&class)? {
        let kind = "True, False or an aeron.Reconnect";
        return Err(wrong_type(value, "reconnect", kind));
    }
    Ok(Some(Reconnect {
        min_delay: seconds(&value.getattr("min_delay")?, "min_delay")?,
        max_delay: seconds(&value.getattr("max_delay")?, "max_delay")?,
        give_up_after: match value.getattr("give_up_after")? {
            never if never.is_none() => None,
            limit => Some(seconds(&limit, "give_up_after")?),
        },
    }))
}

fn seconds(value: &Bound<'_, PyAny>, name: &str) -> PyResult<Duration> {
    let Ok(seconds) = value.extract::<f64>() else {
        return Err(wrong_type(value, name, "a number of seconds"));
    };
    Duration::try_from_secs_f64(seconds).map_err(|_| {
        let reason =
            format!("{name}={seconds} of reconnect is not a time: pass seconds, 0 or more");
        raise("ConfigurationError", reason)
    })
}

/// Returns a native handler that calls `handler(cause)`.
pub fn disconnect_handler(reporter: &ErrorReporter, handler: &EventHandler) -> DisconnectHandler {
    let registered = reporter.register(handler);
    Arc::new(move |cause: &Error| {
        attach(|py| registered.call(py, (from_client(cause).into_value(py),)));
    })
}

/// Returns a native handler that calls `handler(report)`.
pub fn reconnect_handler(reporter: &ErrorReporter, handler: &EventHandler) -> ReconnectHandler {
    let (registered, reporter) = (reporter.register(handler), reporter.clone());
    Arc::new(move |report: &ReconnectReport| {
        attach(|py| match report_of(py, report) {
            Ok(report) => registered.call(py, (report,)),
            Err(error) => reporter.report(py, error),
        });
    })
}

fn class<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    py.import("aeron._reconnect")?.getattr(name)
}

fn report_of<'py>(py: Python<'py>, report: &ReconnectReport) -> PyResult<Bound<'py, PyAny>> {
    let streams = report.streams.iter().map(|stream| stream_of(py, stream));
    let streams = streams.collect::<PyResult<Vec<_>>>()?;
    let refused = report
        .refused
        .iter()
        .map(|error| from_client(error).into_value(py));
    let arguments = PyDict::new(py);
    arguments.set_item("cause", from_client(&report.cause).into_value(py))?;
    arguments.set_item("outage", report.outage.as_secs_f64())?;
    arguments.set_item("reconnections", report.reconnections)?;
    arguments.set_item("streams", PyTuple::new(py, streams)?)?;
    arguments.set_item("refused", PyTuple::new(py, refused.collect::<Vec<_>>())?)?;
    class(py, "ReconnectReport")?.call((), Some(&arguments))
}

fn stream_of<'py>(py: Python<'py>, stream: &StreamReport) -> PyResult<Bound<'py, PyAny>> {
    let kind = match stream.kind {
        LostStreamKind::Publication => "publication",
        LostStreamKind::ExclusivePublication => "exclusive_publication",
        LostStreamKind::Image => "image",
    };
    let arguments = [
        ("stream_id", Some(i64::from(stream.stream_id))),
        ("session_id", Some(i64::from(stream.session_id))),
        ("position", Some(stream.position)),
        ("delivered_bytes", stream.delivered_bytes),
        ("lost_bytes", stream.lost_bytes),
        ("possibly_lost_bytes", stream.possibly_lost_bytes),
    ]
    .into_py_dict(py)?;
    arguments.set_item("kind", kind)?;
    arguments.set_item("channel", &stream.channel)?;
    class(py, "StreamReport")?.call((), Some(&arguments))
}
