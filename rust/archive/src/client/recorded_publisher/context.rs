//! [`RecordedPublisherContext`]: settings of a recorded publisher.

use aeron_protocol::archive::SourceLocation;
use aeron_protocol::uri::{ChannelUri, Media, key};

use super::super::channels::{parse, put};
use super::super::context::ArchiveClientContext;
use super::super::error::{ArchiveClientError, Result};
use super::geometry::StreamGeometry;
use super::listener::RecordedPublisherListener;

/// Minimum of [`RecordedPublisherContext::buffer_length`], in bytes.
pub const MIN_PUBLISHER_BUFFER_LENGTH: usize = 64 * 1024;
/// Default of [`RecordedPublisherContext::buffer_length`], in bytes.
pub const DEFAULT_PUBLISHER_BUFFER_LENGTH: usize = 16 * 1024 * 1024;
/// Default of [`RecordedPublisherContext::takeover_timeout_ns`], in nanoseconds.
pub const DEFAULT_TAKEOVER_TIMEOUT_NS: u64 = 30_000_000_000;
/// Maximum of [`RecordedPublisherContext::takeover_timeout_ns`]: a hundred years.
const MAX_TAKEOVER_TIMEOUT_NS: u64 = 100 * 365 * 24 * 3_600 * 1_000_000_000;

/// Settings of a recorded publisher.
pub struct RecordedPublisherContext {
    /// Channel of the stream. The publisher adds `ssc=true` if the media is UDP, the source is
    /// local, and the channel does not set `ssc`. Then the stream needs no other subscriber than the
    /// archive.
    pub channel: String,
    /// Stream id of the stream and of its recording.
    pub stream_id: i32,
    /// Recording that is extended. Default: `None`.
    pub recording_id: Option<i64>,
    /// Name of the stream, which is added to the channel as `alias`. If the archive has recordings
    /// with this alias and stream id, the last of them is extended. Default: `None`.
    pub alias: Option<String>,
    /// Location of the publisher for the archive: `Local` if both use the same driver. Default:
    /// `Local`.
    pub source_location: SourceLocation,
    /// Length of the buffer for messages that are not recorded yet, in bytes. Each message uses 32
    /// bytes in addition to its own length. Default: 16 MiB.
    pub buffer_length: usize,
    /// Maximum time for which the start waits until another publisher of the recording has ended,
    /// in nanoseconds. If that publisher was killed, its driver notices the death after the client
    /// liveness timeout. Default: 30 s.
    pub takeover_timeout_ns: u64,
    /// Settings of the archive client. The handlers in these settings are not called.
    pub archive: ArchiveClientContext,
    /// Listener that is called with the events of the publisher. Default: `None`.
    pub listener: Option<Box<dyn RecordedPublisherListener>>,
}

impl RecordedPublisherContext {
    /// Creates the settings for a stream that is recorded from its first message on. All other
    /// settings have their defaults.
    #[must_use]
    pub fn new(archive: ArchiveClientContext, channel: &str, stream_id: i32) -> Self {
        Self {
            channel: channel.to_owned(),
            stream_id,
            recording_id: None,
            alias: None,
            source_location: SourceLocation::Local,
            buffer_length: DEFAULT_PUBLISHER_BUFFER_LENGTH,
            takeover_timeout_ns: DEFAULT_TAKEOVER_TIMEOUT_NS,
            archive,
            listener: None,
        }
    }

    /// Checks the settings, and completes the channel.
    pub(super) fn conclude(&self) -> Result<PublisherSettings> {
        self.check()?;
        let mut channel = parse(&self.channel)?;
        if let Some(alias) = &self.alias {
            put(&mut channel, key::ALIAS, alias)?;
        }
        let needs_spy_connection =
            channel.media() == Media::Udp && self.source_location == SourceLocation::Local;
        if needs_spy_connection && channel.get(key::SPIES_SIMULATE_CONNECTION).is_none() {
            put(&mut channel, key::SPIES_SIMULATE_CONNECTION, "true")?;
        }
        Ok(PublisherSettings {
            channel,
            stream_id: self.stream_id,
            recording_id: self.recording_id,
            alias: self.alias.clone(),
            source_location: self.source_location,
            takeover_timeout_ns: to_i64(self.takeover_timeout_ns),
            archive: ArchiveClientContext {
                recording_signal_handler: None,
                error_handler: None,
                ..self.archive.clone()
            },
        })
    }

    fn check(&self) -> Result<()> {
        let refuse = |reason: String| Err(ArchiveClientError::Configuration(reason));
        if self.channel.is_empty() {
            return refuse("channel must be set".to_owned());
        }
        if let Some(recording_id) = self.recording_id {
            if recording_id < 0 {
                return refuse(format!("invalid recording_id {recording_id}"));
            }
            if let Some(alias) = &self.alias {
                return refuse(format!(
                    "recording_id={recording_id} and alias={alias} both name a recording: set one of them"
                ));
            }
        }
        if self.alias.as_ref().is_some_and(String::is_empty) {
            return refuse("alias is empty".to_owned());
        }
        if self.buffer_length < MIN_PUBLISHER_BUFFER_LENGTH {
            return refuse(format!(
                "buffer_length={} is less than {MIN_PUBLISHER_BUFFER_LENGTH} bytes",
                self.buffer_length
            ));
        }
        if self.takeover_timeout_ns > MAX_TAKEOVER_TIMEOUT_NS {
            return refuse(format!(
                "takeover_timeout_ns={} is more than {MAX_TAKEOVER_TIMEOUT_NS}",
                self.takeover_timeout_ns
            ));
        }
        self.archive.validate()
    }
}

impl std::fmt::Debug for RecordedPublisherContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RecordedPublisherContext")
            .field("channel", &self.channel)
            .field("stream_id", &self.stream_id)
            .field("recording_id", &self.recording_id)
            .field("alias", &self.alias)
            .field("buffer_length", &self.buffer_length)
            .finish_non_exhaustive()
    }
}

/// Settings that were checked.
pub(super) struct PublisherSettings {
    channel: ChannelUri,
    pub(super) stream_id: i32,
    pub(super) recording_id: Option<i64>,
    pub(super) alias: Option<String>,
    pub(super) source_location: SourceLocation,
    pub(super) takeover_timeout_ns: i64,
    pub(super) archive: ArchiveClientContext,
}

impl PublisherSettings {
    /// Returns the channel of a publication that begins a new recording.
    pub(super) fn new_channel(&self) -> String {
        self.channel.to_string()
    }

    /// Returns the channel of a publication that continues a recording at `position`.
    pub(super) fn channel_at(&self, position: i64, geometry: StreamGeometry) -> Result<String> {
        let mut channel = self.channel.clone();
        let term_length = i32::try_from(geometry.term_length()).unwrap_or(i32::MAX);
        channel
            .set_initial_position(position, geometry.initial_term_id(), term_length)
            .map_err(|error| ArchiveClientError::channel(&self.channel.to_string(), error))?;
        put(&mut channel, key::MTU, &geometry.mtu_length().to_string())?;
        Ok(channel.to_string())
    }

    /// Returns the deadline of a step that begins now.
    pub(super) fn deadline_ns(&self, now_ns: i64) -> i64 {
        now_ns.saturating_add(to_i64(self.archive.message_timeout_ns))
    }
}

fn to_i64(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::{NULL_VALUE, RecordingDescriptor};

    fn context(channel: &str) -> RecordedPublisherContext {
        let archive = ArchiveClientContext::new("aeron:ipc", "aeron:ipc");
        RecordedPublisherContext::new(archive, channel, 7)
    }

    fn refusal(change: impl FnOnce(&mut RecordedPublisherContext)) -> String {
        let mut context = context("aeron:ipc");
        change(&mut context);
        context.conclude().err().unwrap().to_string()
    }

    #[test]
    fn settings_that_are_missing_or_out_of_range_are_refused() {
        for (refused, text) in [
            (refusal(|it| it.channel.clear()), "channel must be set"),
            (
                refusal(|it| it.recording_id = Some(-2)),
                "invalid recording_id -2",
            ),
            (
                refusal(|it| {
                    it.recording_id = Some(3);
                    it.alias = Some("trades".to_owned());
                }),
                "recording_id=3 and alias=trades both name a recording",
            ),
            (
                refusal(|it| it.alias = Some(String::new())),
                "alias is empty",
            ),
            (
                refusal(|it| it.buffer_length = 1000),
                "buffer_length=1000 is less than 65536 bytes",
            ),
            (
                refusal(|it| it.takeover_timeout_ns = u64::MAX),
                "takeover_timeout_ns=18446744073709551615 is more than",
            ),
            (
                refusal(|it| it.archive.control_request_channel.clear()),
                "control_request_channel is not set",
            ),
        ] {
            assert!(refused.starts_with(text), "{refused}");
        }
    }

    #[test]
    fn the_channel_of_a_local_udp_stream_gets_ssc_unless_it_sets_ssc() {
        let channel = |channel| context(channel).conclude().unwrap().new_channel();
        let udp = "aeron:udp?endpoint=localhost:7000";
        assert_eq!(channel(udp), format!("{udp}|ssc=true"));
        assert_eq!(channel("aeron:ipc"), "aeron:ipc");
        let chosen = format!("{udp}|ssc=false");
        assert_eq!(channel(&chosen), chosen);
        let mut remote = context(udp);
        remote.source_location = SourceLocation::Remote;
        assert_eq!(remote.conclude().unwrap().new_channel(), udp);
    }

    #[test]
    fn the_channel_of_an_extension_has_the_position_the_terms_and_the_mtu_of_the_recording() {
        let mut context = context("aeron:ipc?term-length=1m|mtu=8k|init-term-id=3");
        context.alias = Some("trades".to_owned());
        let settings = context.conclude().unwrap();
        let recording = RecordingDescriptor {
            control_session_id: 0,
            correlation_id: 0,
            recording_id: 7,
            start_timestamp_ms: 0,
            stop_timestamp_ms: NULL_VALUE,
            start_position: 0,
            stop_position: 65536 + 96,
            initial_term_id: -5,
            segment_length: 65536,
            term_length: 65536,
            mtu_length: 1408,
            session_id: 1,
            stream_id: 7,
            stripped_channel: "".into(),
            original_channel: "".into(),
            source_identity: "".into(),
        };
        let geometry = StreamGeometry::of_recording(&recording).unwrap();
        let channel = settings.channel_at(recording.stop_position, geometry);
        let parsed = parse(&channel.unwrap()).unwrap();
        let value = |name| parsed.get(name).unwrap();
        assert_eq!(value(key::INITIAL_TERM_ID), "-5");
        assert_eq!(value(key::TERM_ID), "-4");
        assert_eq!(value(key::TERM_OFFSET), "96");
        assert_eq!(value(key::TERM_LENGTH), "65536");
        assert_eq!(value(key::MTU), "1408");
        assert_eq!(value(key::ALIAS), "trades");
    }
}
