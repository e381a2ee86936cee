//! Enums, sets and constants as columns.

use std::sync::Arc;

use crate::sbe_support::plan_of;
use aeron_columns::sbe::{
    SbeBadMessage, SbeColumnOptions, SbeColumns, SbeDecoded, SbeEncoder, SbeEnumColumn,
    SbeSetColumn,
};
use aeron_columns::write::EncodedRows;
use aeron_sbe::plan::SbePlan;
use aeron_sbe::value::{SbeRecord, SbeValue};
use arrow_array::cast::AsArray;
use arrow_array::types::{Int16Type, UInt8Type};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::Schema;

const TYPES: &str = r#"<enum name="E" encodingType="uint8"><validValue name="A">1</validValue></enum>
    <enum name="K" encodingType="char"><validValue name="Buy">B</validValue></enum>
    <set name="S" encodingType="uint8"><choice name="one">0</choice><choice name="two">1</choice></set>
    <composite name="C"><type name="x" primitiveType="uint8"/>
      <type name="text" primitiveType="char" presence="constant">USD</type>
      <type name="number" primitiveType="int16" presence="constant">-7</type>
      <type name="side" primitiveType="char" presence="constant" valueRef="K.Buy"/></composite>"#;

fn field(kind: &str) -> Arc<SbePlan> {
    plan_of(TYPES, &format!(r#"<field name="v" id="1" type="{kind}"/>"#))
}

fn message(plan: &SbePlan, value: SbeValue<'static>) -> Vec<u8> {
    let record = SbeRecord {
        fields: vec![value],
        ..SbeRecord::default()
    };
    let mut message = Vec::new();
    plan.templates[0]
        .encode(&record, &mut message)
        .expect("a sound value");
    message
}

fn decoded(
    plan: &Arc<SbePlan>,
    options: SbeColumnOptions,
    messages: &[Vec<u8>],
) -> Result<(SbeColumns, SbeDecoded), SbeBadMessage> {
    let columns = SbeColumns::new(plan, "M", None, options).expect("the message");
    let ends = messages.iter().scan(0, |end, message| {
        *end += message.len();
        Some(*end)
    });
    let decoded = columns.decode(&messages.concat(), 0, ends, &[0])?;
    assert_eq!(
        decoded.columns[0].data_type(),
        columns.fields()[0].data_type()
    );
    Ok((columns, decoded))
}

/// Returns the messages of a column.
fn encoded(plan: &Arc<SbePlan>, columns: &SbeColumns, column: &ArrayRef) -> Vec<u8> {
    let schema = Arc::new(Schema::new(columns.fields()));
    let rows = RecordBatch::try_new(schema, vec![Arc::clone(column)]).expect("a column");
    let mut encoded = EncodedRows::default();
    let encoder = SbeEncoder::new(plan, "M").expect("the message");
    encoder.encode(&rows, &mut encoded).expect("sound values");
    encoded.bytes
}

/// 13-14
#[test]
fn integers_keep_values_of_enums_that_have_no_name() {
    let plan = field("E");
    // The null value of the encoding in a required field, and a number without a name.
    let messages = [1, 255, 7].map(|number| message(&plan, SbeValue::from(number as u64)));
    let names = decoded(&plan, SbeColumnOptions::default(), &messages)
        .expect("sound")
        .1;
    assert_eq!((names.columns[0].null_count(), names.unknown), (2, 2));
    let options = SbeColumnOptions {
        enums: SbeEnumColumn::Integer,
        refuses_unknown: true,
        ..SbeColumnOptions::default()
    };
    let (columns, numbers) = decoded(&plan, options, &messages).expect("sound");
    let values = numbers.columns[0].as_primitive::<UInt8Type>();
    assert_eq!(values.values()[..], [1, 255, 7]);
    assert_eq!((values.null_count(), numbers.unknown), (0, 0));
    assert_eq!(
        encoded(&plan, &columns, &numbers.columns[0]),
        messages.concat()
    );
    let plan = field("K");
    let messages = [b'B', b'X'].map(|code| message(&plan, SbeValue::from(u64::from(code))));
    let (columns, numbers) = decoded(&plan, options, &messages).expect("sound");
    assert_eq!(
        encoded(&plan, &columns, &numbers.columns[0]),
        messages.concat()
    );
}

/// 13-14
#[test]
fn bits_of_sets_without_a_choice_are_counted_or_refused_or_kept_in_integers() {
    let plan = field("S");
    let messages = [3, 5, 0, 128].map(|bits| message(&plan, SbeValue::from(bits as u64)));
    for sets in [SbeSetColumn::Names, SbeSetColumn::Booleans] {
        let options = SbeColumnOptions {
            sets,
            ..SbeColumnOptions::default()
        };
        let counted = decoded(&plan, options, &messages).expect("sound").1;
        assert_eq!((counted.columns[0].null_count(), counted.unknown), (0, 2));
        let options = SbeColumnOptions {
            refuses_unknown: true,
            ..options
        };
        decoded(&plan, options, &messages[..1]).expect("known bits");
        let refused = decoded(&plan, options, &messages).expect_err("a bit has no choice");
        assert_eq!(refused.message, 1);
        assert_eq!(
            refused.reason,
            "field 'v' has the bits 5, of which the schema does not know all"
        );
    }
    let options = SbeColumnOptions {
        sets: SbeSetColumn::Integer,
        refuses_unknown: true,
        ..SbeColumnOptions::default()
    };
    let (columns, kept) = decoded(&plan, options, &messages).expect("sound");
    assert_eq!(kept.unknown, 0);
    assert_eq!(
        encoded(&plan, &columns, &kept.columns[0]),
        messages.concat()
    );
}

/// 13-34
#[test]
fn constant_members_are_members_of_structures() {
    let plan = field("C");
    let value = |x: u64| {
        let constants = (0..3).map(|_| SbeValue::Null);
        SbeValue::Struct([SbeValue::from(x)].into_iter().chain(constants).collect())
    };
    let messages = [5, 6].map(|x| message(&plan, value(x)));
    let (columns, found) = decoded(&plan, SbeColumnOptions::default(), &messages).expect("sound");
    let structures = found.columns[0].as_struct();
    assert_eq!(structures.column_names(), ["x", "text", "number", "side"]);
    let texts = structures.column(1).as_string::<i32>();
    assert_eq!((texts.value(0), texts.value(1)), ("USD", "USD"));
    assert_eq!(
        structures.column(2).as_primitive::<Int16Type>().values()[..],
        [-7, -7]
    );
    assert_eq!(
        encoded(&plan, &columns, &found.columns[0]),
        messages.concat()
    );
}
