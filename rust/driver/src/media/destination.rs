//! What the channels of destinations may and must say.

use aeron_protocol::ErrorCode;
use aeron_protocol::uri::{ChannelUri, ControlMode, Media, Transport, key};

use crate::error::DriverError;

const FORBIDDEN_KEYS: [&str; 5] = [
    key::MTU,
    key::RECEIVER_WINDOW,
    key::SOCKET_RCVBUF,
    key::SOCKET_SNDBUF,
    key::RESPONSE_CORRELATION_ID,
];

/// The `host:port` of a publication's destination: all that is used of its channel.
///
/// # Errors
/// Code 1 for a spy, bad syntax and keys that a destination must not have; code 11 without an endpoint or a port.
pub fn send_destination_endpoint(channel: &[u8]) -> Result<String, DriverError> {
    let text = String::from_utf8_lossy(channel);
    if Transport::of(channel) == Transport::Spy {
        return Err(invalid_channel(format_args!(
            "Aeron spies are invalid as send destinations: {text}"
        )));
    }
    let uri = ChannelUri::from_bytes(channel)?;
    let endpoint = uri
        .get(key::ENDPOINT)
        .filter(|_| uri.media() == Media::Udp)
        .ok_or_else(|| {
            DriverError::invalid_argument(format_args!(
                "incorrect URI format for destination: {text}"
            ))
        })?;
    if endpoint.ends_with(":0") {
        return Err(DriverError::invalid_argument(format_args!(
            "endpoint has port=0 for send destination: channel={text}"
        )));
    }
    check_destination_keys(&uri)?;
    Ok(endpoint.to_owned())
}

/// Checks that a destination says nothing that only the channel it belongs to can say.
pub(super) fn check_destination_keys(uri: &ChannelUri) -> Result<(), DriverError> {
    if let Some(key) = FORBIDDEN_KEYS.iter().find(|key| uri.get(key).is_some()) {
        return Err(invalid_channel(format_args!(
            "destinations must not contain the key: {key} channel={uri}"
        )));
    }
    if uri.control_mode() == ControlMode::Response {
        return Err(invalid_channel(format_args!(
            "destinations may not specify control-mode=response: channel={uri}"
        )));
    }
    Ok(())
}

fn invalid_channel(message: std::fmt::Arguments<'_>) -> DriverError {
    DriverError::coded(ErrorCode::InvalidChannel, message)
}
