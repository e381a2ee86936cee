//! [`PersistentSubscriptionContext`]: settings of a persistent subscription.

use aeron_protocol::uri::{ChannelUri, Media, key};

use super::super::channels::{has_wildcard_port, is_response_mode, parse, put};
use super::super::context::ArchiveClientContext;
use super::super::error::{ArchiveClientError, Result};
use super::counters::PersistentSubscriptionCounters;
use super::listener::PersistentSubscriptionListener;

/// Aeron's value for [`StartPosition::FromStart`].
pub const FROM_START: i64 = -1;
/// Aeron's value for [`StartPosition::FromLive`].
pub const FROM_LIVE: i64 = -2;

/// The position of the first message of a persistent subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum StartPosition {
    /// The start of the recording.
    FromStart,
    /// The position at which the subscription joins the live stream. No replay precedes it.
    #[default]
    FromLive,
    /// A position of the recording, in bytes. A frame must begin there.
    At(i64),
}

impl StartPosition {
    /// Converts Aeron's value: [`FROM_START`], [`FROM_LIVE`] or a position. Returns `None` for other values.
    #[must_use]
    pub const fn from_value(value: i64) -> Option<Self> {
        match value {
            FROM_START => Some(Self::FromStart),
            FROM_LIVE => Some(Self::FromLive),
            0.. => Some(Self::At(value)),
            _ => None,
        }
    }
}

/// Settings of a persistent subscription.
pub struct PersistentSubscriptionContext {
    /// Id of the recording of the stream.
    pub recording_id: i64,
    /// Position of the first message. Default: [`StartPosition::FromLive`].
    pub start_position: StartPosition,
    /// Channel of the live stream: IPC, unicast, multicast, `control-mode=dynamic` or `aeron-spy:`.
    pub live_channel: String,
    /// Stream id of the live stream and of the recording.
    pub live_stream_id: i32,
    /// Channel of replays. Its port may be 0, and it may have `control-mode=response`.
    pub replay_channel: String,
    /// Stream id of replays.
    pub replay_stream_id: i32,
    /// Settings of the archive client. The handlers in these settings are not called.
    pub archive: ArchiveClientContext,
    /// Listener that is called with the events of the subscription. Default: `None`.
    pub listener: Option<Box<dyn PersistentSubscriptionListener>>,
    /// Existing counters that the subscription uses instead of new counters. Default: no existing
    /// counters.
    pub counters: PersistentSubscriptionCounters,
}

impl PersistentSubscriptionContext {
    /// Creates the settings for a recording, its live stream, and the channel and stream id of its
    /// replays. All other settings have their defaults.
    #[must_use]
    pub fn new(
        archive: ArchiveClientContext,
        recording_id: i64,
        live_channel: &str,
        live_stream_id: i32,
        replay_channel: &str,
        replay_stream_id: i32,
    ) -> Self {
        Self {
            recording_id,
            start_position: StartPosition::default(),
            live_channel: live_channel.to_owned(),
            live_stream_id,
            replay_channel: replay_channel.to_owned(),
            replay_stream_id,
            archive,
            listener: None,
            counters: PersistentSubscriptionCounters::default(),
        }
    }

    /// Checks the settings, and completes the channel of replays.
    pub(super) fn conclude(&self) -> Result<Settings> {
        self.check()?;
        let mut replay_channel = parse(&self.replay_channel)?;
        parse(&self.live_channel)?;
        self.check_media(&replay_channel)?;
        // A replay cannot be rejoined, because the next replay has another session id.
        put(&mut replay_channel, key::REJOIN, "false")?;
        let kind = ReplayKind::of(&replay_channel);
        Ok(Settings {
            recording_id: self.recording_id,
            live_channel: self.live_channel.clone(),
            live_stream_id: self.live_stream_id,
            replay_channel: replay_channel.to_string(),
            replay_stream_id: self.replay_stream_id,
            kind,
            archive: ArchiveClientContext {
                recording_signal_handler: None,
                error_handler: None,
                ..self.archive.clone()
            },
        })
    }

    fn check(&self) -> Result<()> {
        if self.live_channel.is_empty() {
            return refuse("live_channel must be set".to_owned());
        }
        if self.replay_channel.is_empty() {
            return refuse("replay_channel must be set".to_owned());
        }
        if self.recording_id < 0 {
            return refuse(format!("invalid recording_id {}", self.recording_id));
        }
        match self.start_position {
            StartPosition::At(position @ ..0) => {
                refuse(format!("invalid start_position {position}"))
            }
            _ => Ok(()),
        }
    }

    /// Checks that a response channel for replays has the same media (IPC or UDP) as the control
    /// channel. Otherwise the driver cannot link the replay to the image of the request.
    fn check_media(&self, replay_channel: &ChannelUri) -> Result<()> {
        let control_channel = &self.archive.control_request_channel;
        if !is_response_mode(replay_channel) || control_channel.is_empty() {
            return Ok(());
        }
        let (replay, control) = (replay_channel.media(), parse(control_channel)?.media());
        if replay == control {
            return Ok(());
        }
        refuse(format!(
            "Channel media type mismatch. A replay_channel with control-mode=response needs the media of the control channel: \
             the replay_channel is {}, the control channel {control_channel}",
            self.replay_channel
        ))
    }
}

impl std::fmt::Debug for PersistentSubscriptionContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PersistentSubscriptionContext")
            .field("recording_id", &self.recording_id)
            .field("start_position", &self.start_position)
            .field("live_channel", &self.live_channel)
            .field("live_stream_id", &self.live_stream_id)
            .field("replay_channel", &self.replay_channel)
            .field("replay_stream_id", &self.replay_stream_id)
            .finish_non_exhaustive()
    }
}

fn refuse<T>(reason: String) -> Result<T> {
    Err(ArchiveClientError::Configuration(reason))
}

/// The order in which a replay and its subscription are created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReplayKind {
    /// The replay is started first. The subscription receives only the session of the replay.
    SessionSpecific,
    /// The subscription is added first, because its driver chooses the port.
    DynamicPort,
    /// The subscription is added first. The replay is requested on a publication that has the
    /// id of the subscription in its channel.
    Response(Media),
}

impl ReplayKind {
    fn of(channel: &ChannelUri) -> Self {
        if is_response_mode(channel) {
            Self::Response(channel.media())
        } else if channel.media() == Media::Udp && has_wildcard_port(channel) {
            Self::DynamicPort
        } else {
            Self::SessionSpecific
        }
    }
}

/// Settings that were checked.
pub(super) struct Settings {
    pub(super) recording_id: i64,
    pub(super) live_channel: String,
    pub(super) live_stream_id: i32,
    pub(super) replay_channel: String,
    pub(super) replay_stream_id: i32,
    pub(super) kind: ReplayKind,
    pub(super) archive: ArchiveClientContext,
}

impl Settings {
    /// Returns the channels and stream ids of the live stream and the replays, for the labels of
    /// counters.
    pub(super) fn streams(&self) -> String {
        format!(
            "{} {} {} {}",
            self.replay_stream_id, self.replay_channel, self.live_stream_id, self.live_channel
        )
    }

    /// Returns the deadline of a step that begins now.
    pub(super) fn deadline_ns(&self, now_ns: i64) -> i64 {
        let timeout_ns = i64::try_from(self.archive.message_timeout_ns).unwrap_or(i64::MAX);
        now_ns.saturating_add(timeout_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UDP: &str = "aeron:udp?endpoint=localhost:8010";
    const RESPONSE: &str = "aeron:udp?control-mode=response|control=localhost:8020";

    fn context(control: &str, replay: &str) -> PersistentSubscriptionContext {
        let archive = ArchiveClientContext::new(control, "aeron:ipc");
        PersistentSubscriptionContext::new(archive, 0, "aeron:ipc", -7, replay, -8)
    }

    fn refusal(change: impl FnOnce(&mut PersistentSubscriptionContext)) -> String {
        let mut context = context("aeron:ipc", "aeron:ipc");
        change(&mut context);
        context.conclude().err().unwrap().to_string()
    }

    /// 11-1, 11-2
    #[test]
    fn settings_that_are_missing_or_out_of_range_are_refused() {
        let refused = refusal(|it| it.live_channel.clear());
        assert_eq!(refused, "live_channel must be set");
        let refused = refusal(|it| it.replay_channel.clear());
        assert_eq!(refused, "replay_channel must be set");
        let refused = refusal(|it| it.recording_id = -2);
        assert_eq!(refused, "invalid recording_id -2");
        let refused = refusal(|it| it.start_position = StartPosition::At(-3));
        assert_eq!(refused, "invalid start_position -3");
        let refused = refusal(|it| it.live_channel = "aeron:tcp".to_owned());
        assert!(refused.starts_with("channel aeron:tcp: "), "{refused}");
        assert_eq!(StartPosition::from_value(-3), None);
    }

    /// 11-9
    #[test]
    fn by_default_a_subscription_starts_from_live_and_the_message_timeout_is_ten_seconds() {
        let context = context("aeron:ipc", "aeron:ipc");
        assert_eq!(context.start_position, StartPosition::FromLive);
        assert_eq!(context.archive.message_timeout_ns, 10_000_000_000);
    }

    /// 11-4
    #[test]
    fn the_replay_channel_has_rejoin_false() {
        for channel in ["aeron:ipc", "aeron:ipc?rejoin=true"] {
            let settings = context("aeron:ipc", channel).conclude().unwrap();
            assert_eq!(settings.replay_channel, "aeron:ipc?rejoin=false");
        }
    }

    /// 11-5
    #[test]
    fn a_response_channel_with_other_media_than_the_control_channel_is_refused() {
        let error = context("aeron:ipc", RESPONSE).conclude().err().unwrap();
        let text = error.to_string();
        assert!(text.starts_with("Channel media type mismatch."), "{text}");
        for (control, replay) in [
            (UDP, RESPONSE),
            ("", RESPONSE),
            ("aeron:ipc", "aeron:ipc?control-mode=response"),
            ("aeron:ipc", UDP),
            (UDP, "aeron:ipc"),
        ] {
            assert!(context(control, replay).conclude().is_ok());
        }
    }

    #[test]
    fn the_replay_channel_decides_whether_the_replay_or_the_subscription_is_first() {
        for (channel, kind) in [
            ("aeron:ipc", ReplayKind::SessionSpecific),
            (UDP, ReplayKind::SessionSpecific),
            ("aeron:udp?endpoint=localhost:0", ReplayKind::DynamicPort),
            (RESPONSE, ReplayKind::Response(Media::Udp)),
            (
                "aeron:udp?control-mode=response|control=localhost:1|endpoint=localhost:0",
                ReplayKind::Response(Media::Udp),
            ),
            (
                "aeron:ipc?control-mode=response",
                ReplayKind::Response(Media::Ipc),
            ),
        ] {
            assert_eq!(ReplayKind::of(&parse(channel).unwrap()), kind, "{channel}");
        }
    }
}
