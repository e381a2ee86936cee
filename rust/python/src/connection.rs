//! [`Connection`]: a client with the thread that runs its handlers, from finding its driver to its end.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use aeron_client::{Aeron, Context};
use aeron_driver::ThreadingMode;
use pyo3::Borrowed;
use pyo3::prelude::*;

use crate::calls::stopping_on_unwind;
use crate::driver::PyMediaDriver;
use crate::errors::raise;
use crate::exit::{self, Closable};

/// Name of the thread that runs handlers.
pub const DISPATCHER_NAME: &str = "aeron-dispatcher";

/// How long the dispatcher sleeps when there is nothing for it; something to do wakes it at once.
const DISPATCHER_SLEEP: Duration = Duration::from_secs(1);

/// The client and the thread that runs its handlers.
pub struct Connection {
    pub aeron: Aeron,
    dispatcher: Mutex<Option<JoinHandle<()>>>,
}

impl Connection {
    /// Starts the dispatcher of a client, and has the client closed at exit. One without threads has no dispatcher either.
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

    /// Closes the client; handlers that this makes due have run when it returns. Call it without the GIL.
    pub fn close(&self) {
        self.aeron.close();
        let dispatcher = self
            .dispatcher
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(dispatcher) = dispatcher
            && dispatcher.thread().id() != std::thread::current().id()
        {
            // Should a handler have ended the thread by a panic, it has been printed.
            let _ = dispatcher.join();
        }
        // What the dispatcher had no time for, and all of it where there is none.
        self.aeron.run_handlers(Duration::ZERO);
    }
}

impl Closable for Connection {
    fn close_at_exit(&self) {
        self.close();
    }
}

fn start_dispatcher(aeron: &Aeron) -> std::io::Result<JoinHandle<()>> {
    let aeron = aeron.clone();
    std::thread::Builder::new()
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

/// Drops the Python objects that were let go without the GIL, such as handlers of what was closed.
fn drop_released() {
    // Attaching does that. A program that is at its end drops them itself.
    stopping_on_unwind(|| {
        let _ = Python::try_attach(|_| {});
    });
}

/// Where the driver is.
pub enum DriverName<'py> {
    Embedded(Bound<'py, PyMediaDriver>),
    Directory(PathBuf),
}

impl<'a, 'py> FromPyObject<'a, 'py> for DriverName<'py> {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(driver) = object.cast::<PyMediaDriver>() {
            return Ok(Self::Embedded(driver.to_owned()));
        }
        object.extract().map(Self::Directory).map_err(|_| {
            let shown = object.repr().map_or_else(
                |_| object.get_type().to_string(),
                |text| text.to_string_lossy().into_owned(),
            );
            let reason = format!(
                "driver={shown} is not a driver: pass a MediaDriver, its directory as a str or a path, or None for the \
                 directory that AERON_DIR names"
            );
            raise("ArgumentTypeError", reason)
        })
    }
}

/// Points the context to the driver; answers it if it is embedded. One without threads is run by the client that waits, and where polls
/// find nothing the client takes turns at its network.
pub fn find_driver(
    context: &mut Context,
    driver: Option<DriverName<'_>>,
) -> PyResult<Option<Py<PyMediaDriver>>> {
    match driver {
        None => Ok(None),
        Some(DriverName::Directory(directory)) => {
            context.aeron_dir = directory;
            Ok(None)
        }
        Some(DriverName::Embedded(driver)) => {
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
            Ok(Some(driver.unbind()))
        }
    }
}
