//! Tests with the CnC file of a real driver: header, ring, broadcast and counters, captured while real clients used the
//! driver.

use aeron_memory::broadcast::{self, BroadcastReceiver, BroadcastTransmitter};
use aeron_memory::cnc::{Cnc, CncLengths, DriverIdentity, Reader};
use aeron_memory::counters::keys::{
    StreamKey, channel_key, decode_channel_key, decode_heartbeat_key, decode_local_address_key,
    heartbeat_key, heartbeat_label, heartbeat_label_suffix, local_address_key, local_address_label,
    stream_key, stream_label, subscriber_position_label,
};
use aeron_memory::counters::system::{SystemCounter, SystemLabels};
use aeron_memory::counters::{CounterRecord, STATE_RECLAIMED, STATE_UNUSED, types};
use aeron_memory::ring::{self, ManyToOneRing, RingConsumer};
use aeron_memory::{SharedBuffer, Words};
use serde_json::Value;

const CAPACITY: usize = 1 << 20;

macro_rules! captured {
    ($name:literal) => {
        include_bytes!(concat!("vectors/", $name)).as_slice()
    };
}

macro_rules! expected {
    ($name:literal) => {
        serde_json::from_str::<Value>(include_str!(concat!("vectors/", $name))).unwrap()
    };
}

fn number(value: &Value) -> i64 {
    value.as_i64().unwrap()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits = hex.as_bytes().chunks(2);
    digits
        .map(|pair| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

fn copied(words: &SharedBuffer, offset: usize, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    words.copy_out(offset, &mut bytes);
    bytes
}

/// Rebuilds the captured file. Bytes that were not captured are zero.
fn captured_cnc() -> (SharedBuffer, Cnc<SharedBuffer>, Value) {
    let expected = expected!("cnc.json");
    let words = SharedBuffer::heap(number(&expected["file_length"]) as usize);
    let place = |section: &str, offset: usize, bytes: &[u8]| {
        let start = number(&expected["sections"][section]["offset"]) as usize;
        words.copy_in(start + offset, bytes);
    };
    words.copy_in(0, captured!("cnc-head.bin"));
    place(
        "to_driver",
        CAPACITY,
        captured!("cnc-to-driver-trailer.bin"),
    );
    place("to_clients", 0, captured!("cnc-to-clients-head.bin"));
    place(
        "to_clients",
        CAPACITY,
        captured!("cnc-to-clients-trailer.bin"),
    );
    place(
        "counters_metadata",
        0,
        captured!("cnc-counters-metadata.bin"),
    );
    place("counters_values", 0, captured!("cnc-counters-values.bin"));
    let cnc = Cnc::open(words.clone(), Reader::Client).unwrap();
    (words, cnc, expected)
}

/// 01-9
#[test]
fn the_captured_header_decodes_and_equals_the_header_that_we_write() {
    let (words, cnc, expected) = captured_cnc();
    let header = &expected["header"];
    assert_eq!(cnc.version().to_string(), text(&header["cnc_version_text"]));
    let identity = DriverIdentity {
        client_liveness_timeout_ns: number(&header["client_liveness_timeout_ns"]),
        start_timestamp_ms: number(&header["start_timestamp_ms"]),
        pid: number(&header["pid"]),
    };
    assert_eq!(cnc.identity(), identity);
    let ours = SharedBuffer::heap(words.len());
    Cnc::format(ours.clone(), &CncLengths::default(), &identity)
        .unwrap()
        .publish();
    assert_eq!(copied(&ours, 0, 128), copied(&words, 0, 128));
}

/// 01-10
#[test]
fn the_captured_sections_are_found_at_the_offsets_of_the_driver() {
    let (words, cnc, expected) = captured_cnc();
    let sections = [
        ("to_driver", cnc.to_driver().words()),
        ("to_clients", cnc.to_clients()),
        ("counters_metadata", cnc.counters_metadata()),
        ("counters_values", cnc.counters_values()),
        ("error_log", cnc.error_log()),
    ];
    for (name, section) in sections {
        let offset = section.as_ptr() as i64 - words.as_ptr() as i64;
        assert_eq!(
            offset,
            number(&expected["sections"][name]["offset"]),
            "{name}"
        );
        assert_eq!(
            section.len() as i64,
            number(&expected["sections"][name]["length"]),
            "{name}"
        );
    }
    let trailer = &expected["to_driver_ring"];
    let ring = cnc.to_driver();
    assert_eq!(ring.producer_position(), number(&trailer["tail_position"]));
    assert_eq!(ring.consumer_position(), number(&trailer["head_position"]));
    assert_eq!(
        ring.next_correlation_id(),
        number(&trailer["correlation_counter"])
    );
    assert_eq!(
        ring.consumer_heartbeat_ms(),
        number(&trailer["consumer_heartbeat_ms"])
    );
}

/// 01-41, 01-39
#[test]
fn every_captured_counter_is_read_with_all_fields() {
    let (_, cnc, expected) = captured_cnc();
    let reader = cnc.counters();
    let listed = expected["counters"].as_array().unwrap();
    let mut allocated = Vec::new();
    for counter in listed {
        let id = number(&counter["counter_id"]) as i32;
        assert_eq!(
            reader.state(id).map(i64::from),
            Some(number(&counter["state"]))
        );
        assert_eq!(reader.value(id), Some(number(&counter["value"])));
        let deadline_ms = number(&counter["free_for_reuse_deadline_ms"]);
        assert_eq!(reader.free_for_reuse_deadline_ms(id), Some(deadline_ms));
        let Some(record) = reader.record(id) else {
            assert_eq!(reader.state(id), Some(STATE_RECLAIMED));
            let key = copied(cnc.counters_metadata(), id as usize * 512 + 16, 112);
            assert_eq!(key, [0; 112]);
            continue;
        };
        allocated.push(id);
        assert_eq!(i64::from(record.type_id), number(&counter["type_id"]));
        assert_eq!(record.label, text(&counter["label"]));
        assert_eq!(record.registration_id, number(&counter["registration_id"]));
        assert_eq!(record.owner_id, number(&counter["owner_id"]));
        assert_eq!(record.reference_id, number(&counter["reference_id"]));
    }
    assert_eq!(reader.ids().collect::<Vec<_>>(), allocated);
    assert_eq!(reader.state(listed.len() as i32), Some(STATE_UNUSED));
    assert_eq!(reader.control_protocol_version(), 65_536);
    let static_counter = reader.find_by_registration(1999, 7777).unwrap();
    assert_eq!(reader.label(static_counter).unwrap(), "static counter");
}

/// 01-42
#[test]
fn the_captured_system_counters_have_the_labels_that_we_write() {
    let (_, cnc, _) = captured_cnc();
    let labels = SystemLabels {
        software: "version=1.52.2 commit=5b62f21d91".into(),
        resolver_name: String::new(),
        threading_mode: "DEDICATED".into(),
        conductor_threshold: "100ms".into(),
        sender_threshold: "100ms".into(),
        receiver_threshold: "100ms".into(),
        name_resolver_threshold: "5s".into(),
    };
    for &counter in SystemCounter::ALL {
        let record = cnc.counters().record(counter.id()).unwrap();
        assert_eq!(record.label, counter.label(&labels));
        assert_eq!(
            (record.type_id, record.registration_id, record.owner_id),
            (0, i64::from(counter.id()), -1)
        );
        assert_eq!(record.key[..4], counter.id().to_le_bytes());
    }
    assert_eq!(cnc.counters().type_id(46), Some(types::CLIENT_HEARTBEAT));
}

/// 01-43, 01-44
#[test]
fn the_captured_keys_and_labels_equal_the_ones_that_we_write() {
    let (_, cnc, expected) = captured_cnc();
    let mut checked = 0;
    for record in cnc
        .counters()
        .records()
        .filter(|record| record.type_id != types::SYSTEM)
    {
        let key = &expected["counters"][record.id as usize]["key"];
        match record.type_id {
            types::CLIENT_HEARTBEAT => check_heartbeat(&record, key),
            types::SEND_CHANNEL_STATUS | types::RECEIVE_CHANNEL_STATUS => {
                check_channel(&record, key)
            }
            types::LOCAL_SOCKET_ADDRESS => check_local_address(&record, key),
            1..1000 => check_stream(&record, key),
            _ => continue,
        }
        checked += 1;
    }
    assert_eq!(checked, 32);
}

fn check_heartbeat(record: &CounterRecord, key: &Value) {
    let client_id = number(&key["registration_id"]);
    assert_eq!(decode_heartbeat_key(&record.key), client_id);
    assert_eq!(record.key, heartbeat_key(client_id));
    let suffix = heartbeat_label_suffix("vector-client", "1.52.2", "5b62f21d91");
    assert_eq!(record.label, heartbeat_label(client_id) + &suffix);
}

fn check_channel(record: &CounterRecord, key: &Value) {
    let channel = text(&key["channel"]);
    assert_eq!(decode_channel_key(&record.key), channel);
    // The real driver leaves arbitrary bytes in the key after the text.
    let used = 4 + channel.len();
    assert_eq!(record.key[..used], channel_key(channel)[..used]);
}

fn check_local_address(record: &CounterRecord, key: &Value) {
    let channel_status_id = number(&key["channel_status_counter_id"]) as i32;
    let address = text(&key["address"]);
    assert_eq!(
        decode_local_address_key(&record.key),
        (channel_status_id, address.to_owned())
    );
    let used = 8 + address.len();
    assert_eq!(
        record.key[..used],
        local_address_key(channel_status_id, address)[..used]
    );
    let name = record.label.split(':').next().unwrap();
    assert_eq!(
        record.label,
        local_address_label(name, channel_status_id, address)
    );
}

fn check_stream(record: &CounterRecord, key: &Value) {
    let decoded = StreamKey::decode(&record.key);
    assert_eq!(decoded.registration_id, number(&key["registration_id"]));
    assert_eq!(i64::from(decoded.session_id), number(&key["session_id"]));
    assert_eq!(i64::from(decoded.stream_id), number(&key["stream_id"]));
    assert_eq!(decoded.channel, text(&key["channel"]));
    // The key contains only the start of the channel. The label contains the whole channel.
    let StreamKey {
        registration_id: id,
        session_id: session,
        stream_id: stream,
        ..
    } = decoded;
    let channel = record
        .label
        .split(' ')
        .find(|word| word.starts_with("aeron:"))
        .unwrap();
    assert_eq!(record.key, stream_key(id, session, stream, channel));
    let (name, _) = record.label.split_once(": ").unwrap();
    let label = match record.type_id {
        types::SUBSCRIBER_POSITION => subscriber_position_label(id, session, stream, channel, 0),
        _ => stream_label(name, id, session, stream, channel),
    };
    assert_eq!(record.label, label);
}

fn ring_with(trailer: &[u8]) -> ManyToOneRing<SharedBuffer> {
    let words = SharedBuffer::heap(CAPACITY + ring::TRAILER_LENGTH);
    words.copy_in(CAPACITY, trailer);
    ManyToOneRing::new(words).unwrap()
}

/// 01-31, 01-22
#[test]
fn the_captured_unread_commands_are_read_and_equal_the_bytes_that_we_write() {
    let expected = expected!("ring-unread.json");
    let start = number(&expected["capture_starts_at_index"]) as usize;
    let capture = captured!("ring-unread.bin");
    let ring = ring_with(captured!("ring-unread-trailer.bin"));
    ring.words().copy_in(start, capture);
    let mut commands = Vec::new();
    let mut consumer = RingConsumer::new(ring.clone());
    consumer
        .read(10, |msg_type_id, payload| {
            commands.push((msg_type_id, payload.to_vec()))
        })
        .unwrap();
    let records = expected["records"].as_array().unwrap();
    let listed: Vec<_> = records
        .iter()
        .map(|r| {
            (
                number(&r["msg_type_id"]) as i32,
                bytes(text(&r["payload_hex"])),
            )
        })
        .collect();
    assert_eq!(commands, listed);
    assert_eq!(
        ring.consumer_position(),
        number(&expected["trailer"]["tail_position"])
    );

    let ours = ring_with(captured!("ring-unread-trailer.bin"));
    ours.words().store_i64_relaxed(
        CAPACITY + 128,
        number(&expected["trailer"]["head_position"]),
    );
    for (msg_type_id, payload) in &listed {
        ours.write(*msg_type_id, payload).unwrap();
    }
    assert_eq!(copied(ours.words(), start, capture.len()), capture);
    assert_eq!(
        copied(ours.words(), CAPACITY, 768),
        captured!("ring-unread-trailer.bin")
    );
}

/// 01-25, 01-31
#[test]
fn the_captured_commands_across_the_end_of_the_ring_are_read_in_two_calls() {
    let expected = expected!("ring-wrap.json");
    let ring = ring_with(captured!("ring-wrap-trailer.bin"));
    let (end, start) = (
        captured!("ring-wrap-data-end.bin"),
        captured!("ring-wrap-data-start.bin"),
    );
    ring.words().copy_in(CAPACITY - end.len(), end);
    ring.words().copy_in(0, start);
    // The capture begins inside a command. So everything before the first complete command of the capture counts as
    // read.
    let first = number(&expected["records_at_end"][0]["index"]);
    ring.words().store_i64_relaxed(CAPACITY + 384, first);
    let mut consumer = RingConsumer::new(ring);
    for part in ["records_at_end", "records_after_wrap"] {
        let mut read = Vec::new();
        consumer
            .read(100, |t, payload| {
                read.push((i64::from(t), payload.len() as i64 + 8))
            })
            .unwrap();
        let records = expected[part].as_array().unwrap().iter();
        let messages = records.filter(|r| number(&r["msg_type_id"]) > 0);
        let listed: Vec<_> = messages
            .map(|r| (number(&r["msg_type_id"]), number(&r["record_length"])))
            .collect();
        assert_eq!(read, listed, "{part}");
    }
}

fn received(words: &SharedBuffer) -> Vec<(i32, Vec<u8>)> {
    let mut receiver = BroadcastReceiver::new(words.clone()).unwrap();
    let mut messages = Vec::new();
    while receiver
        .receive(|t, payload| messages.push((t, payload.to_vec())))
        .unwrap()
    {}
    messages
}

/// 01-32, 01-34
#[test]
fn the_captured_events_are_received_and_equal_the_bytes_that_we_write() {
    let expected = expected!("cnc-to-clients.json");
    let records = expected["records"].as_array().unwrap();
    let listed: Vec<_> = records
        .iter()
        .map(|r| {
            (
                number(&r["msg_type_id"]) as i32,
                bytes(text(&r["payload_hex"])),
            )
        })
        .collect();
    let (_, cnc, _) = captured_cnc();
    assert_eq!(
        received(cnc.to_clients()),
        listed[listed.len() - 1..],
        "a new receiver starts with the newest event"
    );
    cnc.to_clients().store_i64_relaxed(CAPACITY + 16, 0);
    assert_eq!(received(cnc.to_clients()), listed);

    let ours = SharedBuffer::heap(CAPACITY + broadcast::TRAILER_LENGTH);
    let mut transmitter = BroadcastTransmitter::new(ours.clone()).unwrap();
    for (msg_type_id, payload) in &listed {
        transmitter.transmit(*msg_type_id, payload).unwrap();
    }
    let (head, trailer) = (
        captured!("cnc-to-clients-head.bin"),
        captured!("cnc-to-clients-trailer.bin"),
    );
    assert_eq!(copied(&ours, 0, head.len()), head);
    assert_eq!(copied(&ours, CAPACITY, trailer.len()), trailer);
}

/// 01-32
#[test]
fn the_captured_events_across_the_end_of_the_buffer_are_received() {
    let expected = expected!("broadcast-wrap.json");
    let words = SharedBuffer::heap(CAPACITY + broadcast::TRAILER_LENGTH);
    let (end, start) = (
        captured!("broadcast-wrap-data-end.bin"),
        captured!("broadcast-wrap-data-start.bin"),
    );
    words.copy_in(CAPACITY - end.len(), end);
    words.copy_in(0, start);
    words.copy_in(CAPACITY, captured!("broadcast-wrap-trailer.bin"));
    let counters = [0, 8, 16].map(|offset| words.load_i64_relaxed(CAPACITY + offset));
    assert_eq!(
        counters,
        ["tail_intent", "tail", "latest"].map(|name| number(&expected[name]))
    );

    // Starts at the first complete record of the capture, and ends at the last complete record.
    words.store_i64_relaxed(
        CAPACITY + 16,
        number(&expected["records_at_end"][0]["offset"]),
    );
    words.store_i64_relaxed(CAPACITY + 8, (CAPACITY + 6816) as i64);
    let read: Vec<_> = received(&words)
        .iter()
        .map(|(t, payload)| (i64::from(*t), payload.len() as i64 + 8))
        .collect();
    let parts =
        ["records_at_end", "records_after_wrap"].map(|part| expected[part].as_array().unwrap());
    let whole = parts[0]
        .iter()
        .chain(&parts[1][..4])
        .filter(|r| number(&r["msg_type_id"]) > 0);
    let listed: Vec<_> = whole
        .map(|r| (number(&r["msg_type_id"]), number(&r["record_length"])))
        .collect();
    assert_eq!(read, listed);
}
