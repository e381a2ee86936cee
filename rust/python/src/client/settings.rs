//! `aeron.connect` and `aeron.async_connect`, and [`Settings`]: their arguments.

use std::sync::{Arc, Mutex};

use aeron_client::{Aeron, Context, HandlerMode};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::PyAeron;
use super::handlers::{close_handler, counter_handler, image_handler};
use crate::argument::{self, Argument, Callable};
use crate::connection::{ClientConnection, DriverName, find_driver};
use crate::driver::PyMediaDriver;
use crate::errors::{from_client, raise};
use crate::events::{ErrorReporter, EventHandler, clone_all};
use crate::fork::OfProcess;
use crate::operations::{Owned, PyPendingOperation};
use crate::publication_error::publication_error_handler;
use crate::reconnect;
use crate::signals::is_interrupted;
use crate::waiting::DEFAULT_MAX_IDLE_PARK_NS;

/// The settings of a client.
pub(super) struct Settings {
    context: Context,
    reporter: ErrorReporter,
    handlers: Vec<EventHandler>,
    max_idle_park_ns: u64,
    driver: Option<Py<PyMediaDriver>>,
}

impl Settings {
    /// Reads the arguments of `connect`. If a setting has no argument, its environment variable is used, otherwise its
    /// default.
    pub(super) fn read(
        py: Python<'_>,
        driver: Option<DriverName>,
        settings: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let mut context = Context::from_env().map_err(|error| from_client(&error))?;
        let driver = find_driver(py, &mut context, driver)?;
        context.handler_mode = HandlerMode::Queued;
        context.interrupt_check = Some(Arc::new(is_interrupted));
        let mut this = Self {
            context,
            reporter: ErrorReporter::default(),
            handlers: Vec::new(),
            max_idle_park_ns: DEFAULT_MAX_IDLE_PARK_NS,
            driver,
        };
        let given = || {
            let items = settings.into_iter().flatten();
            items.filter(|(_, value)| !value.is_none())
        };
        // The error handler is set first, because the other handlers report their exceptions to it.
        for (name, value) in given() {
            if name.extract::<&str>()? == "error_handler" {
                let handler = this.handler(&value, "error_handler")?;
                this.reporter = ErrorReporter::new(&handler);
            }
        }
        for (name, value) in given() {
            this.set(name.extract()?, &value)?;
        }
        this.context.error_handler = this.reporter.error_handler();
        Ok(this)
    }

    fn handler(&mut self, value: &Bound<'_, PyAny>, name: &str) -> PyResult<EventHandler> {
        let handler = EventHandler::new(value.py(), Callable::convert(value, name)?.0)?;
        self.handlers.push(handler.clone_ref(value.py()));
        Ok(handler)
    }

    fn set(&mut self, name: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let number = || u64::convert(value, name);
        let is_on = || bool::convert(value, name);
        let context = &mut self.context;
        match name {
            "error_handler" => {}
            "driver_timeout_ms" => context.driver_timeout_ms = number()?,
            "keepalive_interval_ns" => context.keepalive_interval_ns = number()?,
            "idle_sleep_duration_ns" => context.idle_sleep_duration_ns = number()?,
            "awaiting_sleep_duration_ns" => context.awaiting_sleep_duration_ns = number()?,
            "resource_linger_duration_ns" => context.resource_linger_duration_ns = number()?,
            "close_linger_duration_ns" => context.close_linger_duration_ns = number()?,
            "max_idle_park_ns" => self.max_idle_park_ns = number()?,
            "pre_touch_mapped_memory" => context.pre_touch_mapped_memory = is_on()?,
            "client_name" => context.client_name = String::convert(value, name)?,
            "reconnect" => context.reconnect = reconnect::policy(value)?,
            "use_conductor_agent_invoker" => context.use_conductor_agent_invoker = is_on()?,
            handler => return self.set_handler(handler, value),
        }
        Ok(())
    }

    fn set_handler(&mut self, name: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let reporter = self.reporter.clone();
        match name {
            "on_available_image" => {
                let handler = self.handler(value, name)?;
                self.context.available_image_handler = Some(image_handler(&reporter, &handler));
            }
            "on_unavailable_image" => {
                let handler = self.handler(value, name)?;
                self.context.unavailable_image_handler = Some(image_handler(&reporter, &handler));
            }
            "on_available_counter" => {
                let handler = self.handler(value, name)?;
                self.context.available_counter_handler = Some(counter_handler(&reporter, &handler));
            }
            "on_unavailable_counter" => {
                let handler = self.handler(value, name)?;
                self.context.unavailable_counter_handler =
                    Some(counter_handler(&reporter, &handler));
            }
            "on_close" => {
                let handler = self.handler(value, name)?;
                self.context.close_handler = Some(close_handler(&reporter, &handler));
            }
            "on_publication_error" => {
                let handler = self.handler(value, name)?;
                self.context.publication_error_handler =
                    Some(publication_error_handler(&reporter, &handler));
            }
            "on_disconnect" => {
                let handler = self.handler(value, name)?;
                self.context.disconnect_handler =
                    Some(reconnect::disconnect_handler(&reporter, &handler));
            }
            "on_reconnect" => {
                let handler = self.handler(value, name)?;
                self.context.reconnect_handler =
                    Some(reconnect::reconnect_handler(&reporter, &handler));
            }
            unknown => {
                let reason =
                    format!("connect has no setting {unknown:?}; help(aeron.Aeron) lists all");
                return Err(raise("ArgumentTypeError", reason));
            }
        }
        Ok(())
    }

    /// Starts to connect. The operation ends when the driver is found, or after the driver timeout.
    pub(super) fn connect(mut self) -> PyResult<PyPendingOperation> {
        let context = std::mem::take(&mut self.context);
        let is_invoked = context.use_conductor_agent_invoker;
        let aeron_dir = context.aeron_dir.clone();
        let what = format!("connecting to {}", aeron_dir.display());
        let operation = Aeron::async_connect(context).map_err(|error| from_client(&error))?;
        let max_idle_park_ns = self.max_idle_park_ns;
        let handlers = std::mem::take(&mut self.handlers);
        let open = move |py: Python<'_>, owned: &Owned, aeron| {
            let client = PyAeron {
                inner: OfProcess::new(ClientConnection::open(aeron, is_invoked)?),
                reporter: self.reporter.clone(),
                handlers: Mutex::new(clone_all(py, owned.handlers())),
                max_idle_park_ns,
                is_invoked,
                aeron_dir: aeron_dir.clone(),
                driver: self.driver.as_ref().map(|driver| driver.clone_ref(py)),
            };
            Ok(Py::new(py, client)?.into_any())
        };
        Ok(PyPendingOperation::with_handlers(
            what,
            operation,
            max_idle_park_ns,
            handlers,
            open,
        ))
    }
}

/// Starts `connect`, and returns its `PendingOperation` at once. `async with` closes the client.
///
/// Example:
///     ```python
///     async with aeron.async_connect(driver) as client:
///         publication = await client.async_add_publication("aeron:ipc", 1001)
///     ```
#[pyfunction]
#[pyo3(
    signature = (driver = None, **settings),
    text_signature = "(driver=None, **settings)"
)]
pub fn async_connect(
    py: Python<'_>,
    #[pyo3(from_py_with = argument::driver)] driver: Option<DriverName>,
    settings: Option<&Bound<'_, PyDict>>,
) -> PyResult<PyPendingOperation> {
    Settings::read(py, driver, settings)?.connect()
}

#[pymethods]
impl PyAeron {
    #[new]
    #[pyo3(
        signature = (driver = None, **settings),
        text_signature = "(driver=None, *, driver_timeout_ms=None, keepalive_interval_ns=None, idle_sleep_duration_ns=None, awaiting_sleep_duration_ns=None, resource_linger_duration_ns=None, close_linger_duration_ns=None, pre_touch_mapped_memory=None, client_name=None, use_conductor_agent_invoker=None, reconnect=False, max_idle_park_ns=10000000, error_handler=None, on_available_image=None, on_unavailable_image=None, on_available_counter=None, on_unavailable_counter=None, on_close=None, on_publication_error=None, on_disconnect=None, on_reconnect=None)"
    )]
    fn new(
        py: Python<'_>,
        #[pyo3(from_py_with = argument::driver)] driver: Option<DriverName>,
        settings: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<Self>> {
        let client = Settings::read(py, driver, settings)?
            .connect()?
            .wait(py, None)?;
        Ok(client.cast_bound::<Self>(py)?.clone().unbind())
    }
}
