//! Keys and labels of the driver's counters (layouts, section 7.3).
//!
//! Encoding cuts texts to what a key holds and leaves zeros behind them. Decoding is total: the lengths inside a key are clipped to
//! the key.

use super::MAX_KEY_LENGTH;

/// A key as it is stored.
pub type Key = [u8; MAX_KEY_LENGTH];

/// The longest channel in the key of a stream counter.
pub const MAX_STREAM_CHANNEL_LENGTH: usize = MAX_KEY_LENGTH - 20;
/// The longest channel in the key of a channel counter.
pub const MAX_CHANNEL_LENGTH: usize = MAX_KEY_LENGTH - 4;
/// The longest address in the key of a local address counter.
pub const MAX_ADDRESS_LENGTH: usize = 103;

/// Key of the counters of a stream: types 1 to 5, 9, 10, 12, 13, 17, 19, 20.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamKey {
    /// Registration id of the publication, subscription or image.
    pub registration_id: i64,
    /// Session of the stream.
    pub session_id: i32,
    /// Id of the stream within its channel.
    pub stream_id: i32,
    /// The channel, cut to 92 bytes.
    pub channel: String,
}

impl StreamKey {
    /// Reads a key.
    pub fn decode(key: &Key) -> Self {
        Self {
            registration_id: i64_at(key, 0),
            session_id: i32_at(key, 8),
            stream_id: i32_at(key, 12),
            channel: text_at(key, 16, MAX_STREAM_CHANNEL_LENGTH),
        }
    }
}

/// Key of the counters of a stream.
pub fn stream_key(registration_id: i64, session_id: i32, stream_id: i32, channel: &str) -> Key {
    let mut key = [0; MAX_KEY_LENGTH];
    key[..8].copy_from_slice(&registration_id.to_le_bytes());
    key[8..12].copy_from_slice(&session_id.to_le_bytes());
    key[12..16].copy_from_slice(&stream_id.to_le_bytes());
    put_text(&mut key, 16, channel, MAX_STREAM_CHANNEL_LENGTH);
    key
}

/// Label of a counter of a stream; `name` as in the table of types, e.g. `pub-lmt`.
pub fn stream_label(
    name: &str,
    registration_id: i64,
    session_id: i32,
    stream_id: i32,
    channel: &str,
) -> String {
    format!("{name}: {registration_id} {session_id} {stream_id} {channel}")
}

/// Label of a subscriber's position, which says where it joined the stream.
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

/// Key of the counters of a channel: types 6, 7 and 18.
pub fn channel_key(channel: &str) -> Key {
    let mut key = [0; MAX_KEY_LENGTH];
    put_text(&mut key, 0, channel, MAX_CHANNEL_LENGTH);
    key
}

/// The channel in the key of a channel counter, cut to 108 bytes.
pub fn decode_channel_key(key: &Key) -> String {
    text_at(key, 0, MAX_CHANNEL_LENGTH)
}

/// Key of a bound address: type 14.
pub fn local_address_key(channel_status_id: i32, address: &str) -> Key {
    let mut key = [0; MAX_KEY_LENGTH];
    key[..4].copy_from_slice(&channel_status_id.to_le_bytes());
    put_text(&mut key, 4, address, MAX_ADDRESS_LENGTH);
    key
}

/// The id of the channel status counter, and the address, in the key of a bound address.
pub fn decode_local_address_key(key: &Key) -> (i32, String) {
    (i32_at(key, 0), text_at(key, 4, MAX_ADDRESS_LENGTH))
}

/// Label of a bound address; `name` is `snd-local-sockaddr` or `rcv-local-sockaddr`.
pub fn local_address_label(name: &str, channel_status_id: i32, address: &str) -> String {
    format!("{name}: {channel_status_id} {address}")
}

/// Key of a client's heartbeat: type 11.
pub fn heartbeat_key(client_id: i64) -> Key {
    let mut key = [0; MAX_KEY_LENGTH];
    key[..8].copy_from_slice(&client_id.to_le_bytes());
    key
}

/// The client id in the key of a heartbeat.
pub fn decode_heartbeat_key(key: &Key) -> i64 {
    i64_at(key, 0)
}

/// Label of a client's heartbeat, as the driver writes it.
pub fn heartbeat_label(client_id: i64) -> String {
    format!("client-heartbeat: id={client_id}")
}

/// What a client appends to the label of its heartbeat; `version` and `commit` are those of the client.
pub fn heartbeat_label_suffix(client_name: &str, version: &str, commit: &str) -> String {
    format!(" name={client_name} version={version} commit={commit}")
}

fn put_text(key: &mut Key, offset: usize, text: &str, max: usize) {
    let text = &text.as_bytes()[..text.len().min(max)];
    key[offset..offset + 4].copy_from_slice(&(text.len() as i32).to_le_bytes());
    key[offset + 4..][..text.len()].copy_from_slice(text);
}

fn text_at(key: &Key, offset: usize, max: usize) -> String {
    let length = i32_at(key, offset).clamp(0, max as i32) as usize;
    String::from_utf8_lossy(&key[offset + 4..][..length]).into_owned()
}

fn i32_at(key: &Key, offset: usize) -> i32 {
    i32::from_le_bytes(
        *key[offset..]
            .first_chunk()
            .expect("offsets of fields lie in the key"),
    )
}

fn i64_at(key: &Key, offset: usize) -> i64 {
    i64::from_le_bytes(
        *key[offset..]
            .first_chunk()
            .expect("offsets of fields lie in the key"),
    )
}
