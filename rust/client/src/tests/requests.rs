//! What a client asks of the driver, and how it learns the answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use aeron_memory::counters::system::SystemCounter;
use aeron_protocol::ErrorCode;
use aeron_protocol::command::{Command, type_id};

use super::{Log, text};
use crate::error::Error;
use crate::testing::{CLOSING_CHANNEL, FIRST_SESSION_ID, FakeDriver, REFUSED_CHANNEL};

const CHANNEL: &str = "aeron:ipc";

/// 03-78
#[test]
fn an_asynchronous_add_is_pending_then_there_and_stays_the_same_object() {
    let driver = FakeDriver::new();
    let aeron = driver.connect(|_| {});
    let id = aeron.async_add_publication(CHANNEL, 7).unwrap();
    assert!(aeron.find_publication(id).unwrap().is_none());
    assert!(aeron.is_command_active(id) && aeron.has_active_commands());
    driver.step();
    let publication = aeron.find_publication(id).unwrap().expect("answered");
    assert!(!aeron.is_command_active(id));
    let again = aeron.find_publication(id).unwrap().expect("still there");
    assert_eq!(publication.registration_id(), id);
    drop(publication);
    assert!(!again.is_closed(), "both were the same publication");
    drop(again);
    assert!(
        aeron.find_publication(id).unwrap().is_none(),
        "closed with its last handle"
    );
}

/// 03-78
#[test]
fn the_refusal_of_an_asynchronous_add_is_told_once() {
    let driver = FakeDriver::new();
    let aeron = driver.connect(|_| {});
    for id in [
        aeron.async_add_publication(REFUSED_CHANNEL, 7).unwrap(),
        aeron
            .async_add_exclusive_publication(REFUSED_CHANNEL, 7)
            .unwrap(),
    ] {
        driver.step();
        let refusal = text(aeron.find_publication(id));
        assert_eq!(refusal, "1: refused by the driver, errorCodeValue=1");
        assert!(aeron.find_publication(id).unwrap().is_none());
    }
    let id = aeron.async_add_subscription(REFUSED_CHANNEL, 7).unwrap();
    driver.step();
    assert!(matches!(
        aeron.find_subscription(id),
        Err(Error::Registration { correlation_id, .. }) if correlation_id == id
    ));
    assert!(aeron.find_subscription(id).unwrap().is_none());
    assert!(text(aeron.add_subscription(REFUSED_CHANNEL, 7)).contains("refused by the driver"));
}

#[test]
fn a_waiting_add_is_repeated_while_the_driver_closes_an_endpoint() {
    let driver = FakeDriver::new();
    let aeron = driver.connect(|_| {});
    let subscription = aeron.add_subscription(CHANNEL, 7).unwrap();
    driver.keep_closing(3);
    let added = aeron.add_subscription(CLOSING_CHANNEL, 7).unwrap();
    assert!(!added.is_closed());
    driver.keep_closing(3);
    aeron.add_publication(CLOSING_CHANNEL, 7).unwrap();
    driver.keep_closing(3);
    aeron.add_exclusive_publication(CLOSING_CHANNEL, 7).unwrap();
    driver.keep_closing(3);
    subscription.add_destination(CLOSING_CHANNEL).unwrap();
    assert_eq!(driver.bodies(type_id::ADD_SUBSCRIPTION).len(), 1 + 4);
    assert_eq!(driver.bodies(type_id::ADD_PUBLICATION).len(), 4);
    assert_eq!(driver.bodies(type_id::ADD_EXCLUSIVE_PUBLICATION).len(), 4);
    assert_eq!(driver.bodies(type_id::ADD_RCV_DESTINATION).len(), 4);
}

#[test]
fn an_endpoint_that_never_closes_is_told_after_the_driver_timeout() {
    let driver = FakeDriver::new();
    let aeron = driver.connect(|_| {});
    driver.keep_closing(usize::MAX);
    let start_ms = driver.now_ms();
    let error = aeron.add_subscription(CLOSING_CHANNEL, 7).unwrap_err();
    assert!(matches!(
        error,
        Error::Registration {
            code: ErrorCode::ResourceTemporarilyUnavailable,
            ..
        }
    ));
    assert!((10_000..10_100).contains(&(driver.now_ms() - start_ms)));
}

#[test]
fn an_asynchronous_add_is_not_repeated() {
    let driver = FakeDriver::new();
    let aeron = driver.connect(|_| {});
    driver.keep_closing(1);
    let id = aeron.async_add_publication(CLOSING_CHANNEL, 7).unwrap();
    driver.step();
    assert_eq!(
        text(aeron.find_publication(id)),
        "10: refused by the driver, errorCodeValue=10"
    );
}

#[test]
fn an_asynchronous_add_without_an_answer_fails_after_the_driver_timeout() {
    let driver = FakeDriver::new();
    let aeron = driver.connect(|_| {});
    driver.mute();
    let id = aeron.async_add_counter(1, b"", "late").unwrap();
    driver.run_ms(&aeron, 10_000);
    assert!(aeron.find_counter(id).unwrap().is_none());
    driver.run_ms(&aeron, 1);
    assert_eq!(
        text(aeron.find_counter(id)),
        "1000: no response from MediaDriver within 10s"
    );
    driver.unmute();
    driver.run_ms(&aeron, 2);
    assert!(aeron.find_counter(id).unwrap().is_none());
    assert_eq!(
        driver.sent(),
        [type_id::ADD_COUNTER, type_id::REMOVE_COUNTER]
    );
}

#[test]
fn an_interrupted_wait_takes_back_what_it_asked_for() {
    let driver = FakeDriver::new();
    driver.mute();
    let looks = Arc::new(AtomicUsize::new(0));
    let check = Arc::clone(&looks);
    let aeron = driver.connect(|context| {
        context.interrupt_check = Some(Arc::new(move || {
            check.fetch_add(1, Ordering::Relaxed) % 3 == 2
        }));
    });
    assert!(matches!(
        aeron.add_publication(CHANNEL, 7),
        Err(Error::Interrupted)
    ));
    assert_eq!(looks.load(Ordering::Relaxed), 3);
    assert_eq!(
        text(aeron.add_subscription(CHANNEL, 7)),
        "4: interrupted while waiting for the media driver"
    );
    assert!(matches!(aeron.next_session_id(7), Err(Error::Interrupted)));
    driver.unmute();
    driver.run_ms(&aeron, 20);
    assert_eq!(
        driver.sent(),
        [
            type_id::ADD_PUBLICATION,
            type_id::REMOVE_PUBLICATION,
            type_id::ADD_SUBSCRIPTION,
            type_id::REMOVE_SUBSCRIPTION,
            type_id::GET_NEXT_AVAILABLE_SESSION_ID,
        ]
    );
    assert!(!aeron.has_active_commands());
}

/// 03-79
#[test]
fn what_is_removed_before_its_answer_came_is_removed_at_once_and_the_answer_passed_over() {
    let driver = FakeDriver::new();
    let log = Log::default();
    let aeron = driver.connect(|context| log.attach(context));
    let publication = aeron.async_add_publication(CHANNEL, 7).unwrap();
    let exclusive = aeron.async_add_exclusive_publication(CHANNEL, 7).unwrap();
    let subscription = aeron.async_add_subscription(CHANNEL, 7).unwrap();
    let counter = aeron.async_add_counter(1, b"", "gone").unwrap();
    assert!(aeron.async_remove_publication(publication).unwrap());
    assert!(aeron.async_remove_publication(exclusive).unwrap());
    assert!(aeron.async_remove_subscription(subscription).unwrap());
    assert!(aeron.async_remove_counter(counter).unwrap());
    assert!(!aeron.async_remove_counter(counter).unwrap());
    driver.run_ms(&aeron, 20);
    assert_eq!(
        driver.sent()[4..],
        [
            type_id::REMOVE_PUBLICATION,
            type_id::REMOVE_PUBLICATION,
            type_id::REMOVE_SUBSCRIPTION,
            type_id::REMOVE_COUNTER
        ]
    );
    assert!(aeron.find_publication(publication).unwrap().is_none());
    assert!(
        aeron
            .find_exclusive_publication(exclusive)
            .unwrap()
            .is_none()
    );
    assert!(aeron.find_subscription(subscription).unwrap().is_none());
    assert!(aeron.find_counter(counter).unwrap().is_none());
    assert!(!aeron.has_active_commands());
    assert!(
        log.take().iter().all(|call| call.starts_with("counter ")),
        "no image, no error"
    );
}

#[test]
fn what_is_removed_after_its_answer_came_is_closed() {
    let driver = FakeDriver::new();
    let aeron = driver.connect(|_| {});
    let subscription = aeron.add_subscription(CHANNEL, 7).unwrap();
    let unclaimed = aeron.async_add_publication(CHANNEL, 7).unwrap();
    driver.run_ms(&aeron, 5);
    assert!(
        aeron
            .async_remove_subscription(subscription.registration_id())
            .unwrap()
    );
    assert!(subscription.is_closed());
    assert!(aeron.async_remove_publication(unclaimed).unwrap());
    assert!(aeron.find_publication(unclaimed).unwrap().is_none());
}

#[test]
fn commands_carry_what_the_application_gave() {
    let driver = FakeDriver::new();
    let aeron = driver.connect(|_| {});
    let subscription = aeron
        .add_subscription("aeron:ipc?tether=false", i32::MIN)
        .unwrap();
    let body = driver.bodies(type_id::ADD_SUBSCRIPTION).remove(0);
    let Command::AddSubscription(add) = Command::decode(type_id::ADD_SUBSCRIPTION, &body).unwrap()
    else {
        panic!()
    };
    assert_eq!(add.client_id, aeron.client_id());
    assert_eq!(add.correlation_id, subscription.registration_id());
    assert_eq!(add.registration_correlation_id, -1);
    assert_eq!(
        (add.stream_id, add.channel),
        (i32::MIN, "aeron:ipc?tether=false".as_bytes())
    );

    let counter = aeron.add_counter(1009, &[1, 2, 3], "label").unwrap();
    let body = driver.bodies(type_id::ADD_COUNTER).remove(0);
    let Command::AddCounter(add) = Command::decode(type_id::ADD_COUNTER, &body).unwrap() else {
        panic!()
    };
    assert_eq!(add.correlation_id, counter.registration_id());
    assert_eq!(
        (add.type_id, add.key, add.label),
        (1009, &[1, 2, 3][..], &b"label"[..])
    );
}

#[test]
fn channels_that_no_driver_could_read_are_refused_before_anything_is_sent() {
    let driver = FakeDriver::new();
    let aeron = driver.connect(|_| {});
    let long = format!("aeron:ipc?alias={}", "x".repeat(4090));
    assert_eq!(
        text(aeron.add_publication(&long, 1)),
        format!("22: channel has {} bytes, the limit is 4095", long.len())
    );
    assert!(
        text(aeron.add_subscription("aeron:ipc?alias=é", 1))
            .starts_with("22: channel is not ASCII")
    );
    driver.run_ms(&aeron, 5);
    assert!(driver.sent().is_empty());
}

#[test]
fn the_driver_chooses_the_next_session_id() {
    let driver = FakeDriver::new();
    let aeron = driver.connect(|_| {});
    assert_eq!(aeron.next_session_id(5).unwrap(), 4242);
    let id = aeron.async_next_session_id(5).unwrap();
    assert_eq!(aeron.poll_operation(id).unwrap(), None);
    driver.step();
    assert_eq!(aeron.poll_operation(id).unwrap(), Some(4242));
    assert!(text(aeron.poll_operation(id)).contains("no command has the correlation id"));
}

/// 03-84, 01-21
#[test]
fn without_a_control_protocol_version_the_next_session_id_is_chance() {
    let driver = FakeDriver::new();
    driver.free_counter(SystemCounter::ControlProtocolVersion.id());
    let aeron = driver.connect(|_| {});
    let ids: Vec<_> = (0..8).map(|_| aeron.next_session_id(5).unwrap()).collect();
    assert!(ids.iter().any(|id| *id != ids[0]), "{ids:?}");
    driver.step();
    assert!(driver.sent().is_empty());
}

#[test]
fn destinations_name_the_publication_by_its_original_registration_id() {
    let driver = FakeDriver::new();
    let aeron = driver.connect(|_| {});
    let first = aeron.add_publication(CHANNEL, 7).unwrap();
    let second = aeron.add_publication(CHANNEL, 7).unwrap();
    assert!(first.is_original() && !second.is_original());
    assert_eq!(second.session_id(), FIRST_SESSION_ID);
    let destination = second
        .add_destination("aeron:udp?endpoint=localhost:4000")
        .unwrap();
    second.remove_destination_by_id(destination).unwrap();
    second
        .remove_destination("aeron:udp?endpoint=localhost:4000")
        .unwrap();
    let original = first.registration_id().to_le_bytes();
    for sent in [
        type_id::ADD_DESTINATION,
        type_id::REMOVE_DESTINATION,
        type_id::REMOVE_DESTINATION_BY_ID,
    ] {
        assert_eq!(driver.bodies(sent)[0][16..24], original, "{sent}");
    }
    assert_eq!(
        driver.bodies(type_id::REMOVE_DESTINATION_BY_ID)[0][24..32],
        destination.to_le_bytes()
    );
    assert!(text(second.add_destination(REFUSED_CHANNEL)).starts_with("1: refused by the driver"));
    second.close();
    assert_eq!(
        text(second.add_destination("aeron:udp?endpoint=localhost:4000")),
        "1: Publication is closed"
    );
}

#[test]
fn destinations_of_a_subscription_are_receive_destinations() {
    let driver = FakeDriver::new();
    let aeron = driver.connect(|_| {});
    let subscription = aeron
        .add_subscription("aeron:udp?control-mode=manual", 7)
        .unwrap();
    subscription.add_destination("aeron:ipc").unwrap();
    let id = subscription.async_remove_destination("aeron:ipc").unwrap();
    driver.step();
    assert_eq!(aeron.poll_operation(id).unwrap(), Some(0));
    assert_eq!(
        driver.sent()[1..],
        [
            type_id::ADD_RCV_DESTINATION,
            type_id::REMOVE_RCV_DESTINATION
        ]
    );
    assert!(
        text(subscription.add_destination(REFUSED_CHANNEL)).starts_with("1: refused by the driver")
    );
    subscription.close();
    assert_eq!(
        text(subscription.add_destination("aeron:ipc")),
        "1: Subscription is closed"
    );
}

#[test]
fn a_log_that_cannot_be_opened_fails_the_add_and_gives_the_publication_back() {
    let driver = FakeDriver::new();
    driver.hide_logs();
    let aeron = driver.connect(|_| {});
    let error = aeron.add_publication(CHANNEL, 7).unwrap_err();
    assert!(matches!(error, Error::OpenLog { .. }), "{error}");
    driver.step();
    assert_eq!(
        driver.sent(),
        [type_id::ADD_PUBLICATION, type_id::REMOVE_PUBLICATION]
    );
}
