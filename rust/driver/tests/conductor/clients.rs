//! Tests of clients: first command, keepalive, timeout and close.

use std::time::Duration;

use aeron_memory::counters::STATE_RECLAIMED;
use aeron_memory::counters::system::SystemCounter;
use aeron_memory::counters::types;
use aeron_protocol::command::{AddStaticCounter, ClientClose, ClientKeepalive, Command};
use aeron_protocol::event::Event;

use crate::conductor::harness::{CLIENT, STREAM, TICK, TestDriver, names};

/// 03-60, 03-11
#[test]
fn a_client_with_any_id_has_a_heartbeat_counter() {
    let mut driver = TestDriver::new();
    for client in [0, -7, i64::MAX] {
        driver.add_counter(client);
        let heartbeat = driver.heartbeat(client).unwrap();
        let record = driver.cnc.counters().record(heartbeat.id()).unwrap();
        assert_eq!(
            (record.type_id, record.owner_id),
            (types::CLIENT_HEARTBEAT, client)
        );
        assert_eq!(record.key[..8], client.to_le_bytes());
        assert!(record.key[8..].iter().all(|byte| *byte == 0));
        assert_eq!(record.label, format!("client-heartbeat: id={client}"));
        assert_eq!(record.value, driver.now_ms());
    }
}

/// 03-61, 04-26, 04-28, 04-29, 01-46
#[test]
fn a_client_timeout_is_announced_before_the_resources_of_the_client_end() {
    let mut driver = TestDriver::with(|context| context.client_liveness_timeout_ns = 2_000_000_000);
    driver.living = vec![CLIENT];
    let publication = driver.add_publication("aeron:ipc", STREAM);
    let counter = driver.add_counter(2);
    let shared = driver.add_publication_for(2, "aeron:ipc", STREAM, false);
    let own = driver.add_publication_for(2, "aeron:ipc", STREAM + 1, false);
    driver.add_subscription_for(2, "aeron:ipc", STREAM);
    let (subscription, _) = driver.add_subscription("aeron:ipc", STREAM + 1);
    assert_eq!(shared.registration_id, publication.registration_id);
    let static_counter = AddStaticCounter {
        client_id: 2,
        correlation_id: 9,
        registration_id: 777,
        type_id: 1002,
        key: b"",
        label: b"",
    };
    driver.ask(Command::AddStaticCounter(static_counter));
    let heartbeat = driver.heartbeat(2).unwrap();

    driver.advance(Duration::from_millis(1_950));
    assert_eq!(names(&driver.hear()), [""; 0]);
    driver.advance(Duration::from_millis(250));
    let heard = driver.hear();
    let expected = [
        "ClientTimeout",
        "UnavailableCounter",
        "UnavailableCounter",
        "UnavailableImage",
    ];
    assert_eq!(names(&heard), expected);
    let Event::UnavailableCounter(event) = heard[1].event() else {
        panic!()
    };
    assert_eq!(
        (event.correlation_id, event.counter_id),
        (2, heartbeat.id())
    );
    let Event::UnavailableCounter(event) = heard[2].event() else {
        panic!()
    };
    assert_eq!(event.correlation_id, counter);
    let Event::UnavailableImage(event) = heard[3].event() else {
        panic!()
    };
    assert_eq!(
        (event.correlation_id, event.subscription_registration_id),
        (own.registration_id, subscription)
    );
    assert_eq!(driver.system(SystemCounter::ClientTimeouts), 1);
    assert_eq!(driver.counters_of(types::CLIENT_HEARTBEAT).len(), 1);
    assert!(driver.counters_of(1001).is_empty());
    assert_eq!(driver.counters_of(1002).len(), 1);
    assert!(driver.counters_of(types::SUBSCRIBER_POSITION).len() <= 1);
    driver.advance(Duration::from_millis(300));
    assert_eq!(
        driver.counters_of(types::PUBLISHER_LIMIT),
        [publication.limit.id()]
    );
}

/// 03-150, 04-250: real drivers compare heartbeats with the wall clock, and time out every client after a step.
#[test]
fn a_step_of_the_wall_clock_times_out_no_living_client_and_delays_no_timeout() {
    const MONTH_MS: i64 = 30 * 24 * 3_600_000;
    for offset_ms in [60_000, MONTH_MS, -60_000, -MONTH_MS] {
        let mut driver =
            TestDriver::with(|context| context.client_liveness_timeout_ns = 2_000_000_000);
        driver.living = vec![CLIENT, 2];
        for client in [CLIENT, 2, 3] {
            driver.add_counter(client);
        }
        driver.advance(Duration::from_millis(300));
        let written_ms = driver.now_ms();
        driver.wall_offset_ms = offset_ms;
        // The driver writes its own heartbeat in the next duty cycle, not only at the next timer.
        driver.stall(Duration::from_millis(1));
        driver.conductor_cycle();
        let heartbeat_ms = driver.cnc.to_driver().consumer_heartbeat_ms();
        assert_eq!(heartbeat_ms, driver.now_ms(), "{offset_ms}");
        assert_ne!(heartbeat_ms, written_ms);
        // The clients write their heartbeats after the driver has looked at them.
        driver.stall(Duration::from_millis(150));
        driver.work();
        driver.advance(Duration::from_millis(1_400));
        assert_eq!(names(&driver.hear()), [""; 0], "{offset_ms}");
        driver.advance(Duration::from_millis(450));
        let gone = driver.hear();
        assert_eq!(
            names(&gone),
            ["ClientTimeout", "UnavailableCounter", "UnavailableCounter"],
            "{offset_ms}"
        );
        driver.advance(Duration::from_secs(5));
        assert!(driver.heartbeat(CLIENT).is_some() && driver.heartbeat(2).is_some());
        assert_eq!(driver.system(SystemCounter::ClientTimeouts), 1);
    }
}

/// 03-62, 04-27
#[test]
fn a_client_that_closes_causes_no_timeout_event() {
    let mut driver = TestDriver::new();
    let counter = driver.add_counter(CLIENT);
    driver.add_publication("aeron:ipc", STREAM);
    assert_eq!(
        names(&driver.ask(Command::ClientClose(ClientClose {
            client_id: CLIENT,
            correlation_id: -1
        }))),
        [""; 0]
    );
    assert_eq!(driver.heartbeat(CLIENT).unwrap().get(), 0);
    driver.living.clear();
    driver.advance(Duration::from_millis(150));
    let heard = driver.hear();
    assert_eq!(names(&heard), ["UnavailableCounter", "UnavailableCounter"]);
    let Event::UnavailableCounter(event) = heard[1].event() else {
        panic!()
    };
    assert_eq!(event.correlation_id, counter);
    driver.advance(Duration::from_millis(300));
    assert_eq!(driver.cnc.counters().records().count(), 46);
    assert_eq!(driver.system(SystemCounter::ClientTimeouts), 0);
    assert_eq!(driver.logs.count(), 0);
}

/// 03-63: a client that has timed out can send commands again, and gets a new heartbeat counter.
#[test]
fn a_client_that_has_timed_out_can_send_commands_again() {
    let mut driver = TestDriver::new();
    driver.add_counter(2);
    driver.advance(Duration::from_secs(11));
    assert!(driver.heartbeat(2).is_none());
    driver.hear();
    driver.add_counter(2);
    assert_eq!(driver.heartbeat(2).unwrap().get(), driver.now_ms());
}

/// 03-36
#[test]
fn a_keepalive_updates_the_heartbeat_counter_and_has_no_response() {
    let mut driver = TestDriver::new();
    driver.add_counter(2);
    for _ in 0..5 {
        driver.advance(Duration::from_secs(9));
        let keepalive = Command::ClientKeepalive(ClientKeepalive {
            client_id: 2,
            correlation_id: 0,
        });
        assert_eq!(names(&driver.ask(keepalive)), [""; 0]);
        assert_eq!(driver.heartbeat(2).unwrap().get(), driver.now_ms());
    }
    let stranger = Command::ClientKeepalive(ClientKeepalive {
        client_id: 99,
        correlation_id: 0,
    });
    assert_eq!(names(&driver.ask(stranger)), [""; 0]);
    assert!(driver.heartbeat(99).is_none());
    assert_eq!(driver.errors().len(), 0);
}

/// 04-31, 03-5, 01-30: the driver's part.
#[test]
fn a_command_that_is_never_completed_is_skipped_after_the_liveness_timeout() {
    let mut driver = TestDriver::new();
    let ring = driver.cnc.to_driver().clone();
    ring.try_claim(1, 100).unwrap();
    let command = driver.publication_command(CLIENT, "aeron:ipc", STREAM, false);
    driver.send(command);
    driver.advance(Duration::from_millis(9_900));
    assert_eq!(driver.system(SystemCounter::UnblockedCommands), 0);
    assert_eq!(names(&driver.hear()), [""; 0]);
    driver.advance(Duration::from_millis(400));
    assert_eq!(driver.system(SystemCounter::UnblockedCommands), 1);
    assert_eq!(names(&driver.hear()), ["CounterReady", "PublicationReady"]);
}

/// 04-32, 01-37, 01-39: the driver's part.
#[test]
fn the_id_of_a_freed_counter_is_reused_only_after_the_timeout() {
    let mut driver = TestDriver::new();
    driver.add_counter(CLIENT);
    driver.add_counter(2);
    driver.living = vec![CLIENT, 2];
    driver.ask(Command::ClientClose(ClientClose {
        client_id: 2,
        correlation_id: -1,
    }));
    driver.advance(Duration::from_millis(150));
    let reclaimed = 49;
    assert_eq!(
        driver.cnc.counters().state(reclaimed),
        Some(STATE_RECLAIMED)
    );
    driver.add_counter(CLIENT);
    assert_eq!(
        driver.cnc.counters().state(reclaimed),
        Some(STATE_RECLAIMED)
    );
    driver.advance(Duration::from_millis(1_000));
    driver.add_counter(CLIENT);
    driver.add_counter(CLIENT);
    assert!(driver.cnc.counters().is_allocated(reclaimed));
}

/// 04-20, 03-8
#[test]
fn the_driver_writes_its_heartbeat_in_each_timer_interval() {
    let mut driver = TestDriver::new();
    driver.advance(TICK);
    let first = driver.cnc.to_driver().consumer_heartbeat_ms();
    driver.advance(TICK);
    assert!(driver.cnc.to_driver().consumer_heartbeat_ms() > first);
    driver.advance(Duration::from_secs(5));
    assert!(driver.now_ms() - driver.cnc.to_driver().consumer_heartbeat_ms() <= 100);
}

/// 04-24
#[test]
fn a_long_duty_cycle_of_the_conductor_is_counted() {
    let mut driver = TestDriver::new();
    driver.work();
    driver.stall(Duration::from_millis(100));
    driver.duty_cycle();
    assert_eq!(driver.system(SystemCounter::ConductorCycleTimeExceeded), 0);
    driver.stall(Duration::from_millis(101));
    driver.duty_cycle();
    assert_eq!(driver.system(SystemCounter::ConductorCycleTimeExceeded), 1);
    assert_eq!(
        driver.system(SystemCounter::ConductorMaxCycleTime),
        101_000_000
    );
}
