//! The private archive's state machine on a disk in memory that fails and dies when it is told.

mod bound;
mod damage;
mod model;
mod recovery;
mod sessions;
mod stream;
