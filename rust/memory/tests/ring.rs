//! Tests of the ring buffer with one thread.

use aeron_memory::ring::{
    ClaimError, CommitError, ManyToOneRing, PADDING_TYPE_ID, RECORD_HEADER_LENGTH, RecordAction,
    RingConsumer, TRAILER_LENGTH,
};
use aeron_memory::{SharedBuffer, Words};

const CAPACITY: usize = 1024;
const TAIL: usize = CAPACITY + 128;
const HEAD_CACHE: usize = CAPACITY + 256;
const HEAD: usize = CAPACITY + 384;

fn ring() -> (ManyToOneRing<SharedBuffer>, RingConsumer<SharedBuffer>) {
    let ring = ManyToOneRing::new(SharedBuffer::heap(CAPACITY + TRAILER_LENGTH)).unwrap();
    (ring.clone(), RingConsumer::new(ring))
}

/// Creates a ring in which `position` bytes were written and read before.
fn ring_at(position: i64) -> (ManyToOneRing<SharedBuffer>, RingConsumer<SharedBuffer>) {
    let (ring, consumer) = ring();
    for offset in [TAIL, HEAD, HEAD_CACHE] {
        ring.words().store_i64_relaxed(offset, position);
    }
    (ring, consumer)
}

fn read_all(consumer: &mut RingConsumer<SharedBuffer>) -> Vec<(i32, Vec<u8>)> {
    let mut messages = Vec::new();
    consumer
        .read(usize::MAX, |msg_type_id, payload| {
            messages.push((msg_type_id, payload.to_vec()))
        })
        .unwrap();
    messages
}

fn length_at(ring: &ManyToOneRing<SharedBuffer>, index: usize) -> i32 {
    ring.words().load_i32_relaxed(index)
}

fn type_at(ring: &ManyToOneRing<SharedBuffer>, index: usize) -> i32 {
    ring.words().load_i32_relaxed(index + 4)
}

#[test]
fn a_length_other_than_a_power_of_two_plus_the_trailer_is_refused() {
    for capacity in [0, 4, 12, 1000, 1 << 31] {
        // No page of the memory is accessed, so even the largest ring costs nothing.
        let words = SharedBuffer::heap(capacity + TRAILER_LENGTH);
        assert!(ManyToOneRing::new(words).is_err(), "{capacity}");
    }
    assert!(ManyToOneRing::new(SharedBuffer::heap(100)).is_err());
    let tiny = ManyToOneRing::new(SharedBuffer::heap(8 + TRAILER_LENGTH)).unwrap();
    assert_eq!(tiny.max_message_length(), 0);
    tiny.write(1, &[]).unwrap();
    assert_eq!(tiny.write(1, &[]), Err(ClaimError::Full));
}

/// 01-22, 03-2
#[test]
fn a_record_has_a_negative_length_until_it_is_committed() {
    let (ring, mut consumer) = ring();
    ring.write(7, b"hello").unwrap();
    let mut bytes = [0; 16];
    ring.words().copy_out(0, &mut bytes);
    assert_eq!(&bytes, b"\x0d\0\0\0\x07\0\0\0hello\0\0\0");

    let index = ring.try_claim(8, 9).unwrap();
    assert_eq!(index, 16 + RECORD_HEADER_LENGTH);
    assert_eq!((length_at(&ring, 16), type_at(&ring, 16)), (-17, 8));
    assert_eq!(read_all(&mut consumer), [(7, b"hello".to_vec())]);
    ring.words().copy_in(index, b"123456789");
    ring.commit(index).unwrap();
    assert_eq!((length_at(&ring, 16), type_at(&ring, 16)), (17, 8));

    let aborted = ring.try_claim(9, 3).unwrap();
    ring.abort(aborted).unwrap();
    assert_eq!(
        (length_at(&ring, 40), type_at(&ring, 40)),
        (11, PADDING_TYPE_ID)
    );
    assert_eq!(read_all(&mut consumer), [(8, b"123456789".to_vec())]);
    assert_eq!(ring.consumer_position(), 56);
    assert_eq!(ring.size(), 0);
}

/// 01-23, 03-3
#[test]
fn payloads_over_an_eighth_of_the_capacity_and_types_below_one_are_rejected() {
    let (ring, mut consumer) = ring();
    let max = CAPACITY / 8;
    assert_eq!(ring.max_message_length(), max);
    assert_eq!(
        ring.write(1, &vec![0; max + 1]),
        Err(ClaimError::TooLong {
            length: max + 1,
            max
        })
    );
    assert_eq!(ring.write(0, b"x"), Err(ClaimError::InvalidType(0)));
    assert_eq!(ring.try_claim(-1, 0), Err(ClaimError::InvalidType(-1)));
    assert_eq!(ring.producer_position(), 0);
    ring.write(1, &vec![3; max]).unwrap();
    assert_eq!(read_all(&mut consumer), [(1, vec![3; max])]);
}

/// 01-24
#[test]
fn only_a_claim_can_be_committed_or_aborted_and_only_once() {
    let (ring, _) = ring();
    for index in [0, 4, 12, CAPACITY + 8, usize::MAX] {
        let error = CommitError::OutOfBounds {
            index,
            capacity: CAPACITY,
        };
        assert_eq!(ring.commit(index), Err(error));
        assert_eq!(ring.abort(index), Err(error));
    }
    assert_eq!(
        ring.commit(CAPACITY),
        Err(CommitError::NotClaimed { index: CAPACITY })
    );
    let index = ring.try_claim(1, 4).unwrap();
    ring.commit(index).unwrap();
    assert_eq!(ring.commit(index), Err(CommitError::NotClaimed { index }));
    assert_eq!(ring.abort(index), Err(CommitError::NotClaimed { index }));
}

/// 01-25
#[test]
fn a_message_that_does_not_fit_before_the_end_goes_to_the_start_after_padding() {
    let (ring, mut consumer) = ring_at(CAPACITY as i64 * 5 - 24);
    ring.write(1, &[5; 100]).unwrap();
    let pad = CAPACITY - 24;
    assert_eq!(
        (length_at(&ring, pad), type_at(&ring, pad)),
        (24, PADDING_TYPE_ID)
    );
    assert_eq!(length_at(&ring, 0), 108);
    assert_eq!(ring.producer_position(), CAPACITY as i64 * 5 + 112);
    assert_eq!(read_all(&mut consumer), []);
    assert_eq!(read_all(&mut consumer), [(1, vec![5; 100])]);

    let (ring, _) = ring_at(CAPACITY as i64 - 24);
    ring.write(1, &[5; 16]).unwrap();
    assert_eq!(
        (length_at(&ring, pad), type_at(&ring, pad)),
        (24, 1),
        "an exact fit needs no padding"
    );
}

/// 01-26
#[test]
fn a_full_ring_refuses_claims() {
    let (ring, mut consumer) = ring();
    while ring.write(1, &[1; 56]).is_ok() {}
    assert_eq!(ring.producer_position(), CAPACITY as i64);
    assert_eq!(ring.size(), CAPACITY);
    assert_eq!(ring.write(1, &[]), Err(ClaimError::Full));
    assert_eq!(ring.producer_position(), CAPACITY as i64);
    consumer.read(1, |_, _| ()).unwrap();
    ring.write(1, &[1; 56]).unwrap();
    assert_eq!(ring.write(1, &[]), Err(ClaimError::Full));
}

/// 01-26: enough bytes are free in total, but neither before the end nor at the start. Then only the padding is
/// claimed.
#[test]
fn a_message_without_room_at_the_start_claims_only_padding_until_the_consumer_reads() {
    let (ring, mut consumer) = ring_at(CAPACITY as i64 - 64);
    for offset in [HEAD, HEAD_CACHE] {
        ring.words().store_i64_relaxed(offset, 64);
    }
    ring.words().store_i32_relaxed(64, CAPACITY as i32 - 128);
    ring.words().store_i32_relaxed(68, PADDING_TYPE_ID);
    assert_eq!(ring.write(1, &[1; 64]), Err(ClaimError::Full));
    assert_eq!(ring.producer_position(), CAPACITY as i64);
    assert_eq!(type_at(&ring, CAPACITY - 64), PADDING_TYPE_ID);
    assert_eq!(length_at(&ring, CAPACITY - 64), 64);
    assert_eq!(ring.write(1, &[1; 64]), Err(ClaimError::Full));
    assert_eq!(read_all(&mut consumer), []);
    ring.write(1, &[1; 64]).unwrap();
    assert_eq!(read_all(&mut consumer), [(1, vec![1; 64])]);
}

/// 01-27
#[test]
fn the_cached_head_is_refreshed_only_when_the_claim_needs_it() {
    let (ring, mut consumer) = ring();
    let cached = || ring.words().load_i64_relaxed(HEAD_CACHE);
    for _ in 0..15 {
        ring.write(1, &[1; 56]).unwrap();
        read_all(&mut consumer);
        assert_eq!(cached(), 0);
    }
    ring.write(1, &[1; 56]).unwrap();
    assert_eq!(cached(), 0, "the last free bytes need no newer head");
    ring.write(1, &[1; 56]).unwrap();
    assert_eq!(cached(), ring.consumer_position());
    assert_eq!(ring.consumer_position(), 15 * 64);
}

/// 01-28
#[test]
fn a_read_counts_only_messages_and_stops_at_the_end_and_zeroes_the_consumed_bytes() {
    let (ring, mut consumer) = ring_at(CAPACITY as i64 - 64);
    let aborted = ring.try_claim(1, 8).unwrap();
    ring.abort(aborted).unwrap();
    ring.write(2, &[2; 8]).unwrap();
    ring.write(3, &[3; 8]).unwrap();
    ring.write(4, &[4; 8]).unwrap();
    ring.write(5, &[5; 8]).unwrap();
    let mut types = Vec::new();
    assert_eq!(consumer.read(1, |t, _| types.push(t)), Ok(1));
    assert_eq!(
        ring.consumer_position(),
        CAPACITY as i64 - 32,
        "padding is not counted"
    );
    assert_eq!(
        consumer.read(10, |t, _| types.push(t)),
        Ok(2),
        "a read stops at the end of the data area"
    );
    assert_eq!(ring.consumer_position(), CAPACITY as i64);
    assert_eq!(consumer.read(10, |t, _| types.push(t)), Ok(1));
    assert_eq!(types, [2, 3, 4, 5]);
    for index in (0..CAPACITY).step_by(8) {
        assert_eq!(ring.words().load_i64_relaxed(index), 0);
    }
}

/// 01-28
#[test]
fn the_space_of_consumed_messages_is_released_if_the_handler_panics() {
    let (ring, mut consumer) = ring();
    ring.write(1, b"a").unwrap();
    ring.write(2, b"b").unwrap();
    ring.write(3, b"c").unwrap();
    let read = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        consumer.read(10, |t, _| assert_ne!(t, 2)).unwrap()
    }));
    assert!(read.is_err());
    assert_eq!(ring.consumer_position(), 32);
    assert_eq!(length_at(&ring, 16), 0);
    assert_eq!(read_all(&mut consumer), [(3, b"c".to_vec())]);
}

#[test]
fn a_controlled_read_obeys_abort_break_and_commit() {
    let (ring, mut consumer) = ring();
    for t in 1..=5 {
        ring.write(t, b"").unwrap();
    }
    let head = ring.clone();
    let mut heads = Vec::new();
    let mut actions = [
        RecordAction::Continue,
        RecordAction::Commit,
        RecordAction::Abort,
    ]
    .into_iter();
    let read = consumer.controlled_read(10, |_, _| {
        heads.push(head.consumer_position());
        actions.next().unwrap()
    });
    assert_eq!(read, Ok(2));
    assert_eq!(heads, [0, 0, 16]);
    assert_eq!(ring.consumer_position(), 16);
    assert_eq!(
        consumer.controlled_read(10, |t, _| if t == 4 {
            RecordAction::Break
        } else {
            RecordAction::Continue
        }),
        Ok(2)
    );
    assert_eq!(read_all(&mut consumer), [(5, vec![])]);
}

/// 01-30
#[test]
fn unblocking_pads_a_claim_that_was_begun() {
    for position in [0, 64] {
        let (ring, mut consumer) = ring_at(position);
        ring.try_claim(1, 20).unwrap();
        ring.write(2, b"next").unwrap();
        assert!(consumer.unblock());
        assert_eq!(length_at(&ring, position as usize), 28);
        assert_eq!(type_at(&ring, position as usize), PADDING_TYPE_ID);
        assert_eq!(read_all(&mut consumer), [(2, b"next".to_vec())]);
        assert!(!consumer.unblock(), "no claim is left to unblock");
    }
}

/// 01-30
#[test]
fn unblocking_pads_exactly_the_zeros_before_the_next_record_even_at_index_0() {
    for position in [0, 64, CAPACITY as i64 - 32] {
        let (ring, mut consumer) = ring_at(position);
        ring.words().store_i64_relaxed(TAIL, position + 32);
        assert!(!consumer.unblock(), "nothing shows where the claim ends");
        ring.write(2, b"next").unwrap();
        // A claim up to the end of the data area ends there. The next record is at the start of the data area.
        assert!(consumer.unblock());
        assert_eq!(length_at(&ring, position as usize), 32);
        let mut messages = read_all(&mut consumer);
        messages.extend(read_all(&mut consumer));
        assert_eq!(messages, [(2, b"next".to_vec())]);
    }
}

/// 01-30
#[test]
fn a_complete_record_at_the_head_is_never_unblocked() {
    let (ring, mut consumer) = ring();
    assert!(!consumer.unblock());
    ring.write(1, b"a").unwrap();
    assert!(!consumer.unblock());
    assert_eq!(read_all(&mut consumer), [(1, b"a".to_vec())]);
}

/// 01-12: correlation ids are unique, and count up from the start value.
#[test]
fn correlation_ids_and_the_heartbeat_are_in_the_trailer() {
    let (ring, _) = ring();
    assert_eq!(
        [ring.next_correlation_id(), ring.next_correlation_id()],
        [0, 1]
    );
    assert_eq!(ring.words().load_i64_relaxed(CAPACITY + 512), 2);
    ring.set_consumer_heartbeat_ms(77);
    assert_eq!(ring.words().load_i64_relaxed(CAPACITY + 640), 77);
    assert_eq!(ring.consumer_heartbeat_ms(), 77);
}

#[test]
fn a_corrupt_length_is_reported_and_skipped_and_later_messages_are_read() {
    for length in [1, 7, CAPACITY as i32, i32::MAX, CAPACITY as i32 / 8 + 9] {
        let (ring, mut consumer) = ring();
        ring.write(1, b"good").unwrap();
        ring.write(2, b"bad").unwrap();
        ring.write(3, b"lost").unwrap();
        ring.words().store_i32_relaxed(16, length);
        let mut seen = 0;
        let error = consumer.read(10, |_, _| seen += 1).unwrap_err();
        assert_eq!(
            (
                error.position,
                error.length,
                error.msg_type_id,
                error.discarded
            ),
            (16, length, 2, 32)
        );
        assert_eq!(seen, 1);
        ring.write(4, b"after").unwrap();
        assert_eq!(read_all(&mut consumer), [(4, b"after".to_vec())]);
    }
}

/// 01-30: a claim cannot be longer than the bytes up to the end of the data area.
#[test]
fn unblocking_a_claim_of_an_impossible_length_pads_the_rest_of_the_data_area() {
    for length in [i32::MIN, -(CAPACITY as i32) - 1, -3] {
        let (ring, mut consumer) = ring_at(64);
        ring.try_claim(1, 8).unwrap();
        ring.words().store_i32_relaxed(64, length);
        ring.words().store_i64_relaxed(TAIL, CAPACITY as i64);
        assert!(consumer.unblock());
        let padded = if length == -3 {
            8
        } else {
            CAPACITY as i32 - 64
        };
        assert_eq!(length_at(&ring, 64), padded);
        assert_eq!(read_all(&mut consumer), []);
    }
}
