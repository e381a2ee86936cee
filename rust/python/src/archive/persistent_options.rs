//! The keywords of a persistent subscription that are not settings of the archive's client.

use aeron_archive::client::{
    ArchiveClientContext, FROM_LIVE, PersistentSubscriptionContext, StartPosition,
};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::replay::{REPLAY_CHANNEL, REPLAY_STREAM_ID};
use crate::argument::{Argument, Callable};
use crate::channel::Channel;
use crate::errors::raise;
use crate::events::EventHandler;

/// The keywords of a persistent subscription. `None` in a field means that a required keyword is missing.
pub struct Options {
    recording_id: Option<i64>,
    live_channel: Option<String>,
    live_stream_id: Option<i32>,
    replay_channel: String,
    replay_stream_id: i32,
    start_position: i64,
    pub handlers: Handlers,
}

/// Handlers of a persistent subscription.
#[derive(Default)]
pub struct Handlers {
    pub on_live_joined: Option<EventHandler>,
    pub on_live_left: Option<EventHandler>,
    pub on_error: Option<EventHandler>,
    /// Function that returns the credentials for the archive.
    pub credentials: Option<EventHandler>,
}

impl Handlers {
    pub fn iter(&self) -> impl Iterator<Item = &EventHandler> {
        [
            &self.on_live_joined,
            &self.on_live_left,
            &self.on_error,
            &self.credentials,
        ]
        .into_iter()
        .flatten()
    }
}

impl Options {
    /// Reads the keywords. Also returns the keywords that belong to the archive's client.
    pub fn read<'py>(
        py: Python<'py>,
        keywords: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<(Self, Bound<'py, PyDict>)> {
        let mut this = Self {
            recording_id: None,
            live_channel: None,
            live_stream_id: None,
            replay_channel: REPLAY_CHANNEL.to_owned(),
            replay_stream_id: REPLAY_STREAM_ID,
            start_position: FROM_LIVE,
            handlers: Handlers::default(),
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

    /// Sets the option with this keyword. Returns `false` if a persistent subscription has no such option.
    fn set(&mut self, py: Python<'_>, name: &str, value: &Bound<'_, PyAny>) -> PyResult<bool> {
        let handler = || EventHandler::new(py, Callable::convert(value, name)?.0).map(Some);
        let handlers = &mut self.handlers;
        match name {
            "recording_id" => self.recording_id = Some(i64::convert(value, name)?),
            "live_channel" => self.live_channel = Some(Channel::convert(value, name)?.0),
            "live_stream_id" => self.live_stream_id = Some(i32::convert(value, name)?),
            "replay_channel" => self.replay_channel = Channel::convert(value, name)?.0,
            "replay_stream_id" => self.replay_stream_id = i32::convert(value, name)?,
            "start_position" => self.start_position = i64::convert(value, name)?,
            "on_live_joined" => handlers.on_live_joined = handler()?,
            "on_live_left" => handlers.on_live_left = handler()?,
            "on_error" => handlers.on_error = handler()?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Returns the native settings. Raises if a required keyword is missing.
    pub fn context(
        &self,
        archive: ArchiveClientContext,
    ) -> PyResult<PersistentSubscriptionContext> {
        let mut context = PersistentSubscriptionContext::new(
            archive,
            given(self.recording_id, "recording_id")?,
            &given(self.live_channel.clone(), "live_channel")?,
            given(self.live_stream_id, "live_stream_id")?,
            &self.replay_channel,
            self.replay_stream_id,
        );
        let invalid = || {
            let reason = format!(
                "start_position={} is not a position, FROM_START or FROM_LIVE",
                self.start_position
            );
            raise("InvalidArgumentError", reason)
        };
        context.start_position =
            StartPosition::from_value(self.start_position).ok_or_else(invalid)?;
        Ok(context)
    }
}

fn given<T>(value: Option<T>, name: &str) -> PyResult<T> {
    value.ok_or_else(|| {
        let reason = format!("{name} is not given: a persistent subscription needs it");
        raise("ArgumentTypeError", reason)
    })
}
