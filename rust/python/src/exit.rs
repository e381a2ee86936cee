//! Closes the open objects at the end of the interpreter: first clients, then archives, then drivers. The interpreter
//! waits at most two seconds for the close.

use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use pyo3::prelude::*;

use crate::fork::Process;
use crate::logs;

/// Maximum time for which the end of the interpreter waits for the close of all objects.
const EXIT_TIMEOUT: Duration = Duration::from_secs(2);

/// An object whose threads must end before the interpreter.
pub trait Closable: Send + Sync {
    /// Closes the object. Called without the GIL. Does nothing if the object is closed or belongs to another process.
    fn close_at_exit(&self);
}

/// Open resources, each with the process that opened it. A forked child closes no resource of its parent.
type Opened = Mutex<Vec<(Process, Weak<dyn Closable>)>>;

static CLIENTS: Opened = Mutex::new(Vec::new());
static ARCHIVES: Opened = Mutex::new(Vec::new());
static DRIVERS: Opened = Mutex::new(Vec::new());

fn add(opened: &Opened, closable: Weak<dyn Closable>) {
    let mut opened = opened.lock().unwrap_or_else(PoisonError::into_inner);
    opened.retain(|(_, other)| other.strong_count() > 0);
    opened.push((Process::current(), closable));
}

/// Registers a client to be closed at exit.
pub fn add_client(client: &Arc<impl Closable + 'static>) {
    add(&CLIENTS, Arc::downgrade(client) as _);
}

/// Registers an archive to be closed at exit, after all clients.
pub fn add_archive(archive: &Arc<impl Closable + 'static>) {
    add(&ARCHIVES, Arc::downgrade(archive) as _);
}

/// Registers a driver to be closed at exit, after all clients and archives.
pub fn add_driver(driver: &Arc<impl Closable + 'static>) {
    add(&DRIVERS, Arc::downgrade(driver) as _);
}

/// Removes and returns the open resources of this process, the newest first.
fn take_open(opened: &Opened) -> Vec<Arc<dyn Closable>> {
    // If another thread held the lock during a fork, the child can never lock it. The objects belong to the parent.
    let Ok(mut opened) = opened.try_lock() else {
        return Vec::new();
    };
    std::mem::take(&mut *opened)
        .into_iter()
        .rev()
        .filter(|(process, _)| *process == Process::current())
        .filter_map(|(_, closable)| closable.upgrade())
        .collect()
}

/// Closes all open clients, then archives, then drivers; within each kind, the newest first. Registered with `atexit`.
#[pyfunction]
#[pyo3(name = "_close_all")]
pub fn close_all(py: Python<'_>) {
    let open = [&CLIENTS, &ARCHIVES, &DRIVERS].map(take_open).concat();
    if !open.is_empty() {
        close(py, open);
    }
    // Objects log while they close, so the log ends after them.
    logs::end(py);
}

fn close(py: Python<'_>, open: Vec<Arc<dyn Closable>>) {
    py.detach(|| {
        let (done, is_done) = sync_channel(1);
        let closer = std::thread::Builder::new()
            .name("aeron-exit".to_owned())
            .spawn(move || {
                open.iter().for_each(|closable| closable.close_at_exit());
                // Dropped on this thread, because these may be the last references: the drop may take long, and needs
                // no GIL.
                drop(open);
                let _ = done.send(());
            });
        if closer.is_ok() {
            let _ = is_done.recv_timeout(EXIT_TIMEOUT);
        }
    });
}
