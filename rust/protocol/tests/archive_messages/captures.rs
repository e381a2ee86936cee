//! Tests with messages that a real archive and its client exchanged, and with examples that were constructed from the
//! specification.

use aeron_protocol::archive::{
    ARCHIVE_PROTOCOL_VERSION, ArchiveDecodeError, ArchiveErrorCode, ArchiveRequest,
    ArchiveResponse, ControlResponseCode, MessageHeader,
};
use serde_json::Value;

use crate::archive_messages::decoded::Decoded;
use crate::archive_messages::schema::{self, VERSION, Values};

const CAPTURED: &str = include_str!("../vectors/archive/captured.json");
const EXAMPLES: &str = include_str!("../vectors/archive/examples.json");

/// A message, and its decoded fields.
struct Vector {
    message: String,
    bytes: Vec<u8>,
    decoded: Value,
}

impl Vector {
    fn of(vector: &Value) -> Self {
        let hex = vector["hex"].as_str().expect("bytes");
        Self {
            message: vector["message"].as_str().expect("a name").to_owned(),
            bytes: (0..hex.len())
                .step_by(2)
                .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hex"))
                .collect(),
            decoded: vector["decoded"].clone(),
        }
    }

    /// Returns the values of all fields of the message. A field that the vector does not list is 0 or empty.
    fn values(&self) -> Values {
        let message = schema::message(&self.message);
        let number = |name: &String| self.decoded[name].as_i64().unwrap_or_default();
        let text = |name: &String| self.decoded[name].as_str().unwrap_or_default().into();
        Values {
            fields: message.fields.iter().map(|f| number(&f.name)).collect(),
            data: message.data.iter().map(|d| text(&d.name)).collect(),
        }
    }
}

fn captured() -> Vec<Vector> {
    let vectors: Value = serde_json::from_str(CAPTURED).expect("JSON");
    let messages = vectors["messages"].as_array().expect("messages");
    messages.iter().map(Vector::of).collect()
}

/// Returns the examples that are messages of the protocol. Two other examples are beginnings of files.
fn examples() -> Vec<Vector> {
    let is_message = |vector: &&Value| {
        let message = vector["message"].as_str().expect("a name");
        !message.starts_with('(') && message != "MarkFileHeader"
    };
    all_examples()
        .iter()
        .filter(is_message)
        .map(Vector::of)
        .collect()
}

fn all_examples() -> Vec<Value> {
    let vectors: Value = serde_json::from_str(EXAMPLES).expect("JSON");
    vectors["examples"].as_array().expect("examples").clone()
}

fn example(name: &str) -> Vector {
    let examples = all_examples();
    let example = examples.iter().find(|example| example["name"] == name);
    Vector::of(example.expect("an example"))
}

#[test]
fn each_captured_message_is_read_field_by_field_and_written_back_07_15() {
    let captured = captured();
    assert_eq!(captured.len(), 53);
    for vector in captured {
        let decoded = Decoded::of(&vector.bytes).expect(&vector.message);
        let message = schema::message(&vector.message);
        assert_eq!(decoded.text(), message.text(VERSION, &vector.values()));
        assert_eq!(decoded.encoded(), vector.bytes, "{}", vector.message);
    }
}

#[test]
fn each_example_is_read_field_by_field_and_written_back_07_15() {
    let examples = examples();
    assert_eq!(examples.len(), 28);
    for vector in examples {
        let (header, _) = MessageHeader::decode(&vector.bytes).expect("a header");
        let decoded = Decoded::of(&vector.bytes).expect(&vector.message);
        let message = schema::message(&vector.message);
        assert_eq!(
            decoded.text(),
            message.text(header.version, &vector.values())
        );
        let encoded = decoded.encoded();
        if header.version == VERSION {
            assert_eq!(encoded, vector.bytes, "{}", vector.message);
        } else {
            assert_eq!(Decoded::of(&encoded), Ok(decoded), "{}", vector.message);
        }
    }
}

#[test]
fn a_descriptor_has_the_padding_of_its_catalog_entry_07_12() {
    let vector = example("recording-descriptor");
    let Ok(ArchiveResponse::RecordingDescriptor(descriptor)) =
        ArchiveResponse::decode(&vector.bytes)
    else {
        panic!("not a descriptor");
    };
    let texts = [
        descriptor.stripped_channel,
        descriptor.original_channel,
        descriptor.source_identity,
    ];
    let unpadded = 8 + 80 + texts.iter().map(|text| 4 + text.len()).sum::<usize>();
    let entry_length = (32 + unpadded - 8).next_multiple_of(64) - 32;
    assert_eq!(vector.bytes.len(), 8 + entry_length);

    let response = ArchiveResponse::RecordingDescriptor(descriptor);
    assert_eq!(response.encoded_length(), 8 + entry_length);
    assert_eq!(
        ArchiveResponse::decode(&vector.bytes[..unpadded]),
        Ok(response)
    );
}

#[test]
fn a_connect_request_of_version_1_has_protocol_version_0_which_is_another_major_version_07_04() {
    let vector = example("connect-legacy-schema-v1");
    let Ok(ArchiveRequest::Connect(request)) = ArchiveRequest::decode(&vector.bytes) else {
        panic!("not a connect request");
    };
    assert_eq!(request.version, 0);
    assert_ne!(request.version >> 16, ARCHIVE_PROTOCOL_VERSION >> 16);
}

#[test]
fn a_mark_file_is_refused_for_its_schema_07_09() {
    let vector = example("mark-file-prefix");
    let refusal = Err(ArchiveDecodeError::SchemaId { schema_id: 100 });
    assert_eq!(Decoded::of(&vector.bytes), refusal);
}

#[test]
fn the_relevant_id_of_an_error_response_is_the_error_code() {
    let response_of = |name| {
        let vector = example(name);
        match ArchiveResponse::decode(&vector.bytes) {
            Ok(ArchiveResponse::ControlResponse(response)) => {
                (response.code, response.error_code())
            }
            other => panic!("{other:?}"),
        }
    };
    let unknown = Some(ArchiveErrorCode::UnknownRecording);
    assert_eq!(
        response_of("response-error-unknown-recording"),
        (ControlResponseCode::Error, unknown)
    );
    assert_eq!(response_of("response-ok"), (ControlResponseCode::Ok, None));
    assert_eq!(
        response_of("response-recording-unknown"),
        (ControlResponseCode::RecordingUnknown, None)
    );
}
