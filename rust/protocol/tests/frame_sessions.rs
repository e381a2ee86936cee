//! Tests with captured sessions of real drivers, with loss: every datagram is decoded, and the frames cover all bytes
//! of a stream.

use std::collections::BTreeMap;

use aeron_protocol::frame::{ControlFrame, DataFrame, FrameHeader, FrameType, walk};

const UNICAST: &[u8] = include_bytes!("vectors/unicast-loss-retransmit-eos.pcap");
const MULTI_DESTINATION: &[u8] = include_bytes!("vectors/mdc-dynamic-two-receivers.pcap");
const MULTICAST: &[u8] = include_bytes!("vectors/multicast-loopback-loss.pcap");

const TERM_LENGTH: usize = 64 * 1024;

const FILE_HEADER_LENGTH: usize = 24;
const RECORD_HEADER_LENGTH: usize = 16;
/// Length in bytes of the headers of a captured packet: Ethernet, IPv4 without options, UDP.
const PACKET_HEADER_LENGTH: usize = 14 + 20 + 8;

/// Returns the datagrams of a capture.
fn datagrams(mut capture: &'static [u8]) -> Vec<&'static [u8]> {
    let mut found = Vec::new();
    capture = &capture[FILE_HEADER_LENGTH..];
    while let Some((header, rest)) = capture.split_at_checked(RECORD_HEADER_LENGTH) {
        let length = u32::from_le_bytes(header[8..12].try_into().unwrap()) as usize;
        let (packet, rest) = rest.split_at(length);
        found.push(&packet[PACKET_HEADER_LENGTH..]);
        capture = rest;
    }
    found
}

/// Returns the number of datagrams of each type in a capture. Checks that the receiving side decodes each datagram, and
/// that the other side ignores it.
fn understood(capture: &'static [u8]) -> BTreeMap<&'static str, usize> {
    let mut counts = BTreeMap::new();
    for datagram in datagrams(capture) {
        let frame_type = FrameHeader::decode(datagram).unwrap().frame_type;
        let name = match frame_type {
            FrameType::Pad | FrameType::Data | FrameType::Setup => {
                assert!(DataFrame::decode(datagram).unwrap().is_some());
                assert_eq!(ControlFrame::decode(datagram), Ok(None));
                data_name(datagram)
            }
            _ => {
                assert_eq!(DataFrame::decode(datagram), Ok(None));
                control_name(ControlFrame::decode(datagram).unwrap().unwrap())
            }
        };
        *counts.entry(name).or_default() += 1;
    }
    counts
}

fn data_name(datagram: &[u8]) -> &'static str {
    let Ok(Some(DataFrame::Data(header))) = DataFrame::decode(datagram) else {
        return "setup";
    };
    let walk = walk(datagram, TERM_LENGTH).unwrap();
    assert!(header.term_offset as usize + walk.length <= TERM_LENGTH);
    if walk.is_heartbeat {
        "heartbeat"
    } else {
        "data"
    }
}

fn control_name(frame: ControlFrame<'_>) -> &'static str {
    match frame {
        ControlFrame::Nak(nak) => {
            assert_eq!(nak.check(TERM_LENGTH), Ok(()));
            "nak"
        }
        ControlFrame::StatusMessage(message) => {
            assert_eq!(message.check(TERM_LENGTH), Ok(()));
            "status message"
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn all_datagrams_of_three_captured_sessions_are_decoded() {
    let counts = [
        ("data", [37, 5, 30]),
        ("heartbeat", [54, 56, 27]),
        ("nak", [10, 0, 12]),
        ("setup", [2, 3, 2]),
        ("status message", [36, 32, 35]),
    ];
    for (index, capture) in [UNICAST, MULTI_DESTINATION, MULTICAST]
        .into_iter()
        .enumerate()
    {
        let expected: BTreeMap<_, _> = counts
            .iter()
            .map(|(name, counts)| (*name, counts[index]))
            .filter(|(_, count)| *count > 0)
            .collect();
        assert_eq!(understood(capture), expected);
    }
}

/// Including retransmissions, the frames cover all bytes of the stream, up to the end in the last heartbeat.
#[test]
fn the_frames_of_a_session_cover_the_stream_without_a_gap() {
    for (capture, initial_term_id, start) in [(UNICAST, 100, 114_688), (MULTICAST, 9, 0)] {
        let mut covered = BTreeMap::new();
        let mut end_of_stream = None;
        for datagram in datagrams(capture) {
            let Ok(Some(DataFrame::Data(header))) = DataFrame::decode(datagram) else {
                continue;
            };
            let terms = header.term_id.wrapping_sub(initial_term_id) as usize;
            let position = terms * TERM_LENGTH + header.term_offset as usize;
            let walk = walk(datagram, TERM_LENGTH).unwrap();
            match walk.is_heartbeat {
                true if header.is_end_of_stream() => end_of_stream = Some(position),
                true => {}
                false => {
                    let end = covered.entry(position).or_insert(0);
                    *end = (position + walk.length).max(*end);
                }
            }
        }
        let reached = covered.iter().fold(start, |reached, (position, end)| {
            assert!(*position <= reached, "gap at {reached}");
            reached.max(*end)
        });
        assert_eq!(Some(reached), end_of_stream);
    }
}
