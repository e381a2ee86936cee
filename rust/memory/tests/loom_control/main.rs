//! The lock-free algorithms under the model checker, with the orderings that they have in production.
//!
//! Run with `RUSTFLAGS="--cfg loom" cargo test -p aeron-memory --release --test loom_control`. Each model has twins in which one access is
//! weaker than the algorithm asks for: they must fail, or the model would not test that ordering.
//!
//! loom looks for another order of two accesses only at the last access to a word, so a thread that loads a word before it stores
//! to it hides earlier loads of others. The thread that only loads is therefore the spawned one, which runs second at first.
#![cfg(loom)]

mod broadcast;
mod counters;
mod ring;

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Explores all executions of `model`.
fn check(model: impl Fn() + Send + Sync + 'static) {
    loom::model(model);
}

/// Makes sure that some execution of a weakened model fails with `message`.
fn check_fails(message: &str, model: impl Fn() + Send + Sync + 'static) {
    let failure =
        catch_unwind(AssertUnwindSafe(|| check(model))).expect_err("every execution passed");
    let text = failure.downcast_ref::<String>().map(String::as_str);
    let text = text
        .or_else(|| failure.downcast_ref::<&str>().copied())
        .unwrap_or_default();
    assert!(text.contains(message), "failed otherwise: {text}");
}
