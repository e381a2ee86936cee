//! The end of the interpreter: what is still open is closed, clients before archives before drivers, within two seconds.

use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use pyo3::prelude::*;

use crate::fork::Process;

/// How long the end of the interpreter waits for everything to be closed.
const EXIT_TIMEOUT: Duration = Duration::from_secs(2);

/// Something with threads that must end before the interpreter does.
pub trait Closable: Send + Sync {
    /// Ends it. Called without the GIL; does nothing when it is closed already, or belongs to another process.
    fn close_at_exit(&self);
}

/// What was opened, and by which process: a forked child closes nothing of its parent's.
type Opened = Mutex<Vec<(Process, Weak<dyn Closable>)>>;

static CLIENTS: Opened = Mutex::new(Vec::new());
static ARCHIVES: Opened = Mutex::new(Vec::new());
static DRIVERS: Opened = Mutex::new(Vec::new());

fn add(opened: &Opened, closable: Weak<dyn Closable>) {
    let mut opened = opened.lock().unwrap_or_else(PoisonError::into_inner);
    opened.retain(|(_, other)| other.strong_count() > 0);
    opened.push((Process::current(), closable));
}

/// Has a client closed at exit.
pub fn add_client(client: &Arc<impl Closable + 'static>) {
    add(&CLIENTS, Arc::downgrade(client) as _);
}

/// Has an archive closed at exit, after all clients.
pub fn add_archive(archive: &Arc<impl Closable + 'static>) {
    add(&ARCHIVES, Arc::downgrade(archive) as _);
}

/// Has a driver closed at exit, after all clients and archives.
pub fn add_driver(driver: &Arc<impl Closable + 'static>) {
    add(&DRIVERS, Arc::downgrade(driver) as _);
}

/// What this process opened and did not close, the latest first.
fn take_open(opened: &Opened) -> Vec<Arc<dyn Closable>> {
    // A lock that a fork left behind stays locked: what it guards is the parent's.
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

/// Closes everything that is open, the latest first. Registered with `atexit`.
#[pyfunction]
#[pyo3(name = "_close_all")]
pub fn close_all(py: Python<'_>) {
    let open = [&CLIENTS, &ARCHIVES, &DRIVERS].map(take_open).concat();
    if open.is_empty() {
        return;
    }
    py.detach(|| {
        let (done, is_done) = sync_channel(1);
        let closer = std::thread::Builder::new()
            .name("aeron-exit".to_owned())
            .spawn(move || {
                open.iter().for_each(|closable| closable.close_at_exit());
                // Kept from being dropped elsewhere: the last reference may be ours, and dropping it needs no GIL.
                drop(open);
                let _ = done.send(());
            });
        if closer.is_ok() {
            let _ = is_done.recv_timeout(EXIT_TIMEOUT);
        }
    });
}
