//! [`ArchiveClientContext`]: the settings of an archive client.

use std::sync::Arc;
use std::time::Duration;

use aeron_agent::value::{parse_config_bool, parse_duration_ns, parse_size};
use aeron_agent::{NanoClock, SystemNanoClock};
use aeron_protocol::archive::RecordingSignalEvent;

use super::credentials::{CredentialsSupplier, NoCredentials};
use super::error::{ArchiveClientError, Result};

/// Maximum length of a client name, in bytes.
pub const MAX_CLIENT_NAME_LENGTH: usize = 100;

/// Called with each signal of a recording, on the thread that polls.
pub type RecordingSignalHandler = Arc<dyn Fn(&RecordingSignalEvent) + Send + Sync>;
/// Called with each error that no call is waiting for, on the thread that polls.
pub type ArchiveErrorHandler = Arc<dyn Fn(&ArchiveClientError) + Send + Sync>;
/// Called repeatedly on the thread of a call that waits for the archive.
pub type WaitingWork = Arc<dyn Fn() + Send + Sync>;

/// Settings of an archive client. The defaults are the defaults of Aeron's clients. Both control
/// channels must be set.
///
/// If the request stream is back-pressured, each poll tries to send the request again until
/// `message_timeout_ns` has passed.
#[derive(Clone)]
pub struct ArchiveClientContext {
    /// Channel of the requests. It must be set.
    pub control_request_channel: String,
    /// Stream id of the requests. Default: 10.
    pub control_request_stream_id: i32,
    /// Channel of the responses, on which the archive publishes. Port 0 is allowed. It must be set.
    pub control_response_channel: String,
    /// Stream id of the responses. Default: 20.
    pub control_response_stream_id: i32,
    /// Channel of the recording events. The client does not use it: the application may. Default:
    /// empty.
    pub recording_events_channel: String,
    /// Stream id of the recording events, for the application. Default: 30.
    pub recording_events_stream_id: i32,
    /// Time limit for the connection, for each response, and for each descriptor of a listing, in
    /// nanoseconds. Default: 10 s.
    pub message_timeout_ns: u64,
    /// Term length of control channels without the parameter `term-length`, in bytes. Default: 64
    /// KiB.
    pub control_term_buffer_length: u32,
    /// Whether the logs of control channels without the parameter `sparse` are sparse. Default:
    /// `true`.
    pub control_term_buffer_sparse: bool,
    /// Longest frame of control channels without the parameter `mtu`, in bytes. Default: 1408.
    pub control_mtu_length: u32,
    /// Name of the client, at most 100 bytes. The label of the session's counter contains it.
    /// Default: empty.
    pub client_name: String,
    /// Supplier of the credentials for the archive. Default: no credentials.
    pub credentials: Arc<dyn CredentialsSupplier>,
    /// Handler that is called with recording signals. Without a handler, signals are queued.
    /// Default: `None`.
    pub recording_signal_handler: Option<RecordingSignalHandler>,
    /// Handler that is called with errors that no call is waiting for. Without a handler, these
    /// errors are queued. Default: `None`.
    pub error_handler: Option<ArchiveErrorHandler>,
    /// Function that is called repeatedly while a call waits. It can run an archive or a driver
    /// that has no thread. Default: `None`.
    pub waiting_work: Option<WaitingWork>,
    /// Monotonic clock for timeouts.
    pub nano_clock: Arc<dyn NanoClock>,
}

impl Default for ArchiveClientContext {
    fn default() -> Self {
        Self {
            control_request_channel: String::new(),
            control_request_stream_id: 10,
            control_response_channel: String::new(),
            control_response_stream_id: 20,
            recording_events_channel: String::new(),
            recording_events_stream_id: 30,
            message_timeout_ns: 10_000_000_000,
            control_term_buffer_length: 64 * 1024,
            control_term_buffer_sparse: true,
            control_mtu_length: 1408,
            client_name: String::new(),
            credentials: Arc::new(NoCredentials),
            recording_signal_handler: None,
            error_handler: None,
            waiting_work: None,
            nano_clock: Arc::new(SystemNanoClock),
        }
    }
}

impl ArchiveClientContext {
    /// Creates the settings for an archive with these control channels. All other settings have
    /// their defaults.
    #[must_use]
    pub fn new(control_request_channel: &str, control_response_channel: &str) -> Self {
        Self {
            control_request_channel: control_request_channel.to_owned(),
            control_response_channel: control_response_channel.to_owned(),
            ..Self::default()
        }
    }

    /// Creates the default settings and changes them by these environment variables:
    /// `AERON_ARCHIVE_CONTROL_CHANNEL`, `AERON_ARCHIVE_CONTROL_STREAM_ID`,
    /// `AERON_ARCHIVE_CONTROL_RESPONSE_CHANNEL`, `AERON_ARCHIVE_CONTROL_RESPONSE_STREAM_ID`,
    /// `AERON_ARCHIVE_RECORDING_EVENTS_CHANNEL`, `AERON_ARCHIVE_RECORDING_EVENTS_STREAM_ID`,
    /// `AERON_ARCHIVE_MESSAGE_TIMEOUT` (nanoseconds or with a suffix), `AERON_ARCHIVE_CONTROL_TERM_BUFFER_LENGTH`,
    /// `AERON_ARCHIVE_CONTROL_TERM_BUFFER_SPARSE`, `AERON_ARCHIVE_CONTROL_MTU_LENGTH`,
    /// `AERON_ARCHIVE_CLIENT_NAME`.
    ///
    /// # Errors
    /// [`ArchiveClientError::Configuration`] if a value cannot be parsed.
    pub fn from_env() -> Result<Self> {
        Self::from_variables(|name| std::env::var(name).ok())
    }

    fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Result<Self> {
        let mut context = Self::default();
        let set_text = |field: &mut String, name: &str| {
            if let Some(value) = variable(name) {
                *field = value;
            }
        };
        set_text(
            &mut context.control_request_channel,
            "AERON_ARCHIVE_CONTROL_CHANNEL",
        );
        set_text(
            &mut context.control_response_channel,
            "AERON_ARCHIVE_CONTROL_RESPONSE_CHANNEL",
        );
        set_text(
            &mut context.recording_events_channel,
            "AERON_ARCHIVE_RECORDING_EVENTS_CHANNEL",
        );
        set_text(&mut context.client_name, "AERON_ARCHIVE_CLIENT_NAME");
        let stream = |value: &str| value.trim().parse().ok();
        let length = |value: &str| u32::try_from(parse_size(value).ok()?).ok();
        let duration = |value: &str| u64::try_from(parse_duration_ns(value).ok()?).ok();
        set(
            &mut context.control_request_stream_id,
            "AERON_ARCHIVE_CONTROL_STREAM_ID",
            &variable,
            stream,
        )?;
        set(
            &mut context.control_response_stream_id,
            "AERON_ARCHIVE_CONTROL_RESPONSE_STREAM_ID",
            &variable,
            stream,
        )?;
        set(
            &mut context.recording_events_stream_id,
            "AERON_ARCHIVE_RECORDING_EVENTS_STREAM_ID",
            &variable,
            stream,
        )?;
        set(
            &mut context.message_timeout_ns,
            "AERON_ARCHIVE_MESSAGE_TIMEOUT",
            &variable,
            duration,
        )?;
        set(
            &mut context.control_term_buffer_length,
            "AERON_ARCHIVE_CONTROL_TERM_BUFFER_LENGTH",
            &variable,
            length,
        )?;
        set(
            &mut context.control_term_buffer_sparse,
            "AERON_ARCHIVE_CONTROL_TERM_BUFFER_SPARSE",
            &variable,
            parse_config_bool,
        )?;
        set(
            &mut context.control_mtu_length,
            "AERON_ARCHIVE_CONTROL_MTU_LENGTH",
            &variable,
            length,
        )?;
        Ok(context)
    }

    /// Returns the message timeout.
    #[must_use]
    pub const fn message_timeout(&self) -> Duration {
        Duration::from_nanos(self.message_timeout_ns)
    }

    /// Checks the settings that can be checked without a driver.
    pub(super) fn validate(&self) -> Result<()> {
        let refuse = |reason: String| Err(ArchiveClientError::Configuration(reason));
        if self.control_request_channel.is_empty() {
            return refuse("control_request_channel is not set".to_owned());
        }
        if self.control_response_channel.is_empty() {
            return refuse("control_response_channel is not set".to_owned());
        }
        if self.client_name.len() > MAX_CLIENT_NAME_LENGTH {
            let length = self.client_name.len();
            return refuse(format!(
                "client_name has {length} bytes, the limit is {MAX_CLIENT_NAME_LENGTH}"
            ));
        }
        if self.message_timeout_ns == 0 || self.message_timeout_ns > MAX_MESSAGE_TIMEOUT_NS {
            return refuse(format!(
                "message_timeout_ns={} is not within 1 to {MAX_MESSAGE_TIMEOUT_NS}",
                self.message_timeout_ns
            ));
        }
        Ok(())
    }

    pub(super) fn now_ns(&self) -> i64 {
        self.nano_clock.nano_time()
    }
}

/// Sets a field to the value of a variable, if the variable is set.
fn set<T>(
    field: &mut T,
    name: &str,
    variable: impl Fn(&str) -> Option<String>,
    parse: impl Fn(&str) -> Option<T>,
) -> Result<()> {
    if let Some(value) = variable(name) {
        *field = parse(&value).ok_or_else(|| {
            ArchiveClientError::Configuration(format!("{name}={value} is not a valid value"))
        })?;
    }
    Ok(())
}

/// Maximum message timeout in nanoseconds: a hundred years. The sum of this value and the time of a
/// clock does not overflow.
const MAX_MESSAGE_TIMEOUT_NS: u64 = 100 * 365 * 24 * 3_600 * 1_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn from(variables: &[(&str, &str)]) -> Result<ArchiveClientContext> {
        let find = |name: &str| variables.iter().find(|(key, _)| *key == name);
        ArchiveClientContext::from_variables(|name| {
            find(name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn environment_variables_change_the_settings() {
        let context = from(&[
            ("AERON_ARCHIVE_CONTROL_CHANNEL", "aeron:ipc"),
            ("AERON_ARCHIVE_CONTROL_STREAM_ID", "11"),
            (
                "AERON_ARCHIVE_CONTROL_RESPONSE_CHANNEL",
                "aeron:udp?endpoint=localhost:0",
            ),
            ("AERON_ARCHIVE_CONTROL_RESPONSE_STREAM_ID", "-3"),
            (
                "AERON_ARCHIVE_RECORDING_EVENTS_CHANNEL",
                "aeron:udp?control=localhost:8030",
            ),
            ("AERON_ARCHIVE_RECORDING_EVENTS_STREAM_ID", "31"),
            ("AERON_ARCHIVE_MESSAGE_TIMEOUT", "5s"),
            ("AERON_ARCHIVE_CONTROL_TERM_BUFFER_LENGTH", "128k"),
            ("AERON_ARCHIVE_CONTROL_TERM_BUFFER_SPARSE", "false"),
            ("AERON_ARCHIVE_CONTROL_MTU_LENGTH", "4k"),
            ("AERON_ARCHIVE_CLIENT_NAME", "pricing"),
        ])
        .unwrap();
        assert_eq!(context.control_request_channel, "aeron:ipc");
        assert_eq!(context.control_request_stream_id, 11);
        assert_eq!(
            context.control_response_channel,
            "aeron:udp?endpoint=localhost:0"
        );
        assert_eq!(context.control_response_stream_id, -3);
        assert_eq!(
            context.recording_events_channel,
            "aeron:udp?control=localhost:8030"
        );
        assert_eq!(context.recording_events_stream_id, 31);
        assert_eq!(context.message_timeout(), Duration::from_secs(5));
        assert_eq!(context.control_term_buffer_length, 131_072);
        assert!(!context.control_term_buffer_sparse);
        assert_eq!(context.control_mtu_length, 4096);
        assert_eq!(context.client_name, "pricing");
        for (name, value) in [
            ("AERON_ARCHIVE_CONTROL_STREAM_ID", "ten"),
            ("AERON_ARCHIVE_MESSAGE_TIMEOUT", "-1"),
            ("AERON_ARCHIVE_CONTROL_TERM_BUFFER_SPARSE", "maybe"),
            ("AERON_ARCHIVE_CONTROL_MTU_LENGTH", "8g"),
        ] {
            let error = from(&[(name, value)]).err().unwrap().to_string();
            assert_eq!(error, format!("{name}={value} is not a valid value"));
        }
    }

    #[test]
    fn the_defaults_are_the_defaults_of_aeron() {
        let context = from(&[]).unwrap();
        assert_eq!(
            (
                context.control_request_stream_id,
                context.control_response_stream_id
            ),
            (10, 20)
        );
        assert_eq!(context.recording_events_stream_id, 30);
        assert_eq!(context.message_timeout(), Duration::from_secs(10));
        assert_eq!(context.control_term_buffer_length, 64 * 1024);
        assert!(context.control_term_buffer_sparse);
        assert_eq!(context.control_mtu_length, 1408);
    }

    #[test]
    fn the_error_of_an_invalid_setting_has_the_name_of_the_setting() {
        let valid = || ArchiveClientContext::new("aeron:ipc", "aeron:ipc");
        valid().validate().unwrap();
        for (context, name) in [
            (
                ArchiveClientContext::new("", "aeron:ipc"),
                "control_request_channel",
            ),
            (
                ArchiveClientContext::new("aeron:ipc", ""),
                "control_response_channel",
            ),
            (
                ArchiveClientContext {
                    client_name: "n".repeat(101),
                    ..valid()
                },
                "client_name",
            ),
            (
                ArchiveClientContext {
                    message_timeout_ns: 0,
                    ..valid()
                },
                "message_timeout_ns",
            ),
        ] {
            let error = context.validate().unwrap_err().to_string();
            assert!(error.contains(name), "{error}");
        }
    }
}
