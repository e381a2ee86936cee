//! Tests of whole structures with random bytes, as if another process wrote them: no function panics, leaves the
//! memory, or loops for ever.

use aeron_memory::broadcast::{self, BroadcastReceiver, BroadcastTransmitter};
use aeron_memory::cnc::{Cnc, CncLengths, DriverIdentity, Reader};
use aeron_memory::counters::keys::{
    Key, StreamKey, decode_channel_key, decode_heartbeat_key, decode_local_address_key,
};
use aeron_memory::counters::{CountersManager, CountersReader, NewCounter};
use aeron_memory::log::LogBuffers;
use aeron_memory::log::buffers::log_length;
use aeron_memory::log::clean::clean;
use aeron_memory::log::description::{LogDescription, LogType};
use aeron_memory::log::unblock::{unblock, unblock_abandoned};
use aeron_memory::ring::{self, ManyToOneRing, RingConsumer};
use aeron_memory::{SharedBuffer, Words};
use proptest::prelude::*;

const CAPACITY: usize = 256;

/// Numbers near the limits test more cases of a reader than random numbers.
fn number() -> impl Strategy<Value = i64> {
    prop_oneof![
        any::<i64>(),
        -40..40i64,
        -(CAPACITY as i64) - 16..CAPACITY as i64 + 16,
        Just(i64::MAX),
        Just(i64::MIN),
        Just(i64::from(i32::MIN)),
        Just(i64::from(i32::MAX)),
    ]
}

/// Writes `data` as 32-bit words, and each value of `trailer` as a 64-bit word at its offset in the trailer.
fn fill(words: &SharedBuffer, data: &[i64], trailer: impl Iterator<Item = (usize, i64)>) {
    for (index, value) in data.iter().enumerate() {
        words.store_i32_relaxed(4 * index, *value as i32);
    }
    for (offset, value) in trailer {
        words.store_i64_relaxed(CAPACITY + offset, value);
    }
}

fn data() -> impl Strategy<Value = Vec<i64>> {
    proptest::collection::vec(number(), CAPACITY / 4)
}

fn hostile_ring(data: &[i64], trailer: &[i64]) -> ManyToOneRing<SharedBuffer> {
    let words = SharedBuffer::heap(CAPACITY + ring::TRAILER_LENGTH);
    fill(
        &words,
        data,
        [128, 256, 384, 512, 640]
            .into_iter()
            .zip(trailer.iter().copied()),
    );
    ManyToOneRing::new(words).unwrap()
}

proptest! {
    #[test]
    fn a_ring_of_any_bytes_is_read_and_reading_continues_after_each_error(
        data in data(),
        trailer in proptest::collection::vec(number(), 5),
    ) {
        let ring = hostile_ring(&data, &trailer);
        let mut consumer = RingConsumer::new(ring.clone());
        for _ in 0..8 {
            let head = ring.consumer_position();
            let max = ring.max_message_length();
            let read = consumer.read(usize::MAX, |_, payload| assert!(payload.len() <= max));
            if read.is_err() {
                prop_assert_ne!(ring.consumer_position(), head, "the consumer returned an error and did not skip the record");
            }
            let _ = consumer.unblock();
        }
        prop_assert!(ring.size() <= CAPACITY);
    }

    #[test]
    fn a_ring_of_any_bytes_is_written_within_its_bounds(
        data in data(),
        trailer in proptest::collection::vec(number(), 5),
        lengths in proptest::collection::vec(0..64usize, 1..20),
        index in any::<usize>(),
    ) {
        let ring = hostile_ring(&data, &trailer);
        for length in lengths {
            let _ = ring.write(1, &vec![7; length]);
            if let Ok(index) = ring.try_claim(2, length) {
                prop_assert!(index + length <= CAPACITY);
                let _ = ring.commit(index);
            }
        }
        for index in [index, index % (CAPACITY + 16), (index % CAPACITY) & !7] {
            let _ = ring.commit(index);
            let _ = ring.abort(index);
        }
    }

    #[test]
    fn a_broadcast_buffer_of_any_bytes_is_received_and_transmitted(
        data in data(),
        trailer in proptest::collection::vec(number(), 3),
        other_trailer in proptest::collection::vec(number(), 3),
        length in 0..=CAPACITY / 8,
    ) {
        let words = SharedBuffer::heap(CAPACITY + broadcast::TRAILER_LENGTH);
        fill(&words, &data, [0, 8, 16].into_iter().zip(trailer));
        let mut receiver = BroadcastReceiver::new(words.clone()).unwrap();
        let mut transmitter = BroadcastTransmitter::new(words.clone()).unwrap();
        for _ in 0..40 {
            let _ = receiver.receive(|_, payload| assert!(payload.len() <= CAPACITY / 8));
        }
        transmitter.transmit(1, &vec![1; length]).unwrap();
        fill(&words, &data, [0, 8, 16].into_iter().zip(other_trailer));
        for _ in 0..40 {
            let _ = receiver.receive(|_, payload| assert!(payload.len() <= CAPACITY / 8));
        }
    }

    #[test]
    fn counters_of_any_bytes_are_read(
        words in proptest::collection::vec(number(), 5 * 128),
        states in proptest::collection::vec(-2..3i32, 5),
        id in any::<i32>(),
    ) {
        let (metadata, values) = (SharedBuffer::heap(5 * 512), SharedBuffer::heap(5 * 128));
        for (index, value) in words.iter().enumerate() {
            metadata.store_i32_relaxed(4 * index, *value as i32);
            values.store_i32_relaxed(4 * (index / 4), *value as i32);
        }
        for (id, state) in states.iter().enumerate() {
            metadata.store_i32_relaxed(512 * id, *state);
        }
        let reader = CountersReader::new(metadata.clone(), values.clone()).unwrap();
        for record in reader.records() {
            prop_assert!(record.label.chars().count() <= 380);
        }
        let _ = (reader.record(id), reader.value(id), reader.label(id), reader.state(id));
        reader.append_to_label(id, "x");
        reader.append_to_label(0, &"x".repeat(500));
        let _ = (reader.find_by_registration(0, 0), reader.find_by_key(0, |_| true), reader.control_protocol_version());
        // The driver can still allocate counters with any bytes in the records.
        let mut manager = CountersManager::new(metadata, values, 0).unwrap();
        let new = NewCounter { type_id: 1, key: b"k", label: b"l", registration_id: 1, owner_id: 1, reference_id: 1, value: 1 };
        for id in 0..5 {
            prop_assert_eq!(manager.allocate(&new, 0).unwrap().id(), id);
        }
        for id in 0..5 {
            prop_assert_eq!(manager.free(id, i64::MAX), Ok(()));
        }
    }

    #[test]
    fn keys_of_any_bytes_are_decoded(bytes in proptest::collection::vec(any::<u8>(), 112), length in number()) {
        let mut key: Key = bytes.try_into().unwrap();
        for offset in [0, 4, 16] {
            key[offset..offset + 4].copy_from_slice(&(length as i32).to_le_bytes());
            let _ = (StreamKey::decode(&key), decode_channel_key(&key), decode_local_address_key(&key));
            let _ = decode_heartbeat_key(&key);
        }
    }

    /// 01-16, 01-18
    #[test]
    fn a_cnc_file_with_any_header_is_opened_or_refused(
        changes in proptest::collection::vec((0..13usize, number()), 1..4),
        missing in 0..100_000usize,
    ) {
        let lengths = CncLengths { counters_values: 1 << 20, ..Default::default() };
        let words = SharedBuffer::heap(lengths.file_length().unwrap());
        let identity = DriverIdentity { client_liveness_timeout_ns: 1, start_timestamp_ms: 2, pid: 3 };
        Cnc::format(words.clone(), &lengths, &identity).unwrap().publish();
        for (word, value) in changes {
            words.store_i32_relaxed(4 * word, value as i32);
        }
        for words in [words.clone(), words.slice(0, words.len() - missing)] {
            for reader in [Reader::Client, Reader::Tool] {
                let Ok(cnc) = Cnc::open(words.clone(), reader) else { continue };
                let _ = (cnc.identity(), cnc.file_page_size(), cnc.is_active(i64::MIN, i64::MAX));
                let _ = (cnc.driver_state(i64::MAX, i64::MIN), cnc.counters().ids().count());
            }
        }
    }

    #[test]
    fn a_cnc_file_of_any_bytes_is_refused_or_opened(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let _ = Cnc::open(SharedBuffer::copy_of(&bytes), Reader::Tool);
        let mut versioned = bytes;
        if versioned.len() > 4 {
            versioned[..4].copy_from_slice(&512i32.to_le_bytes());
        }
        let _ = Cnc::open(SharedBuffer::copy_of(&versioned), Reader::Client);
    }
}

const TERM_LENGTH: usize = 64 * 1024;

/// Offsets in a term: any, at its end, and near frames that are short.
fn term_offset() -> impl Strategy<Value = i64> {
    prop_oneof![
        0..TERM_LENGTH as i64 + 64,
        0..200i64,
        any::<i32>().prop_map(i64::from)
    ]
}

proptest! {
    #[test]
    fn a_log_with_any_tails_and_lengths_is_unblocked_with_whole_frames_and_cleaned(
        tails in proptest::collection::vec((-1..4i64, term_offset()), 3),
        active_count in -1..4i32,
        lengths in proptest::collection::vec((0..40usize, any::<i32>()), 0..6),
        blocked in 0..40i64,
        targets in proptest::collection::vec(number(), 1..4),
    ) {
        let description = LogDescription {
            mtu_length: 1408,
            term_length: TERM_LENGTH as i32,
            ..LogDescription::new(LogType::ConcurrentPublication, 1, 1, 0)
        };
        let words = SharedBuffer::heap(log_length(TERM_LENGTH as i64, 4096).unwrap());
        let log = LogBuffers::create(&words, &description, 0).unwrap();
        for (index, length) in lengths {
            words.store_i32_relaxed(32 * index, length);
        }
        for (partition, (term_id, offset)) in tails.into_iter().enumerate() {
            words.store_i64_relaxed(3 * TERM_LENGTH + 8 * partition, (term_id << 32) | (offset & 0xFFFF_FFFF));
        }
        words.store_i32_relaxed(3 * TERM_LENGTH + 24, active_count);
        for is_changed in [unblock(&log, 32 * blocked), unblock_abandoned(&log, 32 * blocked)] {
            let length = words.load_i32_relaxed(32 * blocked as usize);
            prop_assert!(!is_changed || blocked == 0 || length >= 32, "a frame of {length} bytes");
        }
        let mut clean_position = 0;
        for target in targets {
            clean_position = clean(&log, clean_position, target);
            prop_assert_eq!(clean_position % 32, 0);
        }
    }
}

#[test]
fn no_padding_that_is_shorter_than_a_header_is_written_up_to_a_tail_off_the_frame_boundaries() {
    let description = LogDescription {
        mtu_length: 1408,
        term_length: TERM_LENGTH as i32,
        ..LogDescription::new(LogType::ConcurrentPublication, 1, 1, 0)
    };
    for extra in 1..64 {
        let words = SharedBuffer::heap(log_length(TERM_LENGTH as i64, 4096).unwrap());
        let log = LogBuffers::create(&words, &description, 0).unwrap();
        words.store_i64_relaxed(3 * TERM_LENGTH, 64 + extra);
        assert_eq!(unblock_abandoned(&log, 64), extra >= 32);
        let expected = if extra < 32 { 0 } else { 32 };
        assert_eq!(words.load_i32_relaxed(64), expected);
    }
}
