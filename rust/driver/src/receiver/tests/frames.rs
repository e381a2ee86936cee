//! Frames of senders, and the constants of the stream that most tests use.

use aeron_protocol::frame::{DATA_HEADER_LENGTH, DataHeader, Setup, StatusMessage, flags};

pub const STREAM: i32 = 1001;
pub const SESSION: i32 = 77;
pub const INITIAL_TERM: i32 = 50;
pub const TERM: usize = 64 * 1024;

/// Returns an encoded frame.
pub fn encoded(encode: impl FnOnce(&mut [u8]) -> usize) -> Vec<u8> {
    let mut bytes = vec![0; 2048];
    let length = encode(&mut bytes);
    bytes.truncate(length);
    bytes
}

/// Returns the SETUP of [`SESSION`] at the start of its stream.
pub fn setup() -> Setup {
    setup_at(0)
}

/// Returns the SETUP of [`SESSION`] at a position.
pub fn setup_at(position: i64) -> Setup {
    Setup {
        wants_response: false,
        has_group_semantics: false,
        term_offset: (position % TERM as i64) as i32,
        session_id: SESSION,
        stream_id: STREAM,
        initial_term_id: INITIAL_TERM,
        active_term_id: INITIAL_TERM + (position / TERM as i64) as i32,
        term_length: TERM as i32,
        mtu_length: 1408,
        ttl: 0,
    }
}

pub fn header_at(position: i64) -> DataHeader {
    DataHeader {
        frame_length: 0,
        flags: flags::UNFRAGMENTED,
        is_padding: false,
        term_offset: (position % TERM as i64) as i32,
        session_id: SESSION,
        stream_id: STREAM,
        term_id: INITIAL_TERM + (position / TERM as i64) as i32,
        reserved_value: 0,
    }
}

/// Returns a datagram with one message. `length` is the length of the frame with its header, a multiple of 32.
pub fn data(position: i64, length: usize) -> Vec<u8> {
    data_of(header_at(position), length)
}

pub fn data_of(header: DataHeader, length: usize) -> Vec<u8> {
    let header = DataHeader {
        frame_length: length as i32,
        ..header
    };
    let mut datagram = vec![0x55; length];
    header.encode(&mut datagram);
    datagram
}

pub fn heartbeat(position: i64) -> Vec<u8> {
    heartbeat_with(position, flags::UNFRAGMENTED)
}

pub fn heartbeat_with(position: i64, flags: u8) -> Vec<u8> {
    encoded(|out| {
        DataHeader {
            flags,
            ..header_at(position)
        }
        .encode(out)
    })
}

/// Returns a padding frame of `length` bytes, of which only the header is sent.
pub fn padding(position: i64, length: usize) -> Vec<u8> {
    let header = DataHeader {
        frame_length: length as i32,
        is_padding: true,
        ..header_at(position)
    };
    assert_eq!(DATA_HEADER_LENGTH, 32);
    encoded(|out| header.encode(out))
}

/// Decodes a status message, for the fields that [`Seen`] does not have.
pub fn status_message(datagram: &[u8]) -> StatusMessage<'_> {
    StatusMessage::decode(datagram).expect("a status message")
}
