//! The messages in the examples of the standard (SBE 1.0, section 7), without their framing headers.
//!
//! The schema of the examples has the id 100, but the messages have 91. The table that explains the first message has
//! other bytes of `TransactTime` than the message. Here are the bytes of the messages.

use crate::support::{error, message};
use aeron_sbe::plan::{SbePlan, SbePlanOptions};
use aeron_sbe::schema::SbeSchema;
use aeron_sbe::value::{SbeRecord, SbeValue};

const STANDARD: &str = include_str!("../../../tests/sbe/standard.xml");

const NEW_ORDER: &str = "3600 6300 5b00 0000 4f52443030303031 4143435430310000 47454d3400000000 31 8016b33b13652915 \
                         07000000 32 1a85010000000000 0000000000000080";
const EXECUTION_REPORT: &str = "2a00 6200 5b00 0000 4f30303030303031 4558454330303030 46 31 47454d3400000000 de0706ffff \
                                31 01000000 06000000 753e 0c000200 1a85010000000000 02000000 2485010000000000 04000000";
const REJECT: &str = "0900 6100 5b00 0000 4f52443030303031 06 2700 4e6f7420617574686f72697a656420746f207472616465207468\
                      617420696e737472756d656e74";

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<_> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
    let pairs = digits.chunks(2).map(|pair| {
        let text = std::str::from_utf8(pair).expect("hexadecimal digits");
        u8::from_str_radix(text, 16).expect("hexadecimal digits")
    });
    pairs.collect()
}

fn standard() -> SbePlan {
    let schema = SbeSchema::parse(STANDARD).expect("a sound schema");
    SbePlan::new(&schema, &SbePlanOptions::default()).expect("no options")
}

/// Asserts that encoding the values gives the message again. Passes the values to `check`.
fn decoded(name: &str, hex: &str, check: impl FnOnce(&SbeRecord<'_>)) {
    let plan = standard();
    let template = plan.template(name).expect("a template of this name");
    let message = bytes(hex);
    let opened = template.open(&message).expect("a sound message");
    assert_eq!(opened.check(), Ok(0));
    let record = opened.decode().expect("sound values");
    check(&record);
    let mut again = Vec::new();
    template
        .encode(&record, &mut again)
        .expect("decoded values");
    assert_eq!(again, message);
}

fn name<'a>(value: &SbeValue<'a>) -> Option<&'a str> {
    match value {
        SbeValue::Symbol { name, .. } => *name,
        _ => None,
    }
}

/// 13-30
#[test]
fn the_new_order_of_the_standard_has_its_values() {
    decoded("NewOrderSingle", NEW_ORDER, |record| {
        let fields = &record.fields;
        assert_eq!(
            fields[..3],
            ["ORD00001", "ACCT01", "GEM4"].map(SbeValue::from)
        );
        assert_eq!(
            (name(&fields[3]), name(&fields[6])),
            (Some("Buy"), Some("Limit"))
        );
        assert_eq!(
            fields[5],
            SbeValue::Decimal {
                mantissa: 7,
                exponent: 0
            }
        );
        assert_eq!(
            fields[7],
            SbeValue::Decimal {
                mantissa: 99_610,
                exponent: -3
            }
        );
        assert_eq!(fields[8], SbeValue::Null);
    });
}

/// 13-30
#[test]
fn the_execution_report_of_the_standard_has_its_values() {
    decoded("ExecutionReport", EXECUTION_REPORT, |record| {
        let fields = &record.fields;
        assert_eq!(
            (name(&fields[2]), name(&fields[3])),
            (Some("Trade"), Some("PartialFilled"))
        );
        let maturity = [
            SbeValue::from(2014u64),
            SbeValue::from(6u64),
            SbeValue::Null,
            SbeValue::Null,
        ];
        assert_eq!(fields[5], SbeValue::Struct(maturity.to_vec()));
        assert_eq!(fields[9], SbeValue::from(15_989i64));
        let fills: Vec<_> = record.groups[0]
            .iter()
            .map(|fill| fill.fields.clone())
            .collect();
        let fill = |price, quantity| {
            vec![
                SbeValue::Decimal {
                    mantissa: price,
                    exponent: -3,
                },
                SbeValue::Decimal {
                    mantissa: quantity,
                    exponent: 0,
                },
            ]
        };
        assert_eq!(fills, [fill(99_610, 2), fill(99_620, 4)]);
    });
}

/// 13-30
#[test]
fn the_business_reject_of_the_standard_has_its_values() {
    decoded("BusinessMessageReject", REJECT, |record| {
        assert_eq!(name(&record.fields[1]), Some("NotAuthorized"));
        let text = record.data[0].as_deref();
        assert_eq!(text, Some(&b"Not authorized to trade that instrument"[..]));
    });
}

/// 13-30
///
/// The standard's `monthYear` has 65536 as null value of `uint16`: 65535 is meant.
#[test]
fn a_null_value_that_does_not_fit_is_refused_also_in_the_standards_month() {
    let types = "<composite name=\"monthYear\">\
                 <type name=\"year\" primitiveType=\"uint16\" presence=\"optional\" nullValue=\"65536\"/></composite>";
    let error = error(&message(types, ""));
    assert_eq!(error.rule, "nullValue '65536' is not a value of uint16");
}
