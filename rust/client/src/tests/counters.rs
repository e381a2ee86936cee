//! Tests of counters, of the status and the addresses of channels, and of publication errors.

use std::sync::Arc;

use aeron_memory::counters::keys::local_address_key;
use aeron_memory::counters::{NewCounter, types};
use aeron_protocol::ErrorCode;
use aeron_protocol::command::type_id;
use aeron_protocol::event::{self, Event};

use super::{Log, text};
use crate::channel_status;
use crate::error::Error;
use crate::testing::FakeDriver;

const CHANNEL: &str = "aeron:ipc";

#[test]
fn a_counter_is_read_and_written_through_its_handle() {
    let driver = FakeDriver::new();
    let aeron = driver.connect(|_| {});
    let counter = aeron.add_counter(1001, b"key", "my counter").unwrap();
    counter.set(5);
    assert_eq!(counter.fetch_add(2), 5);
    let record = aeron.counters_reader().record(counter.id()).unwrap();
    assert_eq!(
        (record.value, record.type_id, record.owner_id),
        (7, 1001, aeron.client_id())
    );
    assert_eq!(record.registration_id, counter.registration_id());
    assert_eq!(counter.correlation_id(), counter.registration_id());
    assert_eq!(
        (&record.key[..4], counter.label().as_deref()),
        (&b"key\0"[..], Some("my counter"))
    );
    assert_eq!(
        (counter.state(), counter.is_static(), counter.is_closed()),
        (1, false, false)
    );
    assert_eq!(
        aeron
            .counters_reader()
            .find_by_registration(1001, counter.registration_id()),
        Some(counter.id())
    );
    counter.close();
    assert!(counter.is_closed());
}

#[test]
fn a_static_counter_is_not_removed_at_its_close_and_is_found_again() {
    let driver = FakeDriver::new();
    let aeron = driver.connect(|_| {});
    let first = aeron.add_static_counter(1001, b"", "static", 777).unwrap();
    first.set(3);
    assert!(first.is_static());
    assert_eq!(first.registration_id(), 777);
    first.close();
    let second = aeron.add_static_counter(1001, b"", "ignored", 777).unwrap();
    assert_eq!(
        (second.id(), second.get(), second.label().as_deref()),
        (first.id(), 3, Some("static"))
    );
    assert_ne!(second.correlation_id(), 777);
    drop(second);
    driver.step();
    assert!(!driver.sent().contains(&type_id::REMOVE_COUNTER));
}

#[test]
fn keys_and_labels_that_are_too_long_are_refused_before_anything_is_sent() {
    let driver = FakeDriver::new();
    let aeron = driver.connect(|_| {});
    let refused = text(aeron.add_counter(1, &[0; 113], ""));
    assert_eq!(
        refused,
        "22: key of a counter has 113 bytes, the limit is 112"
    );
    let refused = text(aeron.add_static_counter(1, b"", &"x".repeat(381), 1));
    assert_eq!(
        refused,
        "22: label of a counter has 381 bytes, the limit is 380"
    );
    driver.step();
    assert!(driver.sent().is_empty());
    assert!(aeron.add_counter(1, &[0; 112], &"x".repeat(380)).is_ok());
}

/// 03-113
#[test]
fn counter_handlers_are_called_for_the_counters_and_heartbeats_of_all_clients() {
    let driver = FakeDriver::new();
    let log = Log::default();
    let aeron = driver.connect(|context| log.attach(context));
    let second = Log::default();
    let seen = second.clone();
    let id = aeron.add_available_counter_handler(Arc::new(
        move |counters, registration_id, counter_id| {
            let record = counters.record(counter_id).unwrap();
            seen.add(format!("{} {registration_id}", record.type_id));
        },
    ));
    let counter = aeron.add_counter(1001, b"", "mine").unwrap();
    let other = driver.connect(|_| {});
    let others = other.add_counter(1002, b"", "theirs").unwrap();
    aeron.do_work();
    let (own, theirs) = (counter.registration_id(), others.registration_id());
    let heartbeats = [aeron.client_id(), other.client_id()];
    assert_eq!(
        second.take(),
        [
            format!("11 {}", heartbeats[0]),
            format!("1001 {own}"),
            format!("11 {}", heartbeats[1]),
            format!("1002 {theirs}")
        ]
    );
    let update = event::CounterUpdate {
        correlation_id: theirs,
        counter_id: others.id(),
    };
    driver.transmit(&Event::UnavailableCounter(update));
    assert!(aeron.remove_available_counter_handler(id));
    assert!(!aeron.remove_available_counter_handler(id));
    driver.transmit(&Event::CounterReady(update));
    aeron.do_work();
    assert!(second.take().is_empty());
    assert_eq!(
        log.take()[4..],
        [format!("no counter {theirs}"), format!("counter {theirs}")]
    );
    let seen = second.clone();
    let id = aeron.add_unavailable_counter_handler(Arc::new(move |_, _, _| seen.add("gone")));
    driver.transmit(&Event::UnavailableCounter(update));
    aeron.do_work();
    assert_eq!(second.take(), ["gone"]);
    assert!(aeron.remove_unavailable_counter_handler(id));
}

/// 03-114
#[test]
fn iteration_ends_at_the_first_unused_record_and_ids_out_of_range_have_no_counter() {
    let driver = FakeDriver::new();
    let aeron = driver.connect(|_| {});
    let first = aeron.add_counter(1001, b"", "one").unwrap();
    let second = aeron.add_counter(1001, b"", "two").unwrap();
    let counters = &aeron.counters_reader();
    driver.free_counter(first.id());
    let ids: Vec<_> = counters.ids().filter(|id| *id >= first.id()).collect();
    assert_eq!(ids, [second.id()]);
    for id in [-1, counters.max_counter_id() + 1, i32::MAX] {
        assert!(
            counters.value(id).is_none()
                && counters.label(id).is_none()
                && counters.state(id).is_none()
        );
    }
    assert_eq!(counters.state(first.id()), Some(-1));
}

/// 03-115
#[test]
fn the_status_of_a_channel_is_the_value_of_its_status_counter() {
    let driver = FakeDriver::new();
    let aeron = driver.connect(|_| {});
    let publication = aeron.add_publication(CHANNEL, 1).unwrap();
    let subscription = aeron.add_subscription(CHANNEL, 1).unwrap();
    assert_eq!(
        (
            publication.channel_status_id(),
            publication.channel_status()
        ),
        (-1, 1)
    );
    assert_eq!(
        (
            subscription.channel_status_id(),
            subscription.channel_status()
        ),
        (-1, 1)
    );
    subscription.close();
    assert_eq!(subscription.channel_status(), -1);
    let counters = &aeron.counters_reader();
    let indicator = channel_counter(&driver, types::RECEIVE_CHANNEL_STATUS, b"", 2);
    assert_eq!(channel_status::status(counters, 0, false), 0);
    assert_eq!(channel_status::status(counters, indicator, false), 2);
    assert_eq!(channel_status::status(counters, indicator, true), -1);
    assert_eq!(channel_status::status(counters, i32::MAX, false), -1);
}

/// 03-116
#[test]
fn local_addresses_are_listed_while_channel_and_address_are_active() {
    let driver = FakeDriver::new();
    let aeron = driver.connect(|_| {});
    let counters = &aeron.counters_reader();
    let channel = channel_counter(&driver, types::RECEIVE_CHANNEL_STATUS, b"", 0);
    let address = |text: &str, status| {
        channel_counter(
            &driver,
            types::LOCAL_SOCKET_ADDRESS,
            &local_address_key(channel, text),
            status,
        )
    };
    address("127.0.0.1:40123", 1);
    address("[::1]:40124", 1);
    address("127.0.0.1:40125", 0);
    channel_counter(
        &driver,
        types::LOCAL_SOCKET_ADDRESS,
        &local_address_key(channel + 1, "1.1.1.1:1"),
        1,
    );
    let listed = |closed| channel_status::local_addresses(counters, channel, closed);
    assert!(listed(false).is_empty());
    counters.counter(channel).unwrap().set(1);
    assert_eq!(listed(false), ["127.0.0.1:40123", "[::1]:40124"]);
    assert!(listed(true).is_empty());
    assert!(channel_status::local_addresses(counters, -1, false).is_empty());
    let publication = aeron.add_publication(CHANNEL, 1).unwrap();
    assert!(publication.local_socket_addresses().is_empty());
}

/// 03-116, 05-43
#[test]
fn an_endpoint_with_port_0_is_replaced_once_the_bound_address_is_known() {
    let resolve = |channel, resolved: Option<&str>| {
        channel_status::resolve_endpoint_port(channel, || resolved.map(str::to_owned))
    };
    let channel = "aeron:udp?endpoint=localhost:0|reliable=true";
    assert_eq!(resolve(channel, None), None);
    assert_eq!(
        resolve(channel, Some("127.0.0.1:4000")).as_deref(),
        Some("aeron:udp?endpoint=127.0.0.1:4000|reliable=true")
    );
    let every_address =
        "aeron:udp?mtu=1408|endpoint=localhost:0|alias=x|tags=51,61|interface=localhost|ttl=3";
    assert_eq!(
        resolve(every_address, Some("127.0.0.1:4000")).as_deref(),
        Some(
            "aeron:udp?endpoint=127.0.0.1:4000|interface=localhost|tags=51,61|ttl=3|mtu=1408|alias=x"
        )
    );
    let control = "aeron:udp?control-mode=dynamic|control=[::1]:5|endpoint=[::1]:0";
    assert_eq!(
        resolve(control, Some("[::1]:4000")).as_deref(),
        Some("aeron:udp?endpoint=[::1]:4000|control=[::1]:5|control-mode=dynamic")
    );
    for unchanged in [
        "aeron:ipc",
        "aeron:udp?endpoint=localhost:5",
        "aeron:udp?control-mode=manual|endpoint=localhost:0",
    ] {
        assert_eq!(resolve(unchanged, None).as_deref(), Some(unchanged));
    }
    let driver = FakeDriver::new();
    let aeron = driver.connect(|_| {});
    let subscription = aeron.add_subscription(channel, 1).unwrap();
    assert_eq!(subscription.try_resolve_channel_endpoint_port(), None);
    assert_eq!(subscription.resolved_endpoint(), None);
}

/// Allocates a counter of the driver. Returns its id.
fn channel_counter(driver: &FakeDriver, type_id: i32, key: &[u8], value: i64) -> i32 {
    let new = NewCounter {
        type_id,
        key,
        label: b"channel",
        registration_id: 0,
        owner_id: 0,
        reference_id: 0,
        value,
    };
    driver.allocate_counter(&new).id()
}

/// 03-112
#[test]
fn publication_errors_are_reported_for_own_publications_by_their_original_id() {
    let driver = FakeDriver::new();
    let log = Log::default();
    let seen = log.clone();
    let aeron = driver.connect(|context| {
        context.publication_error_handler = Some(Arc::new(move |frame| {
            seen.add(format!(
                "{} {} {}",
                frame.registration_id, frame.error_code, frame.error_message
            ));
        }));
    });
    let first = aeron.add_publication(CHANNEL, 1).unwrap();
    let second = aeron.add_publication(CHANNEL, 1).unwrap();
    let mut error = event::PublicationError {
        registration_id: first.registration_id(),
        destination_registration_id: -1,
        session_id: first.session_id(),
        stream_id: 1,
        receiver_id: -1,
        group_tag: -1,
        source_address: Some("127.0.0.1:0".parse().unwrap()),
        error_code: ErrorCode::ImageRejected.value(),
        error_message: b"no",
    };
    driver.transmit(&Event::PublicationError(error));
    aeron.do_work();
    let expected = format!("{} 13 no", first.registration_id());
    assert_eq!(
        log.take(),
        [expected.clone(), expected],
        "the error is reported once for each handle of a shared publication"
    );
    error.registration_id = second.registration_id();
    driver.transmit(&Event::PublicationError(error));
    aeron.do_work();
    assert!(log.take().is_empty());
}

#[test]
fn a_channel_endpoint_error_is_reported_for_each_user_of_the_channel() {
    let driver = FakeDriver::new();
    let log = Log::default();
    let aeron = driver.connect(|context| log.attach(context));
    let indicator = channel_counter(&driver, types::SEND_CHANNEL_STATUS, b"", 1);
    driver.mute();
    let mut users = [1, 2].map(|stream_id| {
        let channel = "aeron:udp?endpoint=localhost:1";
        aeron.async_add_subscription(channel, stream_id).unwrap()
    });
    for user in &users {
        driver.transmit(&Event::SubscriptionReady(event::SubscriptionReady {
            correlation_id: user.correlation_id(),
            channel_status_indicator_id: indicator,
        }));
    }
    aeron.do_work();
    driver.transmit(&Event::Error(event::Error {
        offending_command_correlation_id: i64::from(indicator),
        error_code: ErrorCode::ChannelEndpointError,
        error_message: b"unreachable",
    }));
    aeron.do_work();
    assert_eq!(log.take(), ["error 4", "error 4"]);
    for user in &mut users {
        assert!(matches!(user.poll(), Ok(Some(_))));
    }
    let error = Error::ChannelEndpoint {
        status_indicator_id: 3,
        message: "unreachable".to_owned(),
    };
    assert_eq!(
        error.to_string(),
        "channel endpoint with status counter 3: unreachable"
    );
}
