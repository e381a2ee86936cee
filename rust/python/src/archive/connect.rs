//! `connect_archive`: its arguments, and the pending connection.

use std::sync::Arc;

use aeron_archive::client::{AeronArchive, ArchiveClientContext};
use aeron_client::Aeron;
use aeron_protocol::uri::{ChannelUri, key};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::client::PyAeronArchive;
use super::credentials::GivenCredentials;
use super::errors::from_archive;
use super::link::{Link, Notices};
use crate::argument::{self, Argument, Callable, Instance};
use crate::channel::Channel;
use crate::client::PyAeron;
use crate::errors::raise;
use crate::events::{ErrorReporter, EventHandler, attach, clone_all};
use crate::operations::{Owned, PyPendingOperation};
use crate::waiting::duration;

const IPC: &str = "aeron:ipc";
/// Default term length of control streams, in bytes. With Aeron's default of 64 KiB, a listing would wait for the
/// driver after each 32 KiB.
const CONTROL_TERM_LENGTH: u32 = 1 << 20;
const CONTROL_TERM_LENGTH_VARIABLE: &str = "AERON_ARCHIVE_CONTROL_TERM_BUFFER_LENGTH";
const ANY_LOCAL_PORT: &str = "aeron:udp?endpoint=localhost:0";

/// The settings of an archive's client.
pub struct ArchiveClientSettings {
    context: ArchiveClientContext,
    credentials: GivenCredentials,
    on_signal: Option<EventHandler>,
    error_handler: Option<EventHandler>,
}

impl ArchiveClientSettings {
    /// Reads the keywords of the function or class `owner`. If a setting is not passed, its environment variable is
    /// used, otherwise its default.
    pub fn read(
        py: Python<'_>,
        owner: &str,
        settings: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let mut context = ArchiveClientContext::from_env().map_err(|error| from_archive(&error))?;
        if std::env::var_os(CONTROL_TERM_LENGTH_VARIABLE).is_none() {
            context.control_term_buffer_length = CONTROL_TERM_LENGTH;
        }
        let mut this = Self::of(context, GivenCredentials::default());
        let items = settings.into_iter().flatten();
        for (name, value) in items.filter(|(_, value)| !value.is_none()) {
            let name: String = name.extract()?;
            if !this.set(py, &name, &value)? {
                let reason =
                    format!("{owner} has no setting {name}; help(aeron.{owner}) lists all");
                return Err(raise("ArgumentTypeError", reason));
            }
        }
        let credentials = Arc::clone(&this.credentials.supplier);
        this.context.credentials = credentials;
        this.complete_channels()?;
        Ok(this)
    }

    /// Returns settings without handlers. `context` must already contain the supplier that is in `credentials`.
    pub fn of(context: ArchiveClientContext, credentials: GivenCredentials) -> Self {
        Self {
            context,
            credentials,
            on_signal: None,
            error_handler: None,
        }
    }

    /// Returns the settings for a class without `on_signal` and `error_handler`. Raises if one of them is set.
    pub fn without_handlers(self) -> PyResult<(ArchiveClientContext, GivenCredentials)> {
        if self.on_signal.is_some() || self.error_handler.is_some() {
            let reason =
                "on_signal and error_handler are settings of connect_archive alone: pass on_error";
            return Err(raise("ArgumentTypeError", reason));
        }
        Ok((self.context, self.credentials))
    }

    /// Sets the setting with this keyword. Returns `false` if there is no such setting.
    fn set(&mut self, py: Python<'_>, name: &str, value: &Bound<'_, PyAny>) -> PyResult<bool> {
        let context = &mut self.context;
        let handler = || EventHandler::new(py, Callable::convert(value, name)?.0);
        match name {
            "control_channel" => {
                context.control_request_channel = Channel::convert(value, name)?.0;
            }
            "control_stream_id" => context.control_request_stream_id = i32::convert(value, name)?,
            "response_channel" => {
                context.control_response_channel = Channel::convert(value, name)?.0;
            }
            "response_stream_id" => {
                context.control_response_stream_id = i32::convert(value, name)?;
            }
            "message_timeout" => {
                let timeout = duration(f64::convert(value, name)?)?;
                context.message_timeout_ns = u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX);
            }
            "client_name" => context.client_name = String::convert(value, name)?,
            "control_term_buffer_length" => {
                context.control_term_buffer_length = u32::convert(value, name)?;
            }
            "control_term_buffer_sparse" => {
                context.control_term_buffer_sparse = bool::convert(value, name)?;
            }
            "control_mtu_length" => context.control_mtu_length = u32::convert(value, name)?,
            "credentials" => self.credentials = GivenCredentials::read(value, name)?,
            "on_signal" => self.on_signal = Some(handler()?),
            "error_handler" => self.error_handler = Some(handler()?),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Sets the channels that are not set. The default is IPC. If the archive has a loopback address, the default
    /// of the response channel is a local port.
    fn complete_channels(&mut self) -> PyResult<()> {
        let context = &mut self.context;
        if context.control_request_channel.is_empty() {
            context.control_request_channel = IPC.to_owned();
        }
        if !context.control_response_channel.is_empty() {
            return Ok(());
        }
        let request = &context.control_request_channel;
        context.control_response_channel = match request.starts_with(IPC) {
            true => IPC.to_owned(),
            false if is_local(request) => ANY_LOCAL_PORT.to_owned(),
            false => {
                let reason = format!(
                    "response_channel is not set: name an address of this machine that the archive on {request} reaches, such as aeron:udp?endpoint=HOST:0"
                );
                return Err(raise("ConfigurationError", reason));
            }
        };
        Ok(())
    }

    /// Checks that a thread can call the handlers.
    fn check_handlers(&self, client: &PyAeron) -> PyResult<()> {
        if client.is_invoked() && (self.on_signal.is_some() || self.error_handler.is_some()) {
            let reason = "on_signal and error_handler need a thread, and this client has none (use_conductor_agent_invoker): iterate over signals(), or use another client";
            return Err(raise("ConfigurationError", reason));
        }
        Ok(())
    }

    /// Starts to connect.
    pub fn connect(self, client: &Bound<'_, PyAeron>) -> PyResult<PyPendingOperation> {
        self.check_handlers(client.get())?;
        let what = format!(
            "connecting to the archive on {}",
            self.context.control_request_channel
        );
        let aeron: &Aeron = client.get().aeron()?;
        let context = self.context;
        let connecting = client
            .py()
            .detach(|| AeronArchive::async_connect(aeron, context))
            .map_err(|error| from_archive(&error))?;
        let mut handlers = Vec::new();
        let mut notices = Notices::default();
        let mut reporter = ErrorReporter::default();
        if let Some(handler) = self.error_handler {
            reporter = ErrorReporter::new(&handler);
            notices.errors = Some(reporter.clone());
            handlers.push(handler);
        }
        let GivenCredentials {
            supplier: credentials,
            function,
        } = self.credentials;
        handlers.extend(function);
        let has_signal_handler = self.on_signal.is_some();
        if let Some(handler) = self.on_signal {
            let registered = reporter.register(&handler);
            let on_signal = move |signal| attach(|py| registered.call(py, (signal,)));
            notices.on_signal = Some(Box::new(on_signal));
            handlers.push(handler);
        }
        let convert = move |py: Python<'_>, owned: &Owned, connected: Result<_, _>| {
            if let Some(error) = credentials.take_error() {
                return Err(error);
            }
            let archive = connected.map_err(|error| from_archive(&error))?;
            let (client, handlers) = (owned.client(py)?, clone_all(py, owned.handlers()));
            let link = Link::open(archive, client.get().is_invoked(), notices)?;
            let archive =
                PyAeronArchive::new(link, client, handlers, credentials, has_signal_handler);
            Ok(Py::new(py, archive)?.into_any())
        };
        let park_ns = client.get().max_idle_park_ns();
        let operation =
            PyPendingOperation::of_result(what, connecting, park_ns, handlers, convert).of(client);
        Ok(operation)
    }
}

/// Whether the endpoint of a UDP channel is this machine's loopback address.
fn is_local(channel: &str) -> bool {
    ChannelUri::parse(channel).is_ok_and(|uri| {
        uri.get(key::ENDPOINT).is_some_and(|endpoint| {
            let host = endpoint.rsplit_once(':').map_or(endpoint, |(host, _)| host);
            matches!(host, "localhost" | "127.0.0.1" | "[::1]")
        })
    })
}

/// Connects an Aeron client to an archive, and waits for the connection.
///
/// Without `control_channel`, the function connects to the archive on the client's driver. For any other archive,
/// `control_channel` is the channel on which the archive receives requests, and `response_channel` has an address
/// of this machine that the archive can reach.
///
/// Args:
///     client: An Aeron client. Closing the archive's client does not close this client.
///     control_channel: Channel of the requests. Default: `AERON_ARCHIVE_CONTROL_CHANNEL`, or `aeron:ipc`.
///     control_stream_id: Stream id of the requests. Default: `AERON_ARCHIVE_CONTROL_STREAM_ID`, or `10`.
///     response_channel: Channel on which the archive publishes its responses. Default:
///         `AERON_ARCHIVE_CONTROL_RESPONSE_CHANNEL`. Without that variable, IPC if `control_channel` is IPC, or a
///         free local port if `control_channel` has a loopback address. There is no default for an archive
///         on another host.
///     response_stream_id: Stream id of the responses. Default:
///         `AERON_ARCHIVE_CONTROL_RESPONSE_STREAM_ID`, or `20`.
///     credentials: Bytes for the archive's authenticator, or a function that returns them. The function is
///         first called with `None`, and again with the archive's challenge if there is one.
///     message_timeout: Seconds to wait for the connection, and for each response. Default:
///         `AERON_ARCHIVE_MESSAGE_TIMEOUT`, or `10`.
///     client_name: Name of the client in the archive's counters. Default: `AERON_ARCHIVE_CLIENT_NAME`, or
///         no name.
///     control_term_buffer_length: Term length of the control streams, in bytes. Default:
///         `AERON_ARCHIVE_CONTROL_TERM_BUFFER_LENGTH`, or 1 MiB.
///     control_term_buffer_sparse: Whether the log files of the control streams are sparse. Default:
///         `AERON_ARCHIVE_CONTROL_TERM_BUFFER_SPARSE`, or `True`.
///     control_mtu_length: Maximum length of a frame of the control streams, in bytes. Default:
///         `AERON_ARCHIVE_CONTROL_MTU_LENGTH`, or `1408`.
///     on_signal: Called as `on_signal(signal)` with each `RecordingSignal`, on a thread of the client.
///         Without this handler, `signals()` returns the signals.
///     error_handler: Called as `error_handler(error)` with each error that no call can raise, on a thread
///         of the client. A client without threads refuses both handlers.
///
/// Returns:
///     An `AeronArchive`.
///
/// Raises:
///     ArchiveTimeoutError: If the archive does not respond within the message timeout.
///     ArchiveError: If the archive refuses the connection.
///     ConfigurationError: If a setting is not valid, or a handler is given for a client without threads.
///     InvalidArgumentError: If a channel or `message_timeout` is not valid.
///     RegistrationError: If the driver refuses a channel; the subclass names the reason.
///     ClientClosedError: If the Aeron client is closed.
///     ReentrantCallError: If a handler of the Aeron client calls the function.
///
/// Example:
///     ```python
///     archive = aeron.connect_archive(client)
///     ```
#[pyfunction]
#[pyo3(
    signature = (client, **settings),
    text_signature = "(client, *, control_channel=None, control_stream_id=None, response_channel=None, response_stream_id=None, credentials=None, message_timeout=None, client_name=None, control_term_buffer_length=None, control_term_buffer_sparse=None, control_mtu_length=None, on_signal=None, error_handler=None)"
)]
pub fn connect_archive(
    py: Python<'_>,
    #[pyo3(from_py_with = argument::client)] client: Instance<PyAeron>,
    settings: Option<&Bound<'_, PyDict>>,
) -> PyResult<Py<PyAny>> {
    async_connect_archive(py, client, settings)?.wait(py, None)
}

/// Starts `connect_archive`, and returns its `PendingOperation` at once. `async with` closes its `AeronArchive`.
#[pyfunction]
#[pyo3(
    signature = (client, **settings),
    text_signature = "(client, *, control_channel=None, control_stream_id=None, response_channel=None, response_stream_id=None, credentials=None, message_timeout=None, client_name=None, control_term_buffer_length=None, control_term_buffer_sparse=None, control_mtu_length=None, on_signal=None, error_handler=None)"
)]
pub fn async_connect_archive(
    py: Python<'_>,
    #[pyo3(from_py_with = argument::client)] client: Instance<PyAeron>,
    settings: Option<&Bound<'_, PyDict>>,
) -> PyResult<PyPendingOperation> {
    ArchiveClientSettings::read(py, "connect_archive", settings)?.connect(client.0.bind(py))
}
