//! Runs the lock-free algorithms in the model checker, with the orderings of production.
//!
//! Run with `RUSTFLAGS="--cfg loom" cargo test -p aeron-memory --release --test loom_control`. Each model has variants
//! in which one access is weaker than the algorithm requires. They must fail; otherwise the model would not test that
//! ordering.
//!
//! loom tries another order of two accesses only at the last access to a word. So a thread that loads a word before it
//! stores to it hides earlier loads of other threads. Therefore the spawned thread, which first runs second, is the one
//! that only loads.
#![cfg(loom)]

mod broadcast;
mod connected;
mod counters;
mod ring;
mod snapshot;
#[path = "../loom_support/mod.rs"]
mod support;

use support::{check, check_fails};
