//! Builds the channels of control sessions, and changes the channels of replays.

use aeron_protocol::uri::{ChannelUri, ControlMode, UriError, key};

use super::context::ArchiveClientContext;
use super::error::{ArchiveClientError, Result};

/// Parses a channel.
pub(super) fn parse(channel: &str) -> Result<ChannelUri> {
    ChannelUri::parse(channel).map_err(|error| ArchiveClientError::channel(channel, error))
}

/// Returns a copy of a channel with this session id.
pub(super) fn with_session_id(channel: &str, session_id: i32) -> Result<String> {
    Ok(parse(channel)?.with_session_id(session_id).to_string())
}

/// Returns whether the endpoint has port 0, so that the subscriber's driver chooses the port.
pub(super) fn has_wildcard_port(channel: &ChannelUri) -> bool {
    channel
        .get(key::ENDPOINT)
        .is_some_and(|endpoint| endpoint.ends_with(":0"))
}

pub(super) fn is_response_mode(channel: &ChannelUri) -> bool {
    channel.control_mode() == ControlMode::Response
}

/// Returns a control channel in which the context's values replace missing parameters.
pub(super) fn with_control_defaults(
    channel: &str,
    context: &ArchiveClientContext,
) -> Result<ChannelUri> {
    let mut uri = parse(channel)?;
    let defaults = [
        (
            key::TERM_LENGTH,
            context.control_term_buffer_length.to_string(),
        ),
        (key::SPARSE, context.control_term_buffer_sparse.to_string()),
        (key::MTU, context.control_mtu_length.to_string()),
    ];
    for (key, value) in defaults {
        if uri.get(key).is_none() {
            put(&mut uri, key, &value)?;
        }
    }
    Ok(uri)
}

/// Returns the channel of the publication that requests a replay for a response subscription.
pub(crate) fn replay_request_channel(
    context: &ArchiveClientContext,
    subscription_registration_id: i64,
) -> Result<String> {
    let mut uri = with_control_defaults(&context.control_request_channel, context)?;
    for key in [
        key::SESSION_ID,
        key::INITIAL_TERM_ID,
        key::TERM_ID,
        key::TERM_OFFSET,
    ] {
        uri.remove(key);
    }
    put(&mut uri, key::SPIES_SIMULATE_CONNECTION, "false")?;
    correlate_responses(&mut uri, subscription_registration_id)?;
    Ok(uri.to_string())
}

/// Adds a parameter with the id of the response subscription to a request channel.
pub(super) fn correlate_responses(
    request_channel: &mut ChannelUri,
    subscription_registration_id: i64,
) -> Result<()> {
    let id = subscription_registration_id.to_string();
    put(request_channel, key::RESPONSE_CORRELATION_ID, &id)
}

/// Sets a parameter of a channel.
pub(super) fn put(uri: &mut ChannelUri, key: &str, value: &str) -> Result<()> {
    let refuse = |error: UriError| ArchiveClientError::Configuration(error.to_string());
    uri.put(key, value).map_err(refuse)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_that_a_control_channel_lacks_are_added() {
        let context = ArchiveClientContext::default();
        let filled = |channel| {
            with_control_defaults(channel, &context)
                .unwrap()
                .to_string()
        };
        assert_eq!(
            filled("aeron:ipc"),
            "aeron:ipc?term-length=65536|sparse=true|mtu=1408"
        );
        assert_eq!(
            filled("aeron:udp?endpoint=localhost:0|mtu=8k|term-length=1m|sparse=false"),
            "aeron:udp?endpoint=localhost:0|mtu=8k|term-length=1m|sparse=false"
        );
    }

    #[test]
    fn the_request_channel_of_a_replay_has_the_id_of_the_subscription_and_no_position() {
        let context = ArchiveClientContext::new(
            "aeron:udp?endpoint=localhost:8010|session-id=7|init-term-id=1|term-id=1|term-offset=0",
            "aeron:udp?control-mode=response|control=localhost:8020",
        );
        assert_eq!(
            replay_request_channel(&context, 42).unwrap(),
            "aeron:udp?endpoint=localhost:8010|term-length=65536|sparse=true|mtu=1408|ssc=false|response-correlation-id=42"
        );
    }

    #[test]
    fn the_error_of_an_invalid_channel_has_the_channel() {
        let error = with_session_id("aeron:tcp", 1).unwrap_err().to_string();
        assert!(error.starts_with("channel aeron:tcp: "), "{error}");
    }
}
