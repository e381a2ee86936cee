//! [`attributes`]: the attributes of a class that a native object has too.

/// Defines attributes of a class. Each is the result of the method of the same name of a native object, which another
/// method of the class returns.
macro_rules! attributes {
    ($class:ident from $native:ident $($(#[doc = $doc:literal])+ $name:ident: $type:ty,)*) => {
        #[pymethods]
        impl $class {$(
            $(#[doc = $doc])+
            #[getter]
            fn $name(&self) -> PyResult<$type> {
                Ok(self.$native()?.$name())
            }
        )*}
    };
}
pub(crate) use attributes;
