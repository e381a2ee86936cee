//! Runs models and their weakened variants.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Explores all executions of `model`.
pub fn check(model: impl Fn() + Send + Sync + 'static) {
    loom::model(model);
}

/// Checks that some execution of a weakened model fails with `message`.
pub fn check_fails(message: &str, model: impl Fn() + Send + Sync + 'static) {
    let failure =
        catch_unwind(AssertUnwindSafe(|| check(model))).expect_err("every execution passed");
    let text = failure.downcast_ref::<String>().map(String::as_str);
    let text = text
        .or_else(|| failure.downcast_ref::<&str>().copied())
        .unwrap_or_default();
    assert!(
        text.contains(message),
        "the model failed for another reason: {text}"
    );
}
