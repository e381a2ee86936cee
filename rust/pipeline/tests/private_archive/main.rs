//! The private archive's state machine on a disk in memory that fails and dies when it is told.

mod model;
mod sessions;
mod stream;
