//! Keys and labels of the driver's counters (`docs/spec/01-memory-layouts.md`, section 7.3).
//!
//! Encoding truncates a text that is too long for the key, and writes zeros after a shorter one. Decoding accepts any
//! bytes: the lengths inside a key are clipped to the key.

use aeron_layout::counters::{
    ChannelKeyLayout, HeartbeatKeyLayout, LocalAddressKeyLayout, StreamKeyLayout,
};
use aeron_layout::{FromZeros, I32};

use super::MAX_KEY_LENGTH;

/// A key as it is stored in memory.
pub type Key = [u8; MAX_KEY_LENGTH];

/// Maximum length of the channel in the key of a stream counter, in bytes.
pub const MAX_STREAM_CHANNEL_LENGTH: usize = MAX_KEY_LENGTH - 20;
/// Maximum length of the channel in the key of a channel counter, in bytes.
pub const MAX_CHANNEL_LENGTH: usize = MAX_KEY_LENGTH - 4;
/// Maximum length of the address in the key of a local address counter, in bytes.
pub const MAX_ADDRESS_LENGTH: usize = 103;

/// Key of the counters of a stream: types 1 to 5, 9, 10, 12, 13, 17, 19, 20.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamKey {
    /// Registration id of the publication, subscription or image.
    pub registration_id: i64,
    /// Session id.
    pub session_id: i32,
    /// Stream id.
    pub stream_id: i32,
    /// The channel, truncated to 92 bytes.
    pub channel: String,
}

impl StreamKey {
    /// Reads a key.
    pub fn decode(key: &Key) -> Self {
        let layout = StreamKeyLayout::of(key);
        Self {
            registration_id: layout.registration_id.get(),
            session_id: layout.session_id.get(),
            stream_id: layout.stream_id.get(),
            channel: text(layout.channel_length, &layout.channel),
        }
    }
}

/// Encodes the key of a stream counter.
pub fn stream_key(registration_id: i64, session_id: i32, stream_id: i32, channel: &str) -> Key {
    let mut channel_bytes = [0; MAX_STREAM_CHANNEL_LENGTH];
    let channel_length = put_text(&mut channel_bytes, channel);
    StreamKeyLayout {
        registration_id: registration_id.into(),
        session_id: session_id.into(),
        stream_id: stream_id.into(),
        channel_length,
        channel: channel_bytes,
    }
    .to_bytes()
}

/// Returns the label of a stream counter. `name` is the name of the counter type, e.g. `pub-lmt`.
pub fn stream_label(
    name: &str,
    registration_id: i64,
    session_id: i32,
    stream_id: i32,
    channel: &str,
) -> String {
    format!("{name}: {registration_id} {session_id} {stream_id} {channel}")
}

/// Returns the label of a subscriber position, which contains the join position.
pub fn subscriber_position_label(
    registration_id: i64,
    session_id: i32,
    stream_id: i32,
    channel: &str,
    join_position: i64,
) -> String {
    let label = stream_label("sub-pos", registration_id, session_id, stream_id, channel);
    format!("{label} @{join_position}")
}

/// Encodes the key of a channel counter: types 6, 7 and 18.
pub fn channel_key(channel: &str) -> Key {
    let mut channel_bytes = [0; MAX_CHANNEL_LENGTH];
    let channel_length = put_text(&mut channel_bytes, channel);
    ChannelKeyLayout {
        channel_length,
        channel: channel_bytes,
    }
    .to_bytes()
}

/// Returns the channel in the key of a channel counter, truncated to 108 bytes.
pub fn decode_channel_key(key: &Key) -> String {
    let layout = ChannelKeyLayout::of(key);
    text(layout.channel_length, &layout.channel)
}

/// Encodes the key of a counter for a bound address: type 14.
pub fn local_address_key(channel_status_id: i32, address: &str) -> Key {
    let mut layout = LocalAddressKeyLayout::new_zeroed();
    layout.channel_status_id = channel_status_id.into();
    layout.address_length = put_text(&mut layout.address, address);
    layout.to_bytes()
}

/// Returns the id of the channel status counter, and the address, from the key of a bound address.
pub fn decode_local_address_key(key: &Key) -> (i32, String) {
    let layout = LocalAddressKeyLayout::of(key);
    let address = text(layout.address_length, &layout.address);
    (layout.channel_status_id.get(), address)
}

/// Returns the label of a bound address; `name` is `snd-local-sockaddr` or `rcv-local-sockaddr`.
pub fn local_address_label(name: &str, channel_status_id: i32, address: &str) -> String {
    format!("{name}: {channel_status_id} {address}")
}

/// Encodes the key of a client's heartbeat counter: type 11.
pub fn heartbeat_key(client_id: i64) -> Key {
    let mut layout = HeartbeatKeyLayout::new_zeroed();
    layout.client_id = client_id.into();
    layout.to_bytes()
}

/// Returns the client id in the key of a heartbeat.
pub fn decode_heartbeat_key(key: &Key) -> i64 {
    HeartbeatKeyLayout::of(key).client_id.get()
}

/// Returns the label of a client's heartbeat, as the driver writes it.
pub fn heartbeat_label(client_id: i64) -> String {
    format!("client-heartbeat: id={client_id}")
}

/// Returns the text that a client appends to the label of its heartbeat; `version` and `commit` describe the client.
pub fn heartbeat_label_suffix(client_name: &str, version: &str, commit: &str) -> String {
    format!(" name={client_name} version={version} commit={commit}")
}

/// Copies `text` to the beginning of `place`, truncated if necessary. Returns the number of bytes copied.
fn put_text(place: &mut [u8], text: &str) -> I32 {
    let text = &text.as_bytes()[..text.len().min(place.len())];
    place[..text.len()].copy_from_slice(text);
    (text.len() as i32).into()
}

fn text(length: I32, bytes: &[u8]) -> String {
    let length = length.get().clamp(0, bytes.len() as i32) as usize;
    String::from_utf8_lossy(&bytes[..length]).into_owned()
}
