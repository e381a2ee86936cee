//! The lock-free algorithms under the model checker, with the orderings that they have in production.
//!
//! Run with `RUSTFLAGS="--cfg loom" cargo test -p aeron-memory --release --test loom_control`. Each model has twins in which one access is
//! weaker than the algorithm asks for: they must fail, or the model would not test that ordering.
//!
//! loom looks for another order of two accesses only at the last access to a word, so a thread that loads a word before it stores
//! to it hides earlier loads of others. The thread that only loads is therefore the spawned one, which runs second at first.
#![cfg(loom)]

mod broadcast;
mod connected;
mod counters;
mod ring;
mod snapshot;
#[path = "../loom_support/mod.rs"]
mod support;

use support::{check, check_fails};
