//! Small schemas for tests of single rules.

#![allow(
    dead_code,
    reason = "each test program needs a part of these functions"
)]

use aeron_sbe::plan::{SbePlan, SbePlanOptions, SbeTemplate};
use aeron_sbe::schema::{SbeSchema, SbeSchemaError};
use aeron_sbe::value::{SbeRecord, SbeValue};

/// Composites of header, dimensions and data.
pub const LAYOUTS: &str = r#"
<composite name="messageHeader">
  <type name="blockLength" primitiveType="uint16"/><type name="templateId" primitiveType="uint16"/>
  <type name="schemaId" primitiveType="uint16"/><type name="version" primitiveType="uint16"/>
</composite>
<composite name="groupSizeEncoding">
  <type name="blockLength" primitiveType="uint16"/><type name="numInGroup" primitiveType="uint16"/>
</composite>
<composite name="varDataEncoding">
  <type name="length" primitiveType="uint16"/><type name="varData" primitiveType="uint8" length="0"/>
</composite>
"#;

/// Returns the text of a schema of version 3 with more types and messages.
pub fn text(types: &str, messages: &str) -> String {
    format!(
        "<messageSchema id=\"1\" version=\"3\"><types>{LAYOUTS}{types}</types>{messages}</messageSchema>"
    )
}

/// Returns the text of a schema with one message `M`.
pub fn message(types: &str, elements: &str) -> String {
    text(
        types,
        &format!("<message name=\"M\" id=\"1\">{elements}</message>"),
    )
}

/// Returns a sound schema.
pub fn sound(text: &str) -> SbeSchema {
    SbeSchema::parse(text).unwrap_or_else(|error| panic!("{error}"))
}

/// Returns the error of a schema.
pub fn error(text: &str) -> SbeSchemaError {
    match SbeSchema::parse(text) {
        Ok(_) => panic!("the schema was accepted: {text}"),
        Err(error) => error,
    }
}

/// Returns the plan of a sound schema.
pub fn plan(text: &str) -> SbePlan {
    SbePlan::new(&sound(text), &SbePlanOptions::default()).expect("no options")
}

/// Returns the message of a record with these values of fields, and without groups and data.
pub fn encoded(template: &SbeTemplate, fields: Vec<SbeValue<'_>>) -> Vec<u8> {
    let record = SbeRecord {
        fields,
        ..SbeRecord::default()
    };
    let mut bytes = Vec::new();
    template
        .encode(&record, &mut bytes)
        .unwrap_or_else(|error| panic!("{error}"));
    bytes
}

/// Returns the values of the fields of a message without groups and data.
pub fn decoded<'a>(template: &'a SbeTemplate, bytes: &'a [u8]) -> Vec<SbeValue<'a>> {
    let message = template
        .open(bytes)
        .unwrap_or_else(|error| panic!("{error}"));
    message
        .decode()
        .unwrap_or_else(|error| panic!("{error}"))
        .fields
}
