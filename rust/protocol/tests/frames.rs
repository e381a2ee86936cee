//! Tests of the rules for frames: layout, limits, and refused frames.

use aeron_protocol::frame::resolution::{self, ResolutionEncoder, ResolutionEntry};
use aeron_protocol::frame::{
    ControlFrame, DataFrame, DataHeader, ErrorFrame, FrameError, FrameHeader, FrameType,
    MAX_CONTROL_FRAME_LENGTH, MAX_ERROR_TEXT_LENGTH, MAX_UDP_PAYLOAD_LENGTH, Nak, ResponseSetup,
    Rttm, Setup, StatusMessage, Walk, flags, walk,
};

const TERM_LENGTH: usize = 64 * 1024;

const SETUP: Setup = Setup {
    wants_response: true,
    has_group_semantics: false,
    term_offset: 0x0102_0320,
    session_id: 0x0506_0708,
    stream_id: 0x090A_0B0C,
    initial_term_id: 0x0D0E_0F10,
    active_term_id: 0x1112_1314,
    term_length: 0x4000_0000,
    mtu_length: 0x0580,
    ttl: 3,
};

const NAK: Nak = Nak {
    session_id: 7,
    stream_id: 1001,
    term_id: 3,
    term_offset: 64,
    length: 1408,
};

const STATUS_MESSAGE: StatusMessage<'static> = StatusMessage {
    wants_setup: false,
    is_end_of_stream: false,
    session_id: 7,
    stream_id: 1001,
    consumption_term_id: 3,
    consumption_term_offset: 64,
    receiver_window: 32 * 1024,
    receiver_id: 0x0102_0304_0506_0708,
    feedback: &[],
};

const RTTM: Rttm = Rttm {
    is_request: true,
    session_id: 7,
    stream_id: 1001,
    echo_timestamp_ns: 0x0102_0304_0506_0708,
    reception_delta_ns: 0,
    receiver_id: -2,
};

const RESPONSE_SETUP: ResponseSetup = ResponseSetup {
    session_id: 7,
    stream_id: 1001,
    response_session_id: 8,
};

const ERROR: ErrorFrame<'static> = ErrorFrame {
    session_id: 7,
    stream_id: 1001,
    receiver_id: 9,
    group_tag: Some(5),
    error_code: 13,
    error_text: b"no",
};

fn data_header(frame_length: usize, term_offset: usize) -> DataHeader {
    DataHeader {
        frame_length: frame_length as i32,
        flags: flags::UNFRAGMENTED,
        is_padding: false,
        term_offset: term_offset as i32,
        session_id: 7,
        stream_id: 1001,
        term_id: 3,
        reserved_value: 0,
    }
}

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
        let mut header = data_header(*frame_length, offset);
        header.is_padding = last_is_padding && index + 1 == frame_lengths.len();
        let begin = bytes.len();
        bytes.extend(written(|out| header.encode(out)));
        if !header.is_padding {
            bytes.resize(begin + frame_length.next_multiple_of(32), 0x55);
        }
        offset += frame_length.next_multiple_of(32);
    }
    bytes
}

fn heartbeat(flags: u8) -> Vec<u8> {
    let header = DataHeader {
        flags,
        ..data_header(0, 4096)
    };
    written(|out| header.encode(out))
}

/// Writes an i32 field at an offset of a frame, for example `frame_length` at 0.
fn put_i32(bytes: &mut [u8], at: usize, value: i32) {
    bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
}

/// 02-2
#[test]
fn all_fields_are_little_endian() {
    let setup = written(|out| SETUP.encode(out));
    let expected = "28000000 00 80 0500 20030201 08070605 0c0b0a09 100f0e0d 14131211 00000040 80050000 03000000";
    assert_eq!(setup, unhex(expected));

    let rttm = written(|out| RTTM.encode(out));
    let expected =
        "28000000 00 80 0600 07000000 e9030000 0807060504030201 0000000000000000 feffffffffffffff";
    assert_eq!(rttm, unhex(expected));

    let header = DataHeader {
        reserved_value: 0x0102_0304_0506_0708,
        ..data_header(72, 96)
    };
    let expected = "48000000 00 c0 0100 60000000 07000000 e9030000 03000000 0807060504030201";
    assert_eq!(written(|out| header.encode(out)), unhex(expected));
}

fn unhex(text: &str) -> Vec<u8> {
    let digits: Vec<_> = text.bytes().filter(|byte| *byte != b' ').collect();
    digits
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

/// 02-2
#[test]
fn a_name_has_a_little_endian_port_and_an_address_in_network_order() {
    let entry = ResolutionEntry {
        is_self: true,
        address: "127.0.0.1:24372".parse().unwrap(),
        age_ms: 0x0304,
        name: b"c",
    };
    let mut out = [0xAA; 64];
    let mut encoder = ResolutionEncoder::new(&mut out);
    assert!(encoder.push(&entry));
    let expected = "18000000 00 00 0700 01 80 345f 04030000 7f000001 0100 63 00";
    assert_eq!(encoder.finish(), unhex(expected));
}

/// 02-3
#[test]
fn receiver_id_and_group_tag_of_a_status_message_are_at_28_and_36_with_any_alignment() {
    let tag = 0x1112_1314_1516_1718_i64.to_le_bytes();
    let message = StatusMessage {
        feedback: &tag,
        ..STATUS_MESSAGE
    };
    let bytes = written(|out| message.encode(out));
    assert_eq!(bytes[28..36], 0x0102_0304_0506_0708_i64.to_le_bytes());
    assert_eq!(bytes[36..44], tag);
    for shift in 0..8 {
        let mut shifted = vec![0; shift];
        shifted.extend(&bytes);
        let read = StatusMessage::decode(&shifted[shift..]).unwrap();
        assert_eq!(read, message);
        assert_eq!(read.group_tag(), Some(0x1112_1314_1516_1718));
    }
}

/// 02-4
#[test]
fn a_control_datagram_is_exactly_as_long_as_its_frame() {
    let tagged = StatusMessage {
        feedback: &[1; 8],
        ..STATUS_MESSAGE
    };
    let datagrams = [
        (written(|out| STATUS_MESSAGE.encode(out)), 36),
        (written(|out| tagged.encode(out)), StatusMessage::MAX_LENGTH),
        (written(|out| NAK.encode(out)), 28),
        (written(|out| RTTM.encode(out)), 40),
        (written(|out| SETUP.encode(out)), 40),
        (written(|out| RESPONSE_SETUP.encode(out)), 20),
        (written(|out| ERROR.encode(out)), 42),
    ];
    assert_eq!(StatusMessage::MAX_LENGTH, 44);
    for (bytes, length) in datagrams {
        assert_eq!(bytes.len(), length);
        let header = FrameHeader::decode(&bytes).unwrap();
        assert_eq!(header.frame_length as usize, length);
    }
}

/// 02-5
#[test]
fn an_error_text_is_not_terminated_or_padded_and_is_truncated_to_1023_bytes() {
    assert!(written(|out| ERROR.encode(out)).ends_with(b"\x02\0\0\0no"));

    let text = [b'x'; 2000];
    let long = ErrorFrame {
        error_text: &text,
        ..ERROR
    };
    let bytes = written(|out| long.encode(out));
    assert_eq!(bytes.len(), MAX_CONTROL_FRAME_LENGTH);
    assert_eq!(bytes.len(), 1063);
    let read = ErrorFrame::decode(&bytes).unwrap();
    assert_eq!(read.error_text, &text[..MAX_ERROR_TEXT_LENGTH]);
}

/// 02-6
#[test]
fn names_are_padded_with_zeros_and_the_last_padding_may_be_missing() {
    let entry = |name| ResolutionEntry {
        is_self: false,
        address: "[::1]:9".parse().unwrap(),
        age_ms: 5,
        name,
    };
    let mut out = [0xAA; 100];
    let mut encoder = ResolutionEncoder::new(&mut out);
    assert!(encoder.is_empty());
    assert!(encoder.push(&entry(b"seven b")));
    assert!(encoder.push(&entry(b"")));
    assert!(!encoder.push(&entry(b"no room for this one")));
    assert!(!encoder.is_empty());
    let mut bytes = encoder.finish().to_vec();
    assert_eq!(bytes.len(), 8 + 40 + 32);
    assert_eq!(bytes[8 + 33..8 + 40], [0; 7]);

    bytes[8 + 33..8 + 40].fill(0xFF);
    bytes.truncate(8 + 40 + 26);
    let entries: Result<Vec<_>, _> = resolution::entries(&bytes).unwrap().collect();
    assert_eq!(entries, Ok(vec![entry(b"seven b"), entry(b"")]));
}

#[test]
fn a_name_that_is_too_long_for_its_length_field_is_not_sent() {
    let entry = ResolutionEntry {
        is_self: false,
        address: "10.0.0.1:9".parse().unwrap(),
        age_ms: 0,
        name: &[b'n'; 0x8000],
    };
    let mut out = [0; MAX_UDP_PAYLOAD_LENGTH];
    assert!(!ResolutionEncoder::new(&mut out).push(&entry));
}

/// A negative age of a name is decoded as 0.
#[test]
fn a_negative_age_is_decoded_as_0() {
    let mut bytes = unhex("20000000000007000180d25f78ecffff7f000001030071313000000000000000");
    let age = |bytes: &[u8]| {
        resolution::entries(bytes)
            .unwrap()
            .next()
            .unwrap()
            .unwrap()
            .age_ms
    };
    assert_eq!(age(&bytes), 0);
    put_i32(&mut bytes, 12, 5000);
    assert_eq!(age(&bytes), 5000);
}

/// 02-7
#[test]
fn undefined_flags_are_not_read_and_not_written() {
    let frames = [
        (written(|out| SETUP.encode(out)), 0xC0),
        (written(|out| STATUS_MESSAGE.encode(out)), 0xC0),
        (written(|out| ERROR.encode(out)), 0x08),
        (written(|out| RTTM.encode(out)), 0x80),
        (written(|out| NAK.encode(out)), 0),
        (written(|out| RESPONSE_SETUP.encode(out)), 0),
    ];
    for (bytes, defined) in frames {
        assert_eq!(bytes[5] & !defined, 0);
        let mut strange = bytes.clone();
        strange[5] |= !defined;
        assert_eq!(DataFrame::decode(&strange), DataFrame::decode(&bytes));
        assert_eq!(ControlFrame::decode(&strange), ControlFrame::decode(&bytes));
    }
    let strange = datagram_with_flags(0x0F);
    assert!(walk(&strange, TERM_LENGTH).is_ok());
}

fn datagram_with_flags(flags: u8) -> Vec<u8> {
    let mut bytes = datagram(0, &[64], false);
    bytes[5] = flags;
    bytes
}

/// 02-8
#[test]
fn every_frame_is_written_with_version_0_and_every_other_version_is_invalid() {
    let frames = [
        written(|out| SETUP.encode(out)),
        written(|out| STATUS_MESSAGE.encode(out)),
        written(|out| ERROR.encode(out)),
        written(|out| RTTM.encode(out)),
        written(|out| NAK.encode(out)),
        written(|out| RESPONSE_SETUP.encode(out)),
        datagram(0, &[64], false),
        heartbeat(flags::UNFRAGMENTED),
        unhex("0800000000000700"),
    ];
    for mut bytes in frames {
        assert_eq!(bytes[4], 0);
        for version in [1, 255] {
            bytes[4] = version;
            assert_eq!(DataFrame::decode(&bytes), Err(FrameError::Version(version)));
            assert_eq!(
                ControlFrame::decode(&bytes),
                Err(FrameError::Version(version))
            );
            assert!(resolution::entries(&bytes).is_err());
        }
    }
}

/// 02-19
#[test]
fn a_heartbeat_is_a_data_frame_of_length_0_alone_in_32_bytes() {
    for flags in [0xC0, 0xE0, 0xF0] {
        let bytes = heartbeat(flags);
        assert_eq!(bytes.len(), 32);
        assert_eq!(
            walk(&bytes, TERM_LENGTH),
            Ok(Walk {
                length: 0,
                is_heartbeat: true
            })
        );
        let header = DataHeader::decode(&bytes).unwrap();
        assert!(header.is_heartbeat(bytes.len()));
        assert_eq!(header.is_end_of_stream(), flags != 0xC0);
        assert_eq!(header.is_revoked(), flags == 0xF0);
    }
    let mut longer = heartbeat(0xC0);
    longer.resize(64, 0);
    assert!(walk(&longer, TERM_LENGTH).is_err());

    let mut padding = heartbeat(0xC0);
    padding[6] = 0;
    assert!(walk(&padding, TERM_LENGTH).is_err());
}

/// 02-104
#[test]
fn fewer_than_8_bytes_are_invalid_at_a_receiver() {
    for length in 0..8 {
        let verdict = DataFrame::decode(&datagram(0, &[64], false)[..length]);
        assert_eq!(
            verdict,
            Err(FrameError::TooShort {
                length,
                required: 8
            })
        );
    }
}

/// A sender and a resolver ignore an empty datagram without an error.
#[test]
fn a_sender_and_a_resolver_ignore_an_empty_datagram() {
    assert_eq!(ControlFrame::decode(&[]), Ok(None));
    assert_eq!(resolution::entries(&[]).unwrap().count(), 0);
}

/// 02-105
#[test]
fn data_setup_and_measurements_shorter_than_their_header_are_invalid() {
    let frames = [
        datagram(0, &[32], false),
        heartbeat(flags::UNFRAGMENTED),
        written(|out| SETUP.encode(out)),
        written(|out| RTTM.encode(out)),
    ];
    for bytes in frames {
        assert!(DataFrame::decode(&bytes).is_ok());
        for length in 8..bytes.len() {
            let required = bytes.len();
            let verdict = DataFrame::decode(&bytes[..length]);
            assert_eq!(verdict, Err(FrameError::TooShort { length, required }));
        }
    }
}

/// 02-106
#[test]
fn control_frames_shorter_than_their_fixed_part_or_their_frame_length_are_invalid() {
    let frames = [
        written(|out| STATUS_MESSAGE.encode(out)),
        written(|out| ERROR.encode(out)),
        written(|out| RTTM.encode(out)),
        written(|out| NAK.encode(out)),
        written(|out| RESPONSE_SETUP.encode(out)),
    ];
    for bytes in frames {
        assert!(ControlFrame::decode(&bytes).is_ok());
        for length in 8..bytes.len() {
            assert!(ControlFrame::decode(&bytes[..length]).is_err());
        }
        let available = bytes.len();
        for frame_length in [bytes.len() as i32 + 1, i32::MAX, -1, i32::MIN] {
            let mut wrong = bytes.clone();
            put_i32(&mut wrong, 0, frame_length);
            let error = FrameError::FrameLength {
                frame_length,
                available,
            };
            assert_eq!(ControlFrame::decode(&wrong), Err(error));
        }
    }
}

/// A control frame is accepted even if its frame length is shorter than the fixed part.
#[test]
fn a_control_frame_with_a_frame_length_below_its_fixed_part_is_accepted() {
    let mut bytes = written(|out| STATUS_MESSAGE.encode(out));
    for frame_length in [0, 8, 28] {
        put_i32(&mut bytes, 0, frame_length);
        let read = ControlFrame::decode(&bytes);
        assert_eq!(read, Ok(Some(ControlFrame::StatusMessage(STATUS_MESSAGE))));
    }
}

/// 02-108: a frame length below 32 is refused for the first frame and for later frames.
#[test]
fn a_frame_shorter_than_its_header_is_invalid_at_any_offset() {
    for frame_length in (1..32).chain([-1, -64, i32::MIN]) {
        let mut first = datagram(0, &[64], false);
        put_i32(&mut first, 0, frame_length);
        let available = first.len();
        let error = FrameError::FrameLength {
            frame_length,
            available,
        };
        assert_eq!(DataFrame::decode(&first), Err(error));

        let mut second = datagram(0, &[64, 64], false);
        put_i32(&mut second, 64, frame_length);
        assert!(DataFrame::decode(&second).is_ok());
        assert_eq!(walk(&second, TERM_LENGTH), Err(error));
    }
}

#[test]
fn consecutive_frames_cover_their_aligned_lengths() {
    let covered = |term_offset, lengths: &[usize], padding| {
        walk(&datagram(term_offset, lengths, padding), TERM_LENGTH).map(|walk| walk.length)
    };
    assert_eq!(covered(0, &[72, 72, 72], false), Ok(288));
    assert_eq!(covered(63_040, &[1332, 1152], true), Ok(1344 + 1152));
    assert_eq!(covered(64, &[128], true), Ok(128));
    assert_eq!(covered(32, &[65_504], true), Ok(65_504));
    assert_eq!(covered(0, &[32], true), Ok(32));
}

/// 02-109
#[test]
fn a_frame_outside_its_term_is_refused() {
    let verdict = |term_offset, lengths: &[usize], padding| {
        walk(&datagram(term_offset, lengths, padding), TERM_LENGTH)
    };
    let outside = |term_offset| {
        Err(FrameError::TermOffset {
            term_offset,
            term_length: TERM_LENGTH,
        })
    };
    assert_eq!(verdict(TERM_LENGTH, &[64], false), outside(65_536));
    assert_eq!(verdict(16, &[64], false), outside(16));
    let mut negative = datagram(0, &[64], false);
    put_i32(&mut negative, 8, -32);
    assert_eq!(walk(&negative, TERM_LENGTH), outside(-32));
    let mut heartbeat = heartbeat(0xC0);
    put_i32(&mut heartbeat, 8, 65_536);
    assert_eq!(walk(&heartbeat, TERM_LENGTH), outside(65_536));

    let beyond = |term_offset, frame_length| {
        Err(FrameError::BeyondTerm {
            term_offset,
            frame_length,
            term_length: TERM_LENGTH,
        })
    };
    assert_eq!(verdict(TERM_LENGTH - 64, &[96], false), beyond(65_472, 96));
    assert_eq!(
        verdict(TERM_LENGTH - 64, &[64, 32], false),
        beyond(65_536, 32)
    );
    assert_eq!(
        verdict(TERM_LENGTH - 64, &[32, 64], true),
        beyond(65_504, 64)
    );
    assert!(verdict(TERM_LENGTH - 64, &[32, 32], true).is_ok());
}

/// `walk` refuses a datagram if the bytes after its last frame are not the next frame of the term.
#[test]
fn bytes_after_the_last_frame_make_the_datagram_invalid() {
    let behind = |bytes: &[u8]| {
        let mut datagram = datagram(0, &[64], false);
        datagram.extend(bytes);
        walk(&datagram, TERM_LENGTH)
    };
    assert_eq!(behind(&[0; 8]), Err(FrameError::UnalignedDatagram(72)));
    let error = FrameError::FrameLength {
        frame_length: 0,
        available: 32,
    };
    assert_eq!(behind(&[0; 32]), Err(error));
    let setup = written(|out| SETUP.encode(out));
    assert_eq!(behind(&setup[..32]), Err(FrameError::Type(5)));

    let elsewhere = datagram(128, &[32], false);
    let error = FrameError::OutOfPlace {
        term_offset: 128,
        expected: 64,
    };
    assert_eq!(behind(&elsewhere), Err(error));

    let cut = &datagram(64, &[96], false)[..64];
    let error = FrameError::FrameLength {
        frame_length: 96,
        available: 64,
    };
    assert_eq!(behind(cut), Err(error));
}

/// `walk` does not check version, session, stream and term of the frames after the first frame.
#[test]
fn version_and_stream_fields_of_later_frames_are_not_checked() {
    for (at, length) in [(64 + 4, 1), (64 + 12, 4), (64 + 16, 4), (64 + 20, 4)] {
        let mut bytes = datagram(0, &[64, 64], false);
        bytes[at..at + length].fill(0x77);
        assert!(walk(&bytes, TERM_LENGTH).is_ok());
    }
}

/// 02-110
#[test]
fn a_window_that_is_negative_or_more_than_half_a_term_is_invalid() {
    let check = |consumption_term_offset, receiver_window| {
        let message = StatusMessage {
            consumption_term_offset,
            receiver_window,
            ..STATUS_MESSAGE
        };
        message.check(TERM_LENGTH).is_ok()
    };
    assert!(check(0, 0) && check(0, 32 * 1024) && check(65_504, 1));
    assert!(!check(0, -1) && !check(0, 32 * 1024 + 1) && !check(0, i32::MAX));
    assert!(!check(-32, 0) && !check(65_536, 0) && !check(16, 0));
}

/// 02-47
#[test]
fn missing_bytes_outside_a_term_are_invalid() {
    let check = |term_offset, length| {
        Nak {
            term_offset,
            length,
            ..NAK
        }
        .check(TERM_LENGTH)
        .is_ok()
    };
    assert!(check(0, 65_536) && check(65_504, 32) && check(64, 0) && check(64, 16));
    assert!(!check(0, 65_537) && !check(65_504, 33) && !check(32, i32::MAX));
    assert!(!check(-32, 64) && !check(65_536, 0) && !check(16, 32) && !check(0, -1));
}

/// 02-54, 02-55
#[test]
fn a_setup_with_impossible_values_is_invalid() {
    let valid = Setup {
        active_term_id: i32::MIN,
        initial_term_id: i32::MAX,
        ..SETUP
    };
    let refused = |setup: Setup| DataFrame::decode(&written(|out| setup.encode(out))).is_err();
    assert!(!refused(SETUP) && !refused(valid));
    for term_length in [0, 1000, 32_768, 98_304, -65_536, i32::MIN, i32::MAX] {
        assert!(
            refused(Setup {
                term_length,
                term_offset: 0,
                ..SETUP
            }),
            "{term_length}"
        );
    }
    for mtu_length in [0, 1, 31, 33, 65_505, 65_536, -32, i32::MIN] {
        assert!(
            refused(Setup {
                mtu_length,
                ..SETUP
            }),
            "{mtu_length}"
        );
    }
    for mtu_length in [32, 65_504] {
        assert!(
            !refused(Setup {
                mtu_length,
                ..SETUP
            }),
            "{mtu_length}"
        );
    }
    for term_offset in [-32, 16, 65_536, i32::MAX, i32::MIN] {
        let setup = Setup {
            term_length: 65_536,
            term_offset,
            ..SETUP
        };
        assert!(refused(setup), "{term_offset}");
    }
    let before = Setup {
        active_term_id: SETUP.initial_term_id - 1,
        ..SETUP
    };
    assert!(refused(before));
}

/// 02-111
#[test]
fn an_error_text_outside_its_frame_is_invalid() {
    let bytes = written(|out| ERROR.encode(out));
    let with_length = |error_length| {
        let mut bytes = bytes.clone();
        bytes.resize(4000, b'x');
        put_i32(&mut bytes, 36, error_length);
        bytes
    };
    for error_length in [3, 1023, 1024, 5000, i32::MAX, -1, i32::MIN] {
        let error = FrameError::ErrorLength {
            error_length,
            frame_length: 42,
        };
        assert_eq!(ControlFrame::decode(&with_length(error_length)), Err(error));
    }
    let shorter = with_length(1);
    assert_eq!(ErrorFrame::decode(&shorter).unwrap().error_text, b"n");

    let mut too_long = with_length(1024);
    put_i32(&mut too_long, 0, 4000);
    assert!(ControlFrame::decode(&too_long).is_err());
}

/// 02-37
#[test]
fn an_error_frame_has_a_group_tag_only_with_the_flag() {
    let mut bytes = written(|out| ERROR.encode(out));
    assert_eq!(ErrorFrame::decode(&bytes).unwrap().group_tag, Some(5));
    bytes[5] = 0;
    assert_eq!(ErrorFrame::decode(&bytes).unwrap().group_tag, None);
}

/// 02-113
#[test]
fn feedback_of_a_length_other_than_8_is_accepted_and_is_no_group_tag() {
    for length in [0, 4, 7, 9, 16] {
        let feedback = vec![1; length];
        let message = StatusMessage {
            feedback: &feedback,
            ..STATUS_MESSAGE
        };
        let bytes = written(|out| message.encode(out));
        let read = StatusMessage::decode(&bytes).unwrap();
        assert_eq!(read.feedback, feedback);
        assert_eq!(read.group_tag(), None);
    }
}

/// 02-114
#[test]
fn bytes_after_a_control_frame_are_not_read() {
    let frames = [
        written(|out| STATUS_MESSAGE.encode(out)),
        written(|out| ERROR.encode(out)),
        written(|out| RTTM.encode(out)),
        written(|out| NAK.encode(out)),
        written(|out| RESPONSE_SETUP.encode(out)),
    ];
    for bytes in frames {
        let mut longer = bytes.clone();
        longer.resize(2000, 0x77);
        assert_eq!(ControlFrame::decode(&longer), ControlFrame::decode(&bytes));
    }
}

/// 02-112
#[test]
fn entries_before_an_invalid_entry_are_kept_and_the_rest_is_dropped() {
    let good = "01 00 0900 00000000 7f000001 0200 6162";
    let read = |bad: &str| {
        let bytes = unhex(&format!("0000000000000700 {good} {bad} {good}"));
        let items: Vec<_> = resolution::entries(&bytes).unwrap().collect();
        assert_eq!(items.len(), 2);
        assert_eq!(items[0].unwrap().name, b"ab");
        items[1].unwrap_err()
    };
    let unknown = "03 00 0900 00000000 7f000001 0200 6162";
    assert_eq!(read(unknown), FrameError::ResolutionType(3));
    let long = "01 00 0900 00000000 7f000001 1300 6162";
    let error = FrameError::NameLength {
        name_length: 19,
        available: 18,
    };
    assert_eq!(read(long), error);
    let negative = "01 00 0900 00000000 7f000001 ffff 6162";
    let error = FrameError::NameLength {
        name_length: -1,
        available: 18,
    };
    assert_eq!(read(negative), error);
}

#[test]
fn each_frame_type_has_its_type_id() {
    for id in i16::MIN..=i16::MAX {
        assert_eq!(FrameType::from_id(id).is_some(), matches!(id, 0..=7 | 11));
        assert!(FrameType::from_id(id).is_none_or(|frame_type| frame_type.id() == id));
    }
}
