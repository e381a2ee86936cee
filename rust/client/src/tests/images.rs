//! Tests of subscriptions and their images.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use aeron_memory::counters::{NewCounter, types};
use aeron_protocol::command::{Command, type_id};

use super::{Log, text};
use crate::action::Action;
use crate::aeron::Aeron;
use crate::error::{Error, TryPollError};
use crate::fragment::Fragment;
use crate::publication::ExclusivePublication;
use crate::subscription::Subscription;
use crate::subscription::SubscriptionHandlers;
use crate::testing::{FIRST_SESSION_ID, FakeDriver, INITIAL_TERM_ID, TERM_LENGTH};

const CHANNEL: &str = "aeron:ipc";
const STREAM_ID: i32 = 7;

struct Stream {
    driver: Arc<FakeDriver>,
    aeron: Aeron,
    subscription: Subscription,
    publication: ExclusivePublication,
    log: Log,
}

/// Creates a client with a subscription, and with a publication on the same stream.
fn stream() -> Stream {
    let driver = FakeDriver::new();
    let log = Log::default();
    let aeron = driver.connect(|context| log.attach(context));
    let subscription = aeron.add_subscription(CHANNEL, STREAM_ID).unwrap();
    let publication = aeron.add_exclusive_publication(CHANNEL, STREAM_ID).unwrap();
    driver.run_ms(&aeron, 5);
    log.take();
    Stream {
        driver,
        aeron,
        subscription,
        publication,
        log,
    }
}

impl Stream {
    fn another(&self) -> ExclusivePublication {
        let publication = self
            .aeron
            .add_exclusive_publication(CHANNEL, STREAM_ID)
            .unwrap();
        self.driver.run_ms(&self.aeron, 5);
        publication
    }

    fn offer(&self, messages: &[&[u8]]) {
        for message in messages {
            self.publication.offer(message).unwrap();
        }
    }
}

/// Returns a handler that stores the first byte of each fragment.
fn first_bytes(seen: &mut Vec<u8>) -> impl FnMut(Fragment<'_>) + '_ {
    |fragment| seen.push(fragment.to_vec()[0])
}

/// 03-100
#[test]
fn a_poll_has_one_limit_for_all_images_and_starts_with_the_next_image() {
    let stream = stream();
    let (second, third) = (stream.another(), stream.another());
    for _ in 0..4 {
        stream.publication.offer(&[0]).unwrap();
        second.offer(&[1]).unwrap();
        third.offer(&[2]).unwrap();
    }
    let mut seen = Vec::new();
    for _ in 0..3 {
        assert_eq!(
            stream.subscription.poll(first_bytes(&mut seen), 3).unwrap(),
            3
        );
    }
    assert_eq!(seen, [0, 0, 0, 1, 1, 1, 2, 2, 2]);
    seen.clear();
    assert_eq!(
        stream
            .subscription
            .poll(first_bytes(&mut seen), 100)
            .unwrap(),
        3
    );
    assert_eq!(
        stream
            .subscription
            .poll(first_bytes(&mut seen), 100)
            .unwrap(),
        0
    );
    assert_eq!(seen, [0, 1, 2]);
}

/// 03-101, 01-69
#[test]
fn a_failing_handler_ends_the_poll_after_the_failing_fragment() {
    let stream = stream();
    stream.offer(&[b"a", b"b", b"c"]);
    let mut seen = Vec::new();
    let failed = stream.subscription.poll(
        |fragment| {
            seen.push(fragment.to_vec()[0]);
            if seen.len() == 2 { Err("no") } else { Ok(()) }
        },
        10,
    );
    assert!(matches!(failed, Err(TryPollError::Handler("no"))));
    let image = stream.subscription.image_at(0).unwrap();
    assert_eq!(image.position(), 128);
    assert_eq!(
        stream
            .subscription
            .poll(first_bytes(&mut seen), 10)
            .unwrap(),
        1
    );
    assert_eq!(seen, *b"abc");
}

/// 03-101, 01-69
#[test]
fn a_handler_that_panics_has_consumed_its_fragment() {
    let stream = stream();
    stream.offer(&[b"a", b"b", b"c"]);
    let mut seen = Vec::new();
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        stream.subscription.poll(
            |fragment| {
                seen.push(fragment.to_vec()[0]);
                assert!(seen.len() < 2);
            },
            10,
        )
    }));
    assert!(panicked.is_err());
    assert_eq!(
        stream
            .subscription
            .poll(first_bytes(&mut seen), 10)
            .unwrap(),
        1
    );
    assert_eq!(seen, *b"abc");
}

#[test]
fn after_a_failing_handler_the_other_images_are_not_polled() {
    let stream = stream();
    let second = stream.another();
    stream.offer(&[b"a"]);
    second.offer(b"b").unwrap();
    let mut calls = 0;
    let failed = stream.subscription.controlled_poll(
        |_| {
            calls += 1;
            Err::<Action, _>("no")
        },
        10,
    );
    assert!(matches!(failed, Err(TryPollError::Handler("no"))));
    assert_eq!(calls, 1);
}

/// 03-102, 01-70
#[test]
fn each_action_of_a_controlled_poll_has_its_effect() {
    let stream = stream();
    stream.offer(&[b"a", b"b", b"c", b"d"]);
    let image = stream.subscription.image_at(0).unwrap();
    let mut seen = Vec::new();
    let mut poll = |actions: &[Action]| {
        let mut actions = actions.iter();
        let mut positions = Vec::new();
        let count = stream.subscription.controlled_poll(
            |fragment| {
                seen.push(fragment.to_vec()[0]);
                positions.push(image.position());
                *actions.next().unwrap()
            },
            10,
        );
        (count.unwrap(), positions)
    };
    assert_eq!(poll(&[Action::Continue, Action::Abort]), (1, vec![0, 0]));
    assert_eq!(image.position(), 64);
    assert_eq!(poll(&[Action::Commit, Action::Break]), (2, vec![64, 128]));
    assert_eq!(image.position(), 192);
    assert_eq!(poll(&[Action::Continue]), (1, vec![192]));
    assert_eq!(seen, *b"abbcd");
}

/// 03-103, 01-70
#[test]
fn a_bounded_poll_delivers_fragments_that_begin_before_the_limit() {
    let stream = stream();
    stream.offer(&[b"a", b"b", b"c"]);
    let image = stream.subscription.image_at(0).unwrap();
    let mut seen = Vec::new();
    assert_eq!(
        image.bounded_poll(first_bytes(&mut seen), 0, 10).unwrap(),
        0
    );
    assert_eq!(
        image.bounded_poll(first_bytes(&mut seen), 65, 10).unwrap(),
        2
    );
    assert_eq!(image.position(), 128);
    assert_eq!(
        image.bounded_poll(first_bytes(&mut seen), 128, 10).unwrap(),
        0
    );
    assert_eq!(
        image.bounded_poll(first_bytes(&mut seen), -1, 10).unwrap(),
        0
    );
    let count = image
        .bounded_controlled_poll(|_| Action::Abort, i64::MAX, 10)
        .unwrap();
    assert_eq!((count, image.position()), (0, 128));
    assert_eq!(
        image
            .bounded_poll(first_bytes(&mut seen), i64::MAX, 10)
            .unwrap(),
        1
    );
    assert_eq!(seen, *b"abc");
}

/// 03-105, 01-70
#[test]
fn a_block_has_whole_frames_and_padding_is_a_separate_block() {
    let stream = stream();
    stream.offer(&[b"a", b"b"]);
    stream.publication.append_padding(100).unwrap();
    stream.offer(&[b"c"]);
    let mut blocks = Vec::new();
    let mut poll = |limit| {
        let handler = |file_offset: u64, block: &crate::Block<'_, crate::SharedBuffer>| {
            blocks.push((
                file_offset,
                block.offset(),
                block.length(),
                block.session_id(),
                block.term_id(),
            ));
        };
        let image = stream.subscription.image_at(0).unwrap();
        image.raw_poll(handler, limit).unwrap()
    };
    assert_eq!(poll(63), 0, "the first frame is longer than the limit");
    assert_eq!(poll(1000), 128, "padding ends the block");
    assert_eq!(
        poll(32),
        160,
        "a padding frame is a block of its own, however long it is"
    );
    assert_eq!(poll(64), 64);
    assert_eq!(poll(64), 0);
    let block = |offset: usize, length| {
        (
            offset as u64,
            offset,
            length,
            FIRST_SESSION_ID,
            INITIAL_TERM_ID,
        )
    };
    assert_eq!(blocks, [block(0, 128), block(128, 160), block(288, 64)]);
}

#[test]
fn a_subscription_polls_the_blocks_of_all_its_images() {
    let stream = stream();
    let second = stream.another();
    stream.offer(&[b"a"]);
    second.offer(b"b").unwrap();
    let mut sessions = Vec::new();
    assert_eq!(
        stream
            .subscription
            .block_poll(|block| sessions.push(block.session_id()), 1000)
            .unwrap(),
        128
    );
    assert_eq!(sessions, [FIRST_SESSION_ID, FIRST_SESSION_ID + 1]);
    second.offer(b"c").unwrap();
    let raw = stream.subscription.raw_poll(
        |image, offset, _| {
            assert_eq!((image.session_id(), offset), (FIRST_SESSION_ID + 1, 64));
        },
        1000,
    );
    assert_eq!(raw.unwrap(), 64);
}

#[test]
fn a_block_whose_handler_fails_is_polled_again() {
    let stream = stream();
    stream.offer(&[b"a", b"b"]);
    let image = stream.subscription.image_at(0).unwrap();
    let failed = image.block_poll(|_| Err::<(), _>("full"), 1000);
    assert!(matches!(failed, Err(TryPollError::Handler("full"))));
    assert_eq!(image.position(), 0);
    let polled = image.block_poll(|_| Ok::<(), &str>(()), 1000);
    assert_eq!(polled.unwrap(), 128);
    assert_eq!(image.position(), 128);
}

#[test]
fn a_block_whose_handler_aborts_is_polled_again() {
    let stream = stream();
    stream.offer(&[b"a", b"b"]);
    let image = stream.subscription.image_at(0).unwrap();
    assert_eq!(image.block_poll(|_| Action::Abort, 1000).unwrap(), 0);
    assert_eq!(image.position(), 0);
    assert_eq!(image.block_poll(|_| Action::Continue, 1000).unwrap(), 128);
    assert_eq!(image.position(), 128);
}

#[test]
fn a_failing_handler_ends_a_bounded_poll_after_the_failing_fragment() {
    let stream = stream();
    stream.offer(&[b"a", b"b", b"c"]);
    let image = stream.subscription.image_at(0).unwrap();
    let failed = image.bounded_poll(|_| Err::<(), _>("no"), i64::MAX, 10);
    assert!(matches!(failed, Err(TryPollError::Handler("no"))));
    assert_eq!(image.position(), 64);
    let mut actions = [Ok(Action::Commit), Err("no")].into_iter();
    let handler = |_: Fragment<'_>| actions.next().unwrap();
    let failed = image.bounded_controlled_poll(handler, i64::MAX, 10);
    assert!(matches!(failed, Err(TryPollError::Handler("no"))));
    assert_eq!(image.position(), 192);
}

#[test]
fn after_a_failing_block_handler_the_other_images_are_not_polled() {
    let stream = stream();
    let second = stream.another();
    stream.offer(&[b"a"]);
    second.offer(b"b").unwrap();
    let failed = stream.subscription.raw_poll(
        |image, _, _| match image.session_id() {
            FIRST_SESSION_ID => Ok(()),
            _ => Err("full"),
        },
        1000,
    );
    assert!(matches!(failed, Err(TryPollError::Handler("full"))));
    let positions: Vec<_> = (0..2)
        .map(|index| stream.subscription.image_at(index).unwrap().position())
        .collect();
    assert_eq!(positions, [64, 0]);
}

#[test]
fn a_raw_poll_passes_the_file_offset_of_the_block() {
    let stream = stream();
    stream.driver.publication().limit.set(i64::MAX);
    while stream.publication.position().unwrap() < TERM_LENGTH as i64 {
        let _ = stream.publication.offer(&[0; 1000]);
    }
    while stream.subscription.poll(|_| (), 1000).unwrap() > 0 {}
    stream.offer(&[b"x"]);
    let image = stream.subscription.image_at(0).unwrap();
    let position = image.position();
    let mut offsets = Vec::new();
    image
        .raw_poll(|offset, _| offsets.push(offset), 100)
        .unwrap();
    assert_eq!(offsets, [position as u64]);
}

/// 03-106, 01-77: the client's part.
#[test]
fn the_end_of_a_stream_is_the_last_position_of_its_publisher_and_a_closed_image_keeps_it() {
    let stream = stream();
    stream.offer(&[b"a", b"b"]);
    let image = stream.subscription.image_at(0).unwrap();
    let metadata = stream.driver.publication().log.metadata().clone();
    assert_eq!(image.end_of_stream_position(), i64::MAX);
    metadata.set_end_of_stream_position(128);
    metadata.set_publication_revoked();
    image.poll(|_| (), 1).unwrap();
    assert!(!image.is_end_of_stream());
    image.poll(|_| (), 1).unwrap();
    assert!(image.is_end_of_stream());
    stream.subscription.close();
    metadata.set_end_of_stream_position(64);
    assert!(image.is_closed() && image.is_end_of_stream() && image.is_publication_revoked());
    assert_eq!(
        (image.position(), image.end_of_stream_position()),
        (128, 128)
    );
    assert_eq!(image.active_transport_count(), 0);
    assert_eq!(image.poll(|_| -> () { panic!() }, 1).unwrap(), 0);
    assert_eq!(image.block_poll(|_| -> () { panic!() }, 100).unwrap(), 0);
}

/// 03-107
#[test]
fn image_handlers_are_called_once_after_the_image_was_added_or_closed() {
    let stream = stream();
    let second = stream.another();
    assert_eq!(stream.log.take(), ["available 1001"]);
    second.offer(b"x").unwrap();
    stream.subscription.poll(|_| (), 10).unwrap();
    stream.driver.lose_image(&stream.driver.publication());
    stream.driver.lose_image(&stream.driver.publication());
    stream.driver.run_ms(&stream.aeron, 5);
    assert_eq!(stream.log.take(), ["unavailable 1001 at 64"]);
    assert_eq!(stream.subscription.image_count(), 1);
    stream.subscription.close();
    stream.subscription.close();
    assert_eq!(stream.log.take(), ["unavailable 1000 at 0"]);
    assert!(stream.subscription.has_no_images() && !stream.subscription.is_connected());
    assert_eq!(
        stream
            .subscription
            .poll(|_| -> () { panic!() }, 10)
            .unwrap(),
        0
    );
}

#[test]
fn handlers_of_a_subscription_replace_the_handlers_of_the_context() {
    let stream = stream();
    let own = Log::default();
    let seen = own.clone();
    let handlers = SubscriptionHandlers {
        available_image: Some(Arc::new(move |image| seen.add(image.source_identity()))),
        unavailable_image: None,
    };
    let subscription = stream
        .aeron
        .add_subscription_with(CHANNEL, STREAM_ID, handlers)
        .unwrap();
    stream.driver.run_ms(&stream.aeron, 5);
    assert_eq!(own.take(), ["aeron:ipc"]);
    subscription.close();
    assert!(
        stream.log.take().is_empty(),
        "the context's handlers are only for subscriptions without their own"
    );
}

#[test]
fn an_image_has_the_properties_that_the_driver_announced() {
    let stream = stream();
    let image = stream
        .subscription
        .image_by_session_id(FIRST_SESSION_ID)
        .unwrap();
    assert!(stream.subscription.image_by_session_id(1).is_none());
    assert!(stream.subscription.image_at(1).is_none());
    assert_eq!(image.correlation_id(), stream.publication.registration_id());
    assert_eq!(
        image.subscription_registration_id(),
        stream.subscription.registration_id()
    );
    assert_eq!(
        (image.session_id(), image.stream_id()),
        (FIRST_SESSION_ID, STREAM_ID)
    );
    assert_eq!(
        (image.initial_term_id(), image.term_buffer_length()),
        (INITIAL_TERM_ID, TERM_LENGTH)
    );
    assert_eq!(
        (image.mtu_length(), image.position_bits_to_shift()),
        (1408, 16)
    );
    assert_eq!((image.join_position(), image.position()), (0, 0));
    let id = image.subscriber_position_id();
    stream.offer(&[b"a"]);
    image.poll(|_| (), 1).unwrap();
    assert_eq!(stream.aeron.counters_reader().value(id), Some(64));
    assert_eq!(image.join_position(), 0);
}

#[test]
fn headers_have_the_values_of_the_frame() {
    let stream = stream();
    stream.offer(&[b"", b"hello"]);
    let mut seen = 0;
    let check = |fragment: Fragment<'_>| {
        let header = fragment.header();
        seen += 1;
        if seen == 1 {
            assert!(fragment.is_empty());
            return;
        }
        let mut bytes = [0; 4];
        fragment.copy_from(1, &mut bytes);
        assert_eq!(&bytes, b"ello");
        assert_eq!(
            (header.session_id(), header.stream_id()),
            (FIRST_SESSION_ID, STREAM_ID)
        );
        assert_eq!(
            (header.term_id(), header.initial_term_id()),
            (INITIAL_TERM_ID, INITIAL_TERM_ID)
        );
        assert_eq!((header.term_offset(), header.next_term_offset()), (32, 96));
        assert_eq!(
            (header.frame_length(), header.fragmented_frame_length()),
            (37, -1)
        );
        assert_eq!(
            (header.flags(), header.frame_type(), header.version()),
            (0xC0, 1, 0)
        );
        assert_eq!((header.position(), header.reserved_value()), (96, 0));
        assert_eq!(
            (header.position_bits_to_shift(), header.image().session_id()),
            (16, FIRST_SESSION_ID)
        );
    };
    stream.subscription.poll(check, 10).unwrap();
    assert_eq!(seen, 2);
}

#[test]
fn a_second_poll_fails_on_another_thread_and_inside_a_handler() {
    let stream = stream();
    stream.offer(&[b"a", b"b"]);
    let subscription = &stream.subscription;
    let handler = |_: Fragment<'_>| {
        assert!(matches!(
            subscription.poll(|_| (), 1),
            Err(Error::InUse("subscription"))
        ));
        let image = subscription.image_at(0).unwrap();
        assert!(matches!(image.poll(|_| (), 1), Err(Error::InUse("image"))));
        std::thread::scope(|scope| {
            let other = scope.spawn(|| subscription.poll(|_| (), 1).map_err(|error| error.code()));
            assert_eq!(other.join().unwrap(), Err(16));
        });
    };
    assert_eq!(subscription.poll(handler, 1).unwrap(), 1);
    let mut poller = subscription.poller().unwrap();
    assert!(subscription.poller().is_err());
    assert_eq!(poller.poll(|_| (), 10).unwrap(), 1);
    drop(poller);
    assert_eq!(subscription.poll(|_| (), 10).unwrap(), 0);
}

#[test]
fn a_handler_may_close_its_subscription_or_client() {
    let stream = stream();
    stream.offer(&[b"a", b"b", b"c"]);
    let image = stream.subscription.image_at(0).unwrap();
    let count = stream
        .subscription
        .poll(|_| stream.subscription.close(), 10)
        .unwrap();
    let counter = stream
        .aeron
        .counters_reader()
        .value(image.subscriber_position_id());
    assert_eq!(
        (count, image.position(), counter),
        (1, 0, Some(0)),
        "the position of a closed image is not written"
    );
    let subscription = stream.aeron.add_subscription(CHANNEL, STREAM_ID).unwrap();
    stream.driver.run_ms(&stream.aeron, 5);
    stream.offer(&[b"d", b"e"]);
    assert_eq!(subscription.poll(|_| stream.aeron.close(), 10).unwrap(), 1);
    assert!(subscription.is_closed());
}

#[test]
fn images_are_added_and_removed_while_a_subscription_is_polled() {
    let stream = stream();
    let mut seen = Vec::new();
    for round in 0..50u8 {
        let publication = stream.another();
        publication.offer(&[round]).unwrap();
        stream
            .subscription
            .poll(first_bytes(&mut seen), 10)
            .unwrap();
        stream.driver.lose_image(&stream.driver.publication());
        stream.driver.run_ms(&stream.aeron, 2);
    }
    assert_eq!(seen, (0..50).collect::<Vec<_>>());
    assert_eq!(stream.subscription.image_count(), 1);
}

#[test]
fn an_impossible_frame_length_closes_the_image() {
    for length in [1, 31, TERM_LENGTH as i32 + 1, i32::MAX] {
        let stream = stream();
        stream.offer(&[b"a"]);
        let claim = stream.publication.try_claim(1).unwrap();
        use aeron_memory::words::Words;
        claim.with(|claim| {
            let frame = claim.payload_offset() - 32;
            claim.term().store_i32_release(frame, length);
        });
        let image = stream.subscription.image_at(0).unwrap();
        assert!(matches!(
            image.poll(|_| (), 10),
            Err(Error::CorruptLog { .. })
        ));
        assert!(image.is_closed() && !stream.subscription.is_connected());
        assert_eq!(image.position(), 64, "the valid frame was consumed");
        assert!(matches!(
            image.close_cause().0.as_deref(),
            Some(Error::CorruptLog { .. })
        ));
        assert_eq!(stream.subscription.poll(|_| (), 10).unwrap(), 0);
        stream.aeron.do_work();
        assert_eq!(stream.log.take(), ["error 5"]);
        std::mem::forget(claim);
    }
}

#[test]
fn an_image_is_closed_and_writes_no_position_if_its_counter_was_reused() {
    let stream = stream();
    stream.offer(&[b"a"]);
    let image = stream.subscription.image_at(0).unwrap();
    let id = image.subscriber_position_id();
    stream.driver.free_counter(id);
    // A freed counter is reused only after some time.
    stream.driver.run_ms(&stream.aeron, 2_000);
    let heartbeat = stream.driver.allocate_counter(&NewCounter {
        type_id: types::CLIENT_HEARTBEAT,
        key: b"",
        label: b"another client",
        registration_id: 4711,
        owner_id: 4711,
        reference_id: 0,
        value: 1_795_394_662_325,
    });
    assert_eq!(heartbeat.id(), id);
    assert!(matches!(
        image.poll(|_| (), 10),
        Err(Error::PositionCounterClosed { counter_id, .. }) if counter_id == id
    ));
    assert!(image.is_closed());
    assert_eq!(image.position(), image.join_position());
    assert_eq!(heartbeat.get(), 1_795_394_662_325);
    assert_eq!(stream.subscription.poll(|_| (), 10).unwrap(), 0);
}

#[test]
fn an_image_with_a_counter_id_out_of_range_is_not_added() {
    let stream = stream();
    let max = stream.aeron.counters_reader().max_counter_id();
    for id in [-1, max + 1, i32::MIN, i32::MAX] {
        let publication = stream.driver.publication();
        stream
            .driver
            .transmit(&aeron_protocol::event::Event::AvailableImage(
                aeron_protocol::event::AvailableImage {
                    correlation_id: 999,
                    session_id: 5,
                    stream_id: STREAM_ID,
                    subscription_registration_id: stream.subscription.registration_id(),
                    subscriber_position_id: id,
                    log_file_name: publication.registration_id.to_string().as_bytes(),
                    source_identity: b"",
                },
            ));
        stream.driver.run_ms(&stream.aeron, 1);
        assert_eq!(stream.log.take(), ["error 5"]);
        assert_eq!(stream.subscription.image_count(), 1);
    }
}

/// 03-111
#[test]
fn rejecting_an_image_waits_for_the_driver_and_a_spy_cannot_reject() {
    let stream = stream();
    stream.offer(&[b"a"]);
    let image = stream.subscription.image_at(0).unwrap();
    image.poll(|_| (), 1).unwrap();
    image.reject("stale").unwrap();
    let body = stream.driver.bodies(type_id::REJECT_IMAGE).remove(0);
    let Command::RejectImage(reject) = Command::decode(type_id::REJECT_IMAGE, &body).unwrap()
    else {
        panic!()
    };
    assert_eq!(
        (reject.image_correlation_id, reject.position),
        (image.correlation_id(), 64)
    );
    assert_eq!(reject.reason, b"stale");
    stream.subscription.close();
    assert_eq!(text(image.reject("stale")), "1: Image is closed");

    let spy = stream
        .aeron
        .add_subscription("aeron-spy:aeron:udp?endpoint=localhost:1", STREAM_ID)
        .unwrap();
    stream.driver.run_ms(&stream.aeron, 5);
    let refused = text(spy.image_at(0).unwrap().reject("no"));
    assert_eq!(refused, "22: spies can not reject images");
}

#[test]
fn the_log_of_a_lost_image_stays_mapped_for_the_resource_linger() {
    let stream = stream();
    let image = stream.subscription.image_at(0).unwrap();
    let log = Arc::downgrade(image.log());
    stream.publication.close();
    drop(image);
    stream.driver.lose_image(&stream.driver.publication());
    stream.driver.run_ms(&stream.aeron, 2_900);
    stream.subscription.poll(|_| (), 1).unwrap();
    drop(stream.publication);
    assert!(log.upgrade().is_some());
    stream.driver.run_ms(&stream.aeron, 200);
    assert!(log.upgrade().is_none());
}
