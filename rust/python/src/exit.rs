//! The end of the interpreter: what is still open is closed, clients before drivers, within two seconds.

use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use pyo3::prelude::*;

/// How long the end of the interpreter waits for everything to be closed.
const EXIT_TIMEOUT: Duration = Duration::from_secs(2);

/// Something with threads that must end before the interpreter does.
pub trait Closable: Send + Sync {
    /// Ends it. Called without the GIL; does nothing when it is closed already, or belongs to another process.
    fn close_at_exit(&self);
}

static CLIENTS: Mutex<Vec<Weak<dyn Closable>>> = Mutex::new(Vec::new());
static DRIVERS: Mutex<Vec<Weak<dyn Closable>>> = Mutex::new(Vec::new());

fn add(list: &Mutex<Vec<Weak<dyn Closable>>>, closable: Weak<dyn Closable>) {
    let mut list = list.lock().unwrap_or_else(PoisonError::into_inner);
    list.retain(|other| other.strong_count() > 0);
    list.push(closable);
}

/// Has a client closed at exit.
pub fn add_client(client: &Arc<impl Closable + 'static>) {
    add(&CLIENTS, Arc::downgrade(client) as _);
}

/// Has a driver closed at exit, after all clients.
pub fn add_driver(driver: &Arc<impl Closable + 'static>) {
    add(&DRIVERS, Arc::downgrade(driver) as _);
}

/// Closes everything that is open, the latest first. Registered with `atexit`.
#[pyfunction]
#[pyo3(name = "_close_all")]
pub fn close_all(py: Python<'_>) {
    let open: Vec<Arc<dyn Closable>> = [&CLIENTS, &DRIVERS]
        .into_iter()
        .flat_map(|list| {
            let list = std::mem::take(&mut *list.lock().unwrap_or_else(PoisonError::into_inner));
            list.into_iter()
                .rev()
                .filter_map(|closable| closable.upgrade())
        })
        .collect();
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
