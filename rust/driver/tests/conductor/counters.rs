//! Tests of the counters of clients, and of the allocation and release of the driver's own counters.

use std::time::Duration;

use aeron_memory::counters::system::SystemCounter;
use aeron_memory::counters::{STATE_RECLAIMED, types};
use aeron_protocol::ErrorCode;
use aeron_protocol::command::{AddCounter, AddStaticCounter, Command, RemoveCounter};
use aeron_protocol::event::Event;

use crate::conductor::harness::{CLIENT, STREAM, TICK, TestDriver, names};

fn add<'a>(correlation_id: i64, key: &'a [u8], label: &'a [u8]) -> Command<'a> {
    Command::AddCounter(AddCounter {
        client_id: CLIENT,
        correlation_id,
        type_id: 1001,
        key,
        label,
    })
}

fn remove(client_id: i64, registration_id: i64) -> Command<'static> {
    Command::RemoveCounter(RemoveCounter {
        client_id,
        correlation_id: 900,
        registration_id,
    })
}

fn add_static(registration_id: i64, type_id: i32, label: &[u8]) -> Command<'_> {
    let (client_id, correlation_id) = (CLIENT, 700);
    Command::AddStaticCounter(AddStaticCounter {
        client_id,
        correlation_id,
        registration_id,
        type_id,
        key: b"k",
        label,
    })
}

/// 03-42, 03-43
#[test]
fn keys_and_labels_of_counters_are_truncated_to_their_maximum_lengths() {
    let mut driver = TestDriver::new();
    let heard = driver.ask(add(5, &[1, 2, 3], b"my counter"));
    assert_eq!(names(&heard), ["CounterReady", "CounterReady"]);
    let Event::CounterReady(ready) = heard[1].event() else {
        panic!()
    };
    assert_eq!(ready.correlation_id, 5);
    let record = driver.cnc.counters().record(ready.counter_id).unwrap();
    assert_eq!(
        (record.type_id, record.registration_id, record.owner_id),
        (1001, 5, CLIENT)
    );
    assert_eq!(
        (record.reference_id, record.value, record.label.as_str()),
        (0, 0, "my counter")
    );
    assert_eq!(record.key[..4], [1, 2, 3, 0]);

    driver.ask(add(6, &[b'k'; 200], &[b'L'; 1000]));
    let record = driver.cnc.counters().record(ready.counter_id + 1).unwrap();
    assert_eq!((record.key, record.label), ([b'k'; 112], "L".repeat(380)));
    assert_eq!(names(&driver.ask(add(7, b"", b""))), ["CounterReady"]);
}

/// 03-44, 04-36
#[test]
fn only_the_client_of_a_counter_can_remove_it() {
    let mut driver = TestDriver::new();
    driver.ask(add(5, b"k", b"l"));
    driver.ask(add_static(777, 1002, b"static"));
    for command in [remove(99, 5), remove(CLIENT, 6), remove(CLIENT, 777)] {
        let (code, text) = driver.ask_error(command);
        assert_eq!(code, ErrorCode::UnknownCounter);
        assert!(text.contains("unknown counter client_id="), "{text}");
    }
    assert_eq!(
        names(&driver.ask(remove(CLIENT, 5))),
        ["OperationSuccess", "UnavailableCounter"]
    );
    assert_eq!(driver.cnc.counters().state(47), Some(STATE_RECLAIMED));
    assert_eq!(
        driver.ask_error(remove(CLIENT, 5)).0,
        ErrorCode::UnknownCounter
    );
}

/// 03-45, 04-59, 01-45
#[test]
fn a_static_counter_is_added_once_and_outlives_its_client() {
    let mut driver = TestDriver::new();
    driver.ask(add(5, b"k", b"l"));
    let counter_id = |driver: &mut TestDriver, label| {
        let heard = driver.ask(add_static(777, 1002, label));
        assert_eq!(names(&heard), ["StaticCounter"]);
        match heard[0].event() {
            Event::StaticCounter(event) => event.counter_id,
            event => panic!("{event:?}"),
        }
    };
    let first = counter_id(&mut driver, b"static");
    assert_eq!(counter_id(&mut driver, b"another label"), first);
    let record = driver.cnc.counters().record(first).unwrap();
    assert_eq!(
        (
            record.owner_id,
            record.registration_id,
            record.label.as_str()
        ),
        (-1, 777, "static")
    );
    let (code, text) = driver.ask_error(add_static(5, 1001, b"clash"));
    assert_eq!(code, ErrorCode::GenericError);
    let clash = "cannot add static counter, because a non-static counter exists (counterId=47) for typeId=1001 and \
                 registrationId=5";
    assert!(text.contains(clash), "{text}");
    driver.living.clear();
    driver.advance(Duration::from_secs(11));
    assert!(driver.heartbeat(CLIENT).is_none());
    assert!(driver.cnc.counters().is_allocated(first));
}

/// 03-59: without a free counter, a command fails and leaves no resource.
#[test]
fn without_a_free_counter_commands_are_refused() {
    let mut driver = TestDriver::new();
    let mut last = Vec::new();
    while names(&last) != ["Error"] {
        let correlation_id = driver.next_id();
        last = driver.ask(add(correlation_id, b"", b""));
    }
    let Event::Error(error) = last[0].event() else {
        panic!()
    };
    assert_eq!(error.error_code, ErrorCode::GenericError);
    assert!(
        String::from_utf8_lossy(error.error_message).contains("Max counter id (65535) exceeded")
    );
    let command = driver.publication_command(CLIENT, "aeron:ipc", STREAM, false);
    assert_eq!(driver.ask_error(command).0, ErrorCode::GenericError);
    assert_eq!(driver.logs.count(), 0);
}

/// 01-7: the part about logs. This test does not check the counters, because they are freed later: only after clients
/// can see that the driver has ended.
#[test]
fn a_conductor_that_closes_frees_all_logs() {
    let mut driver = TestDriver::new();
    driver.add_publication("aeron:ipc", STREAM);
    driver.add_subscription("aeron:ipc", STREAM);
    driver.close();
    assert_eq!(driver.logs.count(), 0);
}

/// 04-184: the counters of IPC.
#[test]
fn each_counter_is_freed_with_its_object() {
    let mut driver = TestDriver::new();
    let count = |driver: &TestDriver, type_id| driver.counters_of(type_id).len();
    let (subscription, _) = driver.add_subscription("aeron:ipc", STREAM);
    let first = driver.add_publication("aeron:ipc", STREAM);
    let second = driver.add_exclusive_publication("aeron:ipc", STREAM);
    assert_eq!(count(&driver, types::SUBSCRIBER_POSITION), 2);
    driver.remove_subscription(subscription);
    assert_eq!(
        count(&driver, types::SUBSCRIBER_POSITION),
        0,
        "the position counters are freed at once"
    );

    let (_, images) = driver.add_subscription("aeron:ipc", STREAM);
    driver.remove_publication(&first, false);
    assert_eq!(count(&driver, types::PUBLISHER_LIMIT), 2);
    driver.advance(2 * TICK);
    assert_eq!(
        count(&driver, types::PUBLISHER_LIMIT),
        1,
        "the limit counter is freed with its publication"
    );
    assert_eq!(count(&driver, types::PUBLISHER_POSITION), 1);
    let remaining = images
        .iter()
        .find(|image| image.correlation_id == second.registration_id)
        .unwrap();
    assert_eq!(
        driver.counters_of(types::SUBSCRIBER_POSITION),
        [remaining.position.id()],
        "the position counter is freed with its image"
    );

    driver.add_counter(CLIENT);
    driver.living.clear();
    driver.advance(Duration::from_secs(11));
    for type_id in [
        types::CLIENT_HEARTBEAT,
        types::SUBSCRIBER_POSITION,
        types::PUBLISHER_LIMIT,
        1001,
    ] {
        assert_eq!(count(&driver, type_id), 0, "freed with the client");
    }
}

/// 03-59: a command that fails for lack of counters frees the counters that it has allocated.
#[test]
fn a_command_that_finds_too_few_free_counters_leaves_no_counter() {
    let mut driver = TestDriver::with(|context| {
        context.counters_values_buffer_length = 1 << 20;
    });
    let mut owned = Vec::new();
    while driver.system(SystemCounter::Errors) == 0 {
        owned.push(driver.add_counter(CLIENT));
    }
    owned.pop();
    let mut succeeded = Vec::new();
    for free in 0..10 {
        while driver.unused_counters() < free {
            let registration_id = owned.pop().unwrap();
            driver.ask(Command::RemoveCounter(RemoveCounter {
                client_id: CLIENT,
                correlation_id: 5,
                registration_id,
            }));
        }
        driver.advance(11 * TICK);
        let command =
            driver.publication_command(CLIENT, "aeron:udp?endpoint=localhost:20121", STREAM, false);
        let heard = driver.ask(command);
        driver.advance(12 * TICK);
        if names(&heard) == ["Error"] {
            assert_eq!(driver.unused_counters(), free);
            assert_eq!(driver.logs.count(), 0);
        } else {
            assert_eq!(names(&heard), ["PublicationReady"]);
            succeeded.push(free);
            break;
        }
    }
    assert_eq!(
        succeeded,
        [8],
        "a publication needs two counters for its endpoint and six of its own"
    );
}
