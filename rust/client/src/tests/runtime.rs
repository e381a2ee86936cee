//! Tests of the start and the end of a client, and of its work between them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use aeron_agent::EpochClock;
use aeron_memory::log::AppendError;
use aeron_protocol::command::{Command, type_id};
use aeron_protocol::event::{self, Event};

use super::{Log, text};
use crate::aeron::Aeron;
use crate::context::Context;
use crate::counter::Counter;
use crate::dispatcher::HandlerMode;
use crate::error::{DriverTimeout, Error};
use crate::publication::{ExclusivePublication, Publication};
use crate::subscription::Subscription;
use crate::testing::FakeDriver;

const CHANNEL: &str = "aeron:ipc";

/// 03-69
#[test]
fn connecting_sends_no_command() {
    let driver = FakeDriver::new();
    let aeron = driver.connect(|_| {});
    assert_eq!(aeron.client_id(), 1);
    driver.run_ms(&aeron, 2000);
    assert!(driver.sent().is_empty());
}

/// 03-70. Of 01-44, the part about the label.
#[test]
fn a_client_finds_its_heartbeat_counter_names_it_once_and_refreshes_it_every_half_second() {
    let driver = FakeDriver::new();
    let aeron = driver.connect(|context| context.client_name = "pricing".to_owned());
    let _subscription = aeron.add_subscription(CHANNEL, 1).unwrap();
    driver.run_ms(&aeron, 1200);
    let id = driver
        .heartbeat_counter_id(aeron.client_id())
        .expect("made by the driver");
    let label = aeron.counters_reader().label(id).unwrap();
    let commit = aeron_agent::version::COMMIT;
    assert_eq!(
        label,
        format!("client-heartbeat: id=1 name=pricing version=1.52.2 commit={commit}")
    );
    for _ in 0..5 {
        driver.run_ms(&aeron, 600);
        let age_ms = driver.now_ms() - aeron.counters_reader().value(id).unwrap();
        assert!(age_ms <= 520, "{age_ms}");
    }
    assert_eq!(aeron.counters_reader().label(id).unwrap(), label);
}

#[test]
fn a_heartbeat_counter_that_is_created_late_is_found_at_the_next_timer() {
    let driver = FakeDriver::new();
    let aeron = driver.connect(|_| {});
    driver.run_ms(&aeron, 1010);
    let _pending = aeron.async_add_subscription(CHANNEL, 1).unwrap();
    driver.run_ms(&aeron, 40);
    let id = driver.heartbeat_counter_id(aeron.client_id()).unwrap();
    assert!(
        aeron
            .counters_reader()
            .label(id)
            .unwrap()
            .contains("version=")
    );
}

/// A client with one open resource of each kind, and the log of its handlers. The tests then end the client.
struct Open {
    aeron: Aeron,
    publication: Publication,
    exclusive: ExclusivePublication,
    subscription: Subscription,
    counter: Counter,
    log: Log,
}

fn open_everything(driver: &Arc<FakeDriver>) -> Open {
    let log = Log::default();
    let aeron = driver.connect(|context| log.attach(context));
    let subscription = aeron.add_subscription(CHANNEL, 1).unwrap();
    let publication = aeron.add_publication(CHANNEL, 1).unwrap();
    let exclusive = aeron.add_exclusive_publication(CHANNEL, 1).unwrap();
    let counter = aeron.add_counter(1001, b"", "mine").unwrap();
    driver.run_ms(&aeron, 600);
    assert!(publication.is_connected());
    assert_eq!(subscription.image_count(), 2);
    log.take();
    Open {
        aeron,
        publication,
        exclusive,
        subscription,
        counter,
        log,
    }
}

/// 03-75
fn assert_dead(open: &Open, expected_error: &str) {
    let Open {
        aeron,
        publication,
        exclusive,
        subscription,
        counter,
        log,
    } = open;
    assert!(aeron.is_closed());
    assert_eq!(publication.offer(b"x"), Err(AppendError::Closed));
    assert_eq!(
        publication.try_claim(1).map(|_| ()),
        Err(AppendError::Closed)
    );
    assert_eq!(exclusive.offer(b"x").unwrap_err().code(), -4);
    assert_eq!(subscription.poll(|_| (), 10).unwrap(), 0);
    assert!(!publication.is_connected() && !subscription.is_connected());
    assert!(
        publication.is_closed()
            && exclusive.is_closed()
            && subscription.is_closed()
            && counter.is_closed()
    );
    let calls = log.take();
    let count = |start: &str| calls.iter().filter(|call| call.starts_with(start)).count();
    assert_eq!(count(expected_error), 1, "{calls:?}");
    assert_eq!(count("error"), 1, "{calls:?}");
    assert_eq!(count("unavailable"), 2, "{calls:?}");
    assert_eq!(count("no counter"), 1, "{calls:?}");
    assert_eq!(count("closed"), 1, "{calls:?}");
    assert!(text(aeron.add_publication(CHANNEL, 1)).contains("Aeron client is closed: "));
    aeron.close();
    aeron.do_work();
    assert!(log.take().is_empty(), "no handler is called twice");
}

/// 03-71, 03-75. Of 01-44, the rule that a mismatch terminates the client.
#[test]
fn a_client_ends_when_its_heartbeat_counter_is_freed() {
    let driver = FakeDriver::new();
    let open = open_everything(&driver);
    driver.free_counter(driver.heartbeat_counter_id(open.aeron.client_id()).unwrap());
    driver.run_ms(&open.aeron, 600);
    assert!(matches!(
        open.aeron.close_cause().0.as_deref(),
        Some(Error::HeartbeatCounterClosed { .. })
    ));
    assert_dead(&open, "error 1000");
}

/// 03-72, 03-75
#[test]
fn a_client_ends_when_the_driver_times_out_the_client() {
    let driver = FakeDriver::new();
    let open = open_everything(&driver);
    driver.transmit(&Event::ClientTimeout(event::ClientTimeout {
        client_id: 77,
    }));
    driver.run_ms(&open.aeron, 5);
    assert!(!open.aeron.is_closed(), "the event was for another client");
    let client_id = open.aeron.client_id();
    driver.transmit(&Event::ClientTimeout(event::ClientTimeout { client_id }));
    driver.run_ms(&open.aeron, 5);
    assert_dead(&open, "error 1001");
}

/// 03-73, 03-75, 01-20
#[test]
fn a_client_ends_when_the_driver_dies() {
    let driver = FakeDriver::new();
    let open = open_everything(&driver);
    driver.kill();
    driver.run_ms(&open.aeron, 9_900);
    assert!(!open.aeron.is_closed());
    driver.run_ms(&open.aeron, 700);
    let cause = open.publication.close_cause();
    assert!(matches!(
        cause.0.as_deref(),
        Some(Error::DriverTimeout(DriverTimeout::Keepalive {
            age_ms: 10_001..,
            timeout_ms: 10_000
        }))
    ));
    assert_dead(&open, "error 1000");
}

/// 03-151
#[test]
fn a_step_of_the_wall_clock_ends_no_client_and_keeps_a_dead_driver_dead() {
    const MONTH_MS: i64 = 30 * 24 * 3_600_000;
    for step_ms in [60_000, MONTH_MS, -60_000, -MONTH_MS] {
        let driver = FakeDriver::new();
        let open = open_everything(&driver);
        driver.run_ms(&open.aeron, 1_000);
        driver.epoch_clock.advance(step_ms);
        // The client looks before the driver has written another heartbeat.
        driver.nano_clock.advance(900_000_000);
        driver.epoch_clock.advance(900);
        open.aeron.do_work();
        assert!(!open.aeron.is_closed(), "{step_ms}");
        let counter_id = driver.heartbeat_counter_id(open.aeron.client_id()).unwrap();
        let counter = driver.cnc.counters().counter(counter_id).unwrap();
        assert_eq!(counter.get(), driver.now_ms(), "the client writes at once");
        driver.run_ms(&open.aeron, 15_000);
        driver.kill();
        driver.epoch_clock.advance(-step_ms);
        driver.run_ms(&open.aeron, 9_400);
        assert!(!open.aeron.is_closed(), "{step_ms}");
        driver.run_ms(&open.aeron, 1_200);
        assert_dead(&open, "error 1000");
    }
}

/// 03-73, 01-20
#[test]
fn a_client_ends_when_the_driver_was_closed() {
    let driver = FakeDriver::new();
    let open = open_everything(&driver);
    driver.kill();
    driver.cnc.to_driver().set_consumer_heartbeat_ms(-1);
    driver.run_ms(&open.aeron, 600);
    let cause = open.aeron.close_cause();
    assert_eq!(
        cause.0.unwrap().to_string(),
        "MediaDriver has been shutdown"
    );
    assert_dead(&open, "error 1000");
}

/// A clock that ends the driver when the client reads the time. The client reads the time after the driver's heartbeat,
/// and before the client's own heartbeat counter.
struct LastMoment {
    driver: Arc<FakeDriver>,
    is_near: Arc<AtomicBool>,
}

impl EpochClock for LastMoment {
    fn time_ms(&self) -> i64 {
        if self.is_near.swap(false, Ordering::Relaxed) {
            self.driver.kill();
            self.driver.cnc.to_driver().set_consumer_heartbeat_ms(-1);
            let counters = self.driver.cnc.counters();
            counters.ids().for_each(|id| self.driver.free_counter(id));
        }
        self.driver.now_ms()
    }
}

/// 03-73, 01-7
#[test]
fn a_driver_that_closes_during_a_check_is_reported_as_shut_down() {
    let (driver, is_near) = (FakeDriver::new(), Arc::new(AtomicBool::new(false)));
    let aeron = driver.connect(|context| {
        context.epoch_clock = Arc::new(LastMoment {
            driver: Arc::clone(&driver),
            is_near: Arc::clone(&is_near),
        });
    });
    let _subscription = aeron.add_subscription(CHANNEL, 1).unwrap();
    driver.run_ms(&aeron, 600);
    is_near.store(true, Ordering::Relaxed);
    driver.run_ms(&aeron, 600);
    assert_eq!(
        aeron.close_cause().0.unwrap().to_string(),
        "MediaDriver has been shutdown"
    );
}

/// 03-74, 03-75
#[test]
fn a_client_ends_when_its_conductor_was_not_run_for_the_inter_service_timeout() {
    let driver = FakeDriver::new();
    let open = open_everything(&driver);
    driver.advance_ms(10_100);
    driver.step();
    open.aeron.do_work();
    assert!(matches!(
        open.aeron.close_cause().0.as_deref(),
        Some(Error::ServiceTimeout { .. })
    ));
    assert_dead(&open, "error 1002");
}

/// 03-7, 01-35: the client's part.
#[test]
fn a_client_ends_when_events_were_lost() {
    let driver = FakeDriver::new();
    let open = open_everything(&driver);
    for _ in 0..20 {
        driver.transmit_bytes(0x0F04, &vec![0; 100_000]);
    }
    driver.run_ms(&open.aeron, 1);
    assert!(matches!(
        open.aeron.close_cause().0.as_deref(),
        Some(Error::EventsLost(_))
    ));
    assert_dead(&open, "error 11");
}

/// 03-76
#[test]
fn a_call_without_a_response_of_the_driver_ends_after_the_driver_timeout() {
    let driver = FakeDriver::new();
    let aeron = driver.connect(|_| {});
    driver.mute();
    let start_ms = driver.now_ms();
    let error = aeron.add_subscription(CHANNEL, 1).unwrap_err();
    assert_eq!(error.to_string(), "no response from MediaDriver within 10s");
    assert_eq!(error.code(), 1000);
    assert!((10_000..10_100).contains(&(driver.now_ms() - start_ms)));
    driver.unmute();
    driver.run_ms(&aeron, 5);
    assert_eq!(
        driver.sent(),
        [type_id::ADD_SUBSCRIPTION, type_id::REMOVE_SUBSCRIPTION],
        "the late subscription is removed"
    );
}

/// 03-77
#[test]
fn calls_on_a_closed_client_are_refused() {
    let driver = FakeDriver::new();
    let aeron = driver.connect(|_| {});
    aeron.close();
    assert_eq!(
        text(aeron.add_publication(CHANNEL, 1)),
        "1: Aeron client is closed"
    );
    assert_eq!(
        text(aeron.async_add_subscription(CHANNEL, 1)),
        "1: Aeron client is closed"
    );
    assert_eq!(
        text(aeron.add_counter(1, b"", "")),
        "1: Aeron client is closed"
    );
    assert_eq!(
        text(aeron.async_remove_publication(5)),
        "1: Aeron client is closed"
    );
    assert_eq!(text(aeron.next_session_id(5)), "1: Aeron client is closed");
    assert_eq!(aeron.do_work(), 0);
}

/// 03-77
#[test]
fn a_call_that_waits_is_refused_inside_a_handler() {
    let driver = FakeDriver::new();
    let aeron = driver.connect(|_| {});
    let (log, inner) = (Log::default(), aeron.clone());
    let seen = log.clone();
    aeron.add_available_counter_handler(Arc::new(move |_, _, _| {
        seen.add(text(inner.add_publication(CHANNEL, 1)));
        seen.add(text(inner.async_add_publication(CHANNEL, 1)));
    }));
    let _subscription = aeron.add_subscription(CHANNEL, 1).unwrap();
    assert_eq!(
        log.take(),
        ["1: reentrant calls not permitted during callbacks", "ok"]
    );
}

/// 03-80
#[test]
fn closing_a_resource_sends_its_removal_without_waiting_and_closing_the_client_sends_one_command() {
    let driver = FakeDriver::new();
    let aeron = driver.connect(|_| {});
    let publication = aeron.add_publication(CHANNEL, 1).unwrap();
    let subscription = aeron.add_subscription(CHANNEL, 1).unwrap();
    let counter = aeron.add_counter(1001, b"", "mine").unwrap();
    let other = aeron.add_publication(CHANNEL, 2).unwrap();
    let so_far = driver.sent().len();
    let now_ms = driver.now_ms();
    publication.close();
    drop(subscription);
    counter.close();
    counter.close();
    assert_eq!(driver.now_ms(), now_ms, "closing does not wait");
    assert!(aeron.has_active_commands());
    driver.run_ms(&aeron, 5);
    assert!(!aeron.has_active_commands());
    aeron.close();
    driver.step();
    assert!(other.is_closed());
    assert_eq!(
        driver.sent()[so_far..],
        [
            type_id::REMOVE_PUBLICATION,
            type_id::REMOVE_SUBSCRIPTION,
            type_id::REMOVE_COUNTER,
            type_id::CLIENT_CLOSE
        ]
    );
    let close = driver.bodies(type_id::CLIENT_CLOSE).remove(0);
    let close = Command::decode(type_id::CLIENT_CLOSE, &close).unwrap();
    assert_eq!(
        (close.client_id(), close.correlation_id()),
        (aeron.client_id(), -1)
    );
}

#[test]
fn dropping_the_last_handle_of_a_client_closes_it() {
    let driver = FakeDriver::new();
    let aeron = driver.connect(|_| {});
    let publication = aeron.add_publication(CHANNEL, 1).unwrap();
    let clone = aeron.clone();
    drop(aeron);
    assert!(!publication.is_closed());
    drop(clone);
    assert!(publication.is_closed());
    driver.step();
    assert_eq!(driver.sent().last(), Some(&type_id::CLIENT_CLOSE));
}

/// 03-81
#[test]
fn in_invoker_mode_nothing_happens_unless_the_conductor_is_run() {
    let driver = FakeDriver::new();
    let log = Log::default();
    let aeron = driver.connect(|context| log.attach(context));
    let pending = aeron.async_add_subscription(CHANNEL, 1).unwrap();
    let id = pending.correlation_id();
    driver.add_foreign_publication(1);
    driver.step();
    std::thread::sleep(Duration::from_millis(20));
    assert!(log.take().is_empty() && aeron.is_command_active(id));
    aeron.do_work();
    assert_eq!(log.take(), ["counter 1", "available 1000"]);
}

#[test]
fn with_a_thread_the_conductor_runs_by_itself() {
    let driver = FakeDriver::new();
    let aeron = driver.connect(|context| {
        context.use_conductor_agent_invoker = false;
        context.driver_invoker = None;
        context.idle_sleep_duration_ns = 1_000_000;
    });
    let mut pending = aeron.async_add_subscription(CHANNEL, 1).unwrap();
    driver.step();
    while aeron.is_command_active(pending.correlation_id()) {
        std::thread::yield_now();
    }
    assert!(pending.poll().unwrap().is_some());
    aeron.close();
}

#[test]
fn in_queued_mode_handlers_run_only_in_run_handlers() {
    let driver = FakeDriver::new();
    let log = Log::default();
    let aeron = driver.connect(|context| {
        log.attach(context);
        context.handler_mode = HandlerMode::Queued;
    });
    let _subscription = aeron.add_subscription(CHANNEL, 1).unwrap();
    driver.run_ms(&aeron, 5);
    assert!(log.take().is_empty());
    assert_eq!(aeron.run_handlers(Duration::from_secs(1)), 1);
    assert_eq!(log.take(), ["counter 1"]);
    aeron.close();
    assert!(log.take().is_empty());
    aeron.run_handlers(Duration::ZERO);
    assert_eq!(log.take(), ["closed"]);
}

#[test]
fn a_client_may_be_closed_from_its_own_handler() {
    let driver = FakeDriver::new();
    let log = Log::default();
    let aeron = driver.connect(|context| log.attach(context));
    let inner = aeron.clone();
    aeron.add_available_counter_handler(Arc::new(move |_, _, _| inner.close()));
    let _ = aeron.add_subscription(CHANNEL, 1);
    assert!(aeron.is_closed());
    assert_eq!(log.take(), ["counter 1", "closed"]);
}

/// 03-82
#[test]
fn settings_out_of_range_are_refused() {
    let driver = FakeDriver::new();
    let refusal = |configure: fn(&mut Context)| text(driver.try_connect(configure));
    let refused = refusal(|context| context.keepalive_interval_ns = 10_000_000_000);
    assert!(
        refused.starts_with("22: keepalive_interval_ns=10000000000 must be less than"),
        "{refused}"
    );
    let refused = refusal(|context| context.client_name = "x".repeat(101));
    assert!(
        refused.contains("client_name has 101 bytes, the limit is 100"),
        "{refused}"
    );
    let refused = refusal(|context| context.idle_sleep_duration_ns = 1_000_000_001);
    assert!(
        refused.contains("idle_sleep_duration_ns=1000000001 exceeds the limit"),
        "{refused}"
    );
    for (configure, name) in [
        (
            (|context| context.driver_timeout_ms = u64::MAX) as fn(&mut Context),
            "driver_timeout_ms",
        ),
        (
            |context| context.awaiting_sleep_duration_ns = u64::MAX,
            "awaiting_sleep_duration_ns",
        ),
        (
            |context| context.resource_linger_duration_ns = u64::MAX,
            "resource_linger_duration_ns",
        ),
        (
            |context| context.close_linger_duration_ns = u64::MAX,
            "close_linger_duration_ns",
        ),
    ] {
        let refused = refusal(configure);
        let expected = format!("22: {name}={} exceeds the limit of 3153600", u64::MAX);
        assert!(refused.starts_with(&expected), "{refused}");
    }
    let refused = refusal(|context| context.use_conductor_agent_invoker = false);
    assert!(
        refused.contains("driver_invoker needs use_conductor_agent_invoker"),
        "{refused}"
    );
    assert_eq!(
        refusal(|context| context.client_name = "x".repeat(100)),
        "ok"
    );
}

/// 03-83, 03-6
#[test]
fn responses_and_events_without_a_waiting_request_are_ignored() {
    let driver = FakeDriver::new();
    let open = open_everything(&driver);
    let correlation_id = 4711;
    for event in [
        Event::Error(event::Error {
            offending_command_correlation_id: correlation_id,
            error_code: aeron_protocol::ErrorCode::GenericError,
            error_message: b"not yours",
        }),
        Event::OperationSuccess(event::OperationSuccess { correlation_id }),
        Event::OperationSuccess(event::OperationSuccess { correlation_id: 0 }),
        Event::SubscriptionReady(event::SubscriptionReady {
            correlation_id,
            channel_status_indicator_id: -1,
        }),
        Event::StaticCounter(event::StaticCounter {
            correlation_id,
            counter_id: i32::MAX,
        }),
        Event::UnavailableImage(event::UnavailableImage {
            correlation_id,
            subscription_registration_id: 1,
            stream_id: 1,
            channel: b"",
        }),
        Event::AvailableImage(event::AvailableImage {
            correlation_id,
            session_id: 1,
            stream_id: 1,
            subscription_registration_id: correlation_id,
            subscriber_position_id: 1,
            log_file_name: b"none",
            source_identity: b"",
        }),
    ] {
        driver.transmit(&event);
    }
    driver.transmit_bytes(0x0FFF, b"from the future");
    driver.run_ms(&open.aeron, 20);
    assert!(!open.aeron.is_closed());
    assert!(open.log.take().is_empty());
    assert_eq!(open.subscription.image_count(), 2);
}

#[test]
fn a_malformed_event_is_reported_and_the_client_continues() {
    let driver = FakeDriver::new();
    let open = open_everything(&driver);
    driver.transmit_bytes(0x0F02, b"short");
    driver.run_ms(&open.aeron, 5);
    assert_eq!(open.log.take(), ["error 7"]);
    assert!(!open.aeron.is_closed());
}

#[test]
fn a_command_fails_if_the_ring_stays_full_for_several_attempts() {
    let driver = FakeDriver::new();
    let aeron = driver.connect(|_| {});
    driver.mute();
    let label = "x".repeat(380);
    let mut pending = Vec::new();
    let error = loop {
        match aeron.async_add_counter(1, b"", &label) {
            Ok(operation) => pending.push(operation),
            Err(error) => break error,
        }
    };
    assert!(matches!(
        error,
        Error::CommandBufferFull {
            command: "ADD_COUNTER"
        }
    ));
    assert_eq!(error.code(), 1004);
}

#[test]
fn closes_while_the_ring_is_full_are_repeated_until_they_are_sent() {
    let driver = FakeDriver::new();
    let errors = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&errors);
    let aeron = driver.connect(|context| {
        context.error_handler = Arc::new(move |_| {
            count.fetch_add(1, Ordering::Relaxed);
        });
    });
    let publications: Vec<_> = (0..30)
        .map(|stream| aeron.add_exclusive_publication(CHANNEL, stream).unwrap())
        .collect();
    let subscription = aeron.add_subscription(CHANNEL, 1).unwrap();
    let counter = aeron.add_counter(1001, b"", "mine").unwrap();
    let revoked = aeron.add_publication(CHANNEL, 50).unwrap();
    driver.mute();
    driver.fill_ring();
    drop(publications);
    subscription.close();
    counter.close();
    revoked.revoke();
    driver.run_ms(&aeron, 100);
    driver.unmute();
    driver.run_ms(&aeron, 10);
    assert_eq!(driver.bodies(type_id::REMOVE_PUBLICATION).len(), 31);
    assert_eq!(driver.bodies(type_id::REMOVE_SUBSCRIPTION).len(), 1);
    assert_eq!(driver.bodies(type_id::REMOVE_COUNTER).len(), 1);
    let last = driver.bodies(type_id::REMOVE_PUBLICATION).pop().unwrap();
    let Ok(Command::RemovePublication(last)) = Command::decode(type_id::REMOVE_PUBLICATION, &last)
    else {
        panic!("not a removal");
    };
    assert!(last.revoke);
    assert_eq!(errors.load(Ordering::Relaxed), 0);
    assert!(!aeron.has_active_commands());
}

#[test]
fn the_close_of_a_client_while_the_ring_is_full_is_repeated_until_it_is_sent() {
    let driver = FakeDriver::new();
    let (invoked, turns) = (Arc::clone(&driver), Arc::new(AtomicUsize::new(0)));
    let aeron = driver.connect(|context| {
        context.driver_invoker = Some(Arc::new(move || {
            // The driver reads no commands for a while.
            if turns.fetch_add(1, Ordering::Relaxed) == 500 {
                invoked.unmute();
            }
            invoked.step()
        }));
    });
    let publication = aeron.add_publication(CHANNEL, 1).unwrap();
    driver.mute();
    driver.fill_ring();
    publication.close();
    aeron.close();
    driver.unmute();
    driver.step();
    assert_eq!(driver.sent().last(), Some(&type_id::CLIENT_CLOSE));
    assert_eq!(driver.bodies(type_id::CLIENT_CLOSE).len(), 1);
}

#[test]
fn a_closing_client_waits_at_most_for_the_driver_timeout_and_not_at_all_if_the_driver_has_ended() {
    let driver = FakeDriver::new();
    let aeron = driver.connect(|_| {});
    driver.mute();
    driver.fill_ring();
    let start_ms = driver.now_ms();
    aeron.close();
    assert!((10_000..10_100).contains(&(driver.now_ms() - start_ms)));
    let gone = FakeDriver::new();
    let aeron = gone.connect(|_| {});
    gone.mute();
    gone.fill_ring();
    gone.cnc.to_driver().set_consumer_heartbeat_ms(-1);
    let start_ms = gone.now_ms();
    aeron.close();
    assert_eq!(gone.now_ms(), start_ms);
}

#[test]
fn all_parts_of_a_client_may_cross_threads() {
    fn crosses_threads<T: Send + Sync + Clone>() {}
    crosses_threads::<Aeron>();
    crosses_threads::<Publication>();
    crosses_threads::<ExclusivePublication>();
    crosses_threads::<Subscription>();
    crosses_threads::<crate::image::Image>();
    crosses_threads::<Counter>();
}

#[test]
fn close_handlers_are_called_once_if_several_threads_close_the_client() {
    let driver = FakeDriver::new();
    let calls = Arc::new(AtomicUsize::new(0));
    let aeron = driver.connect(|_| {});
    let seen = Arc::clone(&calls);
    aeron.add_close_handler(Arc::new(move || {
        seen.fetch_add(1, Ordering::Relaxed);
    }));
    let removed = aeron.add_close_handler(Arc::new(|| panic!("removed")));
    assert!(aeron.remove_close_handler(removed));
    assert!(!aeron.remove_close_handler(removed));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| aeron.close());
        }
    });
    aeron.close();
    assert_eq!(calls.load(Ordering::Relaxed), 1);
}
