//! Tests of the private archive's state machine. The files are in memory, and each operation on a file can fail or be
//! the last one before a kill.

mod bound;
mod damage;
mod model;
mod recovery;
mod sessions;
mod stream;
