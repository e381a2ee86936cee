//! The choice of the next driver, and the messages of the drivers before.

use super::*;

#[test]
fn a_client_that_its_driver_has_timed_out_continues_with_the_same_driver() {
    let client = Client::new();
    let subscription = client.subscribe();
    let publication = client.publish();
    publication.offer(b"unread").unwrap();
    client.log.take();
    let client_id = client.aeron.client_id();
    client
        .directory
        .driver()
        .transmit(&Event::ClientTimeout(event::ClientTimeout { client_id }));
    client.run_ms(300);
    // The driver overwrites the logs of a client that it has forgotten: what was not read is not handed out.
    let log = client.log.take();
    assert_eq!(
        log[..2],
        [
            format!("lost: client {client_id} was timed out by the media driver"),
            format!("unavailable {FIRST_SESSION_ID} at 0"),
        ]
    );
    assert!(log.contains(&"connected again".to_owned()), "{log:?}");
    assert_ne!(client.aeron.client_id(), client_id);
    assert!(publication.offer(b"new").is_ok());
    client.run_ms(2);
    assert_eq!(received(&subscription), ["new"]);
    let report = client.report();
    assert_eq!(report.streams[0].possibly_lost_bytes, None);
}

#[test]
fn a_driver_that_goes_on_delivers_nothing_twice() {
    let client = Client::new();
    let subscription = client.subscribe();
    // A publication of another client, with a log that the driver keeps.
    let stream = client.directory.driver().add_foreign_publication(STREAM);
    let appender = aeron_memory::log::ConcurrentAppender::new(stream.log.clone());
    client.run_ms(2);
    for message in ["m0", "m1"] {
        appender.offer(i64::MAX, message.as_bytes()).unwrap();
    }
    assert_eq!(received(&subscription), ["m0", "m1"]);
    let client_id = client.aeron.client_id();
    let timeout = Event::ClientTimeout(event::ClientTimeout { client_id });
    client.directory.driver().join_at(0);
    client.directory.driver().transmit(&timeout);
    client.run_ms(300);
    appender.offer(i64::MAX, b"m2").unwrap();
    assert_eq!(received(&subscription), ["m2"]);
}

#[test]
fn messages_that_are_read_after_the_loss_are_not_delivered_again_by_a_driver_that_goes_on() {
    let client = Client::new();
    let subscription = client.subscribe();
    let driver = client.directory.driver();
    let stream = driver.add_foreign_publication(STREAM);
    let appender = aeron_memory::log::ConcurrentAppender::new(stream.log.clone());
    client.run_ms(2);
    appender.offer(i64::MAX, b"m0").unwrap();
    // The driver is paused. Its log is still there.
    for _ in 0..11_000 {
        driver.advance_ms(1);
        client.aeron.do_work();
    }
    assert!(!client.aeron.has_driver());
    assert_eq!(received(&subscription), ["m0"]);
    driver.join_at(0);
    client.run_ms(300);
    appender.offer(i64::MAX, b"m1").unwrap();
    assert_eq!(received(&subscription), ["m1"]);
}

#[test]
fn an_unread_subscription_keeps_the_messages_of_eight_lost_drivers() {
    let client = Client::new();
    let subscription = client.subscribe();
    let publication = client.publish();
    for number in 0..10 {
        publication.offer(format!("m{number}").as_bytes()).unwrap();
        client.lose_driver();
        client.reconnect();
    }
    client.log.take();
    publication.offer(b"new").unwrap();
    let mut messages = Vec::new();
    for _ in 0..20 {
        messages.append(&mut received(&subscription));
        client.run_ms(1);
    }
    let kept = ["m2", "m3", "m4", "m5", "m6", "m7", "m8", "m9", "new"];
    assert_eq!(messages, kept);
}

#[test]
fn a_client_that_was_paused_for_too_long_continues() {
    let client = Client::new();
    let publication = client.publish();
    let subscription = client.subscribe();
    client
        .directory
        .driver()
        .advance_ms(LIVENESS_TIMEOUT_MS + 1);
    client.directory.driver().step();
    client.run_ms(400);
    assert!(
        client
            .log
            .take()
            .iter()
            .any(|line| line.starts_with("lost: client conductor"))
    );
    assert!(publication.offer(b"on").is_ok());
    client.run_ms(2);
    assert_eq!(received(&subscription), ["on"]);
}

#[test]
fn a_driver_that_was_only_paused_is_found_again() {
    let client = Client::new();
    let subscription = client.subscribe();
    let publication = client.publish();
    publication.offer(b"unread").unwrap();
    let driver = client.directory.driver();
    for _ in 0..11_000 {
        driver.advance_ms(1);
        client.aeron.do_work();
    }
    assert!(!client.aeron.has_driver());
    let log = client.log.take();
    assert!(
        log.last()
            .unwrap()
            .starts_with("lost: MediaDriver keepalive: age=")
    );
    client.run_ms(300);
    assert!(client.aeron.has_driver());
    // A driver that goes on overwrites its logs.
    assert_eq!(received(&subscription), [""; 0]);
    assert!(publication.offer(b"new").is_ok());
}

#[test]
fn the_images_of_a_second_lost_driver_wait_for_those_of_the_first() {
    let client = Client::new();
    let subscription = client.subscribe();
    let publication = client.publish();
    client.log.take();
    for message in [b"m0", b"m1"] {
        publication.offer(message).unwrap();
        client.lose_driver();
        client.reconnect();
    }
    publication.offer(b"m2").unwrap();
    let mut messages = Vec::new();
    for _ in 0..6 {
        messages.append(&mut received(&subscription));
        client.run_ms(1);
    }
    assert_eq!(messages, ["m0", "m1", "m2"]);
    let log = client.log.take();
    let ends = log.iter().filter(|line| line.starts_with("unavailable"));
    assert_eq!(ends.count(), 2, "{log:?}");
    assert!(log.last().unwrap().starts_with("available"));
    let images = client.report().streams;
    let images = images
        .iter()
        .filter(|stream| stream.kind == LostStreamKind::Image);
    assert_eq!(images.count(), 1);
}

#[test]
fn a_driver_that_refuses_the_client_closes_it_for_good() {
    let client = Client::new();
    let publication = client.publish();
    client.lose_driver();
    *lock(&client.directory.refusal) = Some(Error::Configuration("another version".to_owned()));
    client.run_ms(200);
    assert!(client.aeron.is_closed());
    assert_eq!(
        text::<()>(Err((*client.aeron.close_cause().0.unwrap()).clone())),
        "22: another version"
    );
    assert!(publication.is_closed());
    assert_eq!(client.log.take().last().unwrap(), "closed");
}

#[test]
fn a_client_gives_up_after_the_time_that_the_application_chose() {
    let reconnect = Reconnect {
        give_up_after: Some(Duration::from_secs(2)),
        ..Reconnect::default()
    };
    let client = Client::with(|context| context.reconnect = Some(reconnect));
    client.lose_driver();
    client.run_ms(1950);
    assert!(!client.aeron.is_closed());
    client.run_ms(50);
    assert!(client.aeron.is_closed());
}

#[test]
fn drivers_that_are_lost_at_once_are_looked_for_more_and_more_rarely() {
    let client = Client::new();
    let mut outages_ms = Vec::new();
    client.lose_driver();
    for _ in 0..6 {
        client.directory.restart();
        let mut outage_ms = 0;
        while !client.aeron.has_driver() {
            client.run_ms(1);
            outage_ms += 1;
        }
        outages_ms.push(outage_ms);
        client.directory.kill();
        client.run_ms(20);
    }
    assert!(
        outages_ms[0] <= 200 && outages_ms[4] > 800,
        "{outages_ms:?}"
    );
    // A driver that lives for longer is looked for at once.
    client.directory.restart();
    client.run_ms(10_000);
    client.lose_driver();
    client.reconnect();
    assert!(client.report().outage < Duration::from_millis(200));
}

#[test]
fn a_file_without_a_known_process_needs_a_heartbeat_that_goes_on() {
    let (lost, next) = (FakeDriver::new(), FakeDriver::new().successor());
    let lost = LostDriver {
        identity: lost.cnc.identity(),
        heartbeat_ms: lost.now_ms(),
    };
    let mut scout = DriverScout::default();
    assert!(!scout.is_next(&lost, &next.cnc, false));
    assert!(
        !scout.is_next(&lost, &next.cnc, false),
        "no heartbeat since the last look"
    );
    next.step();
    assert!(scout.is_next(&lost, &next.cnc, false));
    assert!(DriverScout::default().is_next(&lost, &next.cnc, true));
    // The lost driver itself, if it was only paused.
    let paused = LostDriver {
        identity: next.cnc.identity(),
        heartbeat_ms: next.now_ms(),
    };
    assert!(!scout.is_next(&paused, &next.cnc, true));
    next.step();
    assert!(scout.is_next(&paused, &next.cnc, false));
}

#[test]
fn a_closed_client_does_not_connect_again() {
    let client = Client::new();
    client.lose_driver();
    client.aeron.close();
    client.directory.restart();
    client.run_ms(300);
    assert!(client.aeron.is_closed() && !client.aeron.has_driver());
    assert_eq!(client.directory.driver().sent(), [0; 0]);
    assert!(client.log.take().contains(&"closed".to_owned()));
}

#[test]
fn delays_outside_their_range_are_refused() {
    let check = |reconnect| text(crate::reconnect::Reconnect::validate(&reconnect));
    let reconnect = Reconnect::default();
    let refused = check(Reconnect {
        min_delay: Duration::ZERO,
        ..reconnect
    });
    assert_eq!(
        refused,
        "22: min_delay of reconnect is 0: it must be longer"
    );
    let refused = check(Reconnect {
        max_delay: Duration::from_millis(99),
        ..reconnect
    });
    assert_eq!(
        refused,
        "22: max_delay=99ms of reconnect is below min_delay=100ms"
    );
    let refused = check(Reconnect {
        give_up_after: Some(Duration::MAX),
        ..reconnect
    });
    assert!(refused.contains("exceeds the limit"), "{refused}");
}
