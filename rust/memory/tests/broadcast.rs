//! Tests of the broadcast buffer with one thread.

use aeron_memory::broadcast::{
    BroadcastReceiver, BroadcastTransmitter, PADDING_TYPE_ID, ReceiveError, TRAILER_LENGTH,
    TransmitError,
};
use aeron_memory::{SharedBuffer, Words};

const CAPACITY: usize = 1024;
const TAIL_INTENT: usize = CAPACITY;
const TAIL: usize = CAPACITY + 8;
const LATEST: usize = CAPACITY + 16;

fn buffer() -> (SharedBuffer, BroadcastTransmitter<SharedBuffer>) {
    let words = SharedBuffer::heap(CAPACITY + TRAILER_LENGTH);
    (words.clone(), BroadcastTransmitter::new(words).unwrap())
}

fn receiver(words: &SharedBuffer) -> BroadcastReceiver<SharedBuffer> {
    BroadcastReceiver::new(words.clone()).unwrap()
}

fn next(receiver: &mut BroadcastReceiver<SharedBuffer>) -> Option<(i32, Vec<u8>)> {
    let mut message = None;
    let received = receiver
        .receive(|t, payload| message = Some((t, payload.to_vec())))
        .unwrap();
    assert_eq!(received, message.is_some());
    message
}

/// 01-32
#[test]
fn a_message_has_length_type_and_payload_and_advances_the_trailer() {
    let (words, mut transmitter) = buffer();
    transmitter.transmit(7, b"hello").unwrap();
    transmitter.transmit(8, b"").unwrap();
    let mut bytes = [0; 24];
    words.copy_out(0, &mut bytes);
    assert_eq!(
        &bytes,
        b"\x0d\0\0\0\x07\0\0\0hello\0\0\0\x08\0\0\0\x08\0\0\0"
    );
    let counters = [TAIL_INTENT, TAIL, LATEST].map(|offset| words.load_i64_relaxed(offset));
    assert_eq!(counters, [24, 24, 16]);
}

/// 01-32
#[test]
fn a_message_that_does_not_fit_before_the_end_follows_padding_up_to_the_end() {
    let (words, mut transmitter) = buffer();
    let mut receiver = receiver(&words);
    for k in 0..7 {
        transmitter.transmit(1, &[k; 127]).unwrap();
        assert_eq!(next(&mut receiver), Some((1, vec![k; 127])));
    }
    transmitter.transmit(2, &[9; 100]).unwrap();
    assert_eq!(words.load_i32_relaxed(952), 72);
    assert_eq!(words.load_i32_relaxed(956), PADDING_TYPE_ID);
    assert_eq!(words.load_i64_relaxed(LATEST), CAPACITY as i64);
    assert_eq!(words.load_i64_relaxed(TAIL), CAPACITY as i64 + 112);
    assert_eq!(words.load_i64_relaxed(TAIL_INTENT), CAPACITY as i64 + 112);
    assert_eq!(next(&mut receiver), Some((2, vec![9; 100])));
    assert_eq!(next(&mut receiver), None);
}

/// 01-33
#[test]
fn payloads_over_an_eighth_of_the_capacity_and_types_below_one_are_rejected() {
    let (words, mut transmitter) = buffer();
    let max = CAPACITY / 8;
    let too_long = TransmitError::TooLong {
        length: max + 1,
        max,
    };
    assert_eq!(transmitter.transmit(1, &vec![0; max + 1]), Err(too_long));
    assert_eq!(
        transmitter.transmit(0, b""),
        Err(TransmitError::InvalidType(0))
    );
    assert_eq!(
        transmitter.transmit(-1, b""),
        Err(TransmitError::InvalidType(-1))
    );
    assert_eq!(words.load_i64_relaxed(TAIL_INTENT), 0);
    transmitter.transmit(1, &vec![1; max]).unwrap();
    assert_eq!(next(&mut receiver(&words)), Some((1, vec![1; max])));
}

/// 01-34
#[test]
fn a_new_receiver_starts_with_the_newest_message() {
    let (words, mut transmitter) = buffer();
    let mut early = receiver(&words);
    assert_eq!(next(&mut early), None);
    transmitter.transmit(1, b"old").unwrap();
    transmitter.transmit(2, b"new").unwrap();
    let mut late = receiver(&words);
    assert_eq!(next(&mut late), Some((2, b"new".to_vec())));
    assert_eq!(next(&mut late), None);
    assert_eq!(next(&mut early), Some((1, b"old".to_vec())));
}

/// 01-35
#[test]
fn a_receiver_that_falls_behind_gets_one_error_and_continues_after_the_newest_message() {
    let (words, mut transmitter) = buffer();
    let mut receiver = receiver(&words);
    // 16 messages of 64 bytes fill the buffer exactly. The oldest counts as lost: the next message would overwrite it.
    for k in 0..16 {
        transmitter.transmit(1, &[k; 56]).unwrap();
    }
    assert_eq!(
        receiver.receive(|_, _| unreachable!()),
        Err(ReceiveError::Lapped)
    );
    assert_eq!(receiver.lapped_count(), 1);
    assert_eq!(next(&mut receiver), None);
    transmitter.transmit(2, b"next").unwrap();
    assert_eq!(next(&mut receiver), Some((2, b"next".to_vec())));
    for k in 0..14 {
        transmitter.transmit(1, &[k; 56]).unwrap();
    }
    assert_eq!(
        next(&mut receiver),
        Some((1, vec![0; 56])),
        "14 messages of 64 bytes must not overwrite the first of them"
    );
}

/// 01-35: the transmitter has announced that it will overwrite the record, and has begun to write.
#[test]
fn a_copy_that_was_being_overwritten_is_discarded() {
    let (words, mut transmitter) = buffer();
    let mut receiver = receiver(&words);
    transmitter.transmit(1, &[1; 56]).unwrap();
    words.store_i64_relaxed(TAIL_INTENT, CAPACITY as i64);
    words.store_i32_relaxed(8, -1);
    assert_eq!(
        receiver.receive(|_, _| unreachable!()),
        Err(ReceiveError::Lapped)
    );
}

/// 01-36
#[test]
fn messages_of_many_thousand_bytes_are_received() {
    let words = SharedBuffer::heap((1 << 20) + TRAILER_LENGTH);
    let mut transmitter = BroadcastTransmitter::new(words.clone()).unwrap();
    let mut receiver = receiver(&words);
    for length in [4096, 4097, 131_072] {
        transmitter.transmit(1, &vec![7; length]).unwrap();
        assert_eq!(next(&mut receiver), Some((1, vec![7; length])));
    }
}

/// After an impossible record length, the receiver returns an error once, and then receives the next message.
#[test]
fn a_corrupt_length_is_an_error_and_the_receiver_continues() {
    for length in [i32::MIN, -1, 0, 7, 137, 1025, i32::MAX] {
        let (words, mut transmitter) = buffer();
        let mut receiver = receiver(&words);
        transmitter.transmit(1, b"bad").unwrap();
        words.store_i32_relaxed(0, length);
        let error = ReceiveError::Corrupt {
            position: 0,
            length,
            msg_type_id: 1,
        };
        assert_eq!(receiver.receive(|_, _| unreachable!()), Err(error));
        transmitter.transmit(2, b"good").unwrap();
        assert_eq!(next(&mut receiver), Some((2, b"good".to_vec())));
    }
}

#[test]
fn a_length_other_than_a_power_of_two_plus_the_trailer_is_refused() {
    for length in [0, 100, TRAILER_LENGTH, TRAILER_LENGTH + 1000] {
        assert!(BroadcastTransmitter::new(SharedBuffer::heap(length)).is_err());
        assert!(BroadcastReceiver::new(SharedBuffer::heap(length)).is_err());
    }
}
