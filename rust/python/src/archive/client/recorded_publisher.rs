//! The method that creates a `RecordedPublisher`.

use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::super::recorded_publisher::PyRecordedPublisher;
use super::super::recorded_publisher_options::PublisherOptions;
use super::PyAeronArchive;
use crate::argument;
use crate::channel::Channel;
use crate::errors::raise;

#[pymethods]
impl PyAeronArchive {
    /// Creates a `RecordedPublisher` that this archive records.
    ///
    /// The publisher has its own client of this archive's driver. The publisher also has its own session with the
    /// archive, with the settings of this client. If the credentials are a function, each connection of the
    /// publisher calls it.
    ///
    /// Args:
    ///     channel: Channel of the stream.
    ///     stream_id: Stream id of the stream and of its recording.
    ///     recording_id: Id of the recording to extend.
    ///     alias: Name of the stream, instead of a recording id. The publisher extends the last recording with this
    ///         alias and stream id. If there is none, the publisher starts a recording.
    ///     source: `"LOCAL"` if the archive is on this driver, `"REMOTE"` if the archive is on another driver.
    ///     buffer_length: Maximum number of bytes of messages that are not recorded yet, at least 65536. Each message
    ///         counts with 32 bytes more than its length.
    ///     takeover_timeout: Seconds to wait at the start until another publisher of the recording has ended.
    ///     on_reconnect: Called as `on_reconnect(position)` when the recording continues after a loss.
    ///     on_error: Called as `on_error(error)` with each `RecordedPublisherError`. If `has_failed` is then `True`,
    ///         the error has ended the publisher.
    ///     driver_timeout_ms: Milliseconds to wait for the driver. Default: `AERON_DRIVER_TIMEOUT`, or `10000`.
    ///
    /// Returns:
    ///     The publisher.
    ///
    /// Raises:
    ///     InvalidArgumentError: If the channel is not valid.
    ///     ConfigurationError: If a setting is not valid or contradicts another setting.
    #[pyo3(
        signature = (channel, stream_id, **settings),
        text_signature = "($self, channel, stream_id, *, recording_id=None, alias=None, source='LOCAL', buffer_length=16777216, takeover_timeout=30.0, on_reconnect=None, on_error=None, driver_timeout_ms=None)"
    )]
    fn recorded_publisher(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = argument::channel)] channel: Channel,
        #[pyo3(from_py_with = argument::stream_id)] stream_id: i32,
        settings: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<PyRecordedPublisher> {
        let (options, others) = PublisherOptions::read(py, channel, stream_id, settings)?;
        if let Some((name, _)) = others.iter().next() {
            let reason = format!(
                "recorded_publisher has no setting {name}; help(aeron.RecordedPublisher) lists all"
            );
            return Err(raise("ArgumentTypeError", reason));
        }
        let (context, credentials) = self.settings_for_another(py)?;
        let driver = self.client.get().driver(py);
        PyRecordedPublisher::open(py, Some(driver), options, context, credentials)
    }
}
