//! The stripped channel of a recording: what identifies a stream, without what shapes it.

use aeron_protocol::uri::{ChannelUri, ChannelUriBuilder, UriError, key};

/// Parameters that are kept.
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

/// The channel with only those parameters, and without a spy prefix.
///
/// # Errors
/// The channel cannot be parsed, or a kept parameter has a value that cannot be.
pub(super) fn stripped(channel: &str) -> Result<String, UriError> {
    let channel = ChannelUri::parse(channel)?;
    let mut stripped = ChannelUriBuilder::new(channel.media());
    for name in KEPT {
        if let Some(value) = channel.get(name) {
            stripped.put(name, value)?;
        }
    }
    Ok(stripped.build().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_identify_a_stream_is_left_out() {
        let stripped = |channel| stripped(channel).unwrap();
        assert_eq!(stripped("aeron:ipc?term-length=64k|mtu=1408"), "aeron:ipc");
        assert_eq!(
            stripped("aeron-spy:aeron:udp?linger=5s|endpoint=localhost:20121|alias=x|ttl=4"),
            "aeron:udp?endpoint=localhost:20121|ttl=4|alias=x"
        );
    }
}
