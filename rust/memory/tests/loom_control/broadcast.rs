//! Models of the broadcast: a receiver never returns a mixture of two messages, even if the transmitter overtakes it.

use aeron_memory::Words;
use aeron_memory::broadcast::{
    BroadcastReceiver, BroadcastTransmitter, ReceiveError, TRAILER_LENGTH,
};
use aeron_memory::loom_words::{LoomWords, ModelLayout, Weakness};
use loom::thread;

use crate::{check, check_fails};

/// A lap has room for two messages of 4 bytes.
const CAPACITY: usize = 32;
const TAIL_INTENT: usize = CAPACITY;
const TAIL: usize = CAPACITY + 8;

fn words() -> LoomWords {
    let trailer = [0, 8, 16].map(|offset| CAPACITY + offset);
    let data = ModelLayout::new(CAPACITY + TRAILER_LENGTH).narrow(0..CAPACITY);
    trailer.into_iter().fold(data, ModelLayout::wide).build()
}

/// Sends messages; message k has k as its type and payload.
fn transmit(
    transmitter: &mut BroadcastTransmitter<LoomWords>,
    messages: std::ops::RangeInclusive<i32>,
) {
    for k in messages {
        transmitter.transmit(k, &k.to_le_bytes()).unwrap();
    }
}

/// Sends one message before the race. Then two more are sent while a receiver reads from the start: the third message
/// overwrites the first.
fn overtaken(transmitting: Option<Weakness>, receiving: Option<Weakness>) {
    let words = words();
    let weakened = |weakness: Option<Weakness>| match weakness {
        Some(weakness) => words.weakened(weakness),
        None => words.clone(),
    };
    let mut receiver = BroadcastReceiver::new(weakened(receiving)).unwrap();
    let mut transmitter = BroadcastTransmitter::new(weakened(transmitting)).unwrap();
    transmit(&mut transmitter, 1..=1);
    let transmission = thread::spawn(move || transmit(&mut transmitter, 2..=3));
    let mut last = 0;
    for _ in 0..2 {
        let received = receiver.receive(|msg_type_id, payload| {
            assert_eq!(payload, msg_type_id.to_le_bytes(), "a message is torn");
            assert!(msg_type_id > last, "a message came twice");
            last = msg_type_id;
        });
        // A loss of messages is allowed.
        if let Err(error @ ReceiveError::Corrupt { .. }) = received {
            panic!("a message is torn: {error}");
        }
    }
    transmission.join().unwrap();
}

/// 01-35
#[test]
fn an_overtaken_receiver_never_delivers_a_torn_message() {
    check(|| overtaken(None, None));
}

#[test]
fn without_the_fence_after_the_intent_a_message_is_torn() {
    check_fails("torn", || overtaken(Some(Weakness::ReleaseFence), None));
}

#[test]
fn without_the_fence_before_validating_a_message_is_torn() {
    check_fails("torn", || overtaken(None, Some(Weakness::AcquireFence)));
}

#[test]
fn without_releasing_the_tail_a_wrong_message_is_received() {
    check_fails("torn", || {
        overtaken(Some(Weakness::Release(TAIL..TAIL + 8)), None)
    });
}

#[test]
fn without_acquiring_the_tail_a_wrong_message_is_received() {
    check_fails("torn", || {
        overtaken(None, Some(Weakness::Acquire(TAIL..TAIL + 8)))
    });
}

/// 01-34: a receiver that is created while messages are sent.
#[test]
fn a_receiver_that_joins_between_messages_starts_with_a_whole_message() {
    check(|| {
        let words = words();
        let mut transmitter = BroadcastTransmitter::new(words.clone()).unwrap();
        let transmission = thread::spawn(move || transmit(&mut transmitter, 1..=3));
        let mut receiver = BroadcastReceiver::new(words.clone()).unwrap();
        let _ = receiver.receive(|msg_type_id, payload| {
            assert_eq!(payload, msg_type_id.to_le_bytes(), "a message is torn");
        });
        transmission.join().unwrap();
        assert_eq!(words.load_i64_relaxed(TAIL_INTENT), 48);
    });
}
