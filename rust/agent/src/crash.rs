//! Evidence of a panic, for the programs: text and backtrace, and that the program must end.

use std::backtrace::Backtrace;
use std::cell::RefCell;
use std::panic::{PanicHookInfo, set_hook};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::console;

/// Error of a program that ends because of a panic.
pub const ERROR: &str =
    "ERROR: a thread of the program panicked: its backtrace is above, and in the error log";

/// Whether a thread of this process has panicked since [`install`].
static HAS_PANICKED: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// Backtrace of the last panic of this thread, until the loop of its agent reports the panic.
    static BACKTRACE: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Installs the panic hook of a program: each panic writes its text and its backtrace to the standard error output.
///
/// Afterwards [`has_panicked`] returns true, so that the main loop can close the program and end it with an error. A
/// program calls this function once.
pub fn install() {
    set_hook(Box::new(on_panic));
}

/// Returns whether a thread of this process has panicked since [`install`]. Needs a single load.
pub fn has_panicked() -> bool {
    HAS_PANICKED.load(Ordering::Acquire)
}

/// Returns the backtrace of the last panic of this thread, once.
pub(crate) fn take_backtrace() -> Option<String> {
    BACKTRACE.with(RefCell::take)
}

fn on_panic(panic: &PanicHookInfo<'_>) {
    // The long form: it has the addresses, of which a debugger finds the lines if the module has no symbols.
    let backtrace = format!("{:#}", Backtrace::force_capture());
    let thread = thread::current();
    let name = thread.name().unwrap_or("unnamed");
    console::warn(format_args!(
        "thread '{name}' {panic}\nstack backtrace:\n{}",
        backtrace.trim_end()
    ));
    // During the end of a thread its locals are gone. Then only the standard error output has the backtrace.
    let _ = BACKTRACE.try_with(|place| place.replace(Some(backtrace)));
    HAS_PANICKED.store(true, Ordering::Release);
}

/// Test hook: panics in the first duty cycle of the agent that `AERON_TEST_PANIC` names.
#[cfg(feature = "test-hooks")]
pub(crate) fn panic_if_requested(role_name: &str) {
    if std::env::var("AERON_TEST_PANIC").is_ok_and(|name| name == role_name) {
        panic!("a test has requested the panic of {role_name}");
    }
}

/// Does nothing: this build has no test hooks.
#[cfg(not(feature = "test-hooks"))]
#[inline(always)]
pub(crate) fn panic_if_requested(_role_name: &str) {}
