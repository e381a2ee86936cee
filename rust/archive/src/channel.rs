//! Builds the archive's channels: the stripped channel of a recording, the key of a recording subscription, the channel
//! of a response.

use aeron_protocol::uri::{ChannelUri, ChannelUriBuilder, ControlMode, Media, UriError, key};

/// Parameter of the channel of a recording request: `block` or `release`, for this request instead of the setting
/// `aeron.archive.recording.on.failure`. The parameter is not part of Aeron. The stripped channel does not have it.
pub const ON_FAILURE: &str = "on-failure";

/// Parameters that the stripped channel keeps.
const KEPT: [&str; 23] = [
    key::ENDPOINT,
    key::INTERFACE,
    key::CONTROL,
    key::CONTROL_MODE,
    key::TAGS,
    key::REJOIN,
    key::GROUP,
    key::TETHER,
    key::FLOW_CONTROL,
    key::GROUP_TAG,
    key::CONGESTION_CONTROL,
    key::SOCKET_RCVBUF,
    key::SOCKET_SNDBUF,
    key::RECEIVER_WINDOW,
    key::CHANNEL_SND_TIMESTAMP_OFFSET,
    key::CHANNEL_RCV_TIMESTAMP_OFFSET,
    key::MEDIA_RCV_TIMESTAMP_OFFSET,
    key::SESSION_ID,
    key::ALIAS,
    key::RESPONSE_CORRELATION_ID,
    key::RESPONSE_ENDPOINT,
    key::TTL,
    key::STREAM_ID,
];

/// Returns the channel with only the parameters of `KEPT`, and without a spy prefix.
///
/// # Errors
/// The channel cannot be parsed, or a kept parameter has an invalid value.
pub fn stripped(channel: &str) -> Result<String, UriError> {
    Ok(stripped_builder(&ChannelUri::parse(channel)?)?
        .build()
        .to_string())
}

fn stripped_builder(channel: &ChannelUri) -> Result<ChannelUriBuilder, UriError> {
    let mut stripped = ChannelUriBuilder::new(channel.media());
    for name in KEPT {
        if let Some(value) = channel.get(name) {
            stripped.put(name, value)?;
        }
    }
    Ok(stripped)
}

/// Parameters that identify a recording subscription, in the order of its key.
const KEY_PARAMETERS: [&str; 5] = [
    key::ENDPOINT,
    key::INTERFACE,
    key::CONTROL,
    key::SESSION_ID,
    key::TAGS,
];

/// Returns the key of a recording subscription. Requests that start, extend or stop the recording
/// of the same stream and channel have the same key.
///
/// Parameters such as `alias` and `mtu` do not distinguish subscriptions.
pub fn subscription_key(stream_id: i32, channel: &ChannelUri) -> String {
    let parameters: Vec<String> = KEY_PARAMETERS
        .iter()
        .filter_map(|name| Some(format!("{name}={}", channel.get(name)?)))
        .collect();
    let media = channel.media().as_str();
    match parameters.is_empty() {
        true => format!("{stream_id}:{media}"),
        false => format!("{stream_id}:{media}?{}", parameters.join("|")),
    }
}

/// Settings of the archive's control streams, used if a client's response channel does not set them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ControlStreamDefaults {
    /// Parameter `mtu`, in bytes.
    pub mtu_length: i32,
    /// Parameter `term-length`, in bytes.
    pub term_length: i32,
    /// Parameter `sparse`.
    pub is_sparse: bool,
}

/// Returns the channel of a response publication: the stripped channel that the client asked for, with `mtu`,
/// `term-length` and `sparse`.
///
/// The address is that of anybody whom the request names. On the network, the driver of this project therefore sends
/// SETUPs at growing intervals until a receiver responds (`setup-backoff`). Other drivers ignore this parameter.
///
/// With `control-mode=response`, the publication sends its responses to the client of one request image. The
/// correlation id of this image is `request_image_correlation_id`.
///
/// # Errors
/// The channel cannot be parsed, or a parameter has an invalid value.
pub fn response_channel(
    channel: &str,
    defaults: ControlStreamDefaults,
    request_image_correlation_id: i64,
) -> Result<String, UriError> {
    let requested = ChannelUri::parse(channel)?;
    let mut response = stripped_builder(&requested)?;
    for (name, default) in [
        (key::MTU, defaults.mtu_length.to_string()),
        (key::TERM_LENGTH, defaults.term_length.to_string()),
        (key::SPARSE, defaults.is_sparse.to_string()),
    ] {
        response.put(name, requested.get(name).unwrap_or(&default))?;
    }
    if requested.control_mode() == ControlMode::Response {
        response.put(key::RESPONSE_CORRELATION_ID, request_image_correlation_id)?;
    }
    let channel = response.build().to_string();
    Ok(match requested.media() {
        Media::Udp => format!("{channel}|{}=true", key::SETUP_BACKOFF),
        Media::Ipc => channel,
    })
}

/// Values of a recording that the channel of its replay needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplayStart {
    /// Position of the first frame.
    pub position: i64,
    /// Term id of the recorded stream's first term.
    pub initial_term_id: i32,
    /// Length of a term of the recorded stream, in bytes.
    pub term_length: i32,
    /// Longest frame of the recorded stream, in bytes.
    pub mtu_length: i32,
    /// Linger of the publication if the request does not set one, in nanoseconds.
    pub linger_timeout_ns: i64,
}

/// Returns the channel of a replay publication: the stripped channel of the request, with the position of the replay,
/// the `mtu` of the recording, and `eos`, `sparse` and `linger` of the request.
///
/// # Errors
/// The channel cannot be parsed, or a parameter has an invalid value.
pub fn replay_channel(channel: &str, start: &ReplayStart) -> Result<ChannelUriBuilder, UriError> {
    let requested = ChannelUri::parse(channel)?;
    let mut replay = stripped_builder(&requested)?;
    for name in [key::EOS, key::SPARSE, key::LINGER] {
        if let Some(value) = requested.get(name) {
            replay.put(name, value)?;
        }
    }
    if requested.get(key::LINGER).is_none() {
        replay.put(key::LINGER, start.linger_timeout_ns)?;
    }
    replay.put(key::MTU, start.mtu_length)?;
    replay.initial_position(start.position, start.initial_term_id, start.term_length)?;
    Ok(replay)
}

/// Returns the channel that the archive subscribes to for a recording: the stripped channel. If `is_local` and the
/// channel is UDP, it has the spy prefix, so that the archive spies on a publication of its driver.
///
/// # Errors
/// The same errors as [`stripped`].
pub fn recording_channel(channel: &ChannelUri, is_local: bool) -> Result<String, UriError> {
    let mut recorded = stripped_builder(channel)?;
    recorded.spy(is_local && channel.media() == Media::Udp);
    Ok(recorded.build().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stripped_channel_has_no_spy_prefix_and_no_parameters_such_as_mtu_and_linger() {
        let stripped = |channel| stripped(channel).unwrap();
        assert_eq!(stripped("aeron:ipc?term-length=64k|mtu=1408"), "aeron:ipc");
        assert_eq!(
            stripped("aeron-spy:aeron:udp?linger=5s|endpoint=localhost:20121|alias=x|ttl=4"),
            "aeron:udp?endpoint=localhost:20121|ttl=4|alias=x"
        );
    }

    /// 07-41
    #[test]
    fn the_key_of_a_subscription_ignores_parameters_that_do_not_identify_the_stream() {
        let key = |channel: &str| subscription_key(7, &ChannelUri::parse(channel).unwrap());
        assert_eq!(key("aeron:ipc?alias=a|mtu=1408"), "7:ipc");
        assert_eq!(
            key("aeron:udp?alias=a|session-id=5|endpoint=localhost:1|tags=3"),
            "7:udp?endpoint=localhost:1|session-id=5|tags=3"
        );
    }

    /// 07-24, 07-25
    #[test]
    fn a_response_channel_has_the_parameters_of_the_request_or_the_defaults() {
        let defaults = ControlStreamDefaults {
            mtu_length: 1408,
            term_length: 65536,
            is_sparse: true,
        };
        let response = |channel| response_channel(channel, defaults, 9).unwrap();
        assert_eq!(
            response("aeron:udp?endpoint=127.0.0.1:59052|session-id=-2137379455|linger=5s"),
            "aeron:udp?endpoint=127.0.0.1:59052|mtu=1408|term-length=64k|session-id=-2137379455|sparse=true|setup-backoff=true"
        );
        assert_eq!(
            response("aeron:ipc?term-length=128k|sparse=false|mtu=4096"),
            "aeron:ipc?mtu=4k|term-length=128k|sparse=false"
        );
        assert!(
            response("aeron:udp?control-mode=response|control=localhost:1")
                .contains("response-correlation-id=9")
        );
    }

    /// 07-86, 07-87
    #[test]
    fn a_replay_channel_is_at_the_position_of_the_replay() {
        let start = ReplayStart {
            position: 132_096,
            initial_term_id: 7,
            term_length: 65536,
            mtu_length: 1408,
            linger_timeout_ns: 5_000_000_000,
        };
        let replay = replay_channel("aeron:udp?endpoint=127.0.0.1:24777", &start).unwrap();
        assert_eq!(
            replay.build().to_string(),
            "aeron:udp?endpoint=127.0.0.1:24777|mtu=1408|term-length=64k|init-term-id=7|term-id=9|term-offset=1024|linger=5s"
        );
        let replay = replay_channel("aeron:ipc?session-id=4|eos=false|linger=0", &start).unwrap();
        assert!(replay.build().to_string().contains("session-id=4"));
        assert_eq!(replay.get("linger"), Some("0ns"));
        assert_eq!(replay.get("eos"), Some("false"));
    }
}
