//! [`ClientConnection`]: a client and the thread that runs its handlers. [`find_driver`]: finds the driver of a client.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle, ThreadId};
use std::time::Duration;

use aeron_client::{Aeron, Context};
use aeron_driver::ThreadingMode;
use pyo3::prelude::*;

use crate::argument::{Argument, wrong_type};
use crate::calls::stopping_on_unwind;
use crate::driver::PyMediaDriver;
use crate::exit::{self, Closable};

/// Name of the thread that runs handlers.
pub const DISPATCHER_NAME: &str = "aeron-dispatcher";

/// Maximum sleep of an idle dispatcher. A new event wakes the dispatcher at once.
const DISPATCHER_SLEEP: Duration = Duration::from_secs(1);

/// The client and the thread that runs its handlers.
pub struct ClientConnection {
    pub aeron: Aeron,
    dispatcher: Mutex<Option<JoinHandle<()>>>,
}

impl ClientConnection {
    /// Starts the dispatcher of a client, and registers the client to be closed at exit. A client without threads has
    /// no dispatcher.
    pub fn open(aeron: Aeron, is_invoked: bool) -> PyResult<Arc<Self>> {
        let dispatcher = match is_invoked {
            true => None,
            false => Some(start_dispatcher(&aeron)?),
        };
        let connection = Arc::new(Self {
            aeron,
            dispatcher: Mutex::new(dispatcher),
        });
        exit::add_client(&connection);
        Ok(connection)
    }

    /// Closes the client, and waits until the handlers that are due because of the close have run. Call it without the
    /// GIL.
    ///
    /// If those handlers wait for the calling thread, `close` does not wait for them, and they run later: see
    /// [`join`].
    pub fn close(&self) {
        self.aeron.close();
        let dispatcher = self
            .dispatcher
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(dispatcher) = dispatcher {
            join(dispatcher);
        }
        // Runs the handlers for the events that the dispatcher did not reach: all events if there is no dispatcher.
        self.aeron.run_handlers(Duration::ZERO);
    }
}

impl Closable for ClientConnection {
    fn close_at_exit(&self) {
        self.close();
    }
}

/// Pairs of threads. The first thread waits in [`join`] for the end of the second thread, which is a dispatcher.
static WAITS: Mutex<Vec<(ThreadId, ThreadId)>> = Mutex::new(Vec::new());

/// Waits for the end of a dispatcher.
///
/// Returns at once if the dispatcher waits for this thread, directly or through other threads. This happens if two
/// handlers close each other's client: each thread would wait for the other for ever.
fn join(dispatcher: JoinHandle<()>) {
    let (this, other) = (thread::current().id(), dispatcher.thread().id());
    let waits = || WAITS.lock().unwrap_or_else(PoisonError::into_inner);
    {
        let mut waits = waits();
        if is_waiting_for(&waits, other, this) {
            return;
        }
        waits.push((this, other));
    }
    // An error means that a handler has panicked. The panic was printed.
    let _ = dispatcher.join();
    waits().retain(|(waiting, _)| *waiting != this);
}

/// Whether `thread` is `end`, or waits for `end` directly or through other threads. A thread waits for at most one
/// other thread at a time.
fn is_waiting_for(waits: &[(ThreadId, ThreadId)], thread: ThreadId, end: ThreadId) -> bool {
    if thread == end {
        return true;
    }
    let mut found = waits.iter().filter(|(waiting, _)| *waiting == thread);
    found.any(|(_, awaited)| is_waiting_for(waits, *awaited, end))
}

fn start_dispatcher(aeron: &Aeron) -> std::io::Result<JoinHandle<()>> {
    let aeron = aeron.clone();
    thread::Builder::new()
        .name(DISPATCHER_NAME.to_owned())
        .spawn(move || {
            while !aeron.is_closed() {
                if aeron.run_handlers(DISPATCHER_SLEEP) > 0 {
                    drop_released();
                }
            }
            aeron.run_handlers(Duration::ZERO);
            drop_released();
        })
}

/// Drops the Python objects that were released without the GIL, such as handlers of closed objects.
fn drop_released() {
    // PyO3 drops these objects when a thread attaches. If the interpreter is ending, this thread cannot attach.
    stopping_on_unwind(|| {
        let _ = Python::try_attach(|_| {});
    });
}

/// The argument `driver` of `aeron.connect`: an embedded driver, or the directory of a driver.
pub enum DriverName {
    Embedded(Py<PyMediaDriver>),
    Directory(PathBuf),
}

impl Argument for DriverName {
    fn convert(value: &Bound<'_, PyAny>, name: &str) -> PyResult<Self> {
        if let Ok(driver) = value.cast::<PyMediaDriver>() {
            return Ok(Self::Embedded(driver.clone().unbind()));
        }
        value.extract().map(Self::Directory).map_err(|_| {
            let kind = "a driver: pass a MediaDriver, its directory as a str or a path, or None for the directory that \
                        AERON_DIR names";
            wrong_type(value, name, kind)
        })
    }
}

/// Sets the driver in the context, and returns the driver if it is embedded.
///
/// If the driver has no threads, the client runs the driver while the client waits. If the driver offers turns of its
/// network agents, the client takes turns while its polls find nothing.
pub fn find_driver(
    py: Python<'_>,
    context: &mut Context,
    driver: Option<DriverName>,
) -> PyResult<Option<Py<PyMediaDriver>>> {
    match driver {
        None => Ok(None),
        Some(DriverName::Directory(directory)) => {
            context.aeron_dir = directory;
            Ok(None)
        }
        Some(DriverName::Embedded(driver)) => {
            let driver = driver.bind(py);
            context.aeron_dir.clone_from(&driver.get().context().dir);
            if let Some(turns) = driver.get().network_turns() {
                context.driver_turn = Some(Arc::new(move || turns.take()));
            }
            if driver.get().context().threading_mode == ThreadingMode::Invoker {
                let shared = Arc::clone(driver.get().shared()?);
                context.use_conductor_agent_invoker = true;
                context.driver_invoker =
                    Some(Arc::new(move || shared.do_work().unwrap_or_default()));
            }
            Ok(Some(driver.clone().unbind()))
        }
    }
}
