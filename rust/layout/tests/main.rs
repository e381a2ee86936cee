//! The tests of this crate, in one program. It is built and linked once.

mod declared_here;
mod specification;
