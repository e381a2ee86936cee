//! Tests of the end of IPC publications: drained, revoked, unblocked, rejected.

use std::time::Duration;

use aeron_memory::counters::system::SystemCounter;
use aeron_memory::counters::types;
use aeron_memory::log::{ConcurrentAppender, ExclusiveAppender};
use aeron_protocol::ErrorCode;
use aeron_protocol::command::{ClientClose, Command, RejectImage, RemovePublication};
use aeron_protocol::event::Event;

use crate::conductor::harness::{CLIENT, STREAM, TICK, TestDriver, names};

/// 04-79, 03-65, 01-77: the part about the end of the stream.
#[test]
fn a_publication_without_publishers_drains_and_then_changes_one_state_per_tick() {
    let mut driver = TestDriver::new();
    let publication = driver.add_publication("aeron:ipc", STREAM);
    let (subscription, images) = driver.add_subscription("aeron:ipc", STREAM);
    driver.work();
    let end = publication.offer(100);
    assert_eq!(
        names(&driver.remove_publication(&publication, false)),
        ["OperationSuccess"]
    );
    assert_eq!(publication.log.metadata().end_of_stream_position(), end);
    assert_eq!(publication.limit.get(), end);
    driver.advance(Duration::from_secs(3));
    assert_eq!(names(&driver.hear()), [""; 0]);
    images[0].position.set(end);
    driver.advance(TICK);
    let heard = driver.hear();
    let Event::UnavailableImage(event) = heard[0].event() else {
        panic!("{heard:?}")
    };
    assert_eq!(
        (event.correlation_id, event.subscription_registration_id),
        (publication.registration_id, subscription)
    );
    assert_eq!(
        (event.stream_id, event.channel),
        (STREAM, b"aeron:ipc".as_slice())
    );
    assert_eq!(
        driver.counters_of(types::SUBSCRIBER_POSITION),
        [images[0].position.id()]
    );
    driver.advance(TICK);
    assert!(driver.counters_of(types::SUBSCRIBER_POSITION).is_empty());
    assert!(driver.counters_of(types::PUBLISHER_POSITION).is_empty());
    assert_eq!(driver.logs.count(), 0);
}

/// 04-80
#[test]
fn a_draining_publication_accepts_subscribers_until_it_is_drained() {
    let mut driver = TestDriver::new();
    let publication = driver.add_publication("aeron:ipc", STREAM);
    let (_, images) = driver.add_subscription("aeron:ipc", STREAM);
    driver.work();
    let end = publication.offer(100);
    driver.remove_publication(&publication, false);
    let (_, late) = driver.add_subscription("aeron:ipc", STREAM);
    assert_eq!(late.len(), 1);
    images[0].position.set(end);
    late[0].position.set(end);
    assert_eq!(driver.add_subscription("aeron:ipc", STREAM).1.len(), 0);
}

/// A subscription is added, and then the last publisher closes before the pages of the publication are allocated. The
/// subscriber still gets its image, as with the C driver.
#[test]
fn a_subscriber_gets_its_image_even_if_the_last_publisher_leaves_before_the_pages_are_allocated() {
    for is_closed_by_client in [false, true] {
        let mut driver = TestDriver::new();
        let publication = driver.add_publication("aeron:ipc?sparse=true", STREAM);
        let command = driver.subscription_command(CLIENT + 1, "aeron:ipc", STREAM);
        driver.send(command);
        driver.conductor_cycle();
        let correlation_id = driver.next_id();
        driver.send(match is_closed_by_client {
            true => Command::ClientClose(ClientClose {
                client_id: CLIENT,
                correlation_id,
            }),
            false => Command::RemovePublication(RemovePublication {
                client_id: CLIENT,
                correlation_id,
                registration_id: publication.registration_id,
                revoke: false,
            }),
        });
        driver.conductor_cycle();
        driver.advance(3 * TICK);
        let heard: Vec<_> = names(&driver.hear())
            .into_iter()
            .filter(|name| name.starts_with("Subscription") || name.ends_with("Image"))
            .collect();
        let expected = ["SubscriptionReady", "AvailableImage", "UnavailableImage"];
        assert_eq!(heard, expected);
        assert_eq!(driver.logs.count(), 0);
    }
}

/// 04-81, 03-28
#[test]
fn revoking_a_publication_ends_the_stream_for_all_clients_at_the_next_tick() {
    let mut driver = TestDriver::new();
    let publication = driver.add_publication("aeron:ipc", STREAM);
    let sharer = driver.add_publication("aeron:ipc", STREAM);
    driver.add_subscription("aeron:ipc", STREAM);
    driver.work();
    let end = publication.offer(100);
    driver.remove_publication(&publication, true);
    assert!(publication.log.metadata().is_publication_revoked());
    driver.advance(TICK);
    assert_eq!(names(&driver.hear()), ["UnavailableImage"]);
    assert_eq!(driver.system(SystemCounter::PublicationsRevoked), 1);
    assert_eq!(
        (publication.limit.get(), publication.is_connected()),
        (end, false)
    );
    assert_eq!(publication.log.metadata().end_of_stream_position(), end);
    driver.advance(TICK);
    assert_eq!(driver.logs.count(), 1);
    driver.remove_publication(&sharer, false);
    driver.advance(TICK);
    assert_eq!(driver.logs.count(), 0);
}

/// 04-82, 01-74
#[test]
fn a_claim_of_a_dead_publisher_is_padded_after_the_timeout() {
    let mut driver = TestDriver::new();
    let publication = driver.add_publication("aeron:ipc", STREAM);
    driver.add_subscription("aeron:ipc", STREAM);
    driver.work();
    let appender = ConcurrentAppender::new(publication.log.clone());
    std::mem::forget(appender.try_claim(publication.limit.get(), 100).unwrap());
    driver.advance(Duration::from_secs(15));
    assert_eq!(driver.system(SystemCounter::UnblockedPublications), 0);
    driver.advance(Duration::from_millis(300));
    assert_eq!(driver.system(SystemCounter::UnblockedPublications), 1);
    driver.advance(Duration::from_secs(20));
    assert_eq!(driver.system(SystemCounter::UnblockedPublications), 1);
}

/// 04-83, 01-74
#[test]
fn an_exclusive_publication_is_unblocked_only_while_it_drains() {
    let mut driver = TestDriver::new();
    let publication = driver.add_exclusive_publication("aeron:ipc", STREAM);
    driver.add_subscription("aeron:ipc", STREAM);
    driver.work();
    let mut appender = ExclusiveAppender::new(publication.log.clone()).unwrap();
    std::mem::forget(appender.try_claim(publication.limit.get(), 100).unwrap());
    driver.advance(Duration::from_secs(20));
    assert_eq!(driver.system(SystemCounter::UnblockedPublications), 0);
    driver.remove_publication(&publication, false);
    driver.advance(TICK);
    assert_eq!(driver.system(SystemCounter::UnblockedPublications), 1);
}

/// 04-79, 01-74: when the last publisher closes, the subscribers have not yet reached the unfinished frame. They reach
/// the frame later.
#[test]
fn a_draining_publication_is_unblocked_when_its_subscribers_reach_the_unfinished_frame() {
    let mut driver = TestDriver::new();
    let publication = driver.add_publication("aeron:ipc", STREAM);
    let (_, images) = driver.add_subscription("aeron:ipc", STREAM);
    driver.work();
    let end = publication.offer(100);
    let appender = ConcurrentAppender::new(publication.log.clone());
    std::mem::forget(appender.try_claim(publication.limit.get(), 100).unwrap());
    driver.remove_publication(&publication, false);
    driver.advance(TICK);
    assert_eq!(driver.system(SystemCounter::UnblockedPublications), 0);
    images[0].position.set(end);
    driver.advance(TICK);
    assert_eq!(driver.system(SystemCounter::UnblockedPublications), 1);
}

/// 04-43: a new publication may use the session id of a publication that has ended.
#[test]
fn the_session_id_of_a_revoked_publication_can_be_used_again() {
    let mut driver = TestDriver::new();
    let channel = "aeron:ipc?session-id=77";
    let publication = driver.add_publication(channel, STREAM);
    driver.add_publication(channel, STREAM);
    driver.remove_publication(&publication, true);
    driver.advance(TICK);
    let again = driver.add_publication(channel, STREAM);
    assert_ne!(again.registration_id, publication.registration_id);
    assert_eq!(driver.logs.count(), 2);
}

/// 04-84
#[test]
fn a_claim_without_a_frame_length_is_not_unblocked_if_no_data_follows() {
    let mut driver = TestDriver::new();
    let publication = driver.add_publication("aeron:ipc", STREAM);
    driver.add_subscription("aeron:ipc", STREAM);
    driver.work();
    let appender = ConcurrentAppender::new(publication.log.clone());
    std::mem::forget(appender.try_claim(publication.limit.get(), 100).unwrap());
    // The log is now as if the publisher had died between the move of the tail and the write of the frame length.
    aeron_memory::words::Words::store_i32_release(publication.log.term(0), 0, 0);
    driver.advance(Duration::from_secs(40));
    assert_eq!(driver.system(SystemCounter::UnblockedPublications), 0);
}

/// 04-84: after its publishers have left, no publisher can finish the claim. The stream ends for its subscribers.
#[test]
fn a_draining_publication_ends_although_its_last_claim_has_no_frame_length() {
    for is_exclusive in [false, true] {
        let mut driver = TestDriver::new();
        let publication = match is_exclusive {
            true => driver.add_exclusive_publication("aeron:ipc", STREAM),
            false => driver.add_publication("aeron:ipc", STREAM),
        };
        let (_, images) = driver.add_subscription("aeron:ipc", STREAM);
        driver.work();
        let end = publication.offer(100);
        images[0].position.set(end);
        let appender = ConcurrentAppender::new(publication.log.clone());
        std::mem::forget(appender.try_claim(publication.limit.get(), 100).unwrap());
        let offset = publication.log.positions().term_offset(end);
        aeron_memory::words::Words::store_i32_release(publication.log.term(0), offset, 0);
        driver.advance(TICK);
        driver.remove_publication(&publication, false);
        driver.advance(Duration::from_secs(15));
        assert_eq!(driver.system(SystemCounter::UnblockedPublications), 0);
        driver.advance(Duration::from_secs(1));
        assert_eq!(driver.system(SystemCounter::UnblockedPublications), 1);
        images[0].position.set(publication.log.producer_position());
        driver.advance(2 * TICK);
        assert_eq!(driver.logs.count(), 0);
    }
}

#[test]
fn rejections_cause_a_bounded_number_of_entries_in_the_error_log() {
    const MAX_NOTED: usize = 64;
    let mut driver = TestDriver::new();
    let publication = driver.add_publication("aeron:ipc", STREAM);
    let reject = |driver: &mut TestDriver, reason: &str| {
        let correlation_id = driver.next_id();
        let heard = driver.ask(Command::RejectImage(RejectImage {
            client_id: CLIENT,
            correlation_id,
            image_correlation_id: publication.registration_id,
            position: 0,
            reason: reason.as_bytes(),
        }));
        // The publisher gets an event with the reason of each rejection.
        let told = heard.iter().any(|heard| match heard.event() {
            Event::PublicationError(error) => error.error_message == reason.as_bytes(),
            _ => false,
        });
        assert!(told, "{reason}");
    };
    for number in 0..200 {
        reject(&mut driver, &format!("reason {number}"));
    }
    let errors = driver.errors();
    assert_eq!(errors.len(), MAX_NOTED + 1);
    assert!(errors[MAX_NOTED].contains("more than 64 different rejections"));
    assert_eq!(driver.system(SystemCounter::Errors), 200);
    reject(&mut driver, "reason 5");
    assert_eq!(driver.errors().len(), MAX_NOTED + 1);
}

/// 04-85, 03-46 to 03-48
#[test]
fn a_rejected_publication_is_linked_again_after_the_image_liveness_timeout() {
    let mut driver = TestDriver::with(|context| context.image_liveness_timeout_ns = 1_000_000_000);
    let publication = driver.add_publication("aeron:ipc", STREAM);
    let (subscription, _) = driver.add_subscription("aeron:ipc", STREAM);
    let command = Command::RejectImage(RejectImage {
        client_id: 0,
        correlation_id: 0,
        image_correlation_id: publication.registration_id,
        position: 0,
        reason: b"no",
    });
    let heard = driver.ask(command);
    assert_eq!(
        names(&heard),
        ["PublicationError", "UnavailableImage", "OperationSuccess"]
    );
    assert_eq!(heard[0].length(), 72);
    let Event::PublicationError(error) = heard[0].event() else {
        panic!()
    };
    assert_eq!(
        (error.registration_id, error.error_code),
        (
            publication.registration_id,
            ErrorCode::ImageRejected.value()
        )
    );
    assert_eq!(
        (
            error.destination_registration_id,
            error.receiver_id,
            error.group_tag
        ),
        (-1, -1, -1)
    );
    assert_eq!(
        (error.source_address, error.error_message),
        (Some("127.0.0.1:0".parse().unwrap()), b"no".as_slice())
    );
    assert!(!publication.is_connected());
    assert!(driver.counters_of(types::SUBSCRIBER_POSITION).is_empty());
    assert_eq!(driver.system(SystemCounter::ImagesRejected), 1);
    let logged = format!(
        "onPublicationError: registrationId={}, destinationRegistrationId=-1, sessionId={}, streamId={STREAM}, \
         receiverId=-1, groupId=-1, errorCode=13, errorMessage=no",
        publication.registration_id, publication.session_id
    );
    assert_eq!(driver.errors()[0].trim_end(), logged);
    assert_eq!(driver.add_subscription("aeron:ipc", STREAM).1.len(), 0);

    driver.advance(Duration::from_millis(900));
    assert_eq!(
        names(&driver.ask(command)),
        ["PublicationError", "OperationSuccess"]
    );
    driver.advance(Duration::from_millis(900));
    assert_eq!(names(&driver.hear()), [""; 0]);
    driver.advance(Duration::from_millis(300));
    let heard = driver.hear();
    assert_eq!(names(&heard), ["AvailableImage", "AvailableImage"]);
    assert_eq!(driver.images(&heard)[0].subscription_id, subscription);
    assert!(publication.is_connected());
}
