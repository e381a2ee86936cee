//! Snapshots: Python objects with values at one moment. They are immutable, are compared by their values, and can be
//! pickled.

use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::argument::Argument;

/// A field of a snapshot that is `bytes` in Python.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Octets(pub Vec<u8>);

impl Argument for Octets {
    fn convert(value: &Bound<'_, PyAny>, name: &str) -> PyResult<Self> {
        let bytes = Py::<PyBytes>::convert(value, name)?;
        Ok(Self(bytes.as_bytes(value.py()).to_vec()))
    }
}

impl<'py> IntoPyObject<'py> for Octets {
    type Target = PyBytes;
    type Output = Bound<'py, PyBytes>;
    type Error = std::convert::Infallible;

    fn into_pyobject(self, py: Python<'py>) -> Result<Self::Output, Self::Error> {
        Ok(PyBytes::new(py, &self.0))
    }
}

/// Defines a class of snapshots: its attributes and its methods. The attributes are also the arguments of the
/// constructor.
macro_rules! snapshot {
    (
        $(#[$doc:meta])* $class:ident($python:literal) {
            $($(#[$field_doc:meta])* $field:ident: $type:ty,)*
        }
        $($own:tt)*
    ) => {
        $(#[$doc])*
        #[pyclass(frozen, eq, hash, get_all, module = "aeron", name = $python)]
        #[derive(PartialEq, Eq, Hash)]
        pub struct $class {
            $($(#[$field_doc])* pub $field: $type,)*
        }

        #[pymethods]
        impl $class {
            #[new]
            #[allow(clippy::too_many_arguments, reason = "they are the attributes")]
            fn of_values(
                $(#[pyo3(from_py_with = crate::argument::$field)] $field: $type),*
            ) -> Self {
                Self { $($field),* }
            }

            fn __getnewargs__<'py>(
                &self,
                py: pyo3::Python<'py>,
            ) -> pyo3::PyResult<pyo3::Bound<'py, pyo3::types::PyTuple>> {
                use pyo3::IntoPyObjectExt;
                let arguments = [$(self.$field.clone().into_bound_py_any(py)?),*];
                pyo3::types::PyTuple::new(py, arguments)
            }

            $($own)*
        }
    };
}
pub(crate) use snapshot;
