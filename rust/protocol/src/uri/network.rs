//! Parameters that both ends of a UDP channel use, except addresses.

use super::value::unparsable;
use super::{ChannelUri, ControlMode, UriError, key};

/// Timestamp offset that selects the reserved value field in the frame header, which is directly before the payload.
pub const RESERVED_VALUE_TIMESTAMP_OFFSET: i32 = -8;

const TIMESTAMP_LENGTH: i64 = 8;
const MAX_TTL: i64 = 255;

/// Locations at which the driver writes timestamps of 8 bytes. A location is an offset in the payload in bytes, or
/// [`RESERVED_VALUE_TIMESTAMP_OFFSET`]. If it is `None`, the driver writes no timestamp.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimestampOffsets {
    /// Location of the time at which the kernel received the datagram.
    pub media_receive: Option<i32>,
    /// Location of the time at which the driver received the datagram.
    pub channel_receive: Option<i32>,
    /// Location of the time at which the driver sent the datagram.
    pub channel_send: Option<i32>,
}

/// Validated endpoint parameters of a UDP channel. The driver's settings apply to values that are `None`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NetworkParams {
    /// Control mode: how destinations are added to the channel.
    pub control_mode: ControlMode,
    /// Tag by which other channels refer to the endpoint.
    pub channel_tag: Option<i64>,
    /// Multicast time to live, 1 to 255.
    pub ttl: Option<u8>,
    /// Length of the socket send buffer in bytes.
    pub socket_sndbuf_length: Option<i64>,
    /// Length of the socket receive buffer in bytes.
    pub socket_rcvbuf_length: Option<i64>,
    /// Locations of timestamps.
    pub timestamp_offsets: TimestampOffsets,
    /// Group tag that a receiver writes into its status messages.
    pub group_tag: Option<i64>,
    /// Delay before the first NAK of a gap, in nanoseconds.
    pub nak_delay_ns: Option<i64>,
}

impl NetworkParams {
    /// Reads the parameters from `uri`.
    ///
    /// # Errors
    /// Code 1 if no parameter identifies the channel, for dynamic control without a control address, and for an invalid
    /// channel tag. Code 11 for other invalid values, and for transport security, which is not supported.
    pub fn parse(uri: &ChannelUri) -> Result<Self, UriError> {
        let control_mode = uri.control_mode();
        let channel_tag = uri.channel_tag()?;
        check_distinguished(uri, control_mode, channel_tag)?;
        check_no_transport_security(uri)?;
        let stated = |length: &i64| *length != 0;
        Ok(Self {
            control_mode,
            channel_tag,
            ttl: parse_ttl(uri)?,
            socket_sndbuf_length: uri.size(key::SOCKET_SNDBUF)?.filter(stated),
            socket_rcvbuf_length: uri.size(key::SOCKET_RCVBUF)?.filter(stated),
            timestamp_offsets: parse_timestamp_offsets(uri)?,
            group_tag: uri.int64(key::GROUP_TAG)?,
            nak_delay_ns: uri.duration_ns(key::NAK_DELAY)?,
        })
    }
}

pub(super) fn nothing_distinguishes() -> UriError {
    UriError::invalid_channel(
        "URIs for UDP must specify endpoint, control, tags, or control-mode=manual/response",
    )
}

fn check_distinguished(
    uri: &ChannelUri,
    control_mode: ControlMode,
    channel_tag: Option<i64>,
) -> Result<(), UriError> {
    let has_control = uri.get(key::CONTROL).is_some();
    if control_mode == ControlMode::Dynamic && !has_control {
        return Err(UriError::invalid_channel(
            "explicit control expected with dynamic control mode",
        ));
    }
    let has_address = has_control || uri.get(key::ENDPOINT).is_some();
    let finds_address = matches!(control_mode, ControlMode::Manual | ControlMode::Response);
    if has_address || finds_address || channel_tag.is_some() {
        Ok(())
    } else {
        Err(nothing_distinguishes())
    }
}

fn check_no_transport_security(uri: &ChannelUri) -> Result<(), UriError> {
    match uri.boolean(key::ATS)? {
        Some(true) => Err(UriError::generic(format!(
            "ATS is not enabled and thus ats=true not allowed: channel={uri}"
        ))),
        _ => Ok(()),
    }
}

fn parse_ttl(uri: &ChannelUri) -> Result<Option<u8>, UriError> {
    let Some(text) = uri.get(key::TTL) else {
        return Ok(None);
    };
    match text.parse::<i64>() {
        Ok(0) => Ok(None),
        Ok(ttl @ 1..=MAX_TTL) => Ok(Some(ttl as u8)),
        _ => Err(unparsable(key::TTL, text)),
    }
}

fn parse_timestamp_offsets(uri: &ChannelUri) -> Result<TimestampOffsets, UriError> {
    let offsets = TimestampOffsets {
        media_receive: parse_timestamp_offset(uri, key::MEDIA_RCV_TIMESTAMP_OFFSET)?,
        channel_receive: parse_timestamp_offset(uri, key::CHANNEL_RCV_TIMESTAMP_OFFSET)?,
        channel_send: parse_timestamp_offset(uri, key::CHANNEL_SND_TIMESTAMP_OFFSET)?,
    };
    let media = (key::MEDIA_RCV_TIMESTAMP_OFFSET, offsets.media_receive);
    let receive = (key::CHANNEL_RCV_TIMESTAMP_OFFSET, offsets.channel_receive);
    let send = (key::CHANNEL_SND_TIMESTAMP_OFFSET, offsets.channel_send);
    for (first, second) in [(media, receive), (media, send), (receive, send)] {
        check_apart(first, second)?;
    }
    Ok(offsets)
}

fn parse_timestamp_offset(uri: &ChannelUri, key: &str) -> Result<Option<i32>, UriError> {
    match uri.get(key) {
        None => Ok(None),
        Some("reserved") => Ok(Some(RESERVED_VALUE_TIMESTAMP_OFFSET)),
        Some(text) => match text.parse() {
            Ok(offset @ (RESERVED_VALUE_TIMESTAMP_OFFSET | 0..)) => Ok(Some(offset)),
            Ok(_) => Ok(None),
            // The text always names `media-rcv-ts-offset`, even if another key is invalid, as in the C driver.
            Err(_) => Err(UriError::generic(format!(
                "Invalid media-rcv-ts-offset: {text}"
            ))),
        },
    }
}

fn check_apart(first: (&str, Option<i32>), second: (&str, Option<i32>)) -> Result<(), UriError> {
    let (Some(a), Some(b)) = (first.1, second.1) else {
        return Ok(());
    };
    if (i64::from(a) - i64::from(b)).abs() < TIMESTAMP_LENGTH {
        return Err(UriError::generic(format!(
            "{} and {} overlap",
            first.0, second.0
        )));
    }
    Ok(())
}
