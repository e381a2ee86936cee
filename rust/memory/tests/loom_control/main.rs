//! Runs the lock-free algorithms in the model checker, with the orderings of production.
//!
//! Run with `RUSTFLAGS="--cfg loom" cargo test -p aeron-memory --release --test loom_control`. Each model has variants
//! in which one access is weaker than the algorithm requires. These variants must fail; otherwise the model would not
//! test that ordering.
//!
//! For each access, loom tries only one other order: it swaps the access and the previous access to the same word. If a
//! thread loads a word and then stores to it, the previous access is this load. So loom does not swap the store with
//! earlier loads by other threads. If a model needs both orders of such a store and a load, it spawns the thread that
//! only loads. The spawned thread runs second in the first execution.
#![cfg(loom)]

mod broadcast;
mod connected;
mod counters;
mod loans;
mod reports;
mod ring;
mod snapshot;
#[path = "../loom_support/mod.rs"]
mod support;
mod waiters;

use support::{check, check_fails};
