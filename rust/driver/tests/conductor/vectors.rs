//! Replays commands that were captured from a real C driver. This driver must send the same responses in the same
//! order.

use std::collections::HashMap;
use std::time::Duration;

use aeron_driver::Context;
use aeron_driver::config::TerminationValidator;
use aeron_protocol::event::{Event, NO_COUNTER_ID, PublicationReady};
use serde_json::Value;

use crate::conductor::harness::{Heard, TICK, TestDriver};

const VECTORS: &str = include_str!("../../../protocol/tests/vectors/commands.json");

/// Commands for which this driver intentionally differs from the C driver.
const DIFFERENT: [&str; 3] = [
    "c-driver-errors/remove_destination_by_id_unknown_publication",
    "c-driver-errors/reject_image_reason_empty",
    "c-driver-errors/reject_image_reason_3_bytes_unpadded",
];

/// Returns the captured messages of one source, in order.
fn recorded(source: &str) -> Vec<Value> {
    let all: Vec<Value> = serde_json::from_str(VECTORS).unwrap();
    all.into_iter()
        .filter(|entry| entry["source"] == source)
        .collect()
}

fn text<'a>(entry: &'a Value, field: &str) -> &'a str {
    entry[field].as_str().unwrap_or_default()
}

fn body(entry: &Value) -> Vec<u8> {
    let digits = text(entry, "hex");
    (0..digits.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap())
        .collect()
}

/// The parts of an event that must be the same in both drivers.
///
/// Session ids are replaced by the captured session ids. Counter ids are ignored if they depend on the time between the
/// captured commands. Texts may differ.
struct Comparison {
    sessions: HashMap<i32, i32>,
    with_counter_ids: bool,
}

impl Comparison {
    fn session(&mut self, theirs: i32, ours: i32) -> i32 {
        assert_eq!(
            *self.sessions.entry(ours).or_insert(theirs),
            theirs,
            "one of our session ids stands for two captured session ids"
        );
        theirs
    }

    fn counter(&self, id: i32) -> i32 {
        if self.with_counter_ids { id } else { 0 }
    }

    fn describe(&mut self, event: Event<'_>, recorded: Event<'_>) -> String {
        let mut event = event;
        match (&mut event, recorded) {
            (Event::Error(ours), _) => ours.error_message = b"",
            (Event::PublicationReady(ours), Event::PublicationReady(theirs))
            | (Event::ExclusivePublicationReady(ours), Event::ExclusivePublicationReady(theirs)) => {
                ours.session_id = self.session(theirs.session_id, ours.session_id);
                ours.publication_limit_counter_id = self.counter(ours.publication_limit_counter_id);
                if ours.channel_status_indicator_id != NO_COUNTER_ID {
                    ours.channel_status_indicator_id =
                        self.counter(ours.channel_status_indicator_id);
                }
                ours.log_file_name = relative(ours);
            }
            (Event::SubscriptionReady(ours), _)
                if ours.channel_status_indicator_id != NO_COUNTER_ID =>
            {
                ours.channel_status_indicator_id = self.counter(ours.channel_status_indicator_id);
            }
            (Event::AvailableImage(ours), Event::AvailableImage(theirs)) => {
                ours.session_id = self.session(theirs.session_id, ours.session_id);
                ours.subscriber_position_id = self.counter(ours.subscriber_position_id);
                ours.log_file_name = ours
                    .log_file_name
                    .strip_prefix(b"/")
                    .unwrap_or(ours.log_file_name);
                ours.source_identity = without_port(ours.source_identity);
            }
            (Event::PublicationError(ours), Event::PublicationError(theirs)) => {
                ours.session_id = self.session(theirs.session_id, ours.session_id);
                // The C driver swaps the bytes of the address, and receiver ids are random.
                ours.source_address = None;
                ours.receiver_id = 0;
            }
            (Event::NextAvailableSessionId(ours), Event::NextAvailableSessionId(theirs)) => {
                ours.next_session_id = self.session(theirs.next_session_id, ours.next_session_id);
            }
            (Event::CounterReady(ours) | Event::UnavailableCounter(ours), _) => {
                ours.counter_id = self.counter(ours.counter_id);
            }
            _ => {}
        }
        format!("{event:?}")
    }

    fn compare(&mut self, name: &str, heard: &[Heard], answers: &[Value]) {
        let types = |entry: &Value| text(entry, "msg_type").to_owned();
        let expected: Vec<_> = answers.iter().map(types).collect();
        assert_eq!(
            heard.len(),
            answers.len(),
            "{name}: {:?} instead of {expected:?}",
            crate::conductor::harness::names(heard)
        );
        for (heard, answer) in heard.iter().zip(answers) {
            let body = body(answer);
            let type_id = answer["msg_type_id"].as_i64().unwrap() as i32;
            let recorded = Event::decode(type_id, &body).unwrap();
            let ours = self.describe(heard.event(), recorded);
            let theirs = Comparison {
                sessions: HashMap::new(),
                with_counter_ids: self.with_counter_ids,
            }
            .describe(recorded, recorded);
            assert_eq!(ours, theirs, "{name}");
        }
    }
}

/// Removes the port, because senders get any free port.
fn without_port(source_identity: &[u8]) -> &[u8] {
    source_identity
        .strip_prefix(b"127.0.0.1:")
        .map_or(source_identity, |_| b"127.0.0.1")
}

fn relative<'a>(ready: &PublicationReady<'a>) -> &'a [u8] {
    ready
        .log_file_name
        .strip_prefix(b"/")
        .unwrap_or(ready.log_file_name)
}

fn replay(source: &str, configure: impl FnOnce(&mut Context)) -> TestDriver {
    let mut driver = TestDriver::with(configure);
    let mut comparison = Comparison {
        sessions: HashMap::new(),
        with_counter_ids: true,
    };
    let entries = recorded(source);
    let mut commands = 0;
    for (index, entry) in entries.iter().enumerate() {
        if text(entry, "direction") != "client_to_driver" {
            continue;
        }
        let name = text(entry, "name");
        if DIFFERENT.contains(&name) {
            continue;
        }
        commands += 1;
        // A counter id is reused some time after its release. The ids after a removal thus depend on the time between
        // the captured commands.
        comparison.with_counter_ids &= source == "c-driver-lifecycle" || !name.contains("/remove_");
        // The C driver creates an endpoint before it refuses the window, so its later counter ids may differ.
        comparison.with_counter_ids &= !name.ends_with("_window_larger_than_rcvbuf");
        driver.hear();
        driver.use_ids_up_to(entry["decoded"]["correlation_id"].as_i64().unwrap_or(-1));
        driver.send_raw(entry["msg_type_id"].as_i64().unwrap() as i32, &body(entry));
        // The sender receives the rejection only when the next status message would be due.
        driver.advance(if name.ends_with("/reject_image_udp") {
            3 * TICK
        } else {
            TICK
        });
        let is_answer = |answer: &&Value| text(answer, "in_reply_to") == name;
        let answers: Vec<_> = entries[index + 1..]
            .iter()
            .filter(is_answer)
            .cloned()
            .collect();
        comparison.compare(name, &driver.hear(), &answers);
        let events = entries[index + 1..]
            .iter()
            .take_while(|later| text(later, "direction") == "driver_to_clients");
        let events: Vec<_> = events
            .filter(|event| text(event, "name").contains("/event_"))
            .cloned()
            .collect();
        if !events.is_empty() {
            driver.advance(Duration::from_secs(3));
            comparison.compare("events", &driver.hear(), &events);
        }
    }
    assert!(commands > 0);
    driver
}

/// 03-18 to 03-30, 03-34, 03-36
#[test]
fn the_responses_to_ipc_commands_are_the_captured_responses() {
    replay("c-driver-ipc", |_| {});
}

/// 03-25, 03-26, 03-50, 03-54, 03-56
#[test]
fn the_responses_to_invalid_commands_are_the_captured_responses() {
    let driver = replay("c-driver-errors", |_| {});
    assert!(!driver.is_terminated());
}

/// 03-21 to 03-24, 03-29 to 03-33, 03-37 to 03-41, 03-46, 04-44, 04-45, 04-50, 04-51, 04-55, 04-63 to 04-65, 04-68,
/// 04-71 to 04-73
#[test]
fn the_responses_to_udp_commands_are_the_captured_responses() {
    replay("c-driver-udp", |context| {
        context.image_liveness_timeout_ns = 1_000_000_000;
        context.publication_linger_timeout_ns = 500_000_000;
        context.client_liveness_timeout_ns = 20_000_000_000;
        context.publication_unblock_timeout_ns = 25_000_000_000;
    });
}

/// 03-42 to 03-49, 03-60 to 03-62
#[test]
fn the_events_of_clients_and_counters_are_the_captured_events() {
    let driver = replay("c-driver-lifecycle", |context| {
        context.client_liveness_timeout_ns = 2_000_000_000;
        context.termination_validator = TerminationValidator::Allow;
    });
    assert!(driver.is_terminated());
}
