//! Runs the lock-free algorithms in the model checker, with the orderings of production.
//!
//! Run with `RUSTFLAGS="--cfg loom" cargo test -p aeron-memory --release --test loom_control`. Each model has variants
//! in which one access is weaker than the algorithm requires. These variants must fail; otherwise the model would not
//! test that ordering.
//!
//! Loom varies the order of an access only with the last access before it to the same word. If one thread loads a word
//! and then stores to it, loom does not vary the order of this store with earlier loads by other threads. So if a model
//! needs this order, the thread that only loads is the spawned thread, which runs second in the first execution.
#![cfg(loom)]

mod broadcast;
mod connected;
mod counters;
mod ring;
mod snapshot;
#[path = "../loom_support/mod.rs"]
mod support;

use support::{check, check_fails};
