//! Putting fragmented messages together.

use std::sync::Arc;

use crate::aeron::Aeron;
use crate::assembler::{FragmentAssembler, ImageFragmentAssembler};
use crate::fragment::{Action, Fragment};
use crate::publication::ExclusivePublication;
use crate::subscription::Subscription;
use crate::testing::{FIRST_SESSION_ID, FakeDriver};

const CHANNEL: &str = "aeron:ipc";
const STREAM_ID: i32 = 7;

struct Streams {
    _driver: Arc<FakeDriver>,
    _aeron: Aeron,
    subscription: Subscription,
    first: ExclusivePublication,
    second: ExclusivePublication,
}

fn streams() -> Streams {
    let driver = FakeDriver::new();
    let aeron = driver.connect(|_| {});
    let subscription = aeron.add_subscription(CHANNEL, STREAM_ID).unwrap();
    let first = aeron.add_exclusive_publication(CHANNEL, STREAM_ID).unwrap();
    let second = aeron.add_exclusive_publication(CHANNEL, STREAM_ID).unwrap();
    driver.run_ms(&aeron, 5);
    driver.raise_limits();
    Streams {
        _driver: driver,
        _aeron: aeron,
        subscription,
        first,
        second,
    }
}

fn message(length: usize, seed: u8) -> Vec<u8> {
    (0..length)
        .map(|i| (i as u8).wrapping_mul(31) ^ seed)
        .collect()
}

/// 03-108
#[test]
fn a_message_in_one_fragment_passes_without_a_copy() {
    let streams = streams();
    streams.first.offer(b"whole").unwrap();
    let mut assembler = FragmentAssembler::default();
    let mut calls = 0;
    let handler = |fragment: Fragment<'_>| {
        assembler.on_fragment(fragment, |message| {
            calls += 1;
            assert_eq!(message.as_ptr(), fragment.as_ptr());
            assert_eq!(message.to_vec(), b"whole");
        });
    };
    streams.subscription.poll(handler, 10).unwrap();
    assert_eq!(calls, 1);
}

/// 03-108
#[test]
fn messages_of_two_sessions_that_are_interleaved_are_put_together() {
    let streams = streams();
    let (one, two) = (message(5000, 1), message(7000, 2));
    streams.first.offer(&one).unwrap();
    streams.second.offer(&two).unwrap();
    let mut assembler = FragmentAssembler::default();
    let mut received = Vec::new();
    for _ in 0..20 {
        let handler = |fragment: Fragment<'_>| {
            assembler.on_fragment(fragment, |message| {
                received.push((message.header().session_id(), message.to_vec()));
            });
        };
        streams.subscription.poll(handler, 1).unwrap();
    }
    received.sort();
    assert_eq!(
        received,
        [(FIRST_SESSION_ID, one), (FIRST_SESSION_ID + 1, two)]
    );
    assert!(assembler.free_session_buffer(FIRST_SESSION_ID));
    assert!(!assembler.free_session_buffer(FIRST_SESSION_ID));
    assembler.clear();
    assert!(!assembler.free_session_buffer(FIRST_SESSION_ID + 1));
}

/// 03-108
#[test]
fn a_message_with_a_lost_fragment_is_dropped_and_the_next_one_delivered() {
    let streams = streams();
    for lost in 0..4 {
        streams.first.offer(&message(5000, 1)).unwrap();
        streams.first.offer(&message(3000, 2)).unwrap();
        let mut assembler = ImageFragmentAssembler::default();
        let mut received = Vec::new();
        let mut index = 0;
        let handler = |fragment: Fragment<'_>| {
            if index != lost {
                assembler.on_fragment(fragment, |message| received.push(message.to_vec()));
            }
            index += 1;
        };
        streams.subscription.poll(handler, 100).unwrap();
        assert_eq!(received, [message(3000, 2)], "without fragment {lost}");
    }
}

/// 03-109
#[test]
fn the_header_of_an_assembled_message_is_that_of_the_whole() {
    let streams = streams();
    streams.first.offer(b"before").unwrap();
    let end = streams
        .first
        .offer_with_reserved_value(&message(5000, 1), |f| f.begin_position() + 7)
        .unwrap();
    let mut assembler = FragmentAssembler::default();
    let mut calls = 0;
    let handler = |fragment: Fragment<'_>| {
        assembler.on_fragment(fragment, |message| {
            let header = message.header();
            calls += 1;
            if calls == 1 {
                return;
            }
            assert_eq!((header.flags(), header.frame_length()), (0xC0, 5032));
            assert_eq!((header.term_offset(), header.position()), (64, end));
            assert_eq!(i64::from(header.next_term_offset()), end);
            assert_eq!(i64::from(header.fragmented_frame_length()), end - 64);
            assert_eq!((header.reserved_value(), header.frame_type()), (71, 1));
            assert_eq!(header.session_id(), FIRST_SESSION_ID);
            assert_eq!(header.stream_id(), STREAM_ID);
            assert_eq!(header.term_id(), header.initial_term_id());
        });
    };
    streams.subscription.poll(handler, 100).unwrap();
    assert_eq!(calls, 2);
}

/// 03-110
#[test]
fn aborting_the_last_fragment_delivers_the_whole_message_again() {
    let streams = streams();
    let sent = message(5000, 1);
    streams.first.offer(&sent).unwrap();
    let mut assembler = FragmentAssembler::default();
    let mut image_assembler = ImageFragmentAssembler::default();
    let mut received = Vec::new();
    for round in 0..3 {
        let action = if round < 2 {
            Action::Abort
        } else {
            Action::Continue
        };
        let handler = |fragment: Fragment<'_>| {
            image_assembler.on_controlled_fragment(fragment, |message| {
                assert_eq!(message.to_vec(), sent);
                action
            });
            assembler.on_controlled_fragment(fragment, |message| {
                received.push(message.to_vec());
                action
            })
        };
        streams.subscription.controlled_poll(handler, 100).unwrap();
    }
    assert_eq!(received, [sent.clone(), sent.clone(), sent.clone()]);
    assert_eq!(
        streams
            .subscription
            .poll(|_| panic!("all consumed"), 10)
            .unwrap(),
        0
    );
}
