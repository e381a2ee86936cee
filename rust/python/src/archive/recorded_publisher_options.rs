//! The keywords of a recorded publisher that are not settings of the archive's client.

use std::path::PathBuf;

use aeron_archive::client::{
    ArchiveClientContext, DEFAULT_PUBLISHER_BUFFER_LENGTH, DEFAULT_TAKEOVER_TIMEOUT_NS,
    RecordedPublisherContext,
};
use aeron_client::{ClientErrorHandler, Context, DriverInvoker, DriverTurn};
use aeron_protocol::archive::SourceLocation;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::recording::Source;
use crate::argument::{Argument, Callable};
use crate::channel::Channel;
use crate::connection::{DriverName, find_driver};
use crate::driver::PyMediaDriver;
use crate::errors::from_client;
use crate::events::EventHandler;
use crate::waiting::duration;

/// The keywords of a recorded publisher.
pub struct PublisherOptions {
    pub channel: String,
    pub stream_id: i32,
    pub handlers: PublisherHandlers,
    recording_id: Option<i64>,
    alias: Option<String>,
    source: SourceLocation,
    buffer_length: usize,
    takeover_timeout_ns: u64,
    driver_timeout_ms: Option<u64>,
}

/// Handlers of a recorded publisher.
#[derive(Default)]
pub struct PublisherHandlers {
    pub on_reconnect: Option<EventHandler>,
    pub on_error: Option<EventHandler>,
    /// Function that returns the credentials for the archive.
    pub credentials: Option<EventHandler>,
}

impl PublisherHandlers {
    pub fn iter(&self) -> impl Iterator<Item = &EventHandler> {
        [&self.on_reconnect, &self.on_error, &self.credentials]
            .into_iter()
            .flatten()
    }
}

impl PublisherOptions {
    /// Reads the keywords. Also returns the keywords that belong to the archive's client.
    pub fn read<'py>(
        py: Python<'py>,
        channel: Channel,
        stream_id: i32,
        keywords: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<(Self, Bound<'py, PyDict>)> {
        let mut this = Self {
            channel: channel.0,
            stream_id,
            handlers: PublisherHandlers::default(),
            recording_id: None,
            alias: None,
            source: SourceLocation::Local,
            buffer_length: DEFAULT_PUBLISHER_BUFFER_LENGTH,
            takeover_timeout_ns: DEFAULT_TAKEOVER_TIMEOUT_NS,
            driver_timeout_ms: None,
        };
        let others = PyDict::new(py);
        for (name, value) in keywords.into_iter().flatten() {
            if value.is_none() {
                continue;
            }
            if !this.set(py, name.extract()?, &value)? {
                others.set_item(name, value)?;
            }
        }
        Ok((this, others))
    }

    /// Sets the option with this keyword. Returns `false` if a recorded publisher has no such option.
    fn set(&mut self, py: Python<'_>, name: &str, value: &Bound<'_, PyAny>) -> PyResult<bool> {
        let handler = || EventHandler::new(py, Callable::convert(value, name)?.0).map(Some);
        match name {
            "recording_id" => self.recording_id = Some(i64::convert(value, name)?),
            "alias" => self.alias = Some(String::convert(value, name)?),
            "source" => self.source = Source::convert(value, name)?.0,
            "buffer_length" => self.buffer_length = usize::convert(value, name)?,
            "takeover_timeout" => {
                let timeout = duration(f64::convert(value, name)?)?;
                self.takeover_timeout_ns = u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX);
            }
            "driver_timeout_ms" => self.driver_timeout_ms = Some(u64::convert(value, name)?),
            "on_reconnect" => self.handlers.on_reconnect = handler()?,
            "on_error" => self.handlers.on_error = handler()?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Returns the native settings.
    pub fn context(&self, archive: ArchiveClientContext) -> RecordedPublisherContext {
        let mut context = RecordedPublisherContext::new(archive, &self.channel, self.stream_id);
        context.recording_id = self.recording_id;
        context.alias.clone_from(&self.alias);
        context.source_location = self.source;
        context.buffer_length = self.buffer_length;
        context.takeover_timeout_ns = self.takeover_timeout_ns;
        context
    }

    /// Returns the settings of the publisher's clients. Also returns the driver if it is embedded.
    pub fn client_settings(
        &self,
        py: Python<'_>,
        driver: Option<DriverName>,
    ) -> PyResult<(PublisherClientSettings, Option<Py<PyMediaDriver>>)> {
        let mut context = Context::from_env().map_err(|error| from_client(&error))?;
        let driver = find_driver(py, &mut context, driver)?;
        let settings = PublisherClientSettings {
            aeron_dir: context.aeron_dir,
            driver_timeout_ms: self.driver_timeout_ms.unwrap_or(context.driver_timeout_ms),
            is_invoked: context.use_conductor_agent_invoker,
            driver_invoker: context.driver_invoker,
            driver_turn: context.driver_turn,
        };
        Ok((settings, driver))
    }
}

/// The settings of the publisher's clients. A context serves one client, so each client gets a new context.
pub struct PublisherClientSettings {
    aeron_dir: PathBuf,
    driver_timeout_ms: u64,
    is_invoked: bool,
    driver_invoker: Option<DriverInvoker>,
    driver_turn: Option<DriverTurn>,
}

impl PublisherClientSettings {
    /// Runs one duty cycle of the driver, if the driver is embedded and has no threads.
    pub fn run_driver(&self) {
        if let Some(run) = &self.driver_invoker {
            run();
        }
    }

    /// Returns the context of the next client. `on_error` gets the errors that no call can raise.
    pub fn context(&self, on_error: ClientErrorHandler) -> aeron_client::Result<Context> {
        Ok(Context {
            aeron_dir: self.aeron_dir.clone(),
            driver_timeout_ms: self.driver_timeout_ms,
            use_conductor_agent_invoker: self.is_invoked,
            driver_invoker: self.driver_invoker.clone(),
            driver_turn: self.driver_turn.clone(),
            error_handler: on_error,
            ..Context::from_env()?
        })
    }
}
