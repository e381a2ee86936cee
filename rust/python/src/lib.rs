//! PyO3 bindings: the extension module `aeron._aeron`.
//!
//! Each concept has one file here, one section in `python/aeron/_aeron.pyi` and one test file in `tests/`. The bindings add
//! no behaviour to the client and the driver; what they own is the border: buffers, exceptions, the GIL, forks and the end of
//! the interpreter.

mod argument;
mod arrow;
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
mod errors;
mod events;
mod exit;
mod fast;
mod fork;
mod handler;
mod header;
mod idle;
mod image;
mod log_file;
mod loss_report;
mod offer;
mod operations;
mod pipeline;
mod publication;
mod results;
mod source;
mod subscription;
mod timer;
mod values;
mod waiting;

use pyo3::prelude::*;

/// The native half of the package `aeron`; import that one.
#[pymodule(gil_used = false)]
mod _aeron {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::batch::Batch;
    #[pymodule_export]
    use crate::channel::PyChannelUriBuilder;
    #[pymodule_export]
    use crate::claim::PyBufferClaim;
    #[pymodule_export]
    use crate::client::{PyAeron, async_connect};
    #[pymodule_export]
    use crate::cnc_file::{
        PyCncFile, PyErrorObservation, default_directory, is_driver_active, read_error_log,
        request_driver_termination,
    };
    #[pymodule_export]
    use crate::condition::Condition;
    #[pymodule_export]
    use crate::counters::{PyCounter, PyCounterSnapshot, PyCountersReader};
    #[pymodule_export]
    use crate::driver::{PyMediaDriver, aeronmd_main, left_directories};
    #[pymodule_export]
    use crate::events::PyPublicationErrorFrame;
    #[pymodule_export]
    use crate::exit::close_all;
    #[pymodule_export]
    use crate::idle::{
        PyBackoff, PyBusySpin, PyIdleStrategy, PyNoOp, PySleeping, PySleepingMillis, PyYielding,
    };

    #[pymodule_export]
    use crate::handler::{PyAction, PyFragmentAssembler};
    #[pymodule_export]
    use crate::header::PyHeader;
    #[pymodule_export]
    use crate::image::PyImage;
    #[pymodule_export]
    use crate::log_file::{PyLogFile, PyLogFrame};
    #[pymodule_export]
    use crate::loss_report::{PyLossObservation, read_loss_report};
    #[pymodule_export]
    use crate::operations::PyPendingOperation;
    #[pymodule_export]
    use crate::publication::{PyExclusivePublication, PyPublication};
    #[pymodule_export]
    use crate::subscription::{PyBatches, PySubscription};

    #[cfg(target_os = "linux")]
    #[pymodule_export]
    use crate::timer::Timer;
    #[pymodule_export]
    use crate::values::{parse_duration_ns, parse_size};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        crate::fork::watch();
        crate::pipeline::register(module)?;
        crate::fast::attach::<PyPublication>(module.py())?;
        crate::fast::attach::<PyExclusivePublication>(module.py())?;
        crate::fast::attach::<PySubscription>(module.py())?;
        module
            .py()
            .import("atexit")?
            .call_method1("register", (module.getattr("_close_all")?,))?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
