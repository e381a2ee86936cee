//! The broadcast of events: every start of a message, every distance of a receiver, and a transmitter that dies after
//! each store.

use aeron_memory::broadcast::{
    BroadcastReceiver, BroadcastTransmitter, RECORD_HEADER_LENGTH, ReceiveError, TRAILER_LENGTH,
};
use aeron_memory::{SharedBuffer, Words};

use crate::mortal::{die_after, every_death};

const CAPACITIES: [usize; 5] = [8, 16, 32, 64, 128];
const RECORD: usize = RECORD_HEADER_LENGTH;

/// A message that was transmitted: `number` is its type, and its payload has `length` bytes of this value.
#[derive(Clone, Copy, Debug)]
struct Sent {
    number: i32,
    position: i64,
    length: usize,
}

/// A broadcast whose first message begins at `start`, with a receiver that waits at each message.
struct Scene {
    words: SharedBuffer,
    capacity: usize,
    start: i64,
    sent: Vec<Sent>,
    receivers: Vec<BroadcastReceiver<SharedBuffer>>,
}

impl Scene {
    fn new(capacity: usize, start: i64) -> Self {
        let words = SharedBuffer::heap(capacity + TRAILER_LENGTH);
        for offset in [0, 8, 16] {
            words.store_i64_relaxed(capacity + offset, start);
        }
        let receivers = vec![BroadcastReceiver::new(words.clone()).unwrap()];
        Self {
            words,
            capacity,
            start,
            sent: Vec::new(),
            receivers,
        }
    }

    fn trailer(&self, offset: usize) -> i64 {
        self.words.load_i64_relaxed(self.capacity + offset)
    }

    /// Transmits the next message in a process that dies after `stores` stores. Returns whether it has survived.
    fn transmit(&mut self, length: usize, stores: usize) -> bool {
        let number = self.sent.len() as i32 + 1;
        let need = (RECORD + length).next_multiple_of(RECORD);
        let tail = self.trailer(8);
        let to_end = self.capacity - tail as usize % self.capacity;
        let padding = if to_end < need { to_end as i64 } else { 0 };
        self.sent.push(Sent {
            number,
            position: tail + padding,
            length,
        });
        let survived = die_after(&self.words, stores, |words| {
            let mut transmitter = BroadcastTransmitter::new(words).unwrap();
            transmitter
                .transmit(number, &vec![number as u8; length])
                .unwrap();
        });
        if survived.is_some() {
            self.receivers
                .push(BroadcastReceiver::new(self.words.clone()).unwrap());
        }
        survived.is_some()
    }

    /// Lets all receivers read to the end, and checks that each gets exactly the messages that no announced write has
    /// reached.
    fn check(&mut self) {
        let (intent, tail) = (self.trailer(0), self.trailer(8));
        for (index, receiver) in self.receivers.iter_mut().enumerate() {
            // A receiver that joined after a message begins with this message.
            let first = index.saturating_sub(1);
            let mut cursor = match index {
                0 => self.start,
                _ => self.sent[first].position,
            };
            for sent in &self.sent[first..] {
                let context = format!("{sent:?} {cursor} {intent} {tail} {}", self.capacity);
                let mut got = None;
                let received = receiver.receive(|number, payload| {
                    got = Some((number, payload.to_vec()));
                });
                if tail <= cursor {
                    assert_eq!((received, got), (Ok(false), None), "{context}");
                    break;
                }
                if intent - cursor >= self.capacity as i64 {
                    let lapped = (Err(ReceiveError::Lapped), None);
                    assert_eq!((received, got), lapped, "{context}");
                    assert_eq!(receiver.receive(|_, _| ()), Ok(false), "{context}");
                    break;
                }
                let whole = (sent.number, vec![sent.number as u8; sent.length]);
                assert_eq!((received, got), (Ok(true), Some(whole)), "{context}");
                cursor = sent.end();
            }
        }
    }
}

impl Sent {
    fn end(&self) -> i64 {
        self.position + (RECORD + self.length).next_multiple_of(RECORD) as i64
    }
}

fn lengths(capacity: usize) -> Vec<usize> {
    let words = SharedBuffer::heap(capacity + TRAILER_LENGTH);
    let max = BroadcastTransmitter::new(words)
        .unwrap()
        .max_message_length();
    let mut lengths = vec![0, 1, max / 2, max];
    lengths.dedup();
    lengths.retain(|length| *length <= max);
    lengths
}

/// 01-32, 01-35: a receiver at any distance gets whole messages, or learns that it was overtaken, even if the
/// transmitter died in the middle of a message.
#[test]
fn receivers_at_each_distance_get_whole_messages_after_a_death_at_any_store() {
    let mut deaths = 0;
    for capacity in CAPACITIES {
        for start in (0..2 * capacity as i64).step_by(RECORD) {
            for before in 0..=capacity / RECORD {
                for length_before in lengths(capacity) {
                    for length in lengths(capacity) {
                        deaths += every_death(|stores| {
                            let mut scene = Scene::new(capacity, start);
                            for _ in 0..before {
                                assert!(scene.transmit(length_before, usize::MAX));
                            }
                            let survived = scene.transmit(length, stores);
                            scene.check();
                            survived
                        });
                    }
                }
            }
        }
    }
    assert!(deaths > 5_000, "{deaths}");
}
