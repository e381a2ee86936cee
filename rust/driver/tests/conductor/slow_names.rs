//! Tests of names with a slow lookup. Such a lookup delays only the command that needs the name.

use aeron_protocol::command::{AddPublication, ClientClose, Command, RemovePublication};
use aeron_protocol::event::Event;

use crate::conductor::harness::{CLIENT, Heard, STREAM, TICK, TestDriver, names};

const CHANNEL: &str = "aeron:udp?endpoint=far.example:20170";

/// Returns a driver with a command that waits for a name lookup, and the command's correlation id. The command adds a
/// publication.
fn driver_that_waits() -> (TestDriver, i64) {
    let mut driver = TestDriver::new();
    driver.names.set_slow("far.example");
    let command = driver.publication_command(CLIENT, CHANNEL, STREAM, false);
    assert!(driver.ask(command).is_empty());
    (driver, command.correlation_id())
}

fn publication_ids(heard: &[Heard]) -> Vec<(i64, i64)> {
    heard
        .iter()
        .filter_map(|heard| match heard.event() {
            Event::PublicationReady(ready) => Some((ready.correlation_id, ready.registration_id)),
            _ => None,
        })
        .collect()
}

#[test]
fn a_name_with_a_slow_lookup_does_not_delay_other_commands() {
    let (mut driver, correlation_id) = driver_that_waits();
    driver.add_publication("aeron:ipc", STREAM);
    driver.add_publication("aeron:udp?endpoint=127.0.0.1:20171", STREAM);
    driver.add_subscription("aeron:udp?endpoint=localhost:20172", STREAM);
    driver.advance(30 * TICK);
    driver.hear();
    driver.names.set("far.example", Some("127.0.0.1"));
    driver.work();
    let heard = driver.hear();
    assert_eq!(publication_ids(&heard), [(correlation_id, correlation_id)]);
    assert!(driver.errors().is_empty(), "{:?}", driver.errors());
}

#[test]
fn commands_that_wait_for_the_same_name_share_the_resource_of_the_first_command() {
    let (mut driver, first) = driver_that_waits();
    let second = driver.publication_command(CLIENT, CHANNEL, STREAM, false);
    assert!(driver.ask(second).is_empty());
    driver.names.set("far.example", Some("127.0.0.1"));
    driver.work();
    let heard = driver.hear();
    let ids = [(first, first), (second.correlation_id(), first)];
    assert_eq!(publication_ids(&heard), ids);
    assert_eq!(driver.network.opened().len(), 1);
}

#[test]
fn a_slow_lookup_that_fails_is_an_error_of_the_waiting_command() {
    let (mut driver, correlation_id) = driver_that_waits();
    driver.names.set("far.example", None);
    driver.work();
    let heard = driver.hear();
    let [only] = &heard[..] else {
        panic!("{:?}", names(&heard));
    };
    let Event::Error(error) = only.event() else {
        panic!("{:?}", only.event());
    };
    assert_eq!(error.offending_command_correlation_id, correlation_id);
    let text = String::from_utf8_lossy(error.error_message);
    assert!(text.contains("far.example"), "{text}");
}

#[test]
fn no_resource_is_created_for_a_client_that_closes_during_a_lookup() {
    let (mut driver, _) = driver_that_waits();
    let correlation_id = driver.next_id();
    driver.ask(Command::ClientClose(ClientClose {
        client_id: CLIENT,
        correlation_id,
    }));
    driver.names.set("far.example", Some("127.0.0.1"));
    driver.work();
    assert!(driver.hear().is_empty());
    assert!(driver.network.opened().is_empty());
}

/// A publication can be removed while its name is being resolved. It is then not created.
#[test]
fn a_publication_that_is_removed_during_the_lookup_is_not_created() {
    let (mut driver, registration_id) = driver_that_waits();
    let correlation_id = driver.next_id();
    let heard = driver.ask(Command::RemovePublication(RemovePublication {
        client_id: CLIENT,
        correlation_id,
        registration_id,
        revoke: false,
    }));
    assert_eq!(names(&heard), ["OperationSuccess"]);
    driver.names.set("far.example", Some("127.0.0.1"));
    driver.work();
    assert!(driver.hear().is_empty());
    assert!(driver.network.opened().is_empty());
}

#[test]
fn a_new_log_belongs_to_the_command_that_waits_for_it_even_if_ids_are_equal() {
    let (mut driver, correlation_id) = driver_that_waits();
    let heard = driver.ask(Command::AddPublication(AddPublication {
        client_id: CLIENT,
        correlation_id,
        stream_id: STREAM,
        channel: b"aeron:ipc?term-length=8m|sparse=false",
    }));
    assert_eq!(publication_ids(&heard), [(correlation_id, correlation_id)]);
}
