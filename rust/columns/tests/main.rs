//! The tests of this crate, in one program. It is built and linked once.

#[path = "../../sbe/tests/generated/mod.rs"]
mod generated;
mod layout_models;
mod layouts;
mod sbe_columns;
mod sbe_encode;
mod sbe_limits;
mod sbe_names;
mod sbe_paths;
mod sbe_rows;
mod sbe_support;
