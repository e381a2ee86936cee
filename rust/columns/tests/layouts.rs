//! Tests of record layouts: parsing their texts, and converting every type from record to column and back.

use std::sync::Arc;

use aeron_columns::layout::{
    FieldType, LayoutField, MAX_RECORD_LENGTH, RecordDecoder, RecordEncodeError, RecordLayout,
};
use arrow_array::cast::AsArray;
use arrow_array::types::{Int16Type, Int32Type, TimestampMicrosecondType, TimestampNanosecondType};
use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, Decimal128Array, Float32Array, Float64Array,
    Int8Array, Int16Array, Int32Array, Int64Array, LargeBinaryArray, LargeStringArray, RecordBatch,
    StringArray, TimestampMicrosecondArray,
};
use arrow_schema::{DataType, Field, Schema, TimeUnit};

fn layout(text: &str) -> RecordLayout {
    text.parse().unwrap()
}

fn offsets(layout: &RecordLayout) -> Vec<usize> {
    layout.fields().iter().map(LayoutField::offset).collect()
}

/// Creates a record batch with the columns of a layout and these values.
fn batch(layout: &RecordLayout, columns: Vec<ArrayRef>) -> RecordBatch {
    RecordBatch::try_new(Arc::new(Schema::new(layout.columns())), columns).unwrap()
}

fn encode(layout: &RecordLayout, columns: Vec<ArrayRef>) -> Result<Vec<u8>, RecordEncodeError> {
    let batch = batch(layout, columns);
    let mut records = Vec::new();
    let encoder = layout.encoder(&batch)?;
    encoder.encode(0..batch.num_rows(), &mut records)?;
    Ok(records)
}

fn decode(layout: &RecordLayout, records: &[u8]) -> Vec<ArrayRef> {
    RecordDecoder::new(layout).decode(records).unwrap()
}

fn int64s(values: impl IntoIterator<Item = i64>) -> Vec<u8> {
    values.into_iter().flat_map(i64::to_le_bytes).collect()
}

/// 08-61
#[test]
fn fields_are_packed_in_order_unless_an_offset_is_given() {
    let packed = layout("ts ts_ns, px f64, qty i64, sym i32, side i32, seq i64, flags i64");
    assert_eq!(offsets(&packed), [0, 8, 16, 24, 28, 32, 40]);
    assert_eq!(packed.record_length(), 48);

    let spread = layout("a i8, @8 b >i16, c char[3] , @4 d i32 , @16, e bool =32");
    assert_eq!(offsets(&spread), [0, 8, 10, 4, 16]);
    assert_eq!(spread.record_length(), 32);
    assert!(spread.field("b").unwrap().is_big_endian());
    assert!(!spread.field("a").unwrap().is_big_endian());
    assert_eq!(spread.field("c").unwrap().kind(), FieldType::Char(3));
    assert_eq!(layout("a i8, =8"), layout("a i8 =8"));
    let text = layout("@8 a >u8, b dec64:3").to_string();
    assert_eq!(text, "@8 a u8, @9 b dec64:3, =17");
}

/// 08-62
#[test]
fn the_error_for_an_invalid_text_names_field_and_offset() {
    let refused = |text: &str, expected: &str| {
        let error = RecordLayout::parse(text).unwrap_err().to_string();
        assert_eq!(error, expected, "{text}");
    };
    refused(
        "a i32, px f65",
        "'px' at offset 4: unknown type 'f65'; there are i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 bool ts_ms ts_us ts_ns char[n] \
         bytes[n] dec64:s",
    );
    refused(
        "a i64, @4 b i32",
        "'b' at offset 4: overlaps 'a', which has the bytes 0 to 7",
    );
    refused(
        "a i32, b i32, A f64",
        "'A' at offset 8: the name is there twice (case does not matter)",
    );
    refused(
        "a i32, b char[0]",
        "'b' at offset 4: '0' is not a number from 1 to 65536",
    );
    refused(
        "a i32, b bytes[65536]",
        "'b' at offset 4: ends at 65540, but a record has at most 65536 bytes",
    );
    refused(
        "a i32, b i64 =8",
        "'b' at offset 4: ends at 12, beyond the record length 8",
    );
    refused(
        "a i32 =0",
        "'=0' at offset 0: '0' is not a number from 1 to 65536",
    );
    refused(
        "@-1 a i32",
        "'@-1' at offset 0: '-1' is not a number from 0 to 65536",
    );
    refused(
        "a i32, =8, b i8",
        "'b i8' at offset 4: nothing may follow the record length '=n'",
    );
    refused(
        "",
        "'' at offset 0: expected 'name type', as in 'price f64'",
    );
    refused("=8", "'' at offset 0: a layout needs a field");
    refused(
        "a",
        "'a' at offset 0: expected 'name type', as in 'price f64'",
    );
    refused(
        "a i8, 1b i32",
        "'1b' at offset 1: a name has letters, digits and '_', and does not begin with a digit",
    );
    refused(
        "a dec64:19",
        "'a' at offset 0: 'dec64:19' needs 0 to 18 decimal places",
    );
    refused(
        "a dec64:",
        "'a' at offset 0: 'dec64:' needs 0 to 18 decimal places",
    );
    let longest = layout("a i8, b bytes[65535]");
    assert_eq!(longest.record_length(), MAX_RECORD_LENGTH);
}

/// 08-60
#[test]
fn each_type_is_encoded_and_decoded_at_its_limits() {
    let through = |kind: &str, column: ArrayRef| {
        for order in ["", ">"] {
            let layout = layout(&format!("@3 v {order}{kind} =32"));
            let records = encode(&layout, vec![column.clone()]).unwrap();
            assert_eq!(records.len(), 32 * column.len());
            assert_eq!(&decode(&layout, &records)[0], &column, "{order}{kind}");
        }
    };
    let int8s = Int8Array::from(vec![i8::MIN, 0, i8::MAX]);
    through("i8", Arc::new(int8s));
    let int16s = Int16Array::from(vec![i16::MIN, 0, i16::MAX]);
    through("i16", Arc::new(int16s));
    let int32s = Int32Array::from(vec![i32::MIN, 0, i32::MAX]);
    through("i32", Arc::new(int32s));
    let int64s = Int64Array::from(vec![i64::MIN, 0, i64::MAX]);
    through("i64", Arc::new(int64s));
    through("u8", Arc::new(Int16Array::from(vec![0, 255])));
    through("u16", Arc::new(Int32Array::from(vec![0, 65_535])));
    through("u32", Arc::new(Int64Array::from(vec![0, 0xFFFF_FFFF])));
    let decimals = |values: Vec<i128>, precision, scale| -> ArrayRef {
        let values = Decimal128Array::from(values);
        Arc::new(values.with_precision_and_scale(precision, scale).unwrap())
    };
    through("u64", decimals(vec![0, u64::MAX.into()], 20, 0));
    let largest = 999_999_999_999_999_999;
    through("dec64:0", decimals(vec![-largest, 0, largest], 18, 0));
    through("dec64:18", decimals(vec![-largest, 0, largest], 18, 18));
    let float32s = Float32Array::from(vec![f32::NAN, f32::INFINITY, f32::MIN, -0.0]);
    through("f32", Arc::new(float32s));
    let float64s = Float64Array::from(vec![f64::NAN, f64::NEG_INFINITY, f64::MAX, -0.0]);
    through("f64", Arc::new(float64s));
    let bools = BooleanArray::from(vec![true, false, true]);
    through("bool", Arc::new(bools));
    let texts = StringArray::from(vec!["", "12345678", "\u{20ac}\u{20ac}", " a"]);
    through("char[8]", Arc::new(texts));
    let bytes = BinaryArray::from(vec![&[0_u8, 0, 0][..], &[255, 32, 0]]);
    through("bytes[3]", Arc::new(bytes));
    let times = |values: Vec<i64>| -> ArrayRef {
        Arc::new(TimestampMicrosecondArray::from(values).with_timezone("UTC"))
    };
    let (least, most) = (i64::MIN / 1000, i64::MAX / 1000);
    through("ts_us", times(vec![i64::MIN + 1, -1, 0, i64::MAX]));
    through("ts_ms", times(vec![least * 1000, -1000, 0, most * 1000]));
    through("ts_ns", times(vec![least, -1, 0, most]));
}

/// 08-60
#[test]
fn a_time_of_the_least_integer_is_null_in_every_unit_and_only_there() {
    let nanoseconds = |layout: &RecordLayout| layout.clone().with_nanoseconds();
    for order in ["", ">"] {
        let text = format!("ms {order}ts_ms, us {order}ts_us, ns {order}ts_ns, n {order}i64");
        let spark = layout(&text);
        let value = |time: i64| match order {
            "" => time.to_le_bytes(),
            _ => time.to_be_bytes(),
        };
        let least_ms = i64::MIN / 1000;
        let rows = [[i64::MIN; 4], [least_ms, i64::MIN + 1, least_ms * 1000, 1]];
        let records: Vec<u8> = rows
            .as_flattened()
            .iter()
            .flat_map(|time| value(*time))
            .collect();
        for layout in [nanoseconds(&spark), spark] {
            let columns = decode(&layout, &records);
            for (column, null_count) in columns.iter().zip([1, 1, 1, 0]) {
                assert_eq!(column.null_count(), null_count, "{layout}");
                assert_eq!(column.is_null(0), null_count == 1, "{layout}");
            }
            // A null is written as the same integer, even if the column has another value at that place.
            assert_eq!(encode(&layout, columns).unwrap()[..32], records[..32]);
            let null: ArrayRef = Arc::new(
                TimestampMicrosecondArray::new(vec![7].into(), Some(vec![false].into()))
                    .with_timezone("UTC"),
            );
            let number: ArrayRef = Arc::new(Int64Array::from(vec![i64::MIN]));
            let fields = [null.clone(), null.clone(), null, number];
            let names = ["ms", "us", "ns", "n"].into_iter();
            let batch = RecordBatch::try_from_iter(names.zip(fields)).unwrap();
            let mut again = Vec::new();
            layout
                .encoder(&batch)
                .unwrap()
                .encode(0..1, &mut again)
                .unwrap();
            assert_eq!(again, records[..32]);
        }
    }
}

/// 08-60
#[test]
fn nanoseconds_stay_nanoseconds_if_the_layout_says_so() {
    let layout = layout("ns ts_ns, us ts_us").with_nanoseconds();
    let records = int64s([-1, -1, 1_795_860_000_123_456_789, i64::MIN]);
    let columns = decode(&layout, &records);
    let ns = columns[0].as_primitive::<TimestampNanosecondType>();
    assert_eq!(ns.values()[..], [-1, 1_795_860_000_123_456_789]);
    let units = columns.iter().map(|column| column.data_type().clone());
    let utc = |unit| DataType::Timestamp(unit, Some("UTC".into()));
    let expected = [utc(TimeUnit::Nanosecond), utc(TimeUnit::Microsecond)];
    assert_eq!(units.collect::<Vec<_>>(), expected);
    assert_eq!(encode(&layout, columns).unwrap(), records);
}

#[test]
fn times_are_rounded_down_to_the_unit_of_record_or_column() {
    let layout = layout("ns ts_ns, ms ts_ms");
    let columns = decode(&layout, &int64s([-1, -1]));
    let times = columns.iter().map(|column| {
        let column = column.as_primitive::<TimestampMicrosecondType>();
        column.value(0)
    });
    assert_eq!(times.collect::<Vec<_>>(), [-1, -1000]);

    let time: ArrayRef = Arc::new(TimestampMicrosecondArray::from(vec![-1]).with_timezone("UTC"));
    let records = encode(&layout, vec![time.clone(), time]).unwrap();
    assert_eq!(records, int64s([-1000, -1]));
}

#[test]
fn decoded_texts_have_no_trailing_zeros_or_spaces() {
    let columns = decode(&layout("v char[4]"), b"a b \0\0\0\0 x\0 ab\0\0");
    let texts = columns[0].as_string::<i32>().iter().flatten();
    assert_eq!(texts.collect::<Vec<_>>(), ["a b", "", " x", "ab"]);
}

#[test]
fn the_decoder_skips_gaps_and_the_encoder_writes_zeros_into_gaps() {
    let layout = layout("@2 a u8, @6 b >u16 =10");
    let columns = decode(&layout, &[9, 9, 7, 9, 9, 9, 1, 2, 9, 9]);
    assert_eq!(columns[0].as_primitive::<Int16Type>().value(0), 7);
    assert_eq!(columns[1].as_primitive::<Int32Type>().value(0), 0x0102);
    let records = encode(&layout, columns).unwrap();
    assert_eq!(records, [0, 0, 7, 0, 0, 0, 1, 2, 0, 0]);
}

#[test]
fn any_range_of_rows_is_encoded_and_appended() {
    let layout = layout("v i16");
    let batch = batch(&layout, vec![Arc::new(Int16Array::from(vec![1, 2, 3, 4]))]);
    let mut records = vec![9];
    let encoder = layout.encoder(&batch).unwrap();
    encoder.encode(1..3, &mut records).unwrap();
    assert_eq!(records, [9, 2, 0, 3, 0]);

    let slice = batch.slice(2, 2);
    let mut records = Vec::new();
    let encoder = layout.encoder(&slice).unwrap();
    encoder.encode(0..2, &mut records).unwrap();
    assert_eq!(records, [3, 0, 4, 0]);
}

/// 08-63
#[test]
fn the_error_for_a_malformed_value_names_record_field_and_offset() {
    let malformed = |text: &str, records: &[u8], expected: &str| {
        let error = RecordDecoder::new(&layout(text))
            .decode(records)
            .unwrap_err();
        assert_eq!(error.record, 1);
        assert_eq!(error.to_string(), expected);
    };
    malformed(
        "a i8, b bool",
        &[0, 1, 0, 2],
        "field 'b' at offset 1 is 2 instead of 0 or 1",
    );
    malformed(
        "a char[2]",
        b"ab\xE2\x82",
        "field 'a' at offset 0 is not UTF-8",
    );
    malformed(
        "a ts_ms",
        &int64s([0, i64::MAX]),
        "field 'a' at offset 0 is 9223372036854775807 ms, outside the times of a timestamp",
    );
    malformed(
        "a dec64:2",
        &int64s([0, -1_000_000_000_000_000_000]),
        "field 'a' at offset 0 is -1000000000000000000, more than 18 digits",
    );
    // A field that is not decoded is not checked.
    let decoder = RecordDecoder::of_fields(&layout("a i8, b bool"), [0]);
    assert!(decoder.decode(&[0, 2]).is_ok());
}

#[test]
fn the_error_for_a_value_that_does_not_fit_names_row_column_and_value() {
    let refused = |text: &str, column: ArrayRef, expected: &str| {
        let error = encode(&layout(text), vec![column]).unwrap_err();
        assert_eq!(error.to_string(), expected);
    };
    refused(
        "v u8",
        Arc::new(Int16Array::from(vec![255, 256])),
        "row 1: column 'v' is 256, which is out of range for u8",
    );
    refused(
        "v u32",
        Arc::new(Int64Array::from(vec![0, -1])),
        "row 1: column 'v' is -1, which is out of range for u32",
    );
    refused(
        "v ts_ns",
        Arc::new(TimestampMicrosecondArray::from(vec![0, i64::MAX]).with_timezone("UTC")),
        "row 1: column 'v' is 9223372036854775807, which is out of range for ts_ns",
    );
    refused(
        "v char[2]",
        Arc::new(StringArray::from(vec!["ab", "abc"])),
        "row 1: column 'v' has 3 bytes, which do not fit char[2]",
    );
    refused(
        "v bytes[2]",
        Arc::new(BinaryArray::from(vec![&b"ab"[..], b"a"])),
        "row 1: column 'v' has 1 bytes, which do not fit bytes[2]",
    );
    refused(
        "v i32",
        Arc::new(Int32Array::from(vec![Some(1), None])),
        "row 1: column 'v' is null, which a record cannot hold",
    );
    let decimals = Decimal128Array::from(vec![0, -1]).with_precision_and_scale(20, 0);
    refused(
        "v u64",
        Arc::new(decimals.unwrap()),
        "row 1: column 'v' is -1, which is out of range for u64",
    );
}

#[test]
fn rows_of_many_blocks_keep_their_order() {
    let layout = layout("@3 v i32 =100");
    let column: ArrayRef = Arc::new(Int32Array::from_iter_values(0..10_000));
    let records = encode(&layout, vec![column.clone()]).unwrap();
    let value = |record: &[u8]| i32::from_le_bytes(record[3..7].try_into().unwrap());
    let values: Vec<i32> = records.chunks(100).map(value).collect();
    assert!(values.into_iter().eq(0..10_000));
    assert_eq!(decode(&layout, &records), [column]);
}

#[test]
fn a_value_that_does_not_fit_is_found_in_a_later_block() {
    let values = (0..10_000).map(|row| if row == 9_000 { 256 } else { 1 });
    let values = Int16Array::from_iter_values(values);
    let error = encode(
        &layout("v u8, @100 w u8"),
        vec![Arc::new(values.clone()), Arc::new(values)],
    );
    assert!(matches!(
        error,
        Err(RecordEncodeError::Value { row: 9_000, .. })
    ));
}

#[test]
fn columns_of_other_types_are_refused_before_a_row_is_read() {
    let check = |text: &str, data_type: DataType| {
        let schema = Schema::new(vec![Field::new("v", data_type, true)]);
        let result = layout(text).check_columns(&schema);
        result.map_err(|error| error.to_string())
    };
    assert_eq!(
        check("v i64", DataType::Int32).unwrap_err(),
        "column 'v' is Int32, but its field 'i64' needs Int64: cast it"
    );
    assert_eq!(
        check("w i64", DataType::Int64).unwrap_err(),
        "field 'w' has no column of this name"
    );
    let in_zone = |zone: &str| DataType::Timestamp(TimeUnit::Microsecond, Some(zone.into()));
    assert_eq!(check("v ts_ns", in_zone("America/New_York")), Ok(()));
    let without_zone = DataType::Timestamp(TimeUnit::Microsecond, None);
    assert!(check("v ts_us", without_zone).is_err());
    assert!(check("v dec64:2", DataType::Decimal128(18, 3)).is_err());
    assert_eq!(check("v char[2]", DataType::LargeUtf8), Ok(()));
    assert_eq!(check("v bytes[2]", DataType::LargeBinary), Ok(()));
}

#[test]
fn large_string_and_large_binary_columns_are_encoded() {
    let layout = layout("t char[2], b bytes[2]");
    let schema = Schema::new(vec![
        Field::new("b", DataType::LargeBinary, false),
        Field::new("other", DataType::Int8, false),
        Field::new("t", DataType::LargeUtf8, false),
    ]);
    let columns: Vec<ArrayRef> = vec![
        Arc::new(LargeBinaryArray::from(vec![&b"cd"[..]])),
        Arc::new(Int8Array::from(vec![1])),
        Arc::new(LargeStringArray::from(vec!["a"])),
    ];
    let batch = RecordBatch::try_new(Arc::new(schema), columns).unwrap();
    let mut records = Vec::new();
    let encoder = layout.encoder(&batch).unwrap();
    encoder.encode(0..1, &mut records).unwrap();
    assert_eq!(records, b"a\0cd");
}
