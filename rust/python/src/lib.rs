//! PyO3 bindings: the extension module `aeron._aeron`.
//!
//! The bindings add no behaviour to the client, the driver and the archive. They handle only the boundary to Python:
//! buffers, exceptions, the GIL, forks and the end of the interpreter.
//!
//! The doc comments of Python classes and functions are the source of Python's `help()`. `make reference` copies them
//! into the stub files in `python/aeron/_stubs`.

mod archive;
mod archive_process;
mod argument;
mod arrow;
mod attributes;
mod batch;
mod buffers;
mod calls;
mod channel;
mod claim;
mod client;
mod cnc_file;
mod condition;
mod connection;
mod counters;
mod driver;
mod ended;
mod errors;
mod events;
mod exit;
mod exposition;
mod fast;
mod fork;
mod handler;
mod header;
mod idle;
mod image;
mod interpreter;
mod log_file;
mod logs;
mod loss_report;
mod malformed;
mod offer;
mod operations;
mod pipeline;
mod pool;
mod program;
mod publication;
mod publication_error;
mod reconnect;
mod results;
mod sbe;
mod settings;
mod signals;
mod snapshot;
mod source;
mod subscription;
mod timer;
mod values;
mod waiting;
mod with_block;

use pyo3::prelude::*;

/// Functions that are attributes of the package `aeron`.
const PUBLIC_FUNCTIONS: [&str; 10] = [
    "async_connect",
    "async_connect_archive",
    "connect_archive",
    "default_directory",
    "is_driver_active",
    "parse_duration_ns",
    "parse_size",
    "read_error_log",
    "read_loss_report",
    "request_driver_termination",
];

/// The native half of the package `aeron`. Programs import `aeron`, not this module.
#[pymodule(gil_used = false)]
fn _aeron(module: &Bound<'_, PyModule>) -> PyResult<()> {
    interpreter::refuse_subinterpreter(module.py())?;
    fork::watch();
    logs::install();
    add_classes(module)?;
    add_functions(module)?;
    archive::register(module)?;
    pipeline::register(module)?;
    sbe::register(module)?;
    fast::attach::<publication::PyPublication>(module.py())?;
    fast::attach::<publication::PyExclusivePublication>(module.py())?;
    fast::attach::<subscription::PySubscription>(module.py())?;
    for name in PUBLIC_FUNCTIONS {
        module.getattr(name)?.setattr("__module__", "aeron")?;
    }
    module
        .py()
        .import("atexit")?
        .call_method1("register", (module.getattr("_close_all")?,))?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))
}

fn add_classes(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<batch::PyBatch>()?;
    module.add_class::<channel::PyChannelUriBuilder>()?;
    module.add_class::<claim::PyBufferClaim>()?;
    module.add_class::<client::PyAeron>()?;
    module.add_class::<cnc_file::PyCncFile>()?;
    module.add_class::<cnc_file::PyErrorObservation>()?;
    module.add_class::<condition::Condition>()?;
    module.add_class::<counters::PyCounter>()?;
    module.add_class::<counters::PyCounterSnapshot>()?;
    module.add_class::<counters::PyCountersReader>()?;
    module.add_class::<driver::PyMediaDriver>()?;
    module.add_class::<exposition::PyExposition>()?;
    module.add_class::<exposition::PyUsers>()?;
    module.add_class::<idle::PyBackoff>()?;
    module.add_class::<idle::PyBusySpin>()?;
    module.add_class::<idle::PyIdleStrategy>()?;
    module.add_class::<idle::PyNoOp>()?;
    module.add_class::<idle::PySleeping>()?;
    module.add_class::<idle::PySleepingMillis>()?;
    module.add_class::<idle::PyYielding>()?;
    module.add_class::<handler::PyAction>()?;
    module.add_class::<handler::PyFragmentAssembler>()?;
    module.add_class::<header::PyHeader>()?;
    module.add_class::<image::PyImage>()?;
    module.add_class::<log_file::PyLogFile>()?;
    module.add_class::<log_file::PyLogFrame>()?;
    module.add_class::<loss_report::PyLossObservation>()?;
    module.add_class::<operations::PyPendingOperation>()?;
    module.add_class::<publication::PyExclusivePublication>()?;
    module.add_class::<publication::PyPublication>()?;
    module.add_class::<publication::PyRefusedAttempts>()?;
    module.add_class::<publication_error::PyPublicationErrorFrame>()?;
    module.add_class::<subscription::PyBatches>()?;
    module.add_class::<subscription::PySubscription>()?;
    #[cfg(target_os = "linux")]
    module.add_class::<timer::Timer>()?;
    Ok(())
}

fn add_functions(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(
        archive_process::aeronarchive_main,
        module
    )?)?;
    module.add_function(wrap_pyfunction!(batch::batch_of_columns, module)?)?;
    module.add_function(wrap_pyfunction!(client::settings::async_connect, module)?)?;
    module.add_function(wrap_pyfunction!(cnc_file::default_directory, module)?)?;
    module.add_function(wrap_pyfunction!(cnc_file::is_driver_active, module)?)?;
    module.add_function(wrap_pyfunction!(cnc_file::read_error_log, module)?)?;
    module.add_function(wrap_pyfunction!(
        cnc_file::request_driver_termination,
        module
    )?)?;
    module.add_function(wrap_pyfunction!(driver::aeronmd_main, module)?)?;
    module.add_function(wrap_pyfunction!(driver::left_directories, module)?)?;
    module.add_function(wrap_pyfunction!(exit::close_all, module)?)?;
    module.add_function(wrap_pyfunction!(loss_report::read_loss_report, module)?)?;
    module.add_function(wrap_pyfunction!(archive::server::archive_settings, module)?)?;
    module.add_function(wrap_pyfunction!(settings::channel_parameters, module)?)?;
    module.add_function(wrap_pyfunction!(counters::counter_meanings, module)?)?;
    module.add_function(wrap_pyfunction!(driver::driver_settings, module)?)?;
    module.add_function(wrap_pyfunction!(values::parse_duration_ns, module)?)?;
    module.add_function(wrap_pyfunction!(values::parse_size, module)?)?;
    Ok(())
}
