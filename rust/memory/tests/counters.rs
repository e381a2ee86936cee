//! Tests of counters with one thread.

use aeron_memory::counters::keys::{
    MAX_ADDRESS_LENGTH, StreamKey, channel_key, decode_channel_key, decode_heartbeat_key,
    decode_local_address_key, heartbeat_key, heartbeat_label, heartbeat_label_suffix,
    local_address_key, local_address_label, stream_key, stream_label, subscriber_position_label,
};
use aeron_memory::counters::system::{SystemCounter, SystemCounters, SystemLabels};
use aeron_memory::counters::{
    AllocateError, CountersManager, CountersReader, FreeError, NOT_FREE_TO_REUSE, NewCounter,
    STATE_ALLOCATED, STATE_RECLAIMED, STATE_UNUSED, types,
};
use aeron_memory::{SharedBuffer, Words};

const REUSE_TIMEOUT_MS: i64 = 1000;

struct Counters {
    metadata: SharedBuffer,
    values: SharedBuffer,
    manager: CountersManager<SharedBuffer>,
}

fn counters(count: usize) -> Counters {
    let (metadata, values) = (
        SharedBuffer::heap(512 * count),
        SharedBuffer::heap(128 * count),
    );
    let manager = CountersManager::new(metadata.clone(), values.clone(), REUSE_TIMEOUT_MS).unwrap();
    Counters {
        metadata,
        values,
        manager,
    }
}

fn new_counter<'a>(key: &'a [u8], label: &'a [u8]) -> NewCounter<'a> {
    NewCounter {
        type_id: 1001,
        key,
        label,
        registration_id: 7,
        owner_id: 8,
        reference_id: 9,
        value: 10,
    }
}

fn allocate(c: &mut Counters, now_ms: i64) -> i32 {
    c.manager
        .allocate(&new_counter(b"key", b"label"), now_ms)
        .unwrap()
        .id()
}

/// 01-37
#[test]
fn ids_are_dense_and_reused_in_the_order_of_freeing_after_the_deadline() {
    let mut c = counters(4);
    let ids: Vec<_> = (0..4).map(|_| allocate(&mut c, 0)).collect();
    assert_eq!(ids, [0, 1, 2, 3]);
    let full = c.manager.allocate(&new_counter(b"", b""), 0).unwrap_err();
    assert_eq!(full, AllocateError { max_counter_id: 3 });
    assert_eq!(full.to_string(), "Max counter id (3) exceeded");
    c.manager.free(2, 100).unwrap();
    c.manager.free(0, 200).unwrap();
    assert!(c.manager.allocate(&new_counter(b"", b""), 1099).is_err());
    assert_eq!(allocate(&mut c, 1250), 2);
    assert_eq!(allocate(&mut c, 1250), 0);
    assert!(c.manager.allocate(&new_counter(b"", b""), 1250).is_err());
}

/// The deadlines of freed ids are times of the wall clock. After it was set back, a client may still read the freed
/// counter, so the timeout begins again.
#[test]
fn freed_ids_are_reused_after_the_wall_clock_was_set_back() {
    let mut c = counters(1);
    allocate(&mut c, 5_000_000);
    c.manager.free(0, 5_000_000).unwrap();
    assert!(
        c.manager
            .allocate(&new_counter(b"", b""), 5_000_000)
            .is_err()
    );
    assert!(c.manager.allocate(&new_counter(b"", b""), 70).is_err());
    assert!(c.manager.allocate(&new_counter(b"", b""), 1069).is_err());
    assert_eq!(allocate(&mut c, 1070), 0);
    c.manager.free(0, 1070).unwrap();
    assert!(c.manager.allocate(&new_counter(b"", b""), 1070).is_err());
}

/// While the reuse time of a freed id has not come, allocation takes a new id.
#[test]
fn a_new_id_is_used_before_the_reuse_time_of_a_freed_id() {
    let mut c = counters(4);
    allocate(&mut c, 0);
    c.manager.free(0, 0).unwrap();
    assert_eq!(allocate(&mut c, 999), 1);
    assert_eq!(allocate(&mut c, 1000), 0);
}

/// 01-38
#[test]
fn a_freed_counter_counts_as_available_at_once() {
    let mut c = counters(4);
    assert_eq!(c.manager.available(), 4);
    let id = allocate(&mut c, 0);
    assert_eq!(c.manager.available(), 3);
    c.manager.free(id, 0).unwrap();
    assert_eq!(c.manager.available(), 4);
}

#[test]
fn allocation_fills_both_records_and_truncates_key_and_label() {
    let mut c = counters(2);
    let counter = c
        .manager
        .allocate(&new_counter(&[1; 200], &[b'x'; 500]), 0)
        .unwrap();
    assert_eq!(counter.get(), 10);
    let record = c.manager.reader().record(0).unwrap();
    assert_eq!(
        (record.type_id, record.key, record.label),
        (1001, [1; 112], "x".repeat(380))
    );
    assert_eq!(
        (record.registration_id, record.owner_id, record.reference_id),
        (7, 8, 9)
    );
    assert_eq!(c.metadata.load_i32_relaxed(0), STATE_ALLOCATED);
    assert_eq!(c.metadata.load_i64_relaxed(8), NOT_FREE_TO_REUSE);
    assert_eq!(c.metadata.load_i32_relaxed(128), 380);
    assert_eq!(
        c.metadata.load_i32_relaxed(512),
        STATE_UNUSED,
        "the next record must not change"
    );
    let values = [0, 8, 16, 24].map(|offset| c.values.load_i64_relaxed(offset));
    assert_eq!(values, [10, 7, 8, 9]);
}

/// 01-39
#[test]
fn freeing_zeroes_the_key_and_keeps_type_label_and_values() {
    let mut c = counters(2);
    allocate(&mut c, 0);
    c.manager.free(0, 500).unwrap();
    assert_eq!(c.metadata.load_i32_relaxed(0), STATE_RECLAIMED);
    assert_eq!(c.metadata.load_i32_relaxed(4), 1001);
    assert_eq!(c.manager.reader().free_for_reuse_deadline_ms(0), Some(1500));
    let mut key = [1; 112];
    c.metadata.copy_out(16, &mut key);
    assert_eq!(key, [0; 112]);
    let mut label = [0; 5];
    c.metadata.copy_out(132, &mut label);
    assert_eq!((c.metadata.load_i32_relaxed(128), &label), (5, b"label"));
    let values = [0, 8, 16, 24].map(|offset| c.values.load_i64_relaxed(offset));
    assert_eq!(values, [10, 7, 8, 9]);
    for id in [0, 1, 2, -1, i32::MAX, i32::MIN] {
        assert_eq!(c.manager.free(id, 0), Err(FreeError { id }));
    }
}

/// 01-40
#[test]
fn a_reused_id_keeps_no_field_of_the_freed_counter() {
    let mut c = counters(1);
    c.manager
        .allocate(&new_counter(&[9; 112], b"a long label"), 0)
        .unwrap();
    c.manager.free(0, 0).unwrap();
    let blank = NewCounter {
        type_id: 5,
        key: b"k",
        label: b"l",
        registration_id: 0,
        owner_id: 0,
        reference_id: 0,
        value: 0,
    };
    c.manager.allocate(&blank, 1000).unwrap();
    let record = c.manager.reader().record(0).unwrap();
    assert_eq!((record.key[0], &record.key[1..]), (b'k', &[0; 111][..]));
    assert_eq!(
        (record.type_id, record.label.as_str(), record.value),
        (5, "l", 0)
    );
    assert_eq!(
        (record.registration_id, record.owner_id, record.reference_id),
        (0, 0, 0)
    );
}

/// 01-41
#[test]
fn readers_skip_reclaimed_records_and_stop_at_the_first_unused_record() {
    let mut c = counters(6);
    for _ in 0..4 {
        allocate(&mut c, 0);
    }
    c.manager.free(1, 0).unwrap();
    c.metadata.store_i32_relaxed(512 * 5, STATE_ALLOCATED);
    let reader = c.manager.reader();
    assert_eq!(reader.ids().collect::<Vec<_>>(), [0, 2, 3]);
    assert_eq!(reader.records().count(), 3);
    assert_eq!(reader.key(1), None);
    assert_eq!(reader.value(1), Some(10));
    assert_eq!(reader.value(6), None);
}

#[test]
fn counters_are_found_by_key_and_by_registration_up_to_the_last_id() {
    let mut c = counters(3);
    allocate(&mut c, 0);
    allocate(&mut c, 0);
    let heartbeat = NewCounter {
        type_id: types::CLIENT_HEARTBEAT,
        key: &heartbeat_key(42),
        label: b"",
        registration_id: 43,
        owner_id: 42,
        reference_id: 0,
        value: 0,
    };
    c.manager.allocate(&heartbeat, 0).unwrap();
    let reader = c.manager.reader();
    let is_client_42 = |key: &_| decode_heartbeat_key(key) == 42;
    assert_eq!(
        reader.find_by_key(types::CLIENT_HEARTBEAT, is_client_42),
        Some(2)
    );
    assert_eq!(
        reader.find_by_key(types::CLIENT_HEARTBEAT, |key| decode_heartbeat_key(key)
            == 43),
        None
    );
    assert_eq!(
        reader.find_by_registration(types::CLIENT_HEARTBEAT, 43),
        Some(2)
    );
    assert_eq!(reader.find_by_registration(1001, 43), None);
    assert_eq!(reader.find_by_registration(1001, 7), Some(0));
}

fn labels() -> SystemLabels {
    SystemLabels {
        software: "version=1.52.2 commit=5b62f21d91".into(),
        resolver_name: String::new(),
        threading_mode: "SHARED".into(),
        conductor_threshold: "100ms".into(),
        sender_threshold: "200ms".into(),
        receiver_threshold: "300ms".into(),
        name_resolver_threshold: "5s".into(),
    }
}

/// 01-42
#[test]
fn system_counters_have_the_first_ids_and_their_labels() {
    let mut c = counters(50);
    let system = SystemCounters::allocate(&mut c.manager, &labels(), 0).unwrap();
    assert_eq!(SystemCounter::ALL.len(), 46);
    for (id, record) in c.manager.reader().records().enumerate() {
        assert_eq!((record.id as usize, record.type_id), (id, 0));
        assert_eq!(
            (record.registration_id, record.owner_id, record.reference_id),
            (id as i64, -1, 0)
        );
        assert_eq!(record.key[..4], (id as i32).to_le_bytes());
        assert_eq!(record.key[4..], [0; 108]);
    }
    assert_eq!(c.manager.reader().ids().count(), 46);
    let label = |counter: SystemCounter| c.manager.reader().label(counter.id()).unwrap();
    assert_eq!(
        label(SystemCounter::Errors),
        "Errors: version=1.52.2 commit=5b62f21d91"
    );
    assert_eq!(
        label(SystemCounter::Version),
        "Aeron software: version=1.52.2 commit=5b62f21d91"
    );
    assert_eq!(
        label(SystemCounter::ResolutionChanges),
        "Resolution changes: driverName="
    );
    assert_eq!(
        label(SystemCounter::SenderMaxCycleTime),
        "Sender max cycle time doing its work in ns: SHARED"
    );
    assert_eq!(
        label(SystemCounter::ConductorCycleTimeExceeded),
        "Conductor work cycle exceeded threshold count: threshold=100ms SHARED"
    );
    assert_eq!(
        label(SystemCounter::NameResolverTimeExceeded),
        "NameResolver exceeded threshold count: threshold=5s"
    );
    system.get(SystemCounter::BytesMapped).fetch_add(4096);
    assert_eq!(c.manager.reader().value(35), Some(4096));
}

/// 01-21
#[test]
fn the_control_protocol_version_comes_from_the_system_counter_43_and_no_other() {
    let mut c = counters(50);
    assert_eq!(c.manager.reader().control_protocol_version(), 0);
    let system = SystemCounters::allocate(&mut c.manager, &labels(), 0).unwrap();
    system
        .get(SystemCounter::ControlProtocolVersion)
        .set(65_536);
    let reader = CountersReader::new(c.metadata.clone(), c.values.clone()).unwrap();
    assert_eq!(reader.control_protocol_version(), 65_536);
    c.values.store_i64_relaxed(43 * 128 + 8, 44);
    assert_eq!(
        reader.control_protocol_version(),
        0,
        "a counter with another registration id does not count"
    );
    c.values.store_i64_relaxed(43 * 128 + 8, 43);
    c.metadata.store_i32_relaxed(43 * 512 + 4, 1);
    assert_eq!(
        reader.control_protocol_version(),
        0,
        "a counter of another type does not count"
    );
    c.metadata.store_i32_relaxed(43 * 512 + 4, 0);
    c.manager.free(43, 0).unwrap();
    assert_eq!(
        reader.control_protocol_version(),
        0,
        "a freed counter does not count"
    );
}

/// 01-43: only the layouts of keys and labels. The driver's tests check which counter has which key.
#[test]
fn stream_keys_truncate_the_channel_and_labels_do_not() {
    let channel = format!(
        "aeron:udp?endpoint=localhost:20121|alias={}",
        "a".repeat(100)
    );
    let key = stream_key(5, -6, 7, &channel);
    assert_eq!(
        key[..20],
        [
            5, 0, 0, 0, 0, 0, 0, 0, 250, 255, 255, 255, 7, 0, 0, 0, 92, 0, 0, 0
        ]
    );
    let decoded = StreamKey::decode(&key);
    assert_eq!(
        (
            decoded.registration_id,
            decoded.session_id,
            decoded.stream_id
        ),
        (5, -6, 7)
    );
    assert_eq!(decoded.channel, channel[..92]);
    assert_eq!(
        stream_label("pub-lmt", 5, -6, 7, &channel),
        format!("pub-lmt: 5 -6 7 {channel}")
    );
    assert_eq!(
        subscriber_position_label(2, 1_351_841_903, 1001, "aeron:ipc", 0),
        "sub-pos: 2 1351841903 1001 aeron:ipc @0"
    );

    assert_eq!(decode_channel_key(&channel_key(&channel)), channel[..108]);
    let address = "x".repeat(200);
    let decoded = decode_local_address_key(&local_address_key(3, &address));
    assert_eq!(decoded, (3, address[..MAX_ADDRESS_LENGTH].to_owned()));
    assert_eq!(
        local_address_label("snd-local-sockaddr", 46, "127.0.0.1:20121"),
        "snd-local-sockaddr: 46 127.0.0.1:20121"
    );
}

/// 01-44: the label of a heartbeat.
#[test]
fn a_client_appends_its_name_to_the_label_of_its_heartbeat() {
    let mut c = counters(1);
    let label = heartbeat_label(1);
    c.manager
        .allocate(&new_counter(&heartbeat_key(1), label.as_bytes()), 0)
        .unwrap();
    let reader = c.manager.reader();
    reader.append_to_label(0, &heartbeat_label_suffix("memref", "1.52.2", "5b62f21d91"));
    assert_eq!(
        reader.label(0).unwrap(),
        "client-heartbeat: id=1 name=memref version=1.52.2 commit=5b62f21d91"
    );
    reader.append_to_label(0, &"x".repeat(400));
    assert_eq!(reader.label(0).unwrap().len(), 380);
    reader.append_to_label(0, "more");
    reader.append_to_label(1, "no such counter");
    assert_eq!(reader.label(0).unwrap().len(), 380);
}

#[test]
fn a_label_is_replaced_and_trailing_nuls_are_not_shown() {
    let mut c = counters(1);
    allocate(&mut c, 0);
    c.manager
        .set_label(0, b"rcv-channel: aeron:udp 127.0.0.1:1\0");
    assert_eq!(
        c.manager.reader().label(0).unwrap(),
        "rcv-channel: aeron:udp 127.0.0.1:1"
    );
}

#[test]
fn a_handle_adds_raises_and_replaces_the_value() {
    let mut c = counters(1);
    let counter = c.manager.allocate(&new_counter(b"", b""), 0).unwrap();
    assert_eq!(counter.fetch_add(5), 10);
    counter.add_release(i64::MAX);
    assert_eq!(counter.get(), i64::MIN + 14, "additions wrap");
    assert!(counter.propose_max(3) && !counter.propose_max(3));
    assert!(counter.compare_and_set(3, 4) && !counter.compare_and_set(3, 5));
    counter.set_reference_id(77);
    assert_eq!((counter.get_relaxed(), counter.reference_id()), (4, 77));
}

#[test]
fn sections_with_invalid_lengths_are_refused() {
    for (metadata, values) in [(511, 128), (512, 132), (516, 128), (508, 127)] {
        let sections = (SharedBuffer::heap(metadata), SharedBuffer::heap(values));
        assert!(
            CountersReader::new(sections.0, sections.1).is_err(),
            "{metadata} {values}"
        );
    }
}
