//! Compares ring, broadcast and counters with simple models.

use std::collections::VecDeque;

use aeron_memory::broadcast::{self, BroadcastReceiver, BroadcastTransmitter, ReceiveError};
use aeron_memory::counters::{CountersManager, NewCounter};
use aeron_memory::ring::{self, ClaimError, ManyToOneRing, RecordAction, RingConsumer};
use aeron_memory::{SharedBuffer, Words};
use proptest::prelude::*;

const CAPACITY: usize = 512;
const MAX_MESSAGE: usize = CAPACITY / 8;

type Message = (i32, Vec<u8>);

fn message() -> impl Strategy<Value = Message> {
    (
        1..i32::MAX,
        proptest::collection::vec(any::<u8>(), 0..=MAX_MESSAGE),
    )
}

#[derive(Clone, Debug)]
enum RingStep {
    Write(Message),
    Claim(Message, bool),
    Read(usize),
    ReadUntil(usize, RecordAction),
}

fn ring_step() -> impl Strategy<Value = RingStep> {
    let action = prop_oneof![
        Just(RecordAction::Abort),
        Just(RecordAction::Break),
        Just(RecordAction::Commit)
    ];
    prop_oneof![
        3 => message().prop_map(RingStep::Write),
        2 => (message(), any::<bool>()).prop_map(|(message, commit)| RingStep::Claim(message, commit)),
        2 => (0..6usize).prop_map(RingStep::Read),
        1 => (0..4usize, action).prop_map(|(at, action)| RingStep::ReadUntil(at, action)),
    ]
}

/// A ring and the queue that models it.
struct RingModel {
    ring: ManyToOneRing<SharedBuffer>,
    consumer: RingConsumer<SharedBuffer>,
    queue: VecDeque<Message>,
}

impl RingModel {
    /// Creates a ring in which all bytes before `position` were written and read.
    fn new(position: i64) -> Self {
        let words = SharedBuffer::heap(CAPACITY + ring::TRAILER_LENGTH);
        for offset in [128, 256, 384] {
            words.store_i64_relaxed(CAPACITY + offset, position);
        }
        let ring = ManyToOneRing::new(words).unwrap();
        Self {
            consumer: RingConsumer::new(ring.clone()),
            ring,
            queue: VecDeque::new(),
        }
    }

    fn step(&mut self, step: RingStep) {
        match step {
            RingStep::Write(message) => {
                let (size, position) = (self.ring.size(), self.ring.producer_position());
                match self.ring.write(message.0, &message.1) {
                    Ok(()) => self.queue.push_back(message),
                    Err(error) => assert_full(error, size, position, message.1.len()),
                }
            }
            RingStep::Claim(message, commit) => {
                let (size, position) = (self.ring.size(), self.ring.producer_position());
                match self.ring.try_claim(message.0, message.1.len()) {
                    Ok(index) => self.end_claim(index, message, commit),
                    Err(error) => assert_full(error, size, position, message.1.len()),
                }
            }
            RingStep::Read(limit) => {
                let queue = &mut self.queue;
                let next =
                    |t, payload: &[u8]| assert_eq!(queue.pop_front(), Some((t, payload.to_vec())));
                let read = self.consumer.read(limit, next).unwrap();
                assert!(read <= limit);
            }
            RingStep::ReadUntil(at, action) => self.read_until(at, action),
        }
        let words = self.ring.words();
        let cached_head = words.load_i64_relaxed(CAPACITY + 256);
        assert!(cached_head <= self.ring.consumer_position());
        assert!(self.ring.size() <= CAPACITY);
    }

    fn end_claim(&mut self, index: usize, message: Message, commit: bool) {
        self.ring.words().copy_in(index, &message.1);
        if commit {
            self.ring.commit(index).unwrap();
            self.queue.push_back(message);
        } else {
            self.ring.abort(index).unwrap();
        }
    }

    fn read_until(&mut self, at: usize, action: RecordAction) {
        let mut seen = 0;
        let queue = &self.queue;
        let read = self.consumer.controlled_read(usize::MAX, |t, payload| {
            assert_eq!((t, payload), (queue[seen].0, queue[seen].1.as_slice()));
            seen += 1;
            if seen > at {
                action
            } else {
                RecordAction::Continue
            }
        });
        let read = read.unwrap();
        assert_eq!(
            read,
            seen - usize::from(action == RecordAction::Abort && seen > at)
        );
        self.queue.drain(..read);
    }
}

/// Checks that a refused message had no room: its length and the padding before it exceed the free bytes of the ring.
fn assert_full(error: ClaimError, size: usize, position: i64, length: usize) {
    assert_eq!(error, ClaimError::Full);
    let need = (length + 8).next_multiple_of(8);
    let to_end = CAPACITY - position as usize % CAPACITY;
    let padding = if need > to_end { to_end } else { 0 };
    assert!(
        size + padding + need > CAPACITY,
        "{size} + {padding} + {need} would fit"
    );
}

#[derive(Clone, Debug)]
enum BroadcastStep {
    Transmit(Message),
    Receive(usize),
}

fn broadcast_step() -> impl Strategy<Value = BroadcastStep> {
    prop_oneof![
        4 => message().prop_map(BroadcastStep::Transmit),
        1 => (1..12usize).prop_map(BroadcastStep::Receive),
    ]
}

#[derive(Clone, Debug)]
enum CounterStep {
    Allocate(i32),
    Free(usize),
    Wait(i64),
}

fn counter_step() -> impl Strategy<Value = CounterStep> {
    prop_oneof![
        3 => any::<i32>().prop_map(CounterStep::Allocate),
        2 => any::<usize>().prop_map(CounterStep::Free),
        1 => (0..700i64).prop_map(CounterStep::Wait),
    ]
}

proptest! {
    /// 01-22, 01-25, 01-26, 01-27, 01-28
    #[test]
    fn a_ring_behaves_like_a_queue(
        lap in 0..(1i64 << 45),
        index in 0..CAPACITY / 8,
        steps in proptest::collection::vec(ring_step(), 1..200),
    ) {
        let mut model = RingModel::new(lap * CAPACITY as i64 + 8 * index as i64);
        for step in steps {
            model.step(step);
        }
        // Reads twice, because a read stops at the end of the data area.
        model.step(RingStep::Read(usize::MAX));
        model.step(RingStep::Read(usize::MAX));
        prop_assert!(model.queue.is_empty());
        prop_assert_eq!(model.ring.size(), 0);
        let mut data = [0; CAPACITY];
        model.ring.words().copy_out(0, &mut data);
        prop_assert_eq!(data, [0; CAPACITY], "the consumer must zero the bytes that it has read");
    }

    /// 01-32, 01-35: a receiver gets all messages in order, except messages for which it returned `Lapped`.
    #[test]
    fn a_receiver_gets_all_messages_in_order_except_those_reported_as_lost(
        steps in proptest::collection::vec(broadcast_step(), 1..200),
    ) {
        let words = SharedBuffer::heap(CAPACITY + broadcast::TRAILER_LENGTH);
        let mut transmitter = BroadcastTransmitter::new(words.clone()).unwrap();
        let mut receiver = BroadcastReceiver::new(words).unwrap();
        let mut unread: VecDeque<Message> = VecDeque::new();
        for step in steps {
            match step {
                BroadcastStep::Transmit(message) => {
                    transmitter.transmit(message.0, &message.1).unwrap();
                    unread.push_back(message);
                }
                BroadcastStep::Receive(limit) => for _ in 0..limit {
                    let mut received = None;
                    match receiver.receive(|t, payload| received = Some((t, payload.to_vec()))) {
                        Ok(_) => prop_assert_eq!(received, unread.pop_front()),
                        Err(error) => {
                            prop_assert_eq!(error, ReceiveError::Lapped);
                            let bytes: usize = unread.iter().map(|m| (m.1.len() + 8).next_multiple_of(8)).sum();
                            prop_assert!(bytes + MAX_MESSAGE + 8 > CAPACITY, "lapped by {} bytes", bytes);
                            unread.clear();
                        }
                    }
                },
            }
        }
    }

    /// 01-37, 01-38, 01-39, 01-40, 01-41
    #[test]
    fn counters_behave_like_a_table_of_slots(steps in proptest::collection::vec(counter_step(), 1..200)) {
        const SLOTS: usize = 6;
        const REUSE_TIMEOUT_MS: i64 = 500;
        let (metadata, values) = (SharedBuffer::heap(512 * SLOTS), SharedBuffer::heap(128 * SLOTS));
        let mut manager = CountersManager::new(metadata, values, REUSE_TIMEOUT_MS).unwrap();
        let mut used: Vec<Option<i32>> = Vec::new();
        let mut free: VecDeque<(usize, i64)> = VecDeque::new();
        let mut now_ms = 0;
        for step in steps {
            match step {
                CounterStep::Allocate(type_id) => {
                    let reusable = free.front().filter(|(_, deadline_ms)| *deadline_ms <= now_ms);
                    let expected = match reusable.copied() {
                        Some((slot, _)) => { free.pop_front(); Some(slot) }
                        None if used.len() < SLOTS => { used.push(None); Some(used.len() - 1) }
                        None => None,
                    };
                    let label = type_id.to_string();
                    let new = NewCounter {
                        type_id,
                        key: &type_id.to_le_bytes(),
                        label: label.as_bytes(),
                        registration_id: i64::from(type_id),
                        owner_id: 1,
                        reference_id: 2,
                        value: 3,
                    };
                    let allocated = manager.allocate(&new, now_ms).ok().map(|counter| counter.id() as usize);
                    prop_assert_eq!(allocated, expected);
                    if let Some(slot) = allocated {
                        used[slot] = Some(type_id);
                    }
                }
                CounterStep::Free(any) => {
                    let slot = any % SLOTS;
                    let is_used = used.get(slot).is_some_and(Option::is_some);
                    prop_assert_eq!(manager.free(slot as i32, now_ms).is_ok(), is_used);
                    if is_used {
                        used[slot] = None;
                        free.push_back((slot, now_ms + REUSE_TIMEOUT_MS));
                    }
                }
                CounterStep::Wait(ms) => now_ms += ms,
            }
            let listed: Vec<_> =
                manager.reader().records().map(|r| (r.id as usize, r.type_id, r.label, r.value)).collect();
            let expected: Vec<_> = used
                .iter()
                .enumerate()
                .filter_map(|(slot, type_id)| type_id.map(|t| (slot, t, t.to_string(), 3)))
                .collect();
            prop_assert_eq!(listed, expected);
        }
    }
}
