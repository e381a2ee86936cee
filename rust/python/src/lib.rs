//! PyO3 bindings: the extension module `aeron._aeron`.
//!
//! Each concept has one file here, one section in `python/aeron/_aeron.pyi` and one test file in `tests/`. The bindings add
//! no behaviour to the client and the driver; what they own is the border: buffers, exceptions, the GIL, forks and the end of
//! the interpreter.

use pyo3::prelude::*;

/// The native half of the package `aeron`; import that one.
#[pymodule(gil_used = false)]
mod _aeron {
    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
