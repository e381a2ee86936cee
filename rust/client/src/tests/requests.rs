//! Tests of a client's requests to the driver, and of the driver's responses.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use aeron_memory::counters::system::SystemCounter;
use aeron_protocol::ErrorCode;
use aeron_protocol::command::{Command, type_id};
use aeron_protocol::event::{self, Event};

use super::{Log, text};
use crate::error::Error;
use crate::testing::{CLOSING_CHANNEL, FIRST_SESSION_ID, FakeDriver, REFUSED_CHANNEL};

const CHANNEL: &str = "aeron:ipc";

/// 03-78
#[test]
fn an_asynchronous_add_returns_the_same_object_in_each_poll_after_the_response() {
    let driver = FakeDriver::new();
    let aeron = driver.connect(|_| {});
    let mut operation = aeron.async_add_publication(CHANNEL, 7).unwrap();
    let id = operation.correlation_id();
    assert!(operation.poll().unwrap().is_none());
    assert!(aeron.is_command_active(id) && aeron.has_active_commands());
    driver.step();
    assert!(
        !operation.is_finished(),
        "the client has not read the response yet"
    );
    let publication = operation.poll().unwrap().expect("answered");
    assert!(operation.is_finished() && !aeron.is_command_active(id));
    let again = operation.wait().unwrap();
    assert_eq!(publication.registration_id(), id);
    assert!(
        !operation.cancel(),
        "a finished operation cannot be cancelled"
    );
    drop((operation, publication));
    assert!(
        !again.is_closed(),
        "the publication stays open while one handle is left"
    );
    drop(again);
    driver.run_ms(&aeron, 5);
    assert_eq!(
        driver.sent(),
        [type_id::ADD_PUBLICATION, type_id::REMOVE_PUBLICATION],
        "the publication is closed with its last handle"
    );
}

/// 03-78
#[test]
fn the_result_of_a_refused_asynchronous_add_is_the_refusal() {
    let driver = FakeDriver::new();
    let aeron = driver.connect(|_| {});
    let mut shared = aeron.async_add_publication(REFUSED_CHANNEL, 7).unwrap();
    let mut exclusive = aeron
        .async_add_exclusive_publication(REFUSED_CHANNEL, 7)
        .unwrap();
    let mut subscription = aeron.async_add_subscription(REFUSED_CHANNEL, 7).unwrap();
    driver.step();
    for _ in 0..2 {
        let refusal = "1: refused by the driver, errorCodeValue=1";
        assert_eq!(text(shared.poll()), refusal);
        assert_eq!(text(exclusive.wait()), refusal);
        assert!(matches!(
            subscription.poll(),
            Err(Error::Registration { correlation_id, .. })
                if correlation_id == subscription.correlation_id()
        ));
    }
    assert!(!shared.cancel(), "a refused operation cannot be cancelled");
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
fn an_endpoint_that_never_closes_is_an_error_after_the_driver_timeout() {
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
fn an_add_without_a_response_fails_after_the_driver_timeout_and_is_undone_by_a_late_response() {
    let driver = FakeDriver::new();
    let aeron = driver.connect(|_| {});
    driver.mute();
    let mut counter = aeron.async_add_counter(1, b"", "late").unwrap();
    let mut subscription = aeron.async_add_subscription(CHANNEL, 7).unwrap();
    driver.run_ms(&aeron, 10_000);
    assert!(counter.poll().unwrap().is_none());
    driver.run_ms(&aeron, 1);
    let late = "1000: no response from MediaDriver within 10s";
    assert_eq!(text(counter.poll()), late);
    assert_eq!(text(subscription.poll()), late);
    assert_eq!(driver.sent(), [], "the driver has not read anything");
    driver.unmute();
    driver.run_ms(&aeron, 20);
    assert_eq!(text(counter.poll()), late);
    assert_eq!(
        driver.sent(),
        [
            type_id::ADD_COUNTER,
            type_id::ADD_SUBSCRIPTION,
            type_id::REMOVE_COUNTER,
            type_id::REMOVE_SUBSCRIPTION
        ]
    );
}

#[test]
fn an_interrupted_wait_undoes_its_request() {
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
            type_id::ADD_SUBSCRIPTION,
            type_id::GET_NEXT_AVAILABLE_SESSION_ID,
            type_id::REMOVE_PUBLICATION,
            type_id::REMOVE_SUBSCRIPTION,
        ]
    );
    assert!(!aeron.has_active_commands());
}

/// The commands that undo each kind of add.
const UNDONE: [i32; 5] = [
    type_id::REMOVE_PUBLICATION,
    type_id::REMOVE_PUBLICATION,
    type_id::REMOVE_SUBSCRIPTION,
    type_id::REMOVE_COUNTER,
    type_id::REMOVE_DESTINATION_BY_ID,
];

/// 03-79
#[test]
fn a_resource_of_a_cancelled_or_dropped_operation_is_removed_when_the_response_comes() {
    for is_dropped in [false, true] {
        let driver = FakeDriver::new();
        let log = Log::default();
        let aeron = driver.connect(|context| log.attach(context));
        let open = aeron.add_publication(CHANNEL, 8).unwrap();
        let before = driver.sent().len();
        driver.mute();
        let mut publication = aeron.async_add_publication(CHANNEL, 7).unwrap();
        let mut exclusive = aeron.async_add_exclusive_publication(CHANNEL, 7).unwrap();
        let mut subscription = aeron.async_add_subscription(CHANNEL, 7).unwrap();
        let mut counter = aeron.async_add_counter(1, b"", "gone").unwrap();
        let mut destination = open
            .async_add_destination("aeron:udp?endpoint=a:1")
            .unwrap();
        let mut session_id = aeron.async_next_session_id(1).unwrap();
        if !is_dropped {
            assert!(publication.cancel() && exclusive.cancel() && subscription.cancel());
            assert!(counter.cancel() && destination.cancel() && session_id.cancel());
            assert!(!publication.cancel(), "an operation is cancelled only once");
            assert_eq!(text(publication.wait()), "4: the operation was cancelled");
        }
        drop((
            publication,
            exclusive,
            subscription,
            counter,
            destination,
            session_id,
        ));
        assert!(!aeron.has_active_commands());
        driver.unmute();
        driver.run_ms(&aeron, 20);
        assert_eq!(driver.sent()[before + 6..], UNDONE);
        assert!(!aeron.has_active_commands());
        let calls = log.take();
        assert!(
            calls.iter().all(|call| call.starts_with("counter ")),
            "{calls:?}"
        );
    }
}

#[test]
fn an_operation_cancelled_after_its_response_removes_the_resource() {
    let driver = FakeDriver::new();
    let aeron = driver.connect(|_| {});
    let open = aeron.add_publication(CHANNEL, 8).unwrap();
    let before = driver.sent().len();
    let mut publication = aeron.async_add_publication(CHANNEL, 7).unwrap();
    let mut exclusive = aeron.async_add_exclusive_publication(CHANNEL, 7).unwrap();
    let mut subscription = aeron.async_add_subscription(CHANNEL, 7).unwrap();
    let counter = aeron.async_add_counter(1, b"", "gone").unwrap();
    let mut destination = open
        .async_add_destination("aeron:udp?endpoint=a:1")
        .unwrap();
    driver.run_ms(&aeron, 20);
    assert!(publication.cancel() && exclusive.cancel() && subscription.cancel());
    drop(counter);
    assert!(destination.cancel());
    driver.run_ms(&aeron, 20);
    assert_eq!(driver.sent()[before + 5..], UNDONE);
}

#[test]
fn an_operation_that_cannot_be_undone_continues_after_a_cancel() {
    let driver = FakeDriver::new();
    let aeron = driver.connect(|_| {});
    let publication = aeron.add_publication(CHANNEL, 8).unwrap();
    let mut counter = aeron.async_add_static_counter(1, b"", "stays", 5).unwrap();
    let mut destination = publication
        .async_remove_destination("aeron:udp?endpoint=a:1")
        .unwrap();
    let mut removal = aeron
        .async_remove_publication(publication.registration_id())
        .unwrap();
    assert!(!counter.cancel() && !destination.cancel() && !removal.cancel());
    assert!(counter.wait().unwrap().is_static());
    destination.wait().unwrap();
    assert!(removal.wait().unwrap());
    let sent = driver.sent().len();
    let dropped = aeron.async_add_static_counter(1, b"", "stays", 6).unwrap();
    drop(dropped);
    driver.run_ms(&aeron, 20);
    assert_eq!(
        driver.sent().len(),
        sent + 1,
        "nothing removes a static counter"
    );
}

fn refuse(driver: &FakeDriver, correlation_id: i64, error_code: ErrorCode) {
    driver.transmit(&Event::Error(event::Error {
        offending_command_correlation_id: correlation_id,
        error_code,
        error_message: b"busy",
    }));
}

#[test]
fn after_a_temporary_refusal_the_command_is_sent_again_without_an_error() {
    let driver = FakeDriver::new();
    let aeron = driver.connect(|_| {});
    driver.mute();
    let mut operation = aeron.async_add_subscription(CHANNEL, 7).unwrap();
    let first = operation.correlation_id();
    refuse(&driver, first, ErrorCode::ResourceTemporarilyUnavailable);
    assert!(operation.poll().unwrap().is_none());
    assert!(operation.poll().unwrap().is_none());
    assert_eq!(
        operation.correlation_id(),
        first,
        "the command is not repeated at once"
    );
    driver.run_ms(&aeron, 10);
    assert!(operation.poll().unwrap().is_none());
    let second = operation.correlation_id();
    assert_ne!(second, first);
    refuse(&driver, second, ErrorCode::ResourceTemporarilyUnavailable);
    assert!(operation.poll().unwrap().is_none());
    assert!(
        operation.cancel(),
        "between two attempts no command is active"
    );
    assert!(!aeron.has_active_commands());

    let mut operation = aeron.async_add_publication(CHANNEL, 7).unwrap();
    driver.run_ms(&aeron, 9_999);
    refuse(
        &driver,
        operation.correlation_id(),
        ErrorCode::ResourceTemporarilyUnavailable,
    );
    assert!(operation.poll().unwrap().is_none());
    driver.run_ms(&aeron, 10);
    assert!(operation.poll().unwrap().is_none());
    refuse(
        &driver,
        operation.correlation_id(),
        ErrorCode::ResourceTemporarilyUnavailable,
    );
    assert_eq!(
        text(operation.poll()),
        "10: busy, errorCodeValue=10",
        "the driver timeout is over"
    );
}

#[test]
fn the_time_between_attempts_doubles_so_that_many_refused_operations_leave_the_driver_time() {
    let driver = FakeDriver::new();
    let aeron = driver.connect(|_| {});
    driver.mute();
    let mut operation = aeron.async_add_publication(CHANNEL, 7).unwrap();
    let (mut last, mut waits_ms) = (operation.correlation_id(), Vec::new());
    for _ in 0..8 {
        refuse(&driver, last, ErrorCode::ResourceTemporarilyUnavailable);
        let mut waited_ms = 0;
        while operation.poll().unwrap().is_none() && operation.correlation_id() == last {
            driver.run_ms(&aeron, 1);
            waited_ms += 1;
        }
        last = operation.correlation_id();
        waits_ms.push(waited_ms);
    }
    assert_eq!(waits_ms, [10, 20, 40, 80, 160, 320, 320, 320]);
}

/// 03-79
#[test]
fn a_resource_removed_by_id_before_its_response_is_removed_when_the_response_comes() {
    let driver = FakeDriver::new();
    let aeron = driver.connect(|_| {});
    let mut added = aeron.async_add_subscription(CHANNEL, 7).unwrap();
    let mut removed = aeron
        .async_remove_subscription(added.correlation_id())
        .unwrap();
    assert!(removed.wait().unwrap());
    assert!(text(added.poll()).contains("was removed while it was being added"));
    driver.run_ms(&aeron, 20);
    assert_eq!(
        driver.sent(),
        [type_id::ADD_SUBSCRIPTION, type_id::REMOVE_SUBSCRIPTION]
    );
    assert!(!aeron.async_remove_counter(12345).unwrap().wait().unwrap());
}

#[test]
fn a_resource_removed_by_id_after_its_response_is_closed_and_the_removal_is_confirmed() {
    let driver = FakeDriver::new();
    let aeron = driver.connect(|_| {});
    let subscription = aeron.add_subscription(CHANNEL, 7).unwrap();
    let id = subscription.registration_id();
    let mut removal = aeron.async_remove_subscription(id).unwrap();
    assert!(
        subscription.is_closed(),
        "the subscription is closed without waiting for the driver"
    );
    assert_eq!(
        removal.poll().unwrap(),
        None,
        "the driver has not responded"
    );
    driver.step();
    assert_eq!(removal.poll().unwrap(), Some(true));
    assert!(!aeron.async_remove_subscription(id).unwrap().wait().unwrap());
}

#[test]
fn commands_contain_the_arguments_of_the_application() {
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
    let mut operation = aeron.async_next_session_id(5).unwrap();
    assert_eq!(operation.poll().unwrap(), None);
    driver.step();
    assert_eq!(operation.poll().unwrap(), Some(4242));
}

/// 03-84, 01-21
#[test]
fn without_a_control_protocol_version_the_next_session_id_is_random() {
    let driver = FakeDriver::new();
    driver.free_counter(SystemCounter::ControlProtocolVersion.id());
    let aeron = driver.connect(|_| {});
    let ids: Vec<_> = (0..8).map(|_| aeron.next_session_id(5).unwrap()).collect();
    assert!(ids.iter().any(|id| *id != ids[0]), "{ids:?}");
    driver.step();
    assert!(driver.sent().is_empty());
}

#[test]
fn destination_commands_have_the_original_registration_id_of_the_publication() {
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
    let mut removal = subscription.async_remove_destination("aeron:ipc").unwrap();
    driver.step();
    assert_eq!(removal.poll().unwrap(), Some(()));
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
fn if_the_log_cannot_be_opened_the_add_fails_and_the_publication_is_removed() {
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
