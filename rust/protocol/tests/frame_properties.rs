//! Tests of frames with random contents: decoding an encoded frame returns the same frame, and no bytes make a decoder
//! panic.

use aeron_protocol::frame::resolution::{self, ResolutionEncoder, ResolutionEntry};
use aeron_protocol::frame::{
    ControlFrame, DataFrame, DataHeader, ErrorFrame, FrameHeader, MAX_UDP_PAYLOAD_LENGTH, Nak,
    ResponseSetup, Rttm, Setup, StatusMessage, Walk, walk,
};
use proptest::prelude::*;
use std::net::{IpAddr, SocketAddr};

const TERM_LENGTH: usize = 64 * 1024;

fn written(write: impl FnOnce(&mut [u8]) -> usize) -> Vec<u8> {
    let mut out = vec![0xAA; MAX_UDP_PAYLOAD_LENGTH];
    let length = write(&mut out);
    out.truncate(length);
    out
}

/// Creates a datagram of consecutive frames from `term_offset` on. A padding frame consists of its header only.
fn datagram(term_offset: usize, frame_lengths: &[usize], last_is_padding: bool) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut offset = term_offset;
    for (index, frame_length) in frame_lengths.iter().enumerate() {
        let header = DataHeader {
            frame_length: *frame_length as i32,
            flags: 0,
            is_padding: last_is_padding && index + 1 == frame_lengths.len(),
            term_offset: offset as i32,
            session_id: 7,
            stream_id: 1001,
            term_id: 3,
            reserved_value: 0,
        };
        let begin = bytes.len();
        bytes.extend(written(|out| header.encode(out)));
        if !header.is_padding {
            bytes.resize(begin + frame_length.next_multiple_of(32), 0x55);
        }
        offset += frame_length.next_multiple_of(32);
    }
    bytes
}

fn any_bytes() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..160)
}

/// Random bytes after a frame header with version 0 and a likely length and type.
fn any_frame_like() -> impl Strategy<Value = Vec<u8>> {
    let frame_length = prop_oneof![0..200_i32, any::<i32>()];
    (frame_length, any::<u8>(), -1..13_i16, any_bytes()).prop_map(
        |(frame_length, flags, type_id, rest)| {
            let mut bytes = frame_length.to_le_bytes().to_vec();
            bytes.extend([0, flags]);
            bytes.extend(type_id.to_le_bytes());
            bytes.extend(rest);
            bytes
        },
    )
}

fn any_setup() -> impl Strategy<Value = Setup> {
    let term_lengths = (16..=30_u32).prop_map(|bits| 1 << bits);
    let ids: [BoxedStrategy<i32>; 3] = std::array::from_fn(|_| any::<i32>().boxed());
    (
        ids,
        0..1000_i32,
        term_lengths,
        0..2048_i32,
        1..2048_i32,
        0..256,
        any::<[bool; 2]>(),
    )
        .prop_map(|(ids, terms, term_length, offset, mtu, ttl, flags)| Setup {
            wants_response: flags[0],
            has_group_semantics: flags[1],
            term_offset: offset * 32,
            session_id: ids[0],
            stream_id: ids[1],
            initial_term_id: ids[2],
            active_term_id: ids[2].wrapping_add(terms),
            term_length,
            mtu_length: mtu.min(2047) * 32,
            ttl,
        })
}

fn any_address() -> impl Strategy<Value = SocketAddr> {
    let ip = prop_oneof![
        any::<[u8; 4]>().prop_map(IpAddr::from),
        any::<[u8; 16]>().prop_map(IpAddr::from),
    ];
    (ip, any::<u16>()).prop_map(SocketAddr::from)
}

proptest! {
    #[test]
    fn no_bytes_make_a_decoder_panic(bytes in prop_oneof![any_bytes(), any_frame_like()]) {
        let _ = FrameHeader::decode(&bytes);
        let _ = DataFrame::decode(&bytes);
        let _ = ControlFrame::decode(&bytes);
        if let Ok(entries) = resolution::entries(&bytes) {
            prop_assert!(entries.count() <= bytes.len() / 14 + 1);
        }
    }

    /// If `walk` accepts a datagram, its frames are within the term and cover whole multiples of 32 bytes.
    #[test]
    fn accepted_data_lies_within_the_term(
        bytes in any_frame_like(), offset in 0..2100_i32, length in prop_oneof![0..4_usize, 0..2048_usize],
    ) {
        let mut bytes = bytes;
        bytes.resize(bytes.len().max(32).next_multiple_of(32), 0);
        bytes[0..4].copy_from_slice(&(length as i32 * 32).to_le_bytes());
        bytes[8..12].copy_from_slice(&(offset * 32).to_le_bytes());
        if let Ok(walk) = walk(&bytes, TERM_LENGTH) {
            prop_assert!(offset as usize * 32 + walk.length <= TERM_LENGTH);
            prop_assert_eq!(walk.length % 32, 0);
            prop_assert!(walk.is_heartbeat || walk.length >= bytes.len());
        }
    }

    #[test]
    fn consecutive_frames_are_accepted_only_within_a_term(
        frame_lengths in prop::collection::vec(32..300_usize, 1..8), last_is_padding: bool,
    ) {
        let covered = frame_lengths.iter().map(|length| length.next_multiple_of(32)).sum();
        let expected = Walk { length: covered, is_heartbeat: false };
        let at_end = datagram(TERM_LENGTH - covered, &frame_lengths, last_is_padding);
        prop_assert_eq!(walk(&at_end, TERM_LENGTH), Ok(expected));
        let beyond = datagram(TERM_LENGTH - covered + 32, &frame_lengths, last_is_padding);
        prop_assert!(walk(&beyond, TERM_LENGTH).is_err());
    }

    #[test]
    fn an_encoded_data_frame_decodes_to_the_same_frame(
        ids: [i32; 3], offset: i32, frame_length in prop_oneof![Just(0), 32..=i32::MAX], flags: u8,
        is_padding: bool, reserved_value: i64,
    ) {
        let header = DataHeader {
            frame_length, flags, is_padding, term_offset: offset,
            session_id: ids[0], stream_id: ids[1], term_id: ids[2], reserved_value,
        };
        let bytes = written(|out| header.encode(out));
        prop_assert_eq!(DataHeader::decode(&bytes), Ok(header));
    }

    #[test]
    fn an_encoded_setup_decodes_to_the_same_setup(setup in any_setup()) {
        prop_assume!(setup.term_offset < setup.term_length);
        let bytes = written(|out| setup.encode(out));
        prop_assert_eq!(DataFrame::decode(&bytes), Ok(Some(DataFrame::Setup(setup))));
    }

    #[test]
    fn an_encoded_control_frame_decodes_to_the_same_frame(
        ids: [i32; 5], long: [i64; 3], flags: [bool; 2], tag: Option<i64>, bytes in any_bytes(),
    ) {
        let [session_id, stream_id, term_id, offset, length] = ids;
        let nak = Nak { session_id, stream_id, term_id, term_offset: offset, length };
        let sent = written(|out| nak.encode(out));
        prop_assert_eq!(ControlFrame::decode(&sent), Ok(Some(ControlFrame::Nak(nak))));

        let message = StatusMessage {
            wants_setup: flags[0], is_end_of_stream: flags[1], session_id, stream_id,
            consumption_term_id: term_id, consumption_term_offset: offset, receiver_window: length,
            receiver_id: long[0], feedback: &bytes,
        };
        let sent = written(|out| message.encode(out));
        prop_assert_eq!(ControlFrame::decode(&sent), Ok(Some(ControlFrame::StatusMessage(message))));

        let error = ErrorFrame {
            session_id, stream_id, receiver_id: long[0], group_tag: tag, error_code: length, error_text: &bytes,
        };
        let sent = written(|out| error.encode(out));
        prop_assert_eq!(ControlFrame::decode(&sent), Ok(Some(ControlFrame::Error(error))));

        let rttm = Rttm {
            is_request: flags[0], session_id, stream_id, echo_timestamp_ns: long[0],
            reception_delta_ns: long[1], receiver_id: long[2],
        };
        let sent = written(|out| rttm.encode(out));
        prop_assert_eq!(ControlFrame::decode(&sent), Ok(Some(ControlFrame::Rttm(rttm))));
        prop_assert_eq!(DataFrame::decode(&sent), Ok(Some(DataFrame::Rttm(rttm))));

        let response = ResponseSetup { session_id, stream_id, response_session_id: length };
        let sent = written(|out| response.encode(out));
        prop_assert_eq!(ControlFrame::decode(&sent), Ok(Some(ControlFrame::ResponseSetup(response))));
    }

    #[test]
    fn encoded_names_decode_to_the_same_names(
        names in prop::collection::vec((any_address(), any_bytes(), any::<bool>(), 0..=i32::MAX as u32), 0..20),
    ) {
        let entries: Vec<_> = names
            .iter()
            .map(|(address, name, is_self, age_ms)| ResolutionEntry {
                is_self: *is_self, address: *address, age_ms: *age_ms, name,
            })
            .collect();
        let mut out = [0; 1408];
        let mut encoder = ResolutionEncoder::new(&mut out);
        let fitting = entries.iter().take_while(|entry| encoder.push(entry)).count();
        let read: Result<Vec<_>, _> = resolution::entries(encoder.finish()).unwrap().collect();
        prop_assert_eq!(read.as_deref(), Ok(&entries[..fitting]));
    }
}
