//! Rows as SBE messages: what is refused, and that messages that became columns are encoded to the same values.

use std::sync::Arc;

use crate::sbe_support::plan_of;
use aeron_columns::sbe::{SbeColumnOptions, SbeColumns, SbeEncoder};
use aeron_columns::write::EncodedRows;
use aeron_sbe::plan::SbePlan;
use arrow_array::types::{Int32Type, UInt8Type};
use arrow_array::{
    Array, ArrayRef, BinaryArray, Decimal128Array, DictionaryArray, Float32Array, Float64Array,
    Int32Array, Int64Array, ListArray, RecordBatch, StringArray, StructArray,
    TimestampMicrosecondArray, UInt8Array,
};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{DataType, Field, Schema};

/// Returns the messages of the rows of these columns.
fn encode(plan: &Arc<SbePlan>, columns: Vec<(&str, ArrayRef)>) -> Result<Vec<Vec<u8>>, String> {
    let fields = columns
        .iter()
        .map(|(name, column)| Field::new(*name, column.data_type().clone(), true));
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let columns = columns.into_iter().map(|(_, column)| column);
    let rows = RecordBatch::try_new(schema, columns.collect()).expect("columns of equal lengths");
    let mut encoded = EncodedRows::default();
    let encoder = SbeEncoder::new(plan, "M").expect("the message");
    encoder
        .encode(&rows, &mut encoded)
        .map_err(|error| format!("{:?}: {error}", error.row))?;
    let ranges = encoded.offsets.windows(2);
    Ok(ranges
        .map(|range| encoded.bytes[range[0] as usize..range[1] as usize].to_vec())
        .collect())
}

fn refused(plan: &Arc<SbePlan>, columns: Vec<(&str, ArrayRef)>) -> String {
    encode(plan, columns).expect_err("the rows are refused")
}

/// Returns the columns of messages, by name.
fn decoded(plan: &Arc<SbePlan>, messages: &[Vec<u8>]) -> Vec<(String, ArrayRef)> {
    let columns = SbeColumns::new(plan, "M", None, SbeColumnOptions::default()).expect("columns");
    let mut end = 0;
    let ends = messages.iter().map(|message| {
        end += message.len();
        end
    });
    let fields = columns.fields();
    let all: Vec<usize> = (0..fields.len()).collect();
    let decoded = columns
        .decode(&messages.concat(), 0, ends, &all)
        .expect("sound messages");
    fields
        .iter()
        .map(|field| field.name().clone())
        .zip(decoded.columns)
        .collect()
}

/// Asserts that the rows, encoded and decoded, are encoded to the same messages.
fn returns(plan: &Arc<SbePlan>, columns: Vec<(&str, ArrayRef)>) -> Vec<(String, ArrayRef)> {
    let messages = encode(plan, columns).expect("sound values");
    let decoded = decoded(plan, &messages);
    let again = decoded
        .iter()
        .map(|(name, column)| (name.as_str(), Arc::clone(column)));
    assert_eq!(
        encode(plan, again.collect()).expect("the same values"),
        messages
    );
    decoded
}

fn field(kind: &str) -> String {
    format!("<field name=\"v\" id=\"1\" type=\"{kind}\"/>")
}

fn v(column: impl Array + 'static) -> Vec<(&'static str, ArrayRef)> {
    vec![("v", Arc::new(column))]
}

#[test]
fn a_null_entry_of_a_group_is_refused() {
    let plan = plan_of(
        "",
        "<group name=\"g\" id=\"1\"><field name=\"x\" id=\"2\" type=\"uint8\"/></group>",
    );
    let entries = |nulls: Option<NullBuffer>| {
        let x = Arc::new(UInt8Array::from(vec![1, 2]));
        let fields = vec![Field::new("x", DataType::UInt8, true)];
        let structures = StructArray::new(fields.into(), vec![x], nulls);
        let item = Arc::new(Field::new("item", structures.data_type().clone(), true));
        let lists = ListArray::new(
            item,
            OffsetBuffer::from_lengths([2]),
            Arc::new(structures),
            None,
        );
        vec![("g", Arc::new(lists) as ArrayRef)]
    };
    let reason = refused(&plan, entries(Some(vec![true, false].into())));
    assert!(
        reason.contains("group 'g', entry 1: the entry is null"),
        "{reason}"
    );
    returns(&plan, entries(None));
}

#[test]
fn two_columns_of_one_name_and_unknown_members_are_refused() {
    let one = || Arc::new(UInt8Array::from(vec![1])) as ArrayRef;
    let plan = plan_of("", &field("uint8"));
    let reason = refused(&plan, vec![("v", one()), ("v", one())]);
    assert!(reason.contains("two columns have the name 'v'"), "{reason}");
    let types = "<composite name=\"C\"><type name=\"a\" primitiveType=\"uint8\"/>\
        <type name=\"b\" primitiveType=\"uint8\"/></composite>";
    let plan = plan_of(types, &field("C"));
    let members = |names: [&str; 2]| {
        let fields = names.map(|name| Field::new(name, DataType::UInt8, true));
        v(StructArray::new(
            fields.to_vec().into(),
            vec![one(), one()],
            None,
        ))
    };
    returns(&plan, members(["a", "b"]));
    assert!(refused(&plan, members(["a", "c"])).contains("no element 'c' exists"));
    assert!(refused(&plan, members(["a", "a"])).contains("two columns have the name 'a'"));
}

#[test]
fn a_constant_takes_its_own_value_only() {
    let types = "<type name=\"three\" primitiveType=\"uint8\" presence=\"constant\">3</type>";
    let plan = plan_of(
        types,
        &format!(
            "{}<field name=\"x\" id=\"2\" type=\"uint8\"/>",
            field("three")
        ),
    );
    let columns = |constant: Option<i64>| {
        let constant = Arc::new(Int64Array::from(vec![constant])) as ArrayRef;
        vec![
            ("v", constant),
            ("x", Arc::new(UInt8Array::from(vec![1])) as ArrayRef),
        ]
    };
    encode(&plan, columns(Some(3))).expect("the value of the constant");
    encode(&plan, columns(None)).expect("no value");
    assert!(refused(&plan, columns(Some(99))).contains("is constant"));
}

#[test]
fn a_set_as_a_structure_needs_booleans() {
    let types = "<set name=\"S\" encodingType=\"uint8\"><choice name=\"A\">0</choice></set>";
    let plan = plan_of(types, &field("S"));
    let one: ArrayRef = Arc::new(UInt8Array::from(vec![1]));
    let fields = vec![Field::new("A", DataType::UInt8, true)];
    let reason = refused(&plan, v(StructArray::new(fields.into(), vec![one], None)));
    assert!(reason.contains("'A' is not a boolean"), "{reason}");
}

const WIRE: &str = "<composite name=\"W\"><type name=\"mantissa\" primitiveType=\"int32\"/>\
    <type name=\"exponent\" primitiveType=\"int8\"/></composite>";

#[test]
fn decimals_with_their_exponents_in_the_messages_return_with_any_scale() {
    let plan = plan_of(WIRE, &field("W"));
    let values = vec![125, 10_i128.pow(14), -3_000_000_000_000, 0, 7];
    let column = Decimal128Array::from(values.clone());
    let column = column.with_precision_and_scale(38, 2).expect("a scale");
    let decoded = returns(&plan, v(column));
    let expected = values.iter().map(|value| value * 10_i128.pow(7));
    let expected = Decimal128Array::from_iter_values(expected);
    let expected = expected.with_precision_and_scale(38, 9).expect("a scale");
    assert_eq!(&decoded[0].1.to_data(), &expected.to_data());
    let long = Decimal128Array::from(vec![1_250_000_000_000_000]);
    let long = long.with_precision_and_scale(38, 9).expect("a scale");
    assert_eq!(
        encode(&plan, v(long)).expect("1250000")[0][8..],
        [125, 0, 0, 0, 4]
    );
}

#[test]
fn floats_become_decimals_without_digits_of_their_encoding() {
    let plan = plan_of(WIRE, &field("W"));
    let of_doubles = encode(&plan, v(Float64Array::from(vec![1.1, -2.5e-3]))).expect("doubles");
    assert_eq!(of_doubles[0][8..], [11, 0, 0, 0, 255]);
    assert_eq!(of_doubles[1][8..], [231, 255, 255, 255, 252]);
    let of_floats = encode(&plan, v(Float32Array::from(vec![1.1, -2.5e-3]))).expect("floats");
    assert_eq!(of_floats, of_doubles);
    assert!(refused(&plan, v(Float64Array::from(vec![f64::INFINITY]))).contains("a finite number"));
}

#[test]
fn integers_take_whole_floats_and_negative_decimals() {
    let plan = plan_of("", &field("int64"));
    let expected = encode(&plan, v(Int64Array::from(vec![-5]))).expect("an integer");
    assert_eq!(
        encode(&plan, v(Float64Array::from(vec![-5.0]))).expect("a float"),
        expected
    );
    let minus_five = Decimal128Array::from(vec![-500]);
    let minus_five = minus_five.with_precision_and_scale(9, 2).expect("a scale");
    assert_eq!(encode(&plan, v(minus_five)).expect("a decimal"), expected);
    let unsigned = plan_of("", &field("uint64"));
    let numbers = [Some(5), None, Some(i128::from(u64::MAX) - 1)];
    let decimals = |count: usize| {
        let decimals = Decimal128Array::from_iter(numbers.into_iter().cycle().take(count));
        decimals.with_precision_and_scale(20, 0).expect("a scale")
    };
    assert!(refused(&unsigned, v(decimals(3))).starts_with("Some(1): field 'v' is required"));
    let optional = "<type name=\"o\" primitiveType=\"uint64\" presence=\"optional\"/>";
    let optional = plan_of(optional, &field("o"));
    let messages = encode(&optional, v(decimals(600))).expect("numbers and nulls");
    for (message, number) in messages.iter().zip(numbers.into_iter().cycle()) {
        let number = number.map_or(u64::MAX, |number| number as u64);
        assert_eq!(message[8..], number.to_le_bytes());
    }
    let reason = refused(&plan, v(Float64Array::from(vec![1.0, 1.5])));
    assert!(
        reason.starts_with("Some(1)") && reason.contains("needs an integer, not 1.5"),
        "{reason}"
    );
}

#[test]
fn the_null_value_of_a_required_enum_returns_by_its_name() {
    let types = "<enum name=\"E\" encodingType=\"uint8\"><validValue name=\"A\">1</validValue>\
        <validValue name=\"nullValue\">9</validValue></enum>";
    let plan = plan_of(
        types,
        "<field name=\"v\" id=\"1\" type=\"E\" presence=\"required\"/>",
    );
    let decoded = returns(&plan, v(StringArray::from(vec!["A", "nullValue"])));
    let column = decoded[0]
        .1
        .as_any()
        .downcast_ref::<DictionaryArray<Int32Type>>()
        .expect("names");
    let texts: Vec<_> = column
        .downcast_dict::<StringArray>()
        .expect("texts")
        .into_iter()
        .collect();
    assert_eq!(texts, [Some("A"), Some("nullValue")]);
}

#[test]
fn a_required_character_with_byte_0_is_the_empty_text() {
    let plan = plan_of("", &field("char"));
    let decoded = returns(&plan, v(StringArray::from(vec!["", "x"])));
    assert_eq!(
        decoded[0].1.to_data(),
        StringArray::from(vec!["", "x"]).to_data()
    );
}

const ALL: &str = r#"<field name="i" id="1" type="int32"/><field name="o" id="2" type="optional"/>
    <field name="t" id="3" type="uint64" semanticType="UTCTimestamp"/><field name="e" id="4" type="E"/>
    <field name="d" id="5" type="D"/><field name="c" id="6" type="text"/>"#;
const ALL_TYPES: &str = r#"<type name="optional" primitiveType="int64" presence="optional" minValue="-3"/>
    <enum name="E" encodingType="uint16"><validValue name="A">1</validValue><validValue name="B">300</validValue></enum>
    <composite name="D"><type name="mantissa" primitiveType="int64"/>
    <type name="exponent" primitiveType="int8" presence="constant">-4</type></composite>
    <type name="text" primitiveType="char" length="4"/>"#;

fn all_columns(rows: i64) -> Vec<(&'static str, ArrayRef)> {
    let names = (0..rows).map(|row| if row % 3 == 0 { "B" } else { "A" });
    let decimals = Decimal128Array::from_iter_values((0..rows).map(|row| i128::from(row) * 25));
    vec![
        (
            "i",
            Arc::new(Int32Array::from_iter_values(
                (0..rows).map(|row| row as i32 - 9),
            )) as ArrayRef,
        ),
        (
            "o",
            Arc::new(
                (0..rows)
                    .map(|row| (row % 2 == 0).then_some(row))
                    .collect::<Int64Array>(),
            ),
        ),
        (
            "t",
            Arc::new(TimestampMicrosecondArray::from_iter_values(0..rows)),
        ),
        ("e", Arc::new(names.collect::<DictionaryArray<Int32Type>>())),
        (
            "d",
            Arc::new(decimals.with_precision_and_scale(20, 2).expect("a scale")),
        ),
        (
            "c",
            Arc::new(StringArray::from_iter_values(
                (0..rows).map(|row| format!("{}", row % 7)),
            )),
        ),
    ]
}

/// Returns the columns with the one of a name replaced.
fn replaced(name: &str, column: ArrayRef) -> Vec<(&'static str, ArrayRef)> {
    let mut columns = all_columns(column.len() as i64);
    columns
        .iter_mut()
        .filter(|(other, _)| *other == name)
        .for_each(|all| all.1 = Arc::clone(&column));
    columns
}

#[test]
fn columns_are_encoded_as_single_rows_are() {
    let plan = plan_of(ALL_TYPES, ALL);
    let columns = all_columns(3000);
    let messages = encode(&plan, columns.clone()).expect("sound values");
    assert_eq!(messages.len(), 3000);
    for row in [0, 1, 2, 511, 512, 2999] {
        let single = columns
            .iter()
            .map(|(name, column)| (*name, column.slice(row, 1)));
        assert_eq!(
            encode(&plan, single.collect()).expect("sound values"),
            [messages[row].clone()]
        );
    }
    returns(&plan, columns.clone());
    let reordered = columns.into_iter().rev().collect();
    assert_eq!(encode(&plan, reordered).expect("sound values"), messages);
}

#[test]
fn a_bad_value_of_a_column_is_refused_with_its_row() {
    let plan = plan_of(ALL_TYPES, ALL);
    let times: Vec<i64> = (0..700)
        .map(|row| if row == 600 { -1 } else { row })
        .collect();
    let bad_time = Arc::new(TimestampMicrosecondArray::from(times)) as ArrayRef;
    let names = (0..700).map(|row| if row == 650 { "X" } else { "A" });
    let bad_name = Arc::new(names.collect::<DictionaryArray<Int32Type>>()) as ArrayRef;
    let bad_null = Arc::new(
        (0..700)
            .map(|row| (row != 5).then_some(row))
            .collect::<Int32Array>(),
    );
    let bad_limit = Arc::new(Int64Array::from(vec![-3, -4])) as ArrayRef;
    for (name, column, words) in [
        ("t", bad_time, "Some(600): "),
        ("e", bad_name, "Some(650): field 'e': 'E' has no value 'X'"),
        ("i", bad_null, "Some(5): field 'i' is required"),
        ("o", bad_limit, "Some(1): field 'o': -4 is not from -3"),
    ] {
        let reason = refused(&plan, replaced(name, column));
        assert!(reason.contains(words), "{reason}, not {words}");
    }
    let missing = all_columns(2)
        .into_iter()
        .filter(|(name, _)| *name != "i")
        .collect();
    assert!(refused(&plan, missing).contains("field 'i' is required"));
    let optional = all_columns(2)
        .into_iter()
        .filter(|(name, _)| *name != "o")
        .collect();
    let messages = encode(&plan, optional).expect("null");
    assert_eq!(messages[1][12..20], i64::MIN.to_le_bytes());
}

#[test]
fn bytes_of_a_message_are_no_column_of_numbers() {
    let plan = plan_of("", &field("uint8"));
    let reason = refused(&plan, v(BinaryArray::from_vec(vec![b"a"])));
    assert!(
        reason.contains("field 'v' needs a number, not 1 bytes"),
        "{reason}"
    );
    let number = arrow_array::PrimitiveArray::<UInt8Type>::from(vec![7]);
    returns(&plan, v(number));
}
