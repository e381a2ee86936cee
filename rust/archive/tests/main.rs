//! The tests of this crate, in one program. It is built and linked once.

mod catalog;
mod extensions;
mod mark_file;
mod memory_storage;
mod recordings;
mod retention;
mod store;
mod tool;
