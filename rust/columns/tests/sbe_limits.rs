//! SBE messages that ask for more rows, memory or time than their bytes are worth, and names of columns that clash.

use std::sync::Arc;

use aeron_columns::read::{Mode, Projection, ValueFormat};
use aeron_columns::sbe::{SbeColumnOptions, SbeColumns, SbeSelected};
use aeron_columns::write::Payloads;
use aeron_sbe::plan::SbePlan;
use arrow_array::cast::AsArray;
use arrow_array::types::UInt8Type;
use arrow_array::{Array, BinaryArray};

const TYPES: &str = r#"<type name="wide" primitiveType="uint8" length="65000"/>
<type name="three" primitiveType="uint8" presence="constant">3</type>
<type name="usd" primitiveType="char" length="3" presence="constant">USD</type>"#;

/// Returns the plan of a schema with the message `M`, which has these elements.
fn plan(elements: &str) -> Arc<SbePlan> {
    crate::sbe_support::plan_of(TYPES, elements)
}

fn columns(elements: &str, group: Option<&str>) -> SbeColumns {
    SbeColumns::new(&plan(elements), "M", group, SbeColumnOptions::default()).expect("columns")
}

fn decode(columns: &SbeColumns, messages: &[Vec<u8>], mode: Mode) -> Result<SbeSelected, String> {
    let array = BinaryArray::from_iter_values(messages);
    let payloads = Payloads::of(&array).expect("bytes");
    let all: Vec<usize> = (0..columns.fields().len()).collect();
    columns
        .decode_messages(&payloads, None, &all, 0, mode)
        .map_err(|bad| format!("message {}: {}", bad.message, bad.reason))
}

fn header(block_length: u16, version: u16) -> Vec<u8> {
    let numbers = [block_length, 1, 7, version];
    numbers
        .iter()
        .flat_map(|number| number.to_le_bytes())
        .collect()
}

/// Returns a message of version 0 whose group has this many entries without bytes.
fn empty_entries(count: u32) -> Vec<u8> {
    let mut message = header(0, 0);
    message.extend([0; 4]);
    message.extend(count.to_le_bytes());
    message
}

const NEWER_GROUP: &str = r#"<group name="g" id="2" dimensionType="g32">
    <field name="x" id="3" type="TYPE" sinceVersion="2"/></group>"#;

#[test]
fn a_short_message_does_not_get_rows_of_wide_nulls() {
    let columns = columns(&NEWER_GROUP.replace("TYPE", "wide"), None);
    let refused = decode(&columns, &[empty_entries(65_535)], Mode::FailFast);
    let reason = refused.expect_err("4 GB of nulls");
    assert!(
        reason.contains("message 0: fields that are newer"),
        "{reason}"
    );
    let few = decode(&columns, &[empty_entries(10)], Mode::FailFast).expect("650 kB");
    assert_eq!(few.decoded.rows, 1);
}

#[test]
fn many_short_messages_do_not_get_rows_of_nulls_without_limit() {
    for group in [None, Some("g")] {
        let columns = columns(&NEWER_GROUP.replace("TYPE", "uint8"), group);
        let messages = vec![empty_entries(65_535); 200];
        let reason = decode(&columns, &messages, Mode::FailFast).expect_err("13 million rows");
        assert!(reason.contains("entries without bytes"), "{reason}");
    }
}

#[test]
fn wide_newer_fields_of_many_messages_are_limited() {
    let columns = columns(
        r#"<field name="v" id="1" type="wide" sinceVersion="2"/>"#,
        None,
    );
    let messages = vec![header(0, 1); 100_000];
    let reason = decode(&columns, &messages, Mode::FailFast).expect_err("6.5 GB of nulls");
    assert!(reason.contains("read fewer columns"), "{reason}");
    let few = decode(&columns, &messages[..100], Mode::FailFast).expect("6.5 MB");
    assert_eq!(few.decoded.rows, 100);
}

#[test]
fn messages_that_add_too_much_are_dropped_and_the_others_are_read() {
    let columns = columns(&NEWER_GROUP.replace("TYPE", "wide"), None);
    let mut messages = vec![empty_entries(2000); 5];
    messages.insert(2, empty_entries(60_000));
    let selected = decode(&columns, &messages, Mode::DropMalformed).expect("messages are dropped");
    assert!(selected.malformed() >= 1);
    assert_eq!(selected.decoded.rows as u64 + selected.malformed(), 6);
    assert!(!selected.indexes().values().contains(&2));
}

#[test]
fn old_messages_with_many_newer_fields_are_read() {
    let fields = (1..=50)
        .map(|id| format!(r#"<field name="f{id}" id="{id}" type="uint64" sinceVersion="1"/>"#));
    let columns = columns(&fields.collect::<String>(), None);
    let selected = decode(&columns, &vec![header(0, 0); 100_000], Mode::FailFast);
    assert_eq!(selected.expect("40 MB of nulls").decoded.rows, 100_000);
}

const GROUP_AND_TEXT: &str = r#"<field name="i" id="1" type="int32"/>
    <group name="g" id="2"><field name="x" id="3" type="uint8"/></group><data name="t" id="4" type="varText"/>"#;

fn entries_and_text(entries: u16, text: usize) -> Vec<u8> {
    let mut message = header(4, 3);
    message.extend([0; 4]);
    message.extend(1_u16.to_le_bytes());
    message.extend(entries.to_le_bytes());
    message.resize(message.len() + usize::from(entries), b'a');
    message.extend((text as u32).to_le_bytes());
    message.resize(message.len() + text, b'b');
    message
}

#[test]
fn one_long_text_does_not_count_for_the_entries_of_other_messages() {
    let columns = columns(GROUP_AND_TEXT, Some("g"));
    let mut messages = vec![entries_and_text(1, 1 << 21)];
    messages.extend(vec![entries_and_text(60_000, 1); 50]);
    let selected = decode(&columns, &messages, Mode::FailFast).expect("5 MB of texts");
    assert_eq!(selected.decoded.rows, 3_000_001);
}

#[test]
fn a_long_text_of_many_entries_is_refused_with_its_message() {
    let columns = columns(GROUP_AND_TEXT, Some("g"));
    let mut messages = vec![entries_and_text(0, 1); 5000];
    messages.push(entries_and_text(3000, 1 << 20));
    let reason = decode(&columns, &messages, Mode::FailFast).expect_err("3 GB of texts");
    assert!(
        reason.contains("message 5000: the values of messages, repeated"),
        "{reason}"
    );
    let selected = decode(&columns, &messages, Mode::DropMalformed).expect("one is dropped");
    assert_eq!((selected.decoded.rows, selected.malformed()), (0, 1));
}

#[test]
fn malformed_messages_among_many_are_dropped_and_their_indexes_are_missing() {
    let columns = columns(
        r#"<field name="v" id="1" type="uint64" semanticType="UTCTimestamp"/>"#,
        None,
    );
    let good = |number: u64| [header(8, 3), number.to_le_bytes().to_vec()].concat();
    let bad = good(u64::MAX);
    let mut messages: Vec<_> = (0..5000).map(good).collect();
    for index in [0, 1023, 1024, 3001, 4999] {
        messages[index] = bad.clone();
    }
    let selected = decode(&columns, &messages, Mode::DropMalformed).expect("bad ones are dropped");
    assert_eq!((selected.decoded.rows, selected.malformed()), (4995, 5));
    let indexes = selected.indexes();
    assert_eq!(&indexes.values()[..3], &[1, 2, 3]);
    assert_eq!(indexes.values()[1022], 1025);
    let every = decode(&columns, &vec![bad; 3000], Mode::DropMalformed).expect("all are dropped");
    assert_eq!((every.decoded.rows, every.malformed()), (0, 3000));
}

#[test]
fn a_name_that_the_message_has_with_the_group_as_prefix_is_refused() {
    let plan = plan(
        r#"<field name="price" id="1" type="uint8"/><field name="legs_price" id="2" type="uint8"/>
        <group name="legs" id="3"><field name="price" id="1" type="uint8"/></group>"#,
    );
    let refused = SbeColumns::new(&plan, "M", Some("legs"), SbeColumnOptions::default());
    let reason = refused.expect_err("two columns of one name").to_string();
    assert!(
        reason.contains("two columns of one name: 'legs_price' and 'legs_price'"),
        "{reason}"
    );
    SbeColumns::new(&plan, "M", None, SbeColumnOptions::default()).expect("no clash");
}

#[test]
fn names_that_differ_only_by_case_are_refused_for_spark_only() {
    let plan = plan(
        r#"<field name="Price" id="1" type="uint8"/><field name="price" id="2" type="uint8"/>"#,
    );
    let for_spark = SbeColumnOptions {
        for_spark: true,
        ..SbeColumnOptions::default()
    };
    let refused = SbeColumns::new(&plan, "M", None, for_spark);
    let reason = refused.expect_err("Spark ignores case").to_string();
    assert!(reason.contains("'Price' and 'price'"), "{reason}");
    let columns = SbeColumns::new(&plan, "M", None, SbeColumnOptions::default());
    assert_eq!(columns.expect("Arrow does not").fields().len(), 2);
}

#[test]
fn constants_are_columns_if_a_caller_asks_for_them() {
    let elements = r#"<field name="a" id="1" type="three"/><field name="x" id="2" type="uint8"/>
        <group name="g" id="3"><field name="currency" id="1" type="usd"/><field name="y" id="2" type="uint8"/></group>"#;
    let columns = columns(elements, Some("g"));
    let names = |fields: Vec<arrow_schema::Field>| {
        let names = fields.into_iter().map(|field| field.name().clone());
        names.collect::<Vec<_>>()
    };
    assert_eq!(names(columns.fields()), ["x", "y"]);
    let more = ["a", "currency", "template_id", "schema_id", "version"];
    assert_eq!(names(columns.header_fields()), more);
    let mut message = header(1, 3);
    message.extend([5, 1, 0, 2, 0, 6, 7]);
    let array = BinaryArray::from_iter_values([message]);
    let payloads = Payloads::of(&array).expect("bytes");
    let selected = columns.decode_messages(&payloads, None, &[2, 3], 0, Mode::FailFast);
    let decoded = selected.expect("a sound message").decoded;
    assert_eq!(
        decoded.columns[0].as_primitive::<UInt8Type>().values(),
        &[3, 3]
    );
    assert_eq!(decoded.columns[1].as_string::<i32>().value(1), "USD");
    for (field, column) in columns.header_fields().iter().zip(&decoded.columns) {
        assert_eq!(field.data_type(), column.data_type());
    }
}

#[test]
fn a_constant_does_not_hide_a_column_of_the_header() {
    let elements =
        r#"<field name="Position" id="1" type="three"/><field name="x" id="2" type="uint8"/>"#;
    let format = ValueFormat::sbe(columns(elements, None));
    let projection = Projection::of_columns(None, &format, Mode::FailFast).expect("columns");
    let position = projection.schema().field_with_name("position");
    let position = position.expect("the position of the message");
    assert_eq!(position.data_type(), &arrow_schema::DataType::Int64);
}
