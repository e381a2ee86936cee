//! Evidence of a panic, for the programs: text and backtrace, and that the program must end.

use std::backtrace::Backtrace;
use std::panic::{PanicHookInfo, set_hook};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

use crate::console;

/// Error of a program that ends because of a panic.
pub const ERROR: &str =
    "ERROR: a thread of the program panicked: its backtrace is above, and in the error log";

/// Whether a thread of this process has panicked since [`install`].
static HAS_PANICKED: AtomicBool = AtomicBool::new(false);

/// The panics that are not in an error log yet.
static REPORTS: Mutex<Vec<PanicReport>> = Mutex::new(Vec::new());

/// A panic. The loop of an agent reports the panic of its thread, and the program reports all others at its end.
struct PanicReport {
    thread: ThreadId,
    text: String,
    backtrace: String,
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

/// Returns text and backtrace of each panic that no agent has reported, once. A program calls this function when its
/// agents have ended.
pub fn take_reports() -> Vec<String> {
    let reports = std::mem::take(&mut *lock());
    let texts = reports
        .into_iter()
        .map(|report| with_backtrace(&report.text, &report.backtrace));
    texts.collect()
}

/// Returns the text of a panic with its backtrace, for an error log.
pub(crate) fn with_backtrace(text: &str, backtrace: &str) -> String {
    format!("{text}\nstack backtrace:\n{}", backtrace.trim_end())
}

/// Returns the backtrace of the last panic of this thread, once.
pub(crate) fn take_backtrace() -> Option<String> {
    let mut reports = lock();
    let thread = thread::current().id();
    let at = reports.iter().rposition(|report| report.thread == thread)?;
    Some(reports.remove(at).backtrace)
}

fn lock() -> MutexGuard<'static, Vec<PanicReport>> {
    REPORTS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn on_panic(panic: &PanicHookInfo<'_>) {
    // The long form: it has the addresses, of which a debugger finds the lines if the module has no symbols.
    let backtrace = format!("{:#}", Backtrace::force_capture());
    let thread = thread::current();
    let text = format!("thread '{}' {panic}", thread.name().unwrap_or("unnamed"));
    console::warn(with_backtrace(&text, &backtrace));
    lock().push(PanicReport {
        thread: thread.id(),
        text,
        backtrace,
    });
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
