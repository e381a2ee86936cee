//! Rows as SBE messages: the messages of columns are those of the records with the same values.

use std::sync::Arc;

use crate::generated::{Choices, Document, Features, record};
use crate::sbe_support::plan_of;
use aeron_columns::sbe::{SbeColumnOptions, SbeColumns, SbeEncoder};
use aeron_columns::write::EncodedRows;
use aeron_sbe::number::SbeNumber;
use aeron_sbe::plan::{SbeBlockPlan, SbeField, SbeKind, SbePlan, SbePlanOptions, SbeTemplate};
use aeron_sbe::schema::SbeSchema;
use aeron_sbe::value::{SbeRecord, SbeValue};
use arrow_array::{
    Array, ArrayRef, BooleanArray, FixedSizeListArray, Int64Array, LargeListArray,
    LargeStringArray, ListArray, ListViewArray, RecordBatch, StringArray, StructArray, UInt8Array,
};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{Field, FieldRef, Fields, Schema};
use proptest::collection::vec;
use proptest::prelude::*;

/// Returns the messages of rows. An error has the row and the reason.
fn encoded(plan: &Arc<SbePlan>, name: &str, rows: &RecordBatch) -> Result<Vec<Vec<u8>>, String> {
    let mut encoded = EncodedRows::default();
    let encoder = SbeEncoder::new(plan, name).expect("the message");
    let written = encoder.encode(rows, &mut encoded);
    written.map_err(|error| format!("{:?}: {error}", error.row))?;
    let ranges = encoded.offsets.windows(2);
    let message = |range: &[i32]| encoded.bytes[range[0] as usize..range[1] as usize].to_vec();
    Ok(ranges.map(message).collect())
}

fn messages_of(template: &SbeTemplate, records: &[SbeRecord<'_>]) -> Vec<Vec<u8>> {
    let message = |record: &SbeRecord<'_>| {
        let mut message = Vec::new();
        template.encode(record, &mut message).expect("sound values");
        message
    };
    records.iter().map(message).collect()
}

/// Returns the messages as rows of columns.
fn decoded(plan: &Arc<SbePlan>, name: &str, messages: &[Vec<u8>]) -> RecordBatch {
    let columns = SbeColumns::new(plan, name, None, SbeColumnOptions::default()).expect("columns");
    let ends = messages.iter().scan(0, |end, message| {
        *end += message.len();
        Some(*end)
    });
    let fields = columns.fields();
    let all: Vec<usize> = (0..fields.len()).collect();
    let decoded = columns.decode(&messages.concat(), 0, ends, &all);
    let decoded = decoded.unwrap_or_else(|bad| panic!("{}", bad.reason));
    let options = arrow_array::RecordBatchOptions::new().with_row_count(Some(messages.len()));
    let schema = Arc::new(Schema::new(fields));
    RecordBatch::try_new_with_options(schema, decoded.columns, &options).expect("columns")
}

/// Changes values that columns do not keep: a column of decimals has one scale, so the zeros at the ends of mantissas
/// are lost, and not all times fit their columns.
fn suit(plan: &SbeBlockPlan, record: &mut SbeRecord<'_>) {
    let fields = plan.fields.iter().zip(&mut record.fields);
    fields.for_each(|(field, value)| suit_value(field, value));
    for (group, entries) in plan.groups.iter().zip(&mut record.groups) {
        entries
            .iter_mut()
            .for_each(|entry| suit(&group.block, entry));
    }
}

fn suit_value(field: &SbeField, value: &mut SbeValue<'_>) {
    match (&field.kind, value) {
        (_, SbeValue::Decimal { mantissa, exponent }) => {
            (*mantissa, *exponent) = SbeValue::stripped(*mantissa, *exponent);
        }
        (SbeKind::Time(_), SbeValue::Number(number)) => {
            let time = number.as_i64().unwrap_or_default();
            *number = SbeNumber::Signed(time.rem_euclid(100));
        }
        (SbeKind::Struct(composite), SbeValue::Struct(values)) => {
            let members = composite.members.iter().zip(values);
            members.for_each(|(member, value)| suit_value(member, value));
        }
        _ => {}
    }
}

proptest! {
    /// 13-29
    #[test]
    fn columns_are_encoded_as_records_with_the_same_values(
        bytes in vec(any::<u8>(), 0..800),
        rows in 0_usize..12,
        features in prop_oneof![Just(Features::All), Just(Features::Reference)],
    ) {
        let mut choices = Choices::new(&bytes);
        let document = Document::new(&mut choices, features);
        let text = document.text("generated", document.version);
        let schema = SbeSchema::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let plan = Arc::new(SbePlan::new(&schema, &SbePlanOptions::default()).expect("no options"));
        for template in &plan.templates {
            let mut records: Vec<_> = (0..rows)
                .map(|_| record(&mut choices, &template.block))
                .collect();
            records.iter_mut().for_each(|record| suit(&template.block, record));
            let messages = messages_of(template, &records);
            let rows = decoded(&plan, &template.name, &messages);
            let written = encoded(&plan, &template.name, &rows);
            prop_assert_eq!(written.as_ref(), Ok(&messages));
            for row in 0..rows.num_rows() {
                let single = encoded(&plan, &template.name, &rows.slice(row, 1));
                prop_assert_eq!(single.as_ref(), Ok(&messages[row..=row].to_vec()));
            }
        }
    }
}

const ORDER: &str = r#"<field name="id" id="1" type="int64"/>
    <group name="legs" id="2" dimensionType="g8"><field name="price" id="3" type="int64"/>
      <group name="fills" id="4"><field name="size" id="5" type="small"/></group>
      <data name="note" id="6" type="varLatin"/></group>"#;
const TYPES: &str = r#"<type name="small" primitiveType="int64" maxValue="9"/>
    <composite name="g8"><type name="blockLength" primitiveType="uint16"/>
      <type name="numInGroup" primitiveType="uint8" minValue="1" maxValue="3"/></composite>
    <composite name="varLatin"><type name="length" primitiveType="uint8"/>
      <type name="varData" primitiveType="uint8" length="0" characterEncoding="ISO-8859-1"/></composite>"#;

fn structures(columns: Vec<(&str, ArrayRef)>, nulls: Option<NullBuffer>) -> StructArray {
    let fields = columns
        .iter()
        .map(|(name, column)| Field::new(*name, column.data_type().clone(), true));
    let fields: Fields = fields.collect();
    let columns = columns.into_iter().map(|(_, column)| column).collect();
    StructArray::new(fields, columns, nulls)
}

fn item(items: &dyn Array) -> FieldRef {
    Arc::new(Field::new("item", items.data_type().clone(), true))
}

fn lists(items: StructArray, lengths: &[usize], nulls: Option<Vec<bool>>) -> ArrayRef {
    let offsets = OffsetBuffer::from_lengths(lengths.iter().copied());
    let nulls = nulls.map(NullBuffer::from);
    Arc::new(ListArray::new(
        item(&items),
        offsets,
        Arc::new(items),
        nulls,
    ))
}

fn integers(values: &[i64]) -> ArrayRef {
    Arc::new(Int64Array::from(values.to_vec()))
}

fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::from(structures(columns, None))
}

/// Returns rows of orders with these fills for each leg, and two legs for each order.
fn orders(sizes: &[i64], fills: &[usize], notes: &[&str]) -> RecordBatch {
    let fills = lists(
        structures(vec![("size", integers(sizes))], None),
        fills,
        None,
    );
    let notes = Arc::new(StringArray::from(notes.to_vec())) as ArrayRef;
    let prices: Vec<i64> = (0..notes.len() as i64).collect();
    let legs = vec![
        ("price", integers(&prices)),
        ("fills", fills),
        ("note", notes),
    ];
    let count = prices.len() / 2;
    let ids: Vec<i64> = (0..count as i64).collect();
    let legs = lists(structures(legs, None), &vec![2; count], None);
    batch(vec![("id", integers(&ids)), ("legs", legs)])
}

#[test]
fn an_error_names_the_path_of_the_first_bad_value() {
    let plan = plan_of(TYPES, ORDER);
    let notes = ["a", "é", "c", "d"];
    encoded(&plan, "M", &orders(&[1, 2, 3], &[1, 0, 0, 2], &notes)).expect("sound values");
    for (rows, expected) in [
        (
            orders(&[1, 2, 10], &[1, 0, 0, 2], &notes),
            "Some(1): field 'legs[1].fills[1].size': 10 is not from",
        ),
        (
            orders(&[11, 2, 10], &[1, 0, 0, 2], &notes),
            "Some(0): field 'legs[0].fills[0].size': 11 is not from",
        ),
        (
            orders(&[1], &[1, 0, 0, 0], &["a", "b", "c", "\u{2020}"]),
            "Some(1): field 'legs[1].note': a text is not in the character set of its data",
        ),
        (
            orders(&[1], &[1, 0, 0, 0], &["a", "b", &"c".repeat(255), "d"]),
            "Some(1): 'legs[0].note': 255 is not from 0 to 254",
        ),
    ] {
        let refused = encoded(&plan, "M", &rows).expect_err("a value is bad");
        assert!(refused.starts_with(expected), "{refused}, not {expected}");
    }
}

/// 13-27
#[test]
fn counts_of_entries_are_within_the_limits_of_their_dimension() {
    let plan = plan_of(TYPES, ORDER);
    let legs = |lengths: &[usize], nulls: Option<Vec<bool>>| {
        let count: usize = lengths.iter().sum();
        let prices = integers(&vec![5; count]);
        let ids = integers(&vec![1; lengths.len()]);
        let legs = lists(structures(vec![("price", prices)], None), lengths, nulls);
        encoded(&plan, "M", &batch(vec![("id", ids), ("legs", legs)]))
    };
    legs(&[1, 3], None).expect("from 1 to 3 entries");
    let refused = legs(&[1, 4], None).expect_err("4 entries");
    assert_eq!(
        refused,
        "Some(1): 'legs': 4 is not from 1 to 3, the range of its encoding"
    );
    let refused = legs(&[3, 1], Some(vec![false, true])).expect_err("a null list has no entries");
    assert_eq!(
        refused,
        "Some(0): 'legs': 0 is not from 1 to 3, the range of its encoding"
    );
    let none = encoded(&plan, "M", &batch(vec![("id", integers(&[1]))]));
    assert!(
        none.expect_err("no column")
            .contains("0 is not from 1 to 3")
    );
    let missing = lists(StructArray::new_empty_fields(0, None), &[0], None);
    let missing = encoded(
        &plan,
        "M",
        &batch(vec![("id", integers(&[1])), ("legs", missing)]),
    );
    assert!(
        missing
            .expect_err("no entry")
            .contains("0 is not from 1 to 3")
    );
}

#[test]
fn a_null_entry_and_a_missing_field_of_an_entry_are_refused() {
    let plan = plan_of(TYPES, ORDER);
    let legs = |items: StructArray| {
        let legs = lists(items, &[1, 2], None);
        encoded(
            &plan,
            "M",
            &batch(vec![("id", integers(&[1, 2])), ("legs", legs)]),
        )
    };
    let prices = || vec![("price", integers(&[1, 2, 3]))];
    legs(structures(prices(), None)).expect("sound values");
    let nulls = NullBuffer::from(vec![true, true, false]);
    let refused = legs(structures(prices(), Some(nulls))).expect_err("a null entry");
    assert_eq!(refused, "Some(1): group 'legs', entry 1: the entry is null");
    let notes = Arc::new(StringArray::from(vec!["a", "b", "c"])) as ArrayRef;
    let refused = legs(structures(vec![("note", notes)], None)).expect_err("no price");
    assert_eq!(
        refused,
        "Some(0): field 'legs[0].price' is required, but has no value"
    );
}

const FLAT: &str = r#"<group name="g" id="1"><field name="x" id="2" type="uint8"/></group>"#;

#[test]
fn lists_of_all_kinds_are_entries() {
    let plan = plan_of("", FLAT);
    let items = || {
        let x = Arc::new(UInt8Array::from_iter_values(0..6)) as ArrayRef;
        structures(vec![("x", x)], None)
    };
    let expected = |rows: &[&[u8]]| -> Vec<Vec<u8>> {
        let entries = rows.iter().map(|row| SbeRecord {
            groups: vec![
                row.iter()
                    .map(|x| SbeRecord {
                        fields: vec![SbeValue::Number(SbeNumber::Unsigned((*x).into()))],
                        ..SbeRecord::default()
                    })
                    .collect(),
            ],
            ..SbeRecord::default()
        });
        messages_of(&plan.templates[0], &entries.collect::<Vec<_>>())
    };
    let written =
        |column: ArrayRef| encoded(&plan, "M", &batch(vec![("g", column)])).expect("sound");
    let item = item(&items());
    let plain = lists(items(), &[2, 0, 4], None);
    assert_eq!(
        written(Arc::clone(&plain)),
        expected(&[&[0, 1], &[], &[2, 3, 4, 5]])
    );
    assert_eq!(written(plain.slice(1, 2)), expected(&[&[], &[2, 3, 4, 5]]));
    let with_null = lists(items(), &[2, 2, 2], Some(vec![true, false, true]));
    assert_eq!(written(with_null), expected(&[&[0, 1], &[], &[4, 5]]));
    let large = LargeListArray::new(
        Arc::clone(&item),
        OffsetBuffer::from_lengths([1, 5]),
        Arc::new(items()),
        None,
    );
    assert_eq!(
        written(Arc::new(large)),
        expected(&[&[0], &[1, 2, 3, 4, 5]])
    );
    let fixed = FixedSizeListArray::new(
        Arc::clone(&item),
        2,
        Arc::new(items()),
        Some(NullBuffer::from(vec![true, false, true])),
    );
    assert_eq!(
        written(Arc::new(fixed.clone())),
        expected(&[&[0, 1], &[], &[4, 5]])
    );
    assert_eq!(written(Arc::new(fixed.slice(2, 1))), expected(&[&[4, 5]]));
    let views = ListViewArray::new(
        item,
        vec![4, 0, 1].into(),
        vec![2, 3, 1].into(),
        Arc::new(items()),
        None,
    );
    assert_eq!(
        written(Arc::new(views)),
        expected(&[&[4, 5], &[0, 1, 2], &[1]])
    );
    let flags = Arc::new(BooleanArray::from(vec![true])) as ArrayRef;
    let refused = encoded(&plan, "M", &batch(vec![("g", flags)])).expect_err("no lists");
    assert!(
        refused.contains("group 'g' is no column of lists of structures"),
        "{refused}"
    );
}

#[test]
fn a_decimal_takes_its_exponent_from_a_block_around_it() {
    let elements = r#"<group name="g" id="1" xmlns:x="urn:x"><field name="price" id="2" type="int64" x:exponent="digits"/>
        <field name="own" id="3" type="int64" x:exponent="scale"/><field name="scale" id="4" type="int8"/>
        <group name="h" id="5"><field name="inner" id="6" type="int64" x:exponent="digits"/></group></group>"#;
    let elements = format!("<field name=\"digits\" id=\"9\" type=\"optional\"/>{elements}");
    let types = "<type name=\"optional\" primitiveType=\"int8\" presence=\"optional\"/>";
    let plan = plan_of(types, &elements);
    let decimals = |values: &[&str]| Arc::new(StringArray::from(values.to_vec())) as ArrayRef;
    let scales = |values: &[Option<i64>]| Arc::new(Int64Array::from(values.to_vec())) as ArrayRef;
    let rows = |digits: &[Option<i64>]| {
        let inner = lists(
            structures(vec![("inner", decimals(&["7", "0.25"]))], None),
            &[0, 1, 1],
            None,
        );
        let entries = vec![
            ("price", decimals(&["1.5", "2", "0.75"])),
            ("own", decimals(&["100", "3", "0.1"])),
            ("scale", integers(&[2, 0, -1])),
            ("h", inner),
        ];
        let entries = lists(structures(entries, None), &[1, 2], None);
        encoded(
            &plan,
            "M",
            &batch(vec![("digits", scales(digits)), ("g", entries)]),
        )
    };
    let decimal = |mantissa, exponent| SbeValue::Decimal { mantissa, exponent };
    let entry = |price, own, scale: i64, inner: Option<SbeValue<'static>>| SbeRecord {
        fields: vec![price, own, SbeValue::from(scale)],
        groups: vec![
            inner
                .map(|inner| SbeRecord {
                    fields: vec![inner],
                    ..SbeRecord::default()
                })
                .into_iter()
                .collect(),
        ],
        ..SbeRecord::default()
    };
    let records = [
        SbeRecord {
            fields: vec![SbeValue::from(-1_i64)],
            groups: vec![vec![entry(decimal(15, -1), decimal(1, 2), 2, None)]],
            ..SbeRecord::default()
        },
        SbeRecord {
            fields: vec![SbeValue::from(-2_i64)],
            groups: vec![vec![
                entry(decimal(2, 0), decimal(3, 0), 0, Some(decimal(7, 0))),
                entry(decimal(75, -2), decimal(1, -1), -1, Some(decimal(25, -2))),
            ]],
            ..SbeRecord::default()
        },
    ];
    let expected = messages_of(&plan.templates[0], &records);
    assert_eq!(rows(&[Some(-1), Some(-2)]), Ok(expected));
    let inexact = rows(&[Some(-1), Some(-1)]).expect_err("an exponent is too large");
    assert!(
        inexact.starts_with("Some(1): field 'g[1].price': 75e-2 has no exact mantissa"),
        "{inexact}"
    );
    let missing = rows(&[None, Some(-2)]).expect_err("an exponent is null");
    assert_eq!(
        missing,
        "Some(0): field 'g[0].price': the field with its exponent has no value"
    );
}

/// 13-13
#[test]
fn the_members_of_a_null_composite_are_null_with_any_bytes() {
    let types = r#"<type name="first" primitiveType="int8" presence="optional"/>
        <composite name="D"><type name="mantissa" primitiveType="int64"/>
          <type name="exponent" primitiveType="int8"/></composite>
        <enum name="E" encodingType="uint8"><validValue name="A">1</validValue></enum>
        <composite name="C"><ref name="a" type="first"/><ref name="d" type="D"/><ref name="e" type="E"/></composite>"#;
    let elements = r#"<field name="c" id="1" type="C" presence="optional"/>"#;
    let plan = plan_of(types, elements);
    let template = &plan.templates[0];
    let message = |value: SbeValue<'static>| {
        let fields = vec![value];
        messages_of(
            template,
            &[SbeRecord {
                fields,
                ..SbeRecord::default()
            }],
        )
        .remove(0)
    };
    let decimal = SbeValue::Decimal {
        mantissa: 5,
        exponent: -1,
    };
    let composite = SbeValue::Struct(vec![SbeValue::from(1_i64), decimal, SbeValue::from("A")]);
    let messages = [
        message(SbeValue::Null),
        message(composite),
        message(SbeValue::Null),
    ];
    let rows = decoded(&plan, "M", &messages);
    let composites = rows.column(0);
    let is_null: Vec<bool> = (0..3).map(|row| composites.is_null(row)).collect();
    assert_eq!(is_null, [true, false, true]);
    assert_eq!(encoded(&plan, "M", &rows), Ok(messages.to_vec()));
}

/// 13-26
#[test]
fn texts_of_digits_are_decimals() {
    let types = r#"<composite name="D"><type name="mantissa" primitiveType="int64"/>
        <type name="exponent" primitiveType="int8" presence="constant">-3</type></composite>"#;
    let plan = plan_of(types, r#"<field name="d" id="1" type="D"/>"#);
    let written = |text: &str| {
        let column = Arc::new(StringArray::from(vec![text])) as ArrayRef;
        encoded(&plan, "M", &batch(vec![("d", column)]))
            .map(|messages| i64::from_le_bytes(messages[0][8..].try_into().expect("8 bytes")))
    };
    for (text, mantissa) in [
        ("1.25", 1250),
        ("-.5", -500),
        ("+2e3", 2_000_000),
        (" 7. ", 7000),
        ("-0.010", -10),
    ] {
        assert_eq!(written(text), Ok(mantissa), "{text}");
    }
    for text in ["", ".", "-", "1.2.3", "1e", "0x1", "NaN", &"9".repeat(40)] {
        let refused = written(text).expect_err(text);
        assert!(
            refused.contains("is not a decimal of at most 38 digits"),
            "{refused}"
        );
    }
    assert!(
        written("0.0001")
            .expect_err("rounded")
            .contains("has no exact mantissa")
    );
}

/// 13-27
#[test]
fn overlapping_lists_of_more_than_2_gib_are_refused_before_they_are_copied() {
    let plan = plan_of("", FLAT);
    let items = structures(
        vec![(
            "x",
            Arc::new(UInt8Array::from(vec![1; 1 << 16])) as ArrayRef,
        )],
        None,
    );
    let rows = 1 << 16;
    let views = ListViewArray::new(
        item(&items),
        vec![0; rows].into(),
        vec![1 << 16; rows].into(),
        Arc::new(items),
        None,
    );
    let refused = encoded(&plan, "M", &batch(vec![("g", Arc::new(views) as ArrayRef)]));
    assert_eq!(
        refused.expect_err("too many entries"),
        "None: group 'g' has more than 2147483647 entries: all messages are longer than 2 GiB"
    );
    let long = Arc::new(LargeStringArray::from(vec!["x".repeat(1 << 20)])) as ArrayRef;
    let items = structures(vec![("x", long)], None);
    let views = ListViewArray::new(
        item(&items),
        vec![0; 1 << 12].into(),
        vec![1; 1 << 12].into(),
        Arc::new(items),
        None,
    );
    let refused = encoded(&plan, "M", &batch(vec![("g", Arc::new(views) as ArrayRef)]));
    assert_eq!(
        refused.expect_err("too long entries"),
        "None: the overlapping lists of group 'g' take more than 2 GiB: pass fewer rows at once"
    );
}
