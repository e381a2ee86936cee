//! Tests of long logs. Their creation is slow, because all their pages are allocated. Such a log delays only the
//! command that needs the log.

use aeron_protocol::command::{ClientClose, Command};
use aeron_protocol::event::Event;

use crate::conductor::harness::{CLIENT, Heard, STREAM, TestDriver};

const LONG_LOGS: [&str; 2] = [
    "aeron:ipc?term-length=8m|sparse=false",
    "aeron:udp?endpoint=127.0.0.1:20171|term-length=8m|sparse=false",
];

/// Sends a command and runs a few duty cycles. They are too few for the creation of a long log.
fn ask_briefly(driver: &mut TestDriver, command: Command<'_>) -> Vec<Heard> {
    driver.send(command);
    for _ in 0..5 {
        driver.conductor_cycle();
        driver.resource_cycle();
    }
    driver.hear()
}

/// Returns a driver that is creating a long log for a command, and the command's correlation id.
fn driver_that_creates(channel: &str) -> (TestDriver, i64) {
    let mut driver = TestDriver::new();
    let command = driver.publication_command(CLIENT, channel, STREAM, false);
    let correlation_id = command.correlation_id();
    assert!(ask_briefly(&mut driver, command).is_empty());
    (driver, correlation_id)
}

/// Returns the correlation and registration ids in the events for publications that are ready.
fn publication_ids(heard: &[Heard]) -> Vec<(i64, i64)> {
    heard
        .iter()
        .filter_map(|heard| match heard.event() {
            Event::PublicationReady(ready) | Event::ExclusivePublicationReady(ready) => {
                Some((ready.correlation_id, ready.registration_id))
            }
            _ => None,
        })
        .collect()
}

#[test]
fn a_log_with_a_slow_creation_does_not_delay_other_commands() {
    for channel in LONG_LOGS {
        let (mut driver, first) = driver_that_creates(channel);
        let other = driver.publication_command(CLIENT, "aeron:ipc", STREAM + 1, false);
        let other_id = other.correlation_id();
        let heard = ask_briefly(&mut driver, other);
        assert_eq!(publication_ids(&heard), [(other_id, other_id)]);
        driver.work();
        assert_eq!(publication_ids(&driver.hear()), [(first, first)]);
    }
}

/// If two commands add the same publication while its log is created, both get the publication of the first command.
#[test]
fn commands_that_wait_for_logs_of_the_same_publication_share_the_first_log() {
    for channel in LONG_LOGS {
        let (mut driver, first) = driver_that_creates(channel);
        let second = driver.publication_command(CLIENT, channel, STREAM, false);
        let second_id = second.correlation_id();
        assert!(ask_briefly(&mut driver, second).is_empty());
        driver.work();
        let ids = [(first, first), (second_id, first)];
        assert_eq!(publication_ids(&driver.hear()), ids);
        assert_eq!(driver.logs.count(), 1);
    }
}

#[test]
fn a_session_that_another_command_has_taken_during_the_creation_is_refused() {
    for channel in LONG_LOGS {
        let channel = format!("{channel}|session-id=7");
        let mut driver = TestDriver::new();
        let first = driver.publication_command(CLIENT, &channel, STREAM, true);
        let first_id = first.correlation_id();
        ask_briefly(&mut driver, first);
        let second = driver.publication_command(CLIENT, &channel, STREAM, true);
        let second_id = second.correlation_id();
        ask_briefly(&mut driver, second);
        driver.work();
        let heard = driver.hear();
        assert_eq!(publication_ids(&heard), [(first_id, first_id)]);
        let refused = heard.iter().any(|heard| match heard.event() {
            Event::Error(error) => error.offending_command_correlation_id == second_id,
            _ => false,
        });
        assert!(refused);
        assert_eq!(driver.logs.count(), 1);
    }
}

#[test]
fn the_log_of_a_client_that_closes_during_the_creation_is_removed() {
    for channel in LONG_LOGS {
        let (mut driver, _) = driver_that_creates(channel);
        let correlation_id = driver.next_id();
        ask_briefly(
            &mut driver,
            Command::ClientClose(ClientClose {
                client_id: CLIENT,
                correlation_id,
            }),
        );
        driver.work();
        assert_eq!(publication_ids(&driver.hear()), []);
        assert_eq!(driver.logs.count(), 0);
    }
}
