//! The tests of this crate, in one program. It is built and linked once.

mod named_kills;
mod schedules;
