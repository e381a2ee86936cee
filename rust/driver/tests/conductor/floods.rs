//! Tests of floods of SETUP frames. The driver must still execute the commands of clients.

use std::time::Duration;

use aeron_driver::Context;
use aeron_protocol::event::Event;

use crate::conductor::harness::{CLIENT, STREAM, TestDriver};
use crate::conductor::source::Source;

const PORTS: [u16; 2] = [20_121, 20_122];
const SESSIONS: i32 = 1_000;

fn flooded() -> TestDriver {
    flooded_with(|_| {})
}

fn flooded_with(configure: impl FnOnce(&mut Context)) -> TestDriver {
    let mut driver = TestDriver::with(configure);
    for port in PORTS {
        driver.add_subscription(&format!("aeron:udp?endpoint=localhost:{port}"), STREAM);
    }
    for port in PORTS {
        for session_id in 0..SESSIONS {
            Source::new(port).with_session(session_id).setup(&driver, 0);
        }
    }
    driver
}

#[test]
fn a_client_that_adds_a_publication_does_not_wait_for_the_images_of_a_flood() {
    let mut driver = flooded();
    for _ in 0..100 {
        driver.duty_cycle();
    }
    driver.hear();
    let command = driver.publication_command(CLIENT, "aeron:ipc", STREAM, false);
    driver.send(command);
    for _ in 0..5 {
        driver.duty_cycle();
    }
    let heard = driver.hear();
    let is_ready = |event| matches!(event, Event::PublicationReady(_));
    assert!(heard.iter().any(|heard| is_ready(heard.event())));
    assert!(
        driver.logs.count() < PORTS.len() * SESSIONS as usize / 2,
        "the flood ended before the response, so this test proves nothing"
    );
}

/// A driver creates a burst of 1,024 images, and then 1,000 images per second.
#[test]
fn images_after_a_burst_are_created_at_a_limited_rate() {
    let mut driver = flooded();
    driver.work();
    assert_eq!(driver.logs.count(), 1_024);
    driver.advance(Duration::from_millis(500));
    assert_eq!(driver.logs.count(), 1_024 + 500);
    driver.advance(Duration::from_secs(1));
    assert_eq!(driver.logs.count(), PORTS.len() * SESSIONS as usize);
}

/// Images use at most half of the free counters, so clients can still add counters.
#[test]
fn images_leave_half_of_the_counters_to_clients() {
    let mut driver = flooded_with(|context| context.counters_values_buffer_length = 1 << 20);
    let unused = driver.unused_counters();
    driver.advance(Duration::from_secs(3));
    let taken = unused - driver.unused_counters();
    assert!((unused / 2 - 10..=unused / 2).contains(&taken), "{taken}");
    let errors = driver.errors();
    assert!(
        errors[0].contains("half of the free counters"),
        "{errors:?}"
    );
    driver.add_counter(CLIENT);
}
