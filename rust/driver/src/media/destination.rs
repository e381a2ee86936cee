//! Checks the channels of destinations.

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

/// Returns the `host:port` of a publication's destination. The rest of the channel is only checked.
///
/// # Errors
/// Error code 1 for a spy, invalid syntax, or a parameter that a destination must not have. Error code 11 if the
/// channel is not for UDP, has no endpoint, or its endpoint has port 0.
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

/// Checks that a destination has no keys that only its parent channel may have.
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
