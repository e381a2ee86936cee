//! The schema of archive messages, as JSON generated from Aeron's schema, and an encoder that uses only this JSON.

use aeron_protocol::archive::{ArchiveRequest, ArchiveResponse, RecordingEvent};
use proptest::prelude::*;
use serde_json::Value;

use crate::archive_messages::decoded::Decoded;

const SCHEMA: &str = include_str!("../vectors/archive/schema-layout.json");

pub const VERSION: u16 = 13;

/// Records of the catalog, which are never sent as messages.
const CATALOG_TEMPLATES: [u16; 2] = [20, 21];

pub struct MessageSchema {
    pub name: String,
    pub template_id: u16,
    pub block_length: usize,
    pub fields: Vec<FieldSchema>,
    pub data: Vec<DataSchema>,
}

pub struct FieldSchema {
    pub name: String,
    pub offset: usize,
    pub size: usize,
    pub since: u16,
    pub kind: String,
    /// Names and numbers of an enumeration.
    pub codes: Vec<(String, i64)>,
}

pub struct DataSchema {
    pub name: String,
    pub since: u16,
}

/// Values of all fields and all variable data of a message.
#[derive(Clone, Debug)]
pub struct Values {
    pub fields: Vec<i64>,
    pub data: Vec<Vec<u8>>,
}

pub fn messages() -> Vec<MessageSchema> {
    let schema: Value = serde_json::from_str(SCHEMA).expect("JSON");
    let archive = &schema["archive"];
    let messages = archive["messages"].as_object().expect("messages");
    messages
        .values()
        .map(|message| MessageSchema::of(message, &archive["enums"]))
        .filter(|message| !CATALOG_TEMPLATES.contains(&message.template_id))
        .collect()
}

pub fn message(name: &str) -> MessageSchema {
    messages()
        .into_iter()
        .find(|message| message.name == name)
        .expect("a message of the schema")
}

impl MessageSchema {
    fn of(message: &Value, enums: &Value) -> Self {
        let number = |value: &Value| value.as_u64().expect("a number") as usize;
        let list = |value: &Value| value.as_array().expect("a list").clone();
        let name_of = |value: &Value| value["name"].as_str().expect("a name").to_owned();
        let name = name_of(message);
        Self {
            template_id: number(&message["templateId"]) as u16,
            block_length: number(&message["blockLength"]),
            fields: list(&message["fields"])
                .iter()
                .map(|field| FieldSchema {
                    name: name_of(field),
                    offset: number(&field["offset"]),
                    size: number(&field["size"]),
                    since: number(&field["sinceVersion"]) as u16,
                    kind: field["type"].as_str().expect("a type").to_owned(),
                    codes: field["enum"]
                        .as_str()
                        .map_or_else(Vec::new, |name| codes_of(&enums[name])),
                })
                .collect(),
            data: list(&message["varData"])
                .iter()
                .map(|data| DataSchema {
                    name: name_of(data),
                    since: number(&data["sinceVersion"]) as u16,
                })
                .collect(),
            name,
        }
    }

    /// Creates values from any numbers and texts. For an enumeration, selects one of its numbers.
    pub fn values(&self, numbers: &[i64], texts: &[Vec<u8>]) -> Values {
        let fields = self.fields.iter().zip(numbers.iter().cycle());
        Values {
            fields: fields.map(|(field, &number)| field.legal(number)).collect(),
            data: self
                .data
                .iter()
                .zip(texts.iter().cycle())
                .map(|(_, text)| text.clone())
                .collect(),
        }
    }

    /// Returns values in which neighbouring fields differ, so that swapped fields are detected.
    pub fn sample(&self) -> Values {
        let texts: Vec<Vec<u8>> = ["aeron:udp?endpoint=a:1", "b", "", "source", "e"]
            .map(|text| text.as_bytes().to_vec())
            .into();
        let numbers: Vec<i64> = (1..=16).map(|number| number * 0x0101_0101_0101).collect();
        self.values(&numbers, &texts)
    }

    /// Returns the block length in a version of the schema.
    pub fn block_length_in(&self, version: u16) -> usize {
        let fields = self.fields.iter().filter(|field| field.since <= version);
        fields
            .map(|field| field.offset + field.size)
            .max()
            .expect("a field")
    }

    /// Encodes the message as a peer with this version of the schema does. If `block_length` is longer than the fields
    /// of this version, filler bytes end the block.
    pub fn encode(&self, version: u16, block_length: usize, values: &Values) -> Vec<u8> {
        let header = [block_length as u16, self.template_id, 101, version];
        let mut bytes: Vec<u8> = header.iter().flat_map(|word| word.to_le_bytes()).collect();
        bytes.resize(8 + block_length, 0xEE);
        for (field, value) in self.fields.iter().zip(&values.fields) {
            if field.since <= version {
                let at = 8 + field.offset;
                bytes[at..at + field.size].copy_from_slice(&value.to_le_bytes()[..field.size]);
            }
        }
        for (data, text) in self.data.iter().zip(&values.data) {
            if data.since <= version {
                bytes.extend((text.len() as u32).to_le_bytes());
                bytes.extend(text);
            }
        }
        if self.name == "RecordingDescriptor" {
            // A catalog entry has 24 more bytes before the descriptor's fields than a message, and ends at a multiple
            // of 64.
            let length = (bytes.len() + 24).next_multiple_of(64) - 24;
            bytes.resize(length, 0);
        }
        bytes
    }

    /// Encodes the message in the version that this crate writes.
    pub fn encode_now(&self, values: &Values) -> Vec<u8> {
        self.encode(VERSION, self.block_length, values)
    }

    /// Returns the name and fields of a message from a peer with this version of the schema, in the form of
    /// [`Decoded::text`].
    pub fn text(&self, version: u16, values: &Values) -> String {
        let fields = self.fields.iter().zip(&values.fields);
        let fields = fields
            .filter(|(field, _)| !(self.name == "Challenge" && field.name == "version"))
            .map(|(field, &value)| {
                format!("{}: {}", own_name(&field.name), field.text(version, value))
            });
        let data = self.data.iter().zip(&values.data).map(|(data, text)| {
            let text: &[u8] = if data.since <= version { text } else { &[] };
            format!("{}: {text:?}", own_name(&data.name))
        });
        let parts: Vec<String> = fields.chain(data).collect();
        let suffix = match self.name.as_str() {
            "RecordingDescriptor" => "Message",
            _ => "",
        };
        format!("{}{suffix} {{ {} }}", self.name, parts.join(", "))
    }
}

impl FieldSchema {
    fn legal(&self, number: i64) -> i64 {
        match self.codes.len() {
            0 if self.size == 4 => i64::from(number as i32),
            0 => number,
            count => self.codes[number.unsigned_abs() as usize % count].1,
        }
    }

    fn text(&self, version: u16, value: i64) -> String {
        if self.since > version {
            return if self.name == "version" { "0" } else { "-1" }.to_owned();
        }
        if self.kind == "BooleanType" {
            return (value == 1).to_string();
        }
        let code = self.codes.iter().find(|(_, number)| *number == value);
        code.map_or_else(|| value.to_string(), |(name, _)| name.clone())
    }
}

/// Returns the names and numbers of an enumeration; `RECORDING_UNKNOWN` becomes `RecordingUnknown`.
fn codes_of(schema: &Value) -> Vec<(String, i64)> {
    let values = schema["values"].as_object().expect("values");
    values
        .iter()
        .map(|(name, value)| {
            let words = name.split('_');
            let name = words.map(|word| word[..1].to_owned() + &word[1..].to_lowercase());
            (name.collect(), value.as_i64().expect("a number"))
        })
        .collect()
}

/// Returns the name of a schema field in this crate.
fn own_name(name: &str) -> String {
    match name {
        "startTimestamp" => "start_timestamp_ms".to_owned(),
        "stopTimestamp" => "stop_timestamp_ms".to_owned(),
        "segmentFileLength" => "segment_length".to_owned(),
        "termBufferLength" => "term_length".to_owned(),
        _ => name.chars().fold(String::new(), |mut snake, letter| {
            if letter.is_ascii_uppercase() {
                snake.push('_');
            }
            snake.push(letter.to_ascii_lowercase());
            snake
        }),
    }
}

#[test]
fn each_message_of_the_schema_belongs_to_one_stream() {
    let mut of_schema: Vec<u16> = messages().iter().map(|m| m.template_id).collect();
    let mut of_streams = [
        ArchiveRequest::TEMPLATE_IDS,
        ArchiveResponse::TEMPLATE_IDS,
        RecordingEvent::TEMPLATE_IDS,
    ]
    .concat();
    of_schema.sort_unstable();
    of_streams.sort_unstable();
    assert_eq!(of_streams, of_schema);
    assert_eq!(of_schema.len(), 48);
}

#[test]
fn a_message_begins_with_the_lengths_and_ids_of_the_schema_07_01() {
    for message in messages() {
        let bytes = message.encode_now(&message.sample());
        let encoded = Decoded::of(&bytes).expect("a message").encoded();
        let words: Vec<u16> = encoded[..8]
            .chunks_exact(2)
            .map(|word| u16::from_le_bytes([word[0], word[1]]))
            .collect();
        let block_length = message.block_length as u16;
        assert_eq!(
            words,
            [block_length, message.template_id, 101, 13],
            "{}",
            message.name
        );
    }
}

#[test]
fn the_replay_token_of_a_bounded_replay_is_at_offset_52_of_the_block_07_07() {
    let message = message("BoundedReplayRequest");
    let mut bytes = message.encode_now(&message.sample());
    bytes[8 + 52..8 + 60].copy_from_slice(&0x0102_0304_0506_0708_i64.to_le_bytes());
    let Ok(ArchiveRequest::BoundedReplay(request)) = ArchiveRequest::decode(&bytes) else {
        panic!("not a bounded replay");
    };
    assert_eq!(request.replay_token, 0x0102_0304_0506_0708);
}

#[test]
fn an_error_text_of_any_length_is_one_message() {
    let message = message("ControlResponse");
    let mut values = message.sample();
    values.data = vec![vec![b'e'; 200_000]];
    let bytes = message.encode_now(&values);
    let Ok(ArchiveResponse::ControlResponse(response)) = ArchiveResponse::decode(&bytes) else {
        panic!("not a control response");
    };
    assert_eq!(response.error_message.len(), 200_000);
}

/// Any message of the schema with any values.
pub fn any_message() -> impl Strategy<Value = (MessageSchemaIndex, Vec<i64>, Vec<Vec<u8>>)> {
    let number = prop_oneof![Just(-1), Just(i64::MIN), Just(i64::MAX), any::<i64>()];
    let text = prop::collection::vec(any::<u8>(), 0..80);
    (
        0..messages().len(),
        prop::collection::vec(number, 16),
        prop::collection::vec(text, 5),
    )
}

/// Index of a message in [`messages`].
pub type MessageSchemaIndex = usize;

proptest! {
    #[test]
    fn each_message_is_decoded_and_encoded_as_in_the_schema((index, numbers, texts) in any_message()) {
        let message = &messages()[index];
        let mut values = message.values(&numbers, &texts);
        if message.name == "Challenge" {
            // The version of a challenge is always written as 0.
            values.fields[2] = 0;
        }
        let bytes = message.encode_now(&values);
        let decoded = Decoded::of(&bytes);
        prop_assert!(decoded.is_ok(), "{:?}", decoded);
        let decoded = decoded.unwrap();
        prop_assert_eq!(decoded.template_id(), message.template_id);
        prop_assert_eq!(decoded.text(), message.text(VERSION, &values));
        let encoded = decoded.encoded();
        prop_assert_eq!(&encoded, &bytes);
        prop_assert_eq!(Decoded::of(&encoded), Ok(decoded));
    }
}
