//! Tests the private archive's state machine on a disk in memory that can fail or stop at a chosen step.

mod bound;
mod damage;
mod model;
mod recovery;
mod sessions;
mod stream;
