//! Ring buffer: the consumer reads only complete records, claimed bytes are zero, and unblocking detects a record that
//! is being written.

use aeron_memory::Words;
use aeron_memory::loom_words::{LoomWords, ModelLayout, Weakness};
use aeron_memory::ring::{ClaimError, ManyToOneRing, RingConsumer, TRAILER_LENGTH};
use loom::thread;

use crate::{check, check_fails};

const CAPACITY: usize = 64;
const TAIL: usize = CAPACITY + 128;
const HEAD_CACHE: usize = CAPACITY + 256;
const HEAD: usize = CAPACITY + 384;

fn words() -> LoomWords {
    let trailer = [128, 256, 384, 512, 640].map(|offset| CAPACITY + offset);
    let data = ModelLayout::new(CAPACITY + TRAILER_LENGTH).narrow(0..CAPACITY);
    trailer.into_iter().fold(data, ModelLayout::wide).build()
}

fn ring(words: &LoomWords) -> ManyToOneRing<LoomWords> {
    ManyToOneRing::new(words.clone()).unwrap()
}

/// Returns the words, with one access weakened if requested.
fn weakened(words: &LoomWords, weakness: &Option<Weakness>) -> LoomWords {
    match weakness {
        Some(weakness) => words.weakened(weakness.clone()),
        None => words.clone(),
    }
}

fn message(k: u8) -> [u8; 8] {
    [k; 8]
}

/// Reads all messages and checks that each is complete. Returns their types.
fn read(consumer: &mut RingConsumer<LoomWords>) -> Vec<i32> {
    let mut types = Vec::new();
    consumer
        .read(10, |msg_type_id, payload| {
            let is_whole = msg_type_id > 0 && payload == message(msg_type_id as u8);
            assert!(
                is_whole,
                "a message is not whole: {msg_type_id}, {payload:?}"
            );
            types.push(msg_type_id);
        })
        .expect("a message is not whole");
    types
}

/// Two producers write while the consumer reads.
fn producers_and_consumer(producer: Option<Weakness>, consumer: Option<Weakness>) {
    let words = words();
    let producers = [1, 2].map(|k| {
        let ring = ring(&weakened(&words, &producer));
        thread::spawn(move || ring.write(k, &message(k as u8)).unwrap())
    });
    let mut reader = RingConsumer::new(ring(&weakened(&words, &consumer)));
    let mut types = read(&mut reader);
    for producer in producers {
        producer.join().unwrap();
    }
    types.extend(read(&mut reader));
    types.sort();
    assert_eq!(types, [1, 2], "a message is lost or doubled");
}

/// 01-29
#[test]
fn messages_of_two_producers_arrive_whole_and_once() {
    check(|| producers_and_consumer(None, None));
}

#[test]
fn without_releasing_the_length_a_message_is_not_whole() {
    check_fails("not whole", || {
        producers_and_consumer(Some(Weakness::Release(0..CAPACITY)), None)
    });
}

#[test]
fn without_acquiring_the_length_a_message_is_not_whole() {
    check_fails("not whole", || {
        producers_and_consumer(None, Some(Weakness::Acquire(0..CAPACITY)))
    });
}

/// 01-29: one producer writes across the end of the buffer while the consumer frees space. The messages keep their
/// order.
fn one_producer_laps(weakness: Option<Weakness>) {
    let words = words();
    for offset in [TAIL, HEAD_CACHE, HEAD] {
        words.store_i64_relaxed(offset, 40);
    }
    let ring_of_producer = ring(&weakened(&words, &weakness));
    let producer = thread::spawn(move || {
        for k in 1..=3 {
            ring_of_producer.write(k, &message(k as u8)).unwrap();
        }
    });
    let mut reader = RingConsumer::new(ring(&words));
    let mut types = read(&mut reader);
    producer.join().unwrap();
    types.extend(read(&mut reader));
    types.extend(read(&mut reader));
    assert_eq!(
        types,
        [1, 2, 3],
        "a message is lost, doubled or out of order"
    );
}

#[test]
fn messages_of_one_producer_keep_their_order_across_the_end() {
    check(|| one_producer_laps(None));
}

#[test]
fn without_releasing_the_length_messages_across_the_end_are_not_whole() {
    check_fails("not whole", || {
        one_producer_laps(Some(Weakness::Release(0..CAPACITY)))
    });
}

/// Claims a message and checks that its payload is zero: the consumer must have zeroed it.
fn claim_zeroed(ring: &ManyToOneRing<LoomWords>) -> Result<usize, ClaimError> {
    let index = ring.try_claim(9, 8)?;
    for word in [index, index + 4] {
        let found = ring.words().load_i32_relaxed(word);
        assert_eq!(found, 0, "claimed space is not zero");
    }
    Ok(index)
}

/// The ring is full. The consumer reads one message while a producer claims the space of this message.
fn reuse(producer: Option<Weakness>, consumer: Option<Weakness>) {
    let words = words();
    for k in 1..=4 {
        ring(&words).write(k, &message(k as u8)).unwrap();
    }
    let ring_of_producer = ring(&weakened(&words, &producer));
    let producer = thread::spawn(move || {
        let _ = claim_zeroed(&ring_of_producer);
    });
    let mut reader = RingConsumer::new(ring(&weakened(&words, &consumer)));
    reader.read(1, |_, _| ()).unwrap();
    producer.join().unwrap();
}

#[test]
fn space_is_zero_when_it_is_claimed_again() {
    check(|| reuse(None, None));
}

#[test]
fn without_releasing_the_head_claimed_space_is_not_zero() {
    check_fails("not zero", || {
        reuse(None, Some(Weakness::Release(HEAD..HEAD + 8)))
    });
}

#[test]
fn without_acquiring_the_head_claimed_space_is_not_zero() {
    check_fails("not zero", || {
        reuse(Some(Weakness::Acquire(HEAD..HEAD + 8)), None)
    });
}

/// Like [`reuse`], with a second producer that finds the free space only through the cached head.
fn reuse_by_cached_head(first: Option<Weakness>, second: Option<Weakness>) {
    let words = words();
    for k in 1..=4 {
        ring(&words).write(k, &message(k as u8)).unwrap();
    }
    let second_ring = ring(&weakened(&words, &second));
    let second_producer = thread::spawn(move || {
        let _ = claim_zeroed(&second_ring);
    });
    RingConsumer::new(ring(&words)).read(2, |_, _| ()).unwrap();
    ring(&weakened(&words, &first)).try_claim(9, 8).unwrap();
    second_producer.join().unwrap();
}

/// 01-27
#[test]
fn space_found_free_by_the_cached_head_is_zero() {
    check(|| reuse_by_cached_head(None, None));
}

#[test]
fn without_releasing_the_cached_head_claimed_space_is_not_zero() {
    // The compare-and-swap of the tail publishes the same stores. So the second producer's load of the tail is weakened
    // too. Then only the cached head can publish the stores.
    check_fails("not zero", || {
        reuse_by_cached_head(
            Some(Weakness::Release(HEAD_CACHE..HEAD_CACHE + 8)),
            Some(Weakness::Acquire(TAIL..TAIL + 8)),
        )
    });
}

/// A producer writes its record while the consumer unblocks the ring, as if the producer were dead.
fn unblock_a_slow_producer(weakness: Option<Weakness>) {
    let words = words();
    let mut consumer = RingConsumer::new(ring(&words));
    let consuming = thread::spawn(move || {
        if consumer.unblock() {
            let length = consumer.ring().words().load_i32_relaxed(0);
            assert_eq!(length, 16, "a part of a record was padded");
        }
    });
    let slow = ring(&weakened(&words, &weakness));
    let index = slow.try_claim(1, 8).unwrap();
    slow.words().copy_in(index, &message(1));
    // The result is not checked: `commit` fails if the consumer padded the record before.
    let _ = slow.commit(index);
    consuming.join().unwrap();
}

/// 01-30
#[test]
fn unblocking_never_pads_a_part_of_a_begun_record() {
    check(|| unblock_a_slow_producer(None));
}

#[test]
fn without_the_fence_after_the_negative_length_unblocking_pads_a_part_of_a_record() {
    check_fails("part of a record", || {
        unblock_a_slow_producer(Some(Weakness::ReleaseFence))
    });
}

/// 01-12: ids of the correlation counter are unique.
#[test]
fn correlation_ids_are_unique() {
    check(|| {
        let words = words();
        let other = ring(&words);
        let thread = thread::spawn(move || other.next_correlation_id());
        let own = ring(&words).next_correlation_id();
        let mut ids = [own, thread.join().unwrap()];
        ids.sort();
        assert_eq!(ids, [0, 1]);
    });
}
