//! Tests of receiving messages in batches.

use std::sync::Arc;

use proptest::prelude::*;

use crate::aeron::Aeron;
use crate::batch::{Batch, BatchLimits, Columns};
use crate::publication::ExclusivePublication;
use crate::subscription::Subscription;
use crate::testing::{FIRST_SESSION_ID, FakeDriver};

const CHANNEL: &str = "aeron:ipc";
const STREAM_ID: i32 = 7;
const ALL: BatchLimits = BatchLimits {
    messages: usize::MAX,
    bytes: usize::MAX,
};

struct Streams {
    driver: Arc<FakeDriver>,
    aeron: Aeron,
    subscription: Subscription,
    publication: ExclusivePublication,
}

fn streams() -> Streams {
    let driver = FakeDriver::new();
    let aeron = driver.connect(|_| {});
    let subscription = aeron.add_subscription(CHANNEL, STREAM_ID).unwrap();
    let publication = aeron.add_exclusive_publication(CHANNEL, STREAM_ID).unwrap();
    driver.run_ms(&aeron, 5);
    Streams {
        driver,
        aeron,
        subscription,
        publication,
    }
}

impl Streams {
    fn poll(&self, batch: &mut Batch, messages: usize) -> usize {
        self.subscription
            .poll_batch(batch, BatchLimits { messages, ..ALL })
            .unwrap()
    }
}

fn message(length: usize, seed: u8) -> Vec<u8> {
    (0..length)
        .map(|i| (i as u8).wrapping_mul(31) ^ seed)
        .collect()
}

#[test]
fn a_batch_has_whole_messages_in_order_with_their_header_fields() {
    let streams = streams();
    let messages = [
        message(3, 1),
        message(0, 2),
        message(5000, 3),
        message(257, 4),
        message(64, 5),
    ];
    let mut ends = Vec::new();
    for message in &messages {
        let first = |f: aeron_memory::log::LogFragment<'_, _>| f.begin_position() * 2;
        ends.push(
            streams
                .publication
                .offer_with_reserved_value(message, first)
                .unwrap(),
        );
    }
    let mut batch = Batch::default();
    assert_eq!(streams.poll(&mut batch, 100), 5);
    assert_eq!(batch.len(), 5);
    assert_eq!(batch.data(), messages.concat());
    assert_eq!(batch.offsets(), [0, 3, 3, 5003, 5260, 5324]);
    for (index, message) in messages.iter().enumerate() {
        assert_eq!(batch.message(index), Some(&message[..]));
    }
    assert_eq!(batch.message(5), None);
    assert_eq!(batch.positions(), ends);
    assert_eq!(batch.session_ids(), [FIRST_SESSION_ID; 5]);
    assert_eq!(batch.stream_ids(), [STREAM_ID; 5]);
    let begins: Vec<_> = std::iter::once(0)
        .chain(ends)
        .take(5)
        .map(|begin| begin * 2)
        .collect();
    assert_eq!(batch.reserved_values(), begins);
    assert_eq!(batch.uniform_length(), None);
    let columns = batch.into_columns();
    assert_eq!((columns.data.len(), columns.offsets.len()), (5324, 6));
}

#[test]
fn a_poll_of_unfragmented_messages_ends_before_a_longer_message() {
    let streams = streams();
    let messages = [
        message(64, 1),
        message(64, 2),
        message(5000, 3),
        message(8, 4),
    ];
    let ends = messages
        .each_ref()
        .map(|message| streams.publication.offer(message).unwrap());
    let image = streams.subscription.image_at(0).unwrap();
    let mut batch = Batch::default();
    let one = BatchLimits { messages: 1, ..ALL };
    assert_eq!(batch.poll_unfragmented(&image, one).unwrap(), 1);
    assert_eq!(batch.poll_unfragmented(&image, ALL).unwrap(), 1);
    assert_eq!(batch.poll_unfragmented(&image, ALL).unwrap(), 0);
    assert_eq!((batch.positions(), image.position()), (&ends[..2], ends[1]));
    assert_eq!(streams.poll(&mut batch, 1), 1);
    assert_eq!(batch.poll_unfragmented(&image, ALL).unwrap(), 1);
    assert_eq!(
        (batch.data(), batch.positions()),
        (&messages.concat()[..], &ends[..])
    );
    assert_eq!(batch.session_ids(), [FIRST_SESSION_ID; 4]);
    assert_eq!(batch.stream_ids(), [STREAM_ID; 4]);
}

#[test]
fn polls_append_to_a_batch_until_the_batch_is_cleared() {
    let streams = streams();
    let mut batch = Batch::with_capacity(4, 64);
    assert!(batch.is_empty());
    for round in 0..10u8 {
        streams.publication.offer(&message(32, round)).unwrap();
        assert_eq!(streams.poll(&mut batch, 100), 1);
    }
    assert_eq!((batch.len(), batch.uniform_length()), (10, Some(32)));
    assert_eq!(batch.message(9), Some(&message(32, 9)[..]));
    batch.clear();
    assert_eq!(
        (batch.len(), batch.data().len(), batch.offsets()),
        (0, 0, &[0][..])
    );
    assert_eq!(batch.uniform_length(), None);
}

#[test]
fn limits_count_whole_messages_and_bytes() {
    let streams = streams();
    for seed in 0..6 {
        streams.publication.offer(&message(2000, seed)).unwrap();
    }
    let mut batch = Batch::default();
    assert_eq!(streams.poll(&mut batch, 2), 2);
    assert_eq!(streams.poll(&mut batch, 0), 0);
    let bytes = BatchLimits {
        messages: 100,
        bytes: 6001,
    };
    assert_eq!(
        streams.subscription.poll_batch(&mut batch, bytes).unwrap(),
        2,
        "the last message may exceed the limit of bytes"
    );
    assert_eq!(
        streams.subscription.poll_batch(&mut batch, bytes).unwrap(),
        0
    );
    assert_eq!(streams.poll(&mut batch, 100), 2);
    assert_eq!(batch.len(), 6);
    assert!((0..6).all(|i| batch.message(i) == Some(&message(2000, i as u8)[..])));
}

#[test]
fn a_message_with_fragments_from_several_polls_is_completed_in_the_batch_of_the_last_poll() {
    let streams = streams();
    let sent = message(4000, 9);
    streams.publication.offer(b"small").unwrap();
    // Three fragments of one message. The loop commits each fragment just before a poll.
    let claims: Vec<_> = [1376, 1376, 1248]
        .iter()
        .map(|n| streams.publication.try_claim(*n).unwrap())
        .collect();
    let mut first = Batch::default();
    let mut second = Batch::default();
    let mut start = 0;
    for (index, claim) in claims.into_iter().enumerate() {
        let length = claim.payload_length();
        claim.put(0, &sent[start..start + length]);
        start += length;
        claim.set_flags([0x80, 0x00, 0x40][index]);
        claim.commit().unwrap();
        let batch = if index == 2 { &mut second } else { &mut first };
        streams.subscription.poll_batch(batch, ALL).unwrap();
    }
    assert_eq!((first.len(), first.data()), (1, &b"small"[..]));
    assert_eq!((second.len(), second.message(0)), (1, Some(&sent[..])));
    assert_eq!(
        second.positions(),
        [streams.publication.position().unwrap()]
    );
}

#[test]
fn a_message_without_its_first_or_last_fragment_is_dropped() {
    let streams = streams();
    for (flags, payload) in [
        (0x40, "end"),
        (0x80, "begin"),
        (0xC0, "whole"),
        (0x80, "a"),
        (0x80, "b"),
        (0x40, "c"),
    ] {
        let claim = streams.publication.try_claim(payload.len()).unwrap();
        claim.put(0, payload.as_bytes());
        claim.set_flags(flags);
        claim.commit().unwrap();
    }
    let mut batch = Batch::default();
    assert_eq!(streams.poll(&mut batch, 100), 2);
    assert_eq!(
        (batch.message(0), batch.message(1)),
        (Some(&b"whole"[..]), Some(&b"bc"[..]))
    );
}

#[test]
fn a_batch_joins_the_fragments_of_several_images_by_session() {
    let streams = streams();
    let second = streams
        .aeron
        .add_exclusive_publication(CHANNEL, STREAM_ID)
        .unwrap();
    streams.driver.run_ms(&streams.aeron, 5);
    streams.publication.offer(&message(3000, 1)).unwrap();
    second.offer(&message(3000, 2)).unwrap();
    second.offer(b"x").unwrap();
    let mut batch = Batch::default();
    assert_eq!(streams.poll(&mut batch, 100), 3);
    assert_eq!(
        batch.session_ids(),
        [FIRST_SESSION_ID, FIRST_SESSION_ID + 1, FIRST_SESSION_ID + 1]
    );
    assert_eq!(batch.message(0), Some(&message(3000, 1)[..]));
    assert_eq!(batch.message(1), Some(&message(3000, 2)[..]));
}

#[test]
fn partial_messages_of_closed_images_are_dropped() {
    let streams = streams();
    let claim = streams.publication.try_claim(5).unwrap();
    claim.set_flags(0x80);
    claim.commit().unwrap();
    let mut batch = Batch::default();
    assert_eq!(streams.poll(&mut batch, 100), 0);
    streams.driver.lose_image(&streams.driver.publication());
    streams.driver.run_ms(&streams.aeron, 5);
    assert_eq!(streams.poll(&mut batch, 100), 0);
    assert!(batch.is_empty() && batch.data().is_empty());
    streams.subscription.close();
    assert_eq!(streams.poll(&mut batch, 100), 0);
}

/// Generates the length and the reserved value of a message.
fn any_message() -> impl Strategy<Value = (usize, i64)> {
    let length = prop_oneof![4 => Just(32), 1 => Just(0), 1 => Just(256), 1 => 0..40usize, 1 => Just(257), 1 => Just(2000)];
    (length, prop_oneof![5 => Just(0), 1 => 1..3i64])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn batches_have_the_offered_messages_for_any_lengths_and_limits(
        messages in prop::collection::vec(any_message(), 1..400),
        limits in prop::collection::vec((1..300usize, 1..5000usize), 1..20),
    ) {
        let streams = streams();
        streams.driver.raise_limits();
        let mut expected = Vec::new();
        for (index, (length, reserved)) in messages.iter().enumerate() {
            let payload = message(*length, index as u8);
            loop {
                match streams.publication.offer_with_reserved_value(&payload, |_| *reserved) {
                    Ok(position) => break expected.push((payload, position, *reserved)),
                    Err(error) => prop_assert_eq!(error.code(), -3),
                }
            }
            if streams.publication.position().unwrap() > 100_000 {
                break;
            }
        }
        let mut received = Vec::new();
        for (messages, bytes) in limits.iter().cycle().take(10_000) {
            let mut batch = Batch::default();
            let limits = BatchLimits { messages: *messages, bytes: *bytes };
            let count = streams.subscription.poll_batch(&mut batch, limits).unwrap();
            prop_assert_eq!(count, batch.len());
            prop_assert!(count <= *messages);
            prop_assert!(batch.len() < 2 || (batch.offsets()[batch.len() - 1] as usize) < *bytes);
            for i in 0..batch.len() {
                let payload = batch.message(i).unwrap().to_vec();
                received.push((payload, batch.positions()[i], batch.reserved_values()[i]));
            }
            if received.len() == expected.len() {
                break;
            }
        }
        prop_assert_eq!(received, expected);
    }
}

#[test]
fn a_batch_of_inconsistent_columns_is_refused() {
    let columns = |offsets: Vec<i32>, positions: Vec<i64>| Columns {
        data: b"abc".to_vec(),
        session_ids: vec![1; positions.len()],
        stream_ids: vec![2; positions.len()],
        reserved_values: vec![3; positions.len()],
        offsets,
        positions,
    };
    let batch = Batch::from_columns(columns(vec![0, 1, 3], vec![64, 128])).expect("a batch");
    assert_eq!((batch.len(), batch.message(1)), (2, Some(&b"bc"[..])));
    assert_eq!(batch.into_columns().offsets, [0, 1, 3]);
    for (offsets, positions) in [
        (vec![0, 1], vec![64, 128]),
        (vec![1, 2, 3], vec![64, 128]),
        (vec![0, 3, 1], vec![64, 128]),
        (vec![0, 1, 4], vec![64, 128]),
        (vec![], vec![]),
    ] {
        assert!(Batch::from_columns(columns(offsets, positions)).is_err());
    }
}
