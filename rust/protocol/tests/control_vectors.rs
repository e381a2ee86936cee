//! Tests with messages that real clients and drivers exchanged. Each message is decoded, compared field by field, and
//! encoded again.

use aeron_protocol::command::Command;
use aeron_protocol::event::Event;
use aeron_protocol::{DecodeError, ErrorCode};
use serde_json::{Map, Value, json};
use std::net::SocketAddr;

const VECTORS: &str = include_str!("vectors/commands.json");

struct Recorded {
    name: String,
    from_client: bool,
    type_id: i32,
    body: Vec<u8>,
    decoded: Map<String, Value>,
    error_log: Option<String>,
}

fn recorded() -> Vec<Recorded> {
    let entries: Vec<Value> = serde_json::from_str(VECTORS).unwrap();
    entries.iter().map(read_entry).collect()
}

fn read_entry(entry: &Value) -> Recorded {
    let text = |key: &str| entry[key].as_str().map(str::to_owned);
    let mut body = unhex(entry["hex"].as_str().unwrap());
    if entry["source"] == "framing" {
        let length = i32::from_le_bytes(body[..4].try_into().unwrap()) as usize;
        body = body[8..length].to_vec();
    }
    Recorded {
        name: text("name").unwrap(),
        from_client: entry["direction"] == "client_to_driver",
        type_id: entry["msg_type_id"].as_i64().unwrap() as i32,
        body,
        decoded: entry["decoded"].as_object().unwrap().clone(),
        error_log: text("error_log"),
    }
}

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap())
        .collect()
}

fn text(bytes: &[u8]) -> Value {
    json!(String::from_utf8_lossy(bytes))
}

fn hex(bytes: &[u8]) -> Value {
    json!(
        bytes
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect::<String>()
    )
}

/// Returns the fields of a command, with the field names of the captured vectors.
fn command_fields(command: &Command<'_>) -> Value {
    let mut fields = own_command_fields(command);
    fields["client_id"] = json!(command.client_id());
    fields["correlation_id"] = json!(command.correlation_id());
    fields
}

fn own_command_fields(command: &Command<'_>) -> Value {
    match command {
        Command::AddPublication(c) | Command::AddExclusivePublication(c) => {
            json!({"stream_id": c.stream_id, "channel": text(c.channel)})
        }
        Command::RemovePublication(c) => {
            json!({"registration_id": c.registration_id, "flags": i32::from(c.revoke)})
        }
        Command::AddSubscription(c) => json!({
            "registration_correlation_id": c.registration_correlation_id,
            "stream_id": c.stream_id, "channel": text(c.channel)
        }),
        Command::RemoveSubscription(c) => json!({"registration_id": c.registration_id}),
        Command::ClientKeepalive(_) | Command::ClientClose(_) => json!({}),
        Command::AddDestination(c)
        | Command::RemoveDestination(c)
        | Command::AddRcvDestination(c)
        | Command::RemoveRcvDestination(c) => json!({
            "registration_correlation_id": c.registration_correlation_id, "channel": text(c.channel)
        }),
        Command::AddCounter(c) => {
            json!({"type_id": c.type_id, "key_hex": hex(c.key), "label": text(c.label)})
        }
        Command::RemoveCounter(c) => json!({"registration_id": c.registration_id}),
        Command::TerminateDriver(c) => {
            json!({"token_length": c.token.len(), "token_hex": hex(c.token)})
        }
        Command::AddStaticCounter(c) => json!({
            "registration_id": c.registration_id, "type_id": c.type_id,
            "key_hex": hex(c.key), "label": text(c.label)
        }),
        Command::RejectImage(c) => json!({
            "image_correlation_id": c.image_correlation_id, "position": c.position,
            "reason_length": c.reason.len(), "reason": text(c.reason)
        }),
        Command::RemoveDestinationById(c) => json!({
            "resource_registration_id": c.resource_registration_id,
            "destination_registration_id": c.destination_registration_id
        }),
        Command::GetNextAvailableSessionId(c) => json!({"stream_id": c.stream_id}),
    }
}

/// Returns the fields of an event, with the field names of the captured vectors.
fn event_fields(event: &Event<'_>) -> Value {
    match event {
        Event::Error(e) => json!({
            "offending_command_correlation_id": e.offending_command_correlation_id,
            "error_code": e.error_code.value(), "error_message": text(e.error_message)
        }),
        Event::PublicationReady(e) | Event::ExclusivePublicationReady(e) => json!({
            "correlation_id": e.correlation_id, "registration_id": e.registration_id,
            "session_id": e.session_id, "stream_id": e.stream_id,
            "publication_limit_counter_id": e.publication_limit_counter_id,
            "channel_status_indicator_id": e.channel_status_indicator_id,
            "log_file_name": text(e.log_file_name)
        }),
        Event::SubscriptionReady(e) => json!({
            "correlation_id": e.correlation_id,
            "channel_status_indicator_id": e.channel_status_indicator_id
        }),
        Event::AvailableImage(e) => json!({
            "correlation_id": e.correlation_id, "session_id": e.session_id, "stream_id": e.stream_id,
            "subscription_registration_id": e.subscription_registration_id,
            "subscriber_position_id": e.subscriber_position_id,
            "log_file_name": text(e.log_file_name), "source_identity": text(e.source_identity)
        }),
        Event::UnavailableImage(e) => json!({
            "correlation_id": e.correlation_id,
            "subscription_registration_id": e.subscription_registration_id,
            "stream_id": e.stream_id, "channel": text(e.channel)
        }),
        Event::OperationSuccess(e) => json!({"correlation_id": e.correlation_id}),
        Event::CounterReady(e) | Event::UnavailableCounter(e) => {
            json!({"correlation_id": e.correlation_id, "counter_id": e.counter_id})
        }
        Event::StaticCounter(e) => {
            json!({"correlation_id": e.correlation_id, "counter_id": e.counter_id})
        }
        Event::ClientTimeout(e) => json!({"client_id": e.client_id}),
        Event::NextAvailableSessionId(e) => {
            json!({"correlation_id": e.correlation_id, "next_session_id": e.next_session_id})
        }
        Event::PublicationError(e) => {
            let source = e.source_address.unwrap();
            json!({
                "registration_id": e.registration_id,
                "destination_registration_id": e.destination_registration_id,
                "session_id": e.session_id, "stream_id": e.stream_id, "receiver_id": e.receiver_id,
                "group_tag": e.group_tag, "address_type": if source.is_ipv4() { 1 } else { 2 },
                "source_port": source.port(), "source_address_hex": source_hex(source),
                "error_code": e.error_code, "error_message": text(e.error_message)
            })
        }
    }
}

fn source_hex(source: SocketAddr) -> Value {
    let mut octets = [0; 16];
    match source {
        SocketAddr::V4(address) => octets[..4].copy_from_slice(&address.ip().octets()),
        SocketAddr::V6(address) => octets = address.ip().octets(),
    }
    hex(&octets)
}

fn is_whole(recorded: &Recorded) -> bool {
    recorded.type_id != 99
        && !recorded.decoded.contains_key("truncated")
        && !is_refused_for_its_length(recorded)
}

fn is_refused_for_its_length(recorded: &Recorded) -> bool {
    let name = &recorded.name;
    name.ends_with("_channel_longer_than_message") || name.ends_with("remove_publication_28_bytes")
}

fn assert_fields(recorded: &Recorded, fields: &Value) {
    for (key, expected) in &recorded.decoded {
        if ![
            "record_length",
            "msg_type_id",
            "aligned_length",
            "message_offset",
        ]
        .contains(&key.as_str())
        {
            assert_eq!(&fields[key], expected, "{}: {key}", recorded.name);
        }
    }
}

/// Checks that `written` equals the captured bytes, except in padding. A peer chooses the length of the padding after
/// the last field, and leaves old bytes in padding.
fn assert_written_back(recorded: &Recorded, written: &[u8]) {
    let length = written.len().max(recorded.body.len());
    let byte = |bytes: &[u8], at: usize| bytes.get(at).copied();
    let differing: Vec<_> = (0..length)
        .filter(|at| byte(written, *at) != byte(&recorded.body, *at))
        .collect();
    assert!(differing.len() <= 8, "{}: {differing:?}", recorded.name);
    for at in differing {
        assert_eq!(byte(written, at).unwrap_or(0), 0, "{}: {at}", recorded.name);
    }
}

/// 03-9: commands of Java and C clients with different padding after the last field can be read.
#[test]
fn every_recorded_command_is_read_and_written_back() {
    let commands: Vec<_> = recorded().into_iter().filter(|r| r.from_client).collect();
    let mut read = 0;
    for recorded in commands.iter().filter(|recorded| is_whole(recorded)) {
        let command = Command::decode(recorded.type_id, &recorded.body)
            .unwrap_or_else(|error| panic!("{}: {error}", recorded.name));
        assert_eq!(command.type_id(), recorded.type_id);
        assert_fields(recorded, &command_fields(&command));
        let mut written = vec![0xEE; command.encoded_length()];
        assert_eq!(command.encode(&mut written), Ok(written.len()));
        assert_written_back(recorded, &written);
        read += 1;
    }
    assert!(read > 180, "{read} commands of {}", commands.len());
}

#[test]
fn every_recorded_event_is_read_and_written_back() {
    let mut read = 0;
    for recorded in recorded().iter().filter(|recorded| !recorded.from_client) {
        let event = Event::decode(recorded.type_id, &recorded.body)
            .unwrap_or_else(|error| panic!("{}: {error}", recorded.name));
        assert_eq!(event.type_id(), recorded.type_id);
        assert_fields(recorded, &event_fields(&event));
        let mut written = vec![0xEE; event.encoded_length()];
        assert_eq!(event.encode(&mut written), Ok(written.len()));
        assert_written_back(recorded, &written);
        read += 1;
    }
    assert!(read > 150, "{read} events");
}

/// A command that the C driver refuses for its bytes gets the same error code and text here. Exceptions are two
/// commands that only the C driver refuses.
#[test]
fn commands_that_the_c_driver_refuses_are_refused_with_its_text() {
    let refused_only_by_c = [
        "reject_image_reason_empty",
        "reject_image_reason_3_bytes_unpadded",
    ];
    let mut refused = 0;
    for recorded in recorded().iter().filter(|r| r.from_client) {
        let (Some(error_log), false) = (
            &recorded.error_log,
            refused_only_by_c
                .iter()
                .any(|name| recorded.name.ends_with(name)),
        ) else {
            continue;
        };
        let error = Command::decode(recorded.type_id, &recorded.body).unwrap_err();
        let code = error.code();
        assert!(error_log.starts_with(&format!("(-{}) {}\n", code.value(), code.text())));
        assert!(
            error_log.ends_with(&format!(" {error}\n")),
            "{error_log} / {error}"
        );
        refused += 1;
    }
    assert_eq!(refused, 7);
}

#[test]
fn truncated_commands_are_malformed() {
    for recorded in recorded()
        .iter()
        .filter(|r| r.decoded.contains_key("truncated"))
    {
        let error = Command::decode(recorded.type_id, &recorded.body).unwrap_err();
        assert_eq!(
            error.code(),
            ErrorCode::MalformedCommand,
            "{}",
            recorded.name
        );
        assert_eq!(
            error,
            DecodeError::TooShort {
                type_id: recorded.type_id,
                length: recorded.body.len()
            }
        );
    }
}
