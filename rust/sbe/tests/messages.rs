//! Messages of the schema in the shape of an exchange's, byte for byte, whole and damaged.

use std::borrow::Cow;

use aeron_sbe::number::SbeNumber;
use aeron_sbe::plan::{SbePlan, SbePlanOptions};
use aeron_sbe::read::{SbeBlocks, SbeHeader, SbeMalformed};
use aeron_sbe::schema::SbeSchema;
use aeron_sbe::value::{SbeRecord, SbeValue};
use aeron_sbe::write::SbeEncodeError;

const MARKET: &str = include_str!("../../../tests/sbe/market.xml");

fn market() -> SbePlan {
    let schema = SbeSchema::parse(MARKET).expect("a sound schema");
    SbePlan::new(&schema, &SbePlanOptions::default()).expect("no options")
}

fn decimal(mantissa: i128, exponent: i32) -> SbeValue<'static> {
    SbeValue::Decimal { mantissa, exponent }
}

fn trade() -> SbeRecord<'static> {
    SbeRecord {
        fields: vec![
            SbeValue::from(1_700_000_000_000_000_000i64),
            SbeValue::from(7u64),
            SbeValue::from("Sell"),
            decimal(12_345, -2),
            SbeValue::Null,
            SbeValue::from("ESZ6"),
            SbeValue::from(3u64),
            SbeValue::from(20_000u64),
        ],
        ..SbeRecord::default()
    }
}

fn order(id: u64, quantity: u64) -> SbeRecord<'static> {
    SbeRecord {
        fields: vec![SbeValue::from(id), SbeValue::from(quantity)],
        ..SbeRecord::default()
    }
}

fn entry(price: SbeValue<'static>, orders: Vec<SbeRecord<'static>>) -> SbeRecord<'static> {
    SbeRecord {
        fields: vec![
            price,
            SbeValue::from(100i64),
            SbeValue::from(-5i64),
            SbeValue::from("Change"),
            SbeValue::from("Buy"),
        ],
        groups: vec![orders],
        data: Vec::new(),
    }
}

fn book() -> SbeRecord<'static> {
    SbeRecord {
        fields: vec![
            SbeValue::from(5i64),
            SbeValue::List(vec![
                SbeValue::from("LastQuote"),
                SbeValue::from("EndOfEvent"),
            ]),
        ],
        groups: vec![vec![
            entry(decimal(5, 0), vec![order(1, 2), order(3, 4)]),
            entry(SbeValue::Null, vec![]),
        ]],
        data: vec![Some(Cow::Borrowed(b"ok"))],
    }
}

fn encoded(plan: &SbePlan, name: &str, record: &SbeRecord<'_>) -> Vec<u8> {
    let template = plan.template(name).expect("a template of this name");
    let mut bytes = Vec::new();
    template.encode(record, &mut bytes).expect("sound values");
    assert_eq!(bytes.len(), template.record_length(record));
    bytes
}

#[test]
fn a_trade_has_the_bytes_of_the_standard() {
    let bytes = encoded(&market(), "Trade", &trade());
    let mut expected = vec![48, 0, 1, 0, 71, 0, 2, 0];
    expected.extend(1_700_000_000_000_000_000u64.to_le_bytes());
    expected.extend([7, 0, 0, 0, b'S']);
    expected.extend(123_450_000_000i64.to_le_bytes());
    expected.extend(i32::MAX.to_le_bytes());
    expected.extend(b"ESZ6\0\0\0\0\0\0\0\0");
    expected.extend([3, 0, 0x20, 0x4e, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(bytes, expected);
}

#[test]
fn a_trade_is_decoded_to_its_values() {
    let plan = market();
    let bytes = encoded(&plan, "Trade", &trade());
    let message = plan.templates[0].open(&bytes).expect("a sound message");
    assert_eq!(message.check(), Ok(0));
    let values = message.decode().expect("sound values").fields;
    assert_eq!(
        values[2],
        SbeValue::Symbol {
            number: SbeNumber::Unsigned(83),
            name: Some("Sell")
        }
    );
    assert_eq!(values[3], decimal(123_450_000_000, -9));
    assert_eq!(values[4], SbeValue::Null);
    assert_eq!(values[5], SbeValue::from("ESZ6"));
    assert_eq!(values[7], SbeValue::from(20_000i64));
}

#[test]
fn nested_groups_are_decoded_to_their_entries() {
    let plan = market();
    let bytes = encoded(&plan, "BookUpdate", &book());
    let message = plan.templates[1].open(&bytes).expect("a sound message");
    let record = message.decode().expect("sound values");
    let [entries] = &record.groups[..] else {
        panic!("{record:?}")
    };
    assert_eq!(entries.len(), 2);
    assert_eq!(entries[0].fields[0], decimal(5_000_000_000, -9));
    assert_eq!(entries[0].groups[0].len(), 2);
    assert_eq!(entries[0].groups[0][1].fields[0], SbeValue::from(3u64));
    assert_eq!(entries[1].fields[0], SbeValue::Null);
    assert_eq!(entries[1].groups[0].len(), 0);
    assert_eq!(record.data, [Some(Cow::Borrowed(&b"ok"[..]))]);
}

#[test]
fn an_older_message_has_neither_the_later_fields_nor_the_later_groups() {
    let plan = market();
    // Version 0: 37 bytes of fields. The later fields do not exist, even if padding has their place.
    let mut bytes = encoded(&plan, "Trade", &trade());
    bytes[6] = 0;
    let template = &plan.templates[0];
    let values = template.open(&bytes).unwrap().decode().unwrap().fields;
    assert_eq!(values[6..], [SbeValue::Null, SbeValue::Null]);
    bytes[0] = 37;
    bytes.truncate(8 + 37);
    assert_eq!(template.open(&bytes).unwrap().check(), Ok(0));
    bytes[6] = 1;
    assert_eq!(
        template.open(&bytes).expect_err("version 1 has 39 bytes"),
        SbeMalformed::ShortBlock {
            element: "Trade".to_owned(),
            block: 37,
            least: 39,
            version: 1
        }
    );
}

#[test]
fn a_newer_message_is_read_over_its_longer_blocks() {
    let plan = market();
    let template = &plan.templates[1];
    let mut bytes = encoded(&plan, "BookUpdate", &book());
    // A block that is longer by two bytes, of version 3, and two bytes after the last known element.
    bytes[0] += 2;
    bytes[6] = 3;
    bytes.splice(24..24, [9, 9]);
    bytes.extend([8, 8]);
    let message = template.open(&bytes).unwrap();
    assert_eq!(message.check(), Ok(2));
    assert_eq!(message.decode().unwrap().groups[0].len(), 2);
}

#[test]
fn no_prefix_of_a_message_is_decoded() {
    let plan = market();
    for (index, record) in [(0, trade()), (1, book())] {
        let template = &plan.templates[index];
        let bytes = encoded(&plan, &template.name, &record);
        for end in 0..bytes.len() {
            let message = template.open(&bytes[..end]);
            let decoded = message.and_then(|message| message.decode());
            assert!(decoded.is_err(), "{end} of {} bytes", bytes.len());
        }
    }
}

#[test]
fn a_count_that_the_bytes_cannot_hold_is_refused_before_any_entry() {
    let plan = market();
    let mut bytes = encoded(&plan, "BookUpdate", &book());
    bytes[26] = 255;
    assert_eq!(
        plan.templates[1]
            .open(&bytes)
            .unwrap()
            .check()
            .unwrap_err()
            .to_string(),
        "group 'entries': 255 entries of at least 35 bytes are more than the 98 bytes left"
    );
}

#[test]
fn a_run_of_fixed_messages_is_read_at_a_stride() {
    let plan = market();
    let template = plan.template("Trade").unwrap();
    assert!(template.is_fixed());
    let mut bytes = encoded(&plan, "Trade", &trade());
    template.encode(&trade(), &mut bytes).unwrap();
    let header = SbeHeader::read(&plan.header, &bytes).unwrap();
    assert_eq!(plan.index_of(header.template_id), Some(0));
    let blocks = SbeBlocks::new(&bytes[8..], 56, 48, 2, 2).expect("two blocks");
    let field = template.block.field("tradeId").unwrap();
    let mut column: Vec<u32> = Vec::new();
    assert!(blocks.read_into(field.offset, plan.byte_order, &mut column));
    assert_eq!(column, [7, 7]);
    assert!(SbeBlocks::new(&bytes[8..], 57, 48, 2, 2).is_none());
    let overlapping = SbeBlocks::new(&bytes[8..], 47, 48, 2, 2);
    assert!(overlapping.is_none(), "a block ends before the next one");
    assert!(!blocks.read_into(45, plan.byte_order, &mut column));
}

#[test]
fn a_required_field_without_a_value_is_not_encoded() {
    let plan = market();
    let mut record = trade();
    record.fields[1] = SbeValue::Null;
    let mut bytes = vec![1];
    let error = plan.templates[0].encode(&record, &mut bytes).unwrap_err();
    assert_eq!(
        error,
        SbeEncodeError::Missing {
            field: "tradeId".to_owned()
        }
    );
    assert_eq!(bytes, [1]);
}

#[test]
fn a_decimal_is_never_rounded() {
    let plan = market();
    let mut record = trade();
    record.fields[3] = decimal(15, -10);
    let error = plan.templates[0]
        .encode(&record, &mut Vec::new())
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "field 'price': 15e-10 has no exact mantissa with exponent -9"
    );
}
