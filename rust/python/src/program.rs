//! The first steps of a native program that Python starts, such as `aeronmd`.

use pyo3::prelude::*;

/// Returns the arguments after the program's name, and removes Python's handler of SIGINT. `None` takes the arguments
/// from `sys.argv`.
///
/// The program has its own handler of SIGINT. Python's handler would raise `KeyboardInterrupt` after the program has
/// ended normally.
pub fn begin(py: Python<'_>, arguments: Option<Vec<String>>) -> PyResult<Vec<String>> {
    let arguments = match arguments {
        Some(arguments) => arguments,
        None => py
            .import("sys")?
            .getattr("argv")?
            .extract::<Vec<String>>()?
            .split_off(1),
    };
    let signal = py.import("_signal")?;
    signal.call_method1(
        "signal",
        (signal.getattr("SIGINT")?, signal.getattr("SIG_DFL")?),
    )?;
    Ok(arguments)
}
