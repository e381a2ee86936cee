//! The first steps of a native program that Python starts, such as `aeronmd`.

use aeron_agent::console;
use pyo3::exceptions::PySystemExit;
use pyo3::prelude::*;

/// Opens the null device for each standard stream that is closed. Otherwise the next socket would get its number, and
/// the lines of the log would go into the socket.
fn occupy_outputs(py: Python<'_>) -> PyResult<()> {
    let os = py.import("os")?;
    for stream in 0..3 {
        if os.call_method1("fstat", (stream,)).is_err() {
            // The system gives the lowest free number.
            os.call_method1("open", (os.getattr("devnull")?, os.getattr("O_RDWR")?))?;
        }
    }
    Ok(())
}

/// Returns the arguments after the program's name, and removes Python's handler of SIGINT. `None` takes the arguments
/// from `sys.argv`.
///
/// The program has its own handler of SIGINT. Python's handler would raise `KeyboardInterrupt` after the program has
/// ended normally.
pub fn begin(py: Python<'_>, arguments: Option<Vec<String>>) -> PyResult<Vec<String>> {
    let arguments = match arguments {
        Some(arguments) => arguments,
        None => {
            let given = py.import("sys")?.getattr("argv")?;
            let Ok(mut arguments) = given.extract::<Vec<String>>() else {
                console::warn(format_args!("ERROR: not UTF-8: {}", given.repr()?));
                return Err(PySystemExit::new_err(1));
            };
            arguments.split_off(1)
        }
    };
    occupy_outputs(py)?;
    let signal = py.import("_signal")?;
    signal.call_method1(
        "signal",
        (signal.getattr("SIGINT")?, signal.getattr("SIG_DFL")?),
    )?;
    Ok(arguments)
}
