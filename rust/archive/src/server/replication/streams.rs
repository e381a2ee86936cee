//! Creates the channels of a replication: the channel of the recording in this archive, and the channel of the replay
//! at the source.

use aeron_protocol::uri::{ChannelUri, ControlMode, UriError, key};

use super::request::ReplicationRequest;

/// The channel of the recording's subscription, and the destination that a command adds to the
/// subscription.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RecordingChannel {
    /// Channel of the subscription.
    pub channel: String,
    /// Destination of the replay; `None` if the channel itself receives the replay.
    pub destination: Option<String>,
}

/// Returns the channel of the recording that receives a replay with this session id.
///
/// # Errors
/// The channel cannot be parsed.
pub(super) fn recording_channel(
    request: &ReplicationRequest,
    replication_channel: &str,
    session_id: i32,
    replication_id: i64,
) -> Result<RecordingChannel, UriError> {
    let mut channel = ChannelUri::parse(replication_channel)?;
    channel.put(key::REJOIN, "false")?;
    put_session_id(&mut channel, session_id)?;
    if !request.has_manual_destinations() {
        let channel = channel.to_string();
        return Ok(RecordingChannel {
            channel,
            destination: None,
        });
    }
    let endpoint = channel.remove(key::ENDPOINT).unwrap_or_default();
    let destination = ChannelUri::parse(replication_channel)?.destination(&endpoint)?;
    let tags = format!(
        "{},{}",
        request.channel_tag_id.unwrap_or(replication_id),
        request.subscription_tag_id.unwrap_or(replication_id)
    );
    channel.put(key::TAGS, &tags)?;
    channel.put(key::CONTROL_MODE, "manual")?;
    if request.live_destination.is_some() {
        // The live stream and the recording come from the same publication, so they have the same session id.
        channel.put(key::SESSION_ID, &session_id.to_string())?;
    }
    Ok(RecordingChannel {
        channel: channel.to_string(),
        destination: Some(destination.to_string()),
    })
}

/// Returns the channel of the replay at the source: the replication channel with the port that the driver chose.
///
/// # Errors
/// The channel cannot be parsed, or the port is not resolved.
pub(super) fn replay_channel(
    request: &ReplicationRequest,
    replication_channel: &str,
    resolved_endpoint: Option<&str>,
    session_id: i32,
) -> Result<String, UriError> {
    let mut channel = ChannelUri::parse(replication_channel)?;
    if let Some(endpoint) = resolved_endpoint {
        channel.replace_endpoint_wildcard_port(endpoint)?;
    }
    put_session_id(&mut channel, session_id)?;
    if request.live_destination.is_some() {
        channel.put(key::LINGER, "0")?;
        channel.put(key::EOS, "false")?;
    }
    Ok(channel.to_string())
}

/// Returns whether the replay is sent to the response channel of the request for it.
pub(super) fn is_response_mode(channel: &str) -> bool {
    ChannelUri::parse(channel).is_ok_and(|channel| channel.control_mode() == ControlMode::Response)
}

/// Sets the session id of the replay. A response channel has none, because only its subscription receives the replay.
fn put_session_id(channel: &mut ChannelUri, session_id: i32) -> Result<(), UriError> {
    match channel.control_mode() {
        ControlMode::Response => Ok(()),
        _ => channel.put(key::SESSION_ID, &session_id.to_string()),
    }
}

/// Returns whether the driver chooses the port of the channel.
pub(super) fn has_wildcard_port(channel: &str) -> bool {
    ChannelUri::parse(channel).is_ok_and(|channel| {
        channel
            .get(key::ENDPOINT)
            .is_some_and(|endpoint| endpoint.ends_with(":0"))
    })
}
