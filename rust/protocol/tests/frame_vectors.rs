//! Tests with datagrams that real drivers exchanged. Each datagram is decoded, compared field by field, and encoded
//! again. Malformed datagrams that were sent to a real driver must have the same result here, or the recommended
//! result.

use aeron_protocol::frame::resolution::{self, ResolutionEncoder, ResolutionEntry};
use aeron_protocol::frame::{
    ControlFrame, DataFrame, DataHeader, FrameError, FrameHeader, FrameType,
    MAX_CONTROL_FRAME_LENGTH, MAX_TERM_LENGTH, Rttm, Setup, walk,
};
use serde_json::{Value, json};
use std::net::IpAddr;

const FRAMES: &str = include_str!("vectors/frames.json");
const MALFORMED: &str = include_str!("vectors/malformed.json");

/// Term length of all streams to which malformed datagrams were sent.
const TERM_LENGTH: usize = 64 * 1024;

struct Datagram {
    name: String,
    bytes: Vec<u8>,
    type_name: String,
    /// The fields of each frame.
    decoded: Vec<Value>,
}

fn captured() -> Vec<Datagram> {
    let entries: Vec<Value> = serde_json::from_str(FRAMES).unwrap();
    entries.iter().map(read_datagram).collect()
}

fn read_datagram(entry: &Value) -> Datagram {
    let decoded = match entry["decoded"]["frames"].as_array() {
        Some(frames) => frames.clone(),
        None => vec![entry["decoded"].clone()],
    };
    Datagram {
        name: entry["name"].as_str().unwrap().to_owned(),
        bytes: unhex(entry["hex"].as_str().unwrap()),
        type_name: decoded[0]["type_name"].as_str().unwrap().to_owned(),
        decoded,
    }
}

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap())
        .collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Whether the flags of a frame have the bit.
fn has_flag(decoded: &Value, bit: u8) -> bool {
    let flags = decoded["flags"].as_str().unwrap();
    u8::from_str_radix(flags.trim_start_matches("0x"), 16).unwrap() & bit != 0
}

/// Returns the fields of a frame, with the field names of the captured vectors.
fn control_fields(frame: &ControlFrame<'_>) -> Value {
    match frame {
        ControlFrame::Nak(f) => json!({
            "session_id": f.session_id, "stream_id": f.stream_id, "term_id": f.term_id,
            "term_offset": f.term_offset, "length": f.length
        }),
        ControlFrame::StatusMessage(f) => json!({
            "session_id": f.session_id, "stream_id": f.stream_id,
            "consumption_term_id": f.consumption_term_id,
            "consumption_term_offset": f.consumption_term_offset,
            "receiver_window": f.receiver_window, "receiver_id": f.receiver_id,
            "group_tag": f.group_tag(), "SEND_SETUP": f.wants_setup, "EOS": f.is_end_of_stream
        }),
        ControlFrame::Error(f) => json!({
            "session_id": f.session_id, "stream_id": f.stream_id, "receiver_id": f.receiver_id,
            "group_tag": f.group_tag.unwrap_or(-1), "HAS_GROUP_TAG": f.group_tag.is_some(),
            "error_code": f.error_code, "error_length": f.error_text.len(),
            "error_text": String::from_utf8_lossy(f.error_text)
        }),
        ControlFrame::Rttm(f) => rttm_fields(f),
        ControlFrame::ResponseSetup(f) => json!({
            "session_id": f.session_id, "stream_id": f.stream_id,
            "response_session_id": f.response_session_id
        }),
    }
}

fn rttm_fields(f: &Rttm) -> Value {
    json!({
        "session_id": f.session_id, "stream_id": f.stream_id, "REPLY": f.is_request,
        "echo_timestamp": f.echo_timestamp_ns, "reception_delta": f.reception_delta_ns,
        "receiver_id": f.receiver_id
    })
}

fn setup_fields(f: &Setup) -> Value {
    json!({
        "term_offset": f.term_offset, "session_id": f.session_id, "stream_id": f.stream_id,
        "initial_term_id": f.initial_term_id, "active_term_id": f.active_term_id,
        "term_length": f.term_length, "mtu": f.mtu_length, "ttl": f.ttl,
        "SEND_RESPONSE": f.wants_response, "GROUP": f.has_group_semantics
    })
}

fn data_fields(f: &DataHeader) -> Value {
    json!({
        "frame_length": f.frame_length, "flags": format!("0x{:02x}", f.flags),
        "type_name": if f.is_padding { "PAD" } else { "DATA" },
        "term_offset": f.term_offset, "session_id": f.session_id, "stream_id": f.stream_id,
        "term_id": f.term_id, "reserved_value": f.reserved_value
    })
}

/// Returns the captured fields, with each flag as a separate field.
fn recorded_fields(decoded: &Value) -> Value {
    let mut fields = decoded.clone();
    let flags: &[(&str, u8)] = match decoded["type_name"].as_str().unwrap() {
        "SM" => &[("SEND_SETUP", 0x80), ("EOS", 0x40)],
        "SETUP" => &[("SEND_RESPONSE", 0x80), ("GROUP", 0x40)],
        "RTTM" => &[("REPLY", 0x80)],
        "ERR" => &[("HAS_GROUP_TAG", 0x08)],
        _ => &[],
    };
    for (name, bit) in flags {
        fields[name] = json!(has_flag(decoded, *bit));
    }
    fields
}

/// Checks that all decoded fields equal the captured fields. An absent value is `null` in both.
fn assert_fields(read: &Value, decoded: &Value, name: &str) {
    let recorded = recorded_fields(decoded);
    for (field, value) in read.as_object().unwrap() {
        assert_eq!(value, &recorded[field], "{field} of {name}");
    }
}

fn control(bytes: &[u8]) -> ControlFrame<'_> {
    ControlFrame::decode(bytes).unwrap().unwrap()
}

fn data(bytes: &[u8]) -> DataFrame {
    DataFrame::decode(bytes).unwrap().unwrap()
}

fn encoded(write: impl FnOnce(&mut [u8]) -> usize) -> Vec<u8> {
    let mut bytes = vec![0xAA; MAX_CONTROL_FRAME_LENGTH];
    let length = write(&mut bytes);
    bytes.truncate(length);
    bytes
}

fn encoded_control(frame: &ControlFrame<'_>) -> Vec<u8> {
    encoded(|out| match frame {
        ControlFrame::Nak(frame) => frame.encode(out),
        ControlFrame::StatusMessage(frame) => frame.encode(out),
        ControlFrame::Error(frame) => frame.encode(out),
        ControlFrame::Rttm(frame) => frame.encode(out),
        ControlFrame::ResponseSetup(frame) => frame.encode(out),
    })
}

/// Returns the datagrams of these types. Checks that there is at least one.
fn captured_of(type_names: &[&str]) -> Vec<Datagram> {
    let found: Vec<_> = captured()
        .into_iter()
        .filter(|datagram| type_names.contains(&datagram.type_name.as_str()))
        .collect();
    assert!(!found.is_empty());
    found
}

/// 02-1
#[test]
fn every_captured_datagram_is_read_and_written_back() {
    let count = |names| captured_of(names).len();
    let of_data = count(&["DATA", "PAD"]);
    let of_control = count(&["NAK", "SM", "ERR", "RSP_SETUP", "RTTM"]);
    let refused = count(&["ATS_DATA", "ATS_SETUP", "ATS_SM", "EXT"]);
    let others = count(&["SETUP"]) + count(&["RES"]);
    assert_eq!(of_data + of_control + refused + others, captured().len());

    captured_data_is_read_and_written_back();
    captured_setups_are_read_and_written_back();
    captured_control_frames_are_read_and_written_back();
    captured_names_are_read_and_written_back();
}

fn captured_data_is_read_and_written_back() {
    for datagram in captured_of(&["DATA", "PAD"]) {
        let name = &datagram.name;
        let mut covered = 0;
        for decoded in &datagram.decoded {
            let offset = decoded["offset"].as_u64().unwrap_or(0) as usize;
            let bytes = &datagram.bytes[offset..];
            let header = DataHeader::decode(bytes).unwrap();
            assert_fields(&data_fields(&header), decoded, name);
            assert_eq!(encoded(|out| header.encode(out)), bytes[..32], "{name}");
            covered += (header.frame_length as usize).next_multiple_of(32);
        }
        let walked = walk(&datagram.bytes, MAX_TERM_LENGTH).unwrap();
        assert_eq!(walked.length, covered, "{name}");
        assert_eq!(walked.is_heartbeat, name.starts_with("heartbeat"), "{name}");
    }
}

fn captured_setups_are_read_and_written_back() {
    for datagram in captured_of(&["SETUP"]) {
        let DataFrame::Setup(setup) = data(&datagram.bytes) else {
            panic!("{}", datagram.name);
        };
        assert_fields(&setup_fields(&setup), &datagram.decoded[0], &datagram.name);
        assert_eq!(encoded(|out| setup.encode(out)), datagram.bytes);
    }
}

fn captured_control_frames_are_read_and_written_back() {
    for datagram in captured_of(&["NAK", "SM", "ERR", "RSP_SETUP", "RTTM"]) {
        let frame = control(&datagram.bytes);
        assert_fields(
            &control_fields(&frame),
            &datagram.decoded[0],
            &datagram.name,
        );
        assert_eq!(encoded_control(&frame), datagram.bytes, "{}", datagram.name);
        if let ControlFrame::Rttm(frame) = frame {
            assert_eq!(data(&datagram.bytes), DataFrame::Rttm(frame));
        }
    }
}

fn captured_names_are_read_and_written_back() {
    for datagram in captured_of(&["RES"]) {
        let name = &datagram.name;
        let decoded = datagram.decoded[0]["entries"].as_array().unwrap();
        let entries: Vec<_> = resolution::entries(&datagram.bytes)
            .unwrap()
            .collect::<Result<_, _>>()
            .unwrap();
        let read: Vec<_> = entries.iter().map(entry_fields).collect();
        assert_eq!(read.len(), decoded.len(), "{name}");
        for (read, decoded) in read.iter().zip(decoded) {
            for (field, value) in read.as_object().unwrap() {
                assert_eq!(value, &decoded[field], "{field} of {name}");
            }
        }
        let written = encoded_names(&entries);
        assert_eq!(written, without_padding(&datagram.bytes, decoded), "{name}");
    }
}

fn entry_fields(entry: &ResolutionEntry<'_>) -> Value {
    let (res_type, octets) = match entry.address.ip() {
        IpAddr::V4(ip) => (1, ip.octets().to_vec()),
        IpAddr::V6(ip) => (2, ip.octets().to_vec()),
    };
    json!({
        "res_type": res_type, "res_flags": if entry.is_self { "0x80" } else { "0x00" },
        "udp_port": entry.address.port(), "age_in_ms": entry.age_ms, "address": hex(&octets),
        "name_length": entry.name.len(), "name": String::from_utf8_lossy(entry.name)
    })
}

fn encoded_names(entries: &[ResolutionEntry<'_>]) -> Vec<u8> {
    let mut out = [0xAA; 1408];
    let mut encoder = ResolutionEncoder::new(&mut out);
    for entry in entries {
        assert!(encoder.push(entry));
    }
    encoder.finish().to_vec()
}

/// Returns a resolution datagram with cleared padding. The real driver leaves old bytes in the padding; ours writes
/// zeros.
fn without_padding(datagram: &[u8], entries: &[Value]) -> Vec<u8> {
    let mut cleared = datagram.to_vec();
    let mut end = 8;
    for entry in entries {
        let length = |field: &str| entry[field].as_u64().unwrap() as usize;
        let fixed = if entry["res_type"] == 1 { 14 } else { 26 };
        let padding = end + fixed + length("name_length")..end + length("entry_length");
        cleared[padding].fill(0);
        end += length("entry_length");
    }
    cleared
}

/// 02-6: old bytes that a real driver left in the padding after a name are ignored.
#[test]
fn bytes_after_a_name_are_not_read() {
    let datagrams = captured_of(&["RES"]);
    let stale = datagrams
        .iter()
        .find(|datagram| datagram.name == "res-self-ip4-3")
        .unwrap();
    assert!(stale.bytes.ends_with(b"alpha-node"));
    let entries: Vec<_> = resolution::entries(&stale.bytes).unwrap().collect();
    assert_eq!(entries.len(), 1);
    assert_eq!(entries[0].unwrap().name, b"alpha");
    assert_eq!(encoded_names(&[entries[0].unwrap()]).len(), 32);
}

#[test]
fn reserved_types_are_refused_on_both_sides() {
    for datagram in captured_of(&["ATS_DATA", "ATS_SETUP", "ATS_SM", "EXT"]) {
        let type_id = i16::from_le_bytes([datagram.bytes[6], datagram.bytes[7]]);
        let refused = FrameError::Type(type_id);
        assert_eq!(FrameType::from_id(type_id), None);
        assert_eq!(FrameHeader::decode(&datagram.bytes), Err(refused));
        assert_eq!(DataFrame::decode(&datagram.bytes), Err(refused));
        assert_eq!(ControlFrame::decode(&datagram.bytes), Err(refused));
    }
}

/// One or more datagrams that were sent to a real driver.
struct Case {
    name: String,
    target: String,
    datagrams: Vec<Vec<u8>>,
    /// Expected result: the result of the real driver, or the recommended result if both differ.
    expected: String,
}

impl Case {
    fn is_invalid(&self) -> bool {
        self.expected.contains("Invalid packets +1")
    }
}

fn cases(target: &str) -> Vec<Case> {
    let entries: Vec<Value> = serde_json::from_str(MALFORMED).unwrap();
    let cases: Vec<_> = entries
        .iter()
        .map(read_case)
        .filter(|case| case.target == target)
        .collect();
    assert!(cases.len() > 20);
    cases
}

fn read_case(entry: &Value) -> Case {
    let text = |key: &str| entry[key].as_str().unwrap().to_owned();
    let expected = match text("recommended").as_str() {
        "as observed" => text("expected"),
        "as 1.53" => text("expected_1_53"),
        other => other.to_owned(),
    };
    let mut datagrams: Vec<_> = match &entry["hex"] {
        Value::Array(datagrams) => datagrams.clone(),
        datagram => vec![datagram.clone()],
    }
    .iter()
    .map(|datagram| unhex(datagram.as_str().unwrap()))
    .collect();
    if let Some(length) = entry["total_length"].as_u64() {
        let fill = unhex(entry["fill_byte"].as_str().unwrap())[0];
        datagrams[0].resize(length as usize, fill);
    }
    Case {
        name: text("name"),
        target: text("target"),
        datagrams,
        expected,
    }
}

/// Decodes and validates a datagram as a receiver with an image of the stream does.
fn receive(datagram: &[u8]) -> Result<Option<DataFrame>, FrameError> {
    let frame = DataFrame::decode(datagram)?;
    if let Some(DataFrame::Data(_)) = frame {
        walk(datagram, TERM_LENGTH)?;
    }
    Ok(frame)
}

/// Decodes and validates a datagram as a sender of the stream does.
fn control_checked(datagram: &[u8]) -> Result<Option<ControlFrame<'_>>, FrameError> {
    let frame = ControlFrame::decode(datagram)?;
    match &frame {
        Some(ControlFrame::Nak(nak)) => nak.check(TERM_LENGTH)?,
        Some(ControlFrame::StatusMessage(message)) => message.check(TERM_LENGTH)?,
        _ => {}
    }
    Ok(frame)
}

fn is_one_of(case: &Case, names: &[&str]) -> bool {
    names.contains(&case.name.as_str())
}

/// 02-84
#[test]
fn a_receiver_handles_every_malformed_datagram_as_recommended() {
    let wrong_direction = [
        "r-sm-to-receiver",
        "r-nak-to-receiver",
        "r-err-to-receiver",
        "r-rsp-setup-to-receiver",
        "r-res-to-receiver",
    ];
    for case in cases("receiver data socket") {
        for datagram in &case.datagrams {
            let verdict = receive(datagram);
            assert_eq!(
                verdict.is_err(),
                case.is_invalid(),
                "{}: {verdict:?}",
                case.name
            );
            let is_dropped_silently = verdict == Ok(None);
            assert_eq!(
                is_dropped_silently,
                is_one_of(&case, &wrong_direction),
                "{}",
                case.name
            );
        }
    }
}

/// 02-84
#[test]
fn a_sender_handles_every_malformed_datagram_as_recommended() {
    let silent = ["s-empty-datagram", "s-data-to-sender", "s-setup-to-sender"];
    for case in cases("sender control socket") {
        for datagram in &case.datagrams {
            let verdict = control_checked(datagram);
            assert_eq!(
                verdict.is_err(),
                case.is_invalid(),
                "{}: {verdict:?}",
                case.name
            );
            let is_dropped_silently = verdict == Ok(None);
            assert_eq!(
                is_dropped_silently,
                is_one_of(&case, &silent),
                "{}",
                case.name
            );
        }
    }
}

/// 02-112
#[test]
fn a_resolver_handles_every_malformed_datagram_as_recommended() {
    for case in cases("name resolver socket") {
        let datagram = &case.datagrams[0];
        let (taken, error) = match resolution::entries(datagram) {
            Ok(entries) => (
                entries.clone().flatten().count(),
                entries.clone().find_map(Result::err),
            ),
            Err(error) => (0, Some(error)),
        };
        let logged = match error {
            Some(error @ FrameError::ResolutionType(_)) => Some(error.to_string()),
            _ => None,
        };
        let is_invalid = error.is_some() && logged.is_none();
        assert_eq!(is_invalid, case.is_invalid(), "{}: {error:?}", case.name);
        assert_eq!(taken, entries_expected(&case), "{}", case.name);
        let is_logged = case.expected.contains("Errors +1");
        assert_eq!(logged.is_some(), is_logged, "{}", case.name);
        assert!(
            logged.is_none_or(|text| case.expected.contains(&text)),
            "{}",
            case.name
        );
    }
}

/// Returns the number of valid entries in a case. The real driver stored this number of entries, except in three cases:
/// there, it dropped one valid entry for another reason.
fn entries_expected(case: &Case) -> usize {
    match case.name.as_str() {
        "n-own-name" | "n-age-old" | "n-second-entry-name-overlaps" => 1,
        _ => case
            .expected
            .split_once("cache entries ")
            .and_then(|(_, counts)| counts.split_once("->"))
            .map_or(0, |(before, after)| {
                after.parse::<usize>().unwrap() - before.parse::<usize>().unwrap()
            }),
    }
}
