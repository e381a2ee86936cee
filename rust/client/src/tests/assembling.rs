//! Tests of the assembly of fragmented messages.

use std::sync::Arc;

use aeron_memory::log::clean::clean;
use aeron_memory::log::frame::{HEADER_LENGTH, MAX_MESSAGE_LENGTH, flags};
use aeron_memory::words::Words;

use crate::action::Action;
use crate::aeron::Aeron;
use crate::assembler::FragmentAssembler;
use crate::batch::{Batch, BatchLimits};
use crate::fragment::Fragment;
use crate::publication::ExclusivePublication;
use crate::subscription::Subscription;
use crate::testing::{FIRST_SESSION_ID, FakeDriver};

const CHANNEL: &str = "aeron:ipc";
const STREAM_ID: i32 = 7;

struct Streams {
    driver: Arc<FakeDriver>,
    aeron: Aeron,
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
        driver,
        aeron,
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
fn interleaved_fragments_of_two_sessions_are_joined_by_session() {
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
        let mut assembler = FragmentAssembler::of_one_stream();
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

/// 07-165
#[test]
fn a_message_beyond_the_limit_of_the_assembler_is_dropped_and_the_next_one_delivered() {
    let streams = streams();
    for (limit, expected) in [(4999, vec![]), (5000, vec![message(5000, 1)])] {
        streams.first.offer(&message(5000, 1)).unwrap();
        streams.first.offer(&message(3000, 2)).unwrap();
        let mut assembler = FragmentAssembler::with_max_message_length(limit);
        let mut received = Vec::new();
        let handler = |fragment: Fragment<'_>| {
            assembler.on_fragment(fragment, |message| received.push(message.to_vec()));
        };
        streams.subscription.poll(handler, 100).unwrap();
        assert_eq!(received, [expected, vec![message(3000, 2)]].concat());
    }
}

/// 03-109
#[test]
fn the_header_of_an_assembled_message_describes_the_whole_message() {
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

#[test]
fn an_assembler_reuses_its_memory_unless_a_clone_of_the_memory_exists() {
    let streams = streams();
    let mut assembler = FragmentAssembler::default();
    let mut receive = |length, keep: &mut dyn FnMut(Fragment<'_>)| {
        streams.first.offer(&message(length, 1)).unwrap();
        let handler = |fragment: Fragment<'_>| assembler.on_fragment(fragment, &mut *keep);
        assert!(streams.subscription.poll(handler, 100).unwrap() > 1);
    };
    let (mut starts, mut kept) = (Vec::new(), None);
    receive(5000, &mut |message| starts.push(message.as_ptr()));
    receive(5000, &mut |message| {
        starts.push(message.as_ptr());
        kept = Some(message.memory().0.clone());
    });
    receive(5000, &mut |message| starts.push(message.as_ptr()));
    assert_eq!(starts[0], starts[1]);
    assert_ne!(starts[1], starts[2]);
    let mut bytes = vec![0; 5000];
    kept.unwrap().copy_out(0, &mut bytes);
    assert_eq!(bytes, message(5000, 1));
}

/// 03-110
#[test]
fn aborting_the_last_fragment_delivers_the_whole_message_again() {
    let streams = streams();
    let sent = message(5000, 1);
    streams.first.offer(&sent).unwrap();
    let mut assembler = FragmentAssembler::default();
    let mut image_assembler = FragmentAssembler::of_one_stream();
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
            .poll(|_| -> () { panic!("all consumed") }, 10)
            .unwrap(),
        0
    );
}

/// Without this limit, a peer that sends fragments for ever would fill the memory.
#[test]
fn a_message_longer_than_the_maximum_length_is_dropped() {
    let streams = streams();
    let (mut assembler, mut batch, mut received) =
        (FragmentAssembler::default(), Batch::default(), 0);
    let limits = BatchLimits {
        messages: 1,
        bytes: 1,
    };
    let batches = streams.aeron.add_subscription(CHANNEL, STREAM_ID).unwrap();
    streams.driver.run_ms(&streams.aeron, 5);
    streams.driver.raise_limits();

    // Frames of this length fill a term exactly. Padding at the end of a term would end the message before the maximum
    // length does.
    let payload = [7; 1024 - HEADER_LENGTH];
    let count = MAX_MESSAGE_LENGTH / payload.len() + 1;
    for index in 0..=count {
        let flags = if index == 0 {
            flags::BEGIN
        } else if index == count {
            flags::END
        } else {
            0
        };
        let begin = streams.second.position().unwrap();
        let claim = streams.second.try_claim(payload.len());
        let claim = claim
            .or_else(|_| streams.second.try_claim(payload.len()))
            .unwrap();
        claim.put(0, &payload);
        claim.set_flags(flags);
        let end = claim.commit().unwrap();
        let take = |fragment: Fragment<'_>| assembler.on_fragment(fragment, |_| received += 1);
        streams.subscription.poll(take, 2).unwrap();
        batches.poll_batch(&mut batch, limits).unwrap();
        clean(&streams.driver.publication().log, begin, end);
    }
    assert_eq!((received, batch.len()), (0, 0));
}
