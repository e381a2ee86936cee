//! Decodes random data with random layouts, and compares the columns with a model that decodes one field at a time.

use std::sync::Arc;

use aeron_columns::layout::{FieldType, LayoutField, RecordDecoder, RecordLayout};
use arrow_array::cast::AsArray;
use arrow_array::types::{
    Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    TimestampMicrosecondType, TimestampNanosecondType,
};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, Schema, TimeUnit};
use proptest::collection::vec;
use proptest::prelude::*;

#[derive(Debug, PartialEq)]
enum Value {
    Integer(i128),
    /// The bits of a floating point number, so that NaN equals itself.
    Float(u64),
    Text(String),
    Null,
    Bytes(Vec<u8>),
}

/// Returns the value of a field in a record; `None` if it is malformed.
fn model_value(field: &LayoutField, record: &[u8]) -> Option<Value> {
    let keeps_nanoseconds = matches!(
        field.column_type(),
        DataType::Timestamp(TimeUnit::Nanosecond, _)
    );
    let end = field.offset() + field.kind().length();
    let mut bytes = record[field.offset()..end].to_vec();
    match field.kind() {
        FieldType::Bytes(_) => return Some(Value::Bytes(bytes)),
        FieldType::Char(_) => {
            let text = String::from_utf8(bytes).ok()?;
            let text = text.trim_end_matches(['\0', ' ']).to_owned();
            return Some(Value::Text(text));
        }
        _ => {}
    }
    if field.is_big_endian() {
        bytes.reverse();
    }
    let unsigned = (0..)
        .zip(&bytes)
        .map(|(place, byte)| i128::from(*byte) << (8 * place));
    let unsigned: i128 = unsigned.sum();
    let range = 1 << (8 * bytes.len());
    let signed = if unsigned >= range / 2 {
        unsigned - range
    } else {
        unsigned
    };
    let is_time = matches!(
        field.kind(),
        FieldType::TimestampMs | FieldType::TimestampUs | FieldType::TimestampNs
    );
    if is_time && signed == i64::MIN.into() {
        return Some(Value::Null);
    }
    let is_value = match field.kind() {
        FieldType::Bool => unsigned <= 1,
        FieldType::TimestampMs => i64::try_from(signed * 1000).is_ok(),
        FieldType::Dec64(_) => signed.abs().to_string().len() <= 18,
        _ => true,
    };
    is_value.then_some(match field.kind() {
        FieldType::F32 | FieldType::F64 => Value::Float(unsigned as u64),
        FieldType::U8 | FieldType::U16 | FieldType::U32 | FieldType::U64 => {
            Value::Integer(unsigned)
        }
        FieldType::TimestampMs => Value::Integer(signed * 1000),
        FieldType::TimestampNs if !keeps_nanoseconds => Value::Integer(signed.div_euclid(1000)),
        _ => Value::Integer(signed),
    })
}

fn column_value(column: &ArrayRef, row: usize) -> Value {
    macro_rules! integer {
        ($type:ty) => {
            Value::Integer(column.as_primitive::<$type>().value(row).into())
        };
    }
    if column.is_null(row) {
        return Value::Null;
    }
    match column.data_type() {
        DataType::Int8 => integer!(Int8Type),
        DataType::Int16 => integer!(Int16Type),
        DataType::Int32 => integer!(Int32Type),
        DataType::Int64 => integer!(Int64Type),
        DataType::Decimal128(..) => integer!(Decimal128Type),
        DataType::Timestamp(TimeUnit::Nanosecond, _) => integer!(TimestampNanosecondType),
        DataType::Timestamp(..) => integer!(TimestampMicrosecondType),
        DataType::Float32 => {
            let value = column.as_primitive::<Float32Type>().value(row);
            Value::Float(value.to_bits().into())
        }
        DataType::Float64 => {
            let value = column.as_primitive::<Float64Type>().value(row);
            Value::Float(value.to_bits())
        }
        DataType::Boolean => Value::Integer(column.as_boolean().value(row).into()),
        DataType::Utf8 => Value::Text(column.as_string::<i32>().value(row).to_owned()),
        DataType::Binary => Value::Bytes(column.as_binary::<i32>().value(row).to_owned()),
        other => panic!("no column of a layout is {other}"),
    }
}

fn any_type() -> impl Strategy<Value = String> {
    let plain = vec![
        "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f32", "f64", "bool", "ts_ms",
        "ts_us", "ts_ns",
    ];
    prop_oneof![
        3 => proptest::sample::select(plain).prop_map(str::to_owned),
        1 => (1..20_usize).prop_map(|length| format!("char[{length}]")),
        1 => (1..20_usize).prop_map(|length| format!("bytes[{length}]")),
        1 => (0..=18_u8).prop_map(|scale| format!("dec64:{scale}")),
    ]
}

/// Generates a layout. The order of the fields in the text may differ from their order in the record.
fn any_layout() -> impl Strategy<Value = RecordLayout> {
    let field = (any_type(), any::<bool>(), prop_oneof![Just(0), 0..10_usize]);
    let fields = (vec(field, 1..12), 0..10_usize).prop_map(|(fields, tail)| {
        let mut end = 0;
        let mut texts = Vec::new();
        for (number, (kind, is_big_endian, gap)) in fields.into_iter().enumerate() {
            let order = if is_big_endian { ">" } else { "" };
            texts.push(format!("@{} f{number} {order}{kind}", end + gap));
            let alone = RecordLayout::parse(&format!("f {kind}")).unwrap();
            end += gap + alone.record_length();
        }
        (texts, end + tail)
    });
    fields
        .prop_flat_map(|(texts, length)| (Just(texts).prop_shuffle(), Just(length)))
        .prop_map(|(texts, length)| {
            RecordLayout::parse(&format!("{}, ={length}", texts.join(", "))).unwrap()
        })
}

/// Generates a layout with columns of microseconds or of nanoseconds.
fn any_unit() -> impl Strategy<Value = RecordLayout> {
    (any_layout(), any::<bool>()).prop_map(|(layout, keeps_nanoseconds)| match keeps_nanoseconds {
        true => layout.with_nanoseconds(),
        false => layout,
    })
}

/// Generates bytes that are well-formed values for most fields.
fn any_bytes() -> impl Strategy<Value = Vec<u8>> {
    let often_sound = prop_oneof![20 => 0..2_u8, 1 => 32..127_u8];
    prop_oneof![
        3 => vec(often_sound, 0..4000),
        1 => vec(any::<u8>(), 0..400),
    ]
}

/// Returns the whole records at the start of `bytes`.
fn records<'a>(layout: &RecordLayout, bytes: &'a [u8]) -> &'a [u8] {
    let length = layout.record_length();
    &bytes[..bytes.len() / length * length]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// 08-65
    #[test]
    fn any_records_of_any_layout_are_decoded_as_in_the_model(layout in any_unit(), bytes in any_bytes()) {
        let records = records(&layout, &bytes);
        let values = |record| layout.fields().iter().map(|field| model_value(field, record)).collect();
        let expected: Vec<Option<Vec<Value>>> = records.chunks(layout.record_length()).map(values).collect();
        match RecordDecoder::new(&layout).decode(records) {
            Err(error) => prop_assert_eq!(Some(error.record), expected.iter().position(Option::is_none)),
            Ok(columns) => {
                for (column, field) in columns.iter().zip(layout.columns()) {
                    prop_assert_eq!(column.data_type(), field.data_type());
                    prop_assert_eq!(column.len(), expected.len());
                }
                for (row, expected) in expected.into_iter().enumerate() {
                    let found = columns.iter().map(|column| column_value(column, row)).collect();
                    prop_assert_eq!(Some(found), expected);
                }
            }
        }
    }

    /// 08-65
    #[test]
    fn columns_are_unchanged_after_encoding_and_decoding(layout in any_unit(), bytes in any_bytes()) {
        let Ok(columns) = RecordDecoder::new(&layout).decode(records(&layout, &bytes)) else {
            return Ok(());
        };
        let batch = RecordBatch::try_new(Arc::new(Schema::new(layout.columns())), columns.clone()).unwrap();
        let mut again = Vec::new();
        let encoder = layout.encoder(&batch).unwrap();
        match encoder.encode(0..batch.num_rows(), &mut again) {
            Ok(()) => prop_assert_eq!(RecordDecoder::new(&layout).decode(&again).unwrap(), columns),
            // The earliest time in nanoseconds is rounded down to a microsecond that `ts_ns` cannot represent.
            Err(error) => prop_assert!(error.to_string().contains("ts_ns"), "{}", error),
        }
    }

    #[test]
    fn the_printed_text_of_a_layout_parses_to_an_equal_layout(layout in any_layout()) {
        prop_assert_eq!(RecordLayout::parse(&layout.to_string()), Ok(layout));
    }

    #[test]
    fn no_text_makes_the_parser_panic(text in "[@=>a-c0-9_ ,:\\[\\]iuftschar]{0,40}|.{0,40}") {
        let _ = RecordLayout::parse(&text);
    }
}
