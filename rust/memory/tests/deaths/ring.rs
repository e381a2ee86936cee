//! The ring of commands: every head and tail of small rings, and producers that die after each store.

use std::ops::RangeInclusive;

use aeron_memory::ring::{
    ClaimError, ManyToOneRing, RECORD_HEADER_LENGTH, RingConsumer, TRAILER_LENGTH,
};
use aeron_memory::{SharedBuffer, Words};

use crate::mortal::{MortalWords, die_after, every_death};

const CAPACITIES: [usize; 5] = [8, 16, 32, 64, 128];
/// Positions at which a lap begins: the first lap, and laps at which the low 32 bits of a position change their sign.
const LAPS: [i64; 3] = [0, (1 << 31) - 256, (1 << 32) - 256];
const RECORD: usize = RECORD_HEADER_LENGTH;

/// Types of the messages that were complete before the test.
const BEFORE: i32 = 1;
const OF_THE_DEAD: i32 = 2;
const OF_THE_LIVING: i32 = 3;

/// A state of a small ring.
#[derive(Clone, Copy, Debug)]
struct State {
    capacity: usize,
    cached_head: i64,
    head: i64,
    tail: i64,
}

/// Returns all states of a ring: each head, each number of used bytes, and each older head in the cache.
fn states(capacity: usize) -> impl Iterator<Item = State> {
    let steps = move || (0..=capacity as i64).step_by(RECORD);
    LAPS.into_iter().flat_map(move |lap| {
        steps().flat_map(move |at| {
            let head = lap + at;
            steps().flat_map(move |used| {
                steps()
                    .map(move |age| State {
                        capacity,
                        cached_head: head - age,
                        head,
                        tail: head + used,
                    })
                    .filter(|state| state.cached_head >= 0)
            })
        })
    })
}

impl State {
    /// Creates a ring in this state. The used bytes are messages without a payload.
    fn words(&self) -> SharedBuffer {
        let words = SharedBuffer::heap(self.capacity + TRAILER_LENGTH);
        for (offset, position) in [(128, self.tail), (256, self.cached_head), (384, self.head)] {
            words.store_i64_relaxed(self.capacity + offset, position);
        }
        for position in (self.head..self.tail).step_by(RECORD) {
            let index = position as usize % self.capacity;
            words.store_i32_relaxed(index, RECORD as i32);
            words.store_i32_relaxed(index + 4, BEFORE);
        }
        words
    }

    fn messages_before(&self) -> usize {
        (self.tail - self.head) as usize / RECORD
    }
}

fn ring<W: Words>(words: &W) -> ManyToOneRing<W> {
    ManyToOneRing::new(words.clone()).unwrap()
}

fn lengths(capacity: usize) -> RangeInclusive<usize> {
    0..=ring(&SharedBuffer::heap(capacity + TRAILER_LENGTH)).max_message_length()
}

fn payload(msg_type_id: i32, length: usize) -> Vec<u8> {
    vec![0xA0 | msg_type_id as u8; length]
}

/// A consumer that, like the driver, unblocks the ring if it finds nothing although the ring is not empty.
struct Driver {
    consumer: RingConsumer<SharedBuffer>,
    types: Vec<i32>,
}

impl Driver {
    fn new(words: &SharedBuffer) -> Self {
        Self {
            consumer: RingConsumer::new(ring(words)),
            types: Vec::new(),
        }
    }

    /// Reads once, and unblocks the ring if nothing was read.
    fn turn(&mut self) {
        let before = self.consumer.ring().consumer_position();
        let types = &mut self.types;
        self.consumer
            .read(usize::MAX, |msg_type_id, bytes| {
                assert_eq!(
                    bytes,
                    payload(msg_type_id, bytes.len()),
                    "a message is torn"
                );
                types.push(msg_type_id);
            })
            .unwrap();
        if self.consumer.ring().consumer_position() == before {
            self.consumer.unblock();
        }
    }

    fn count(&self, msg_type_id: i32) -> usize {
        self.types.iter().filter(|&&it| it == msg_type_id).count()
    }
}

/// 01-25, 01-26, 01-27: a claim succeeds exactly if its bytes are free in one piece, and never touches used bytes.
#[test]
fn a_claim_at_each_boundary_takes_free_bytes_only() {
    let mut cases = 0;
    for capacity in CAPACITIES {
        for state in states(capacity) {
            for length in lengths(capacity) {
                let words = state.words();
                let ring = ring(&words);
                let need = (RECORD + length).next_multiple_of(RECORD) as i64;
                let free = capacity as i64 - (state.tail - state.head);
                let to_end = (capacity - state.tail as usize % capacity) as i64;
                let (padding, fits) = match need {
                    need if need > free => (0, false),
                    need if need <= to_end => (0, true),
                    // The rest of the data area becomes padding, even if the message does not fit at the start.
                    _ => (to_end, need <= free - to_end),
                };
                let written = ring.write(OF_THE_LIVING, &payload(OF_THE_LIVING, length));
                assert_eq!(written, if fits { Ok(()) } else { Err(ClaimError::Full) });
                let claimed = padding + if fits { need } else { 0 };
                assert_eq!(
                    ring.producer_position(),
                    state.tail + claimed,
                    "{state:?} {length}"
                );
                assert!(ring.size() <= capacity);

                let mut driver = Driver::new(&words);
                // A read stops at the end of the data area, and padding there is a read of its own.
                (0..3).for_each(|_| driver.turn());
                assert_eq!(driver.count(BEFORE), state.messages_before(), "{state:?}");
                assert_eq!(driver.count(OF_THE_LIVING), usize::from(fits));
                assert_empty(&words, capacity);
                cases += 1;
            }
        }
    }
    assert!(cases > 50_000, "{cases}");
}

/// Checks that the ring is empty, and that all its bytes are zero.
fn assert_empty(words: &SharedBuffer, capacity: usize) {
    assert_eq!(ring(words).size(), 0);
    let mut bytes = vec![0; capacity];
    words.copy_out(0, &mut bytes);
    assert!(bytes.iter().all(|&byte| byte == 0), "used bytes are left");
}

/// How a producer sends a message.
type Send = fn(&ManyToOneRing<MortalWords>, usize) -> Result<(), ClaimError>;

fn write(ring: &ManyToOneRing<MortalWords>, length: usize) -> Result<(), ClaimError> {
    ring.write(OF_THE_DEAD, &payload(OF_THE_DEAD, length))
}

fn claim_and_commit(ring: &ManyToOneRing<MortalWords>, length: usize) -> Result<(), ClaimError> {
    let index = ring.try_claim(OF_THE_DEAD, length)?;
    ring.words().copy_in(index, &payload(OF_THE_DEAD, length));
    ring.commit(index).unwrap();
    Ok(())
}

fn claim_and_abort(ring: &ManyToOneRing<MortalWords>, length: usize) -> Result<(), ClaimError> {
    let index = ring.try_claim(OF_THE_DEAD, length)?;
    ring.words().copy_in(index, &payload(OF_THE_DEAD, length));
    ring.abort(index).unwrap();
    Ok(())
}

/// 01-29, 01-30: wherever producers die, the driver reads all messages before their claims, and then those of a
/// producer that lives.
#[test]
fn the_ring_makes_progress_after_a_producer_dies_at_any_store() {
    let sends: [Send; 3] = [write, claim_and_commit, claim_and_abort];
    let mut deaths = 0;
    for capacity in CAPACITIES {
        for state in states(capacity).filter(|it| it.cached_head == it.head) {
            for length in lengths(capacity).step_by(4) {
                for send in sends {
                    deaths += every_death(|stores| {
                        let words = state.words();
                        let sent = die_after(&words, stores, |words| send(&ring(&words), length));
                        check_progress(&words, &state, 1);
                        sent.is_some()
                    });
                }
            }
        }
    }
    assert!(deaths > 5_000, "{deaths}");
}

/// 01-30: as many producers as the ring has room for die, each directly after its claim.
#[test]
fn the_ring_makes_progress_after_dead_claims_have_filled_it() {
    for capacity in CAPACITIES {
        for state in states(capacity).filter(|it| it.cached_head == it.head) {
            for length in lengths(capacity).step_by(8) {
                let words = state.words();
                let dead = (0..capacity / RECORD)
                    .take_while(|_| claim_and_die(&words, length))
                    .count();
                check_progress(&words, &state, dead);
            }
        }
    }
}

/// Lets a producer die directly after its claim. Returns whether it has claimed anything.
fn claim_and_die(words: &SharedBuffer, length: usize) -> bool {
    let size = ring(words).size();
    // A producer may first store the head in the cache, twice. Then the next producer begins with the claim.
    (0..3).any(|_| {
        die_after(words, 1, |words| write(&ring(&words), length));
        ring(words).size() != size
    })
}

/// Checks that the driver reads all messages before the dead claims, and a message of a living producer.
fn check_progress(words: &SharedBuffer, state: &State, dead: usize) {
    let mut driver = Driver::new(words);
    let ring = ring(words);
    let mut is_sent = false;
    for _ in 0..2 * dead + 8 {
        is_sent = is_sent || ring.write(OF_THE_LIVING, &[]).is_ok();
        driver.turn();
        if driver.count(OF_THE_LIVING) == 1 {
            break;
        }
    }
    assert_eq!(
        driver.count(OF_THE_LIVING),
        1,
        "blocked for ever: {state:?}"
    );
    assert_eq!(driver.count(BEFORE), state.messages_before(), "{state:?}");
    assert!(driver.count(OF_THE_DEAD) <= dead);
    assert_empty(words, state.capacity);
}
