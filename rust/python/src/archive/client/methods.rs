//! [`archive_methods`]: defines methods of `AeronArchive` that send a request.

/// Defines methods in pairs: a method that waits for the response, and a method with the prefix `async_` that returns
/// a `PendingOperation`.
macro_rules! archive_methods {
    (
        $(
            $(#[doc = $doc:literal])+
            $name:ident, $async_name:ident $signature:tt $(as $text:literal)? [$slf:ident $(, $arg:ident: $type:ty)* $(,)?] $body:block
        )*
        $(---
        $($own:tt)*)?
    ) => {
        #[pymethods]
        impl PyAeronArchive {
            $(
                $(#[doc = $doc])+
                #[allow(clippy::too_many_arguments, reason = "they are the fields of the request")]
                #[pyo3(signature = $signature $(, text_signature = $text)?)]
                fn $name(
                    slf: &Bound<'_, Self>,
                    $(#[pyo3(from_py_with = argument::$arg)] $arg: $type,)*
                ) -> PyResult<Py<PyAny>> {
                    Self::$async_name(slf, $($arg),*)?.wait(slf.py(), None)
                }

                #[doc = concat!("Starts `", stringify!($name), "`, and returns its `PendingOperation` at once.")]
                #[allow(clippy::too_many_arguments, reason = "they are the fields of the request")]
                #[pyo3(signature = $signature $(, text_signature = $text)?)]
                fn $async_name(
                    $slf: &Bound<'_, Self>,
                    $(#[pyo3(from_py_with = argument::$arg)] $arg: $type,)*
                ) -> PyResult<PyPendingOperation> $body
            )*

            $($($own)*)?
        }
    };
}
pub(super) use archive_methods;
