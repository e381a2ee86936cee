//! Values that a field can hold only in another form, and values that it must refuse.

use crate::support::{decoded, encoded, message, plan};
use aeron_sbe::plan::SbePlan;
use aeron_sbe::value::{SbeRecord, SbeValue};

/// Returns the plan of a message with one field `v`.
fn one(types: &str, attributes: &str) -> SbePlan {
    plan(&message(
        types,
        &format!("<field name=\"v\" id=\"1\" {attributes}/>"),
    ))
}

fn decimal(mantissa: i128, exponent: i32) -> SbeValue<'static> {
    SbeValue::Decimal { mantissa, exponent }
}

/// Returns the value after it was encoded and decoded.
fn returned(plan: &SbePlan, value: SbeValue<'_>) -> String {
    let bytes = encoded(&plan.templates[0], vec![value]);
    format!("{:?}", decoded(&plan.templates[0], &bytes)[0])
}

fn refused(plan: &SbePlan, value: SbeValue<'_>) -> String {
    let record = SbeRecord {
        fields: vec![value],
        ..SbeRecord::default()
    };
    let error = plan.templates[0].encode(&record, &mut Vec::new());
    error.expect_err("the value is refused").to_string()
}

const WIRE: &str = "<composite name=\"W\"><type name=\"mantissa\" primitiveType=\"int32\"/>\
    <type name=\"exponent\" primitiveType=\"int8\" minValue=\"-9\" maxValue=\"2\"/></composite>";

#[test]
fn a_decimal_with_its_exponent_on_the_wire_is_written_with_a_mantissa_that_fits() {
    let plan = one(WIRE, "type=\"W\"");
    for (given, expected) in [
        (decimal(1250, -3), decimal(1250, -3)),
        (decimal(5_000_000_000, -9), decimal(5, 0)),
        (decimal(10_i128.pow(11), 0), decimal(10_i128.pow(9), 2)),
        (decimal(3, 4), decimal(300, 2)),
        (decimal(0, -40), decimal(0, 0)),
        (decimal(-7 * 10_i128.pow(30), -30), decimal(-7, 0)),
        (SbeValue::from(1.1), decimal(11, -1)),
        (SbeValue::from(-250.0), decimal(-25, 1)),
    ] {
        let shown = format!("{given:?}");
        let returned = returned(&plan, given);
        let same = [format!("{expected:?}"), format!("{:?}", decimal(-250, 0))];
        assert!(same.contains(&returned), "{shown} became {returned}");
    }
    for value in [
        decimal(10_i128.pow(12), 0),
        decimal(5_000_000_001, -9),
        decimal(1, -10),
    ] {
        assert!(refused(&plan, value).contains("is not from"));
    }
    assert!(refused(&plan, SbeValue::from(f64::NAN)).contains("a finite number"));
}

#[test]
fn a_number_beyond_a_float_of_4_bytes_is_refused() {
    let plan = one("", "type=\"float\"");
    assert!(refused(&plan, SbeValue::from(1e300)).contains("is not from"));
    assert!(refused(&plan, SbeValue::from(-1e39)).contains("is not from"));
    assert_eq!(
        returned(&plan, SbeValue::from(f64::INFINITY)),
        format!("{:?}", SbeValue::from(f64::INFINITY))
    );
}

#[test]
fn an_integer_takes_whole_floats_and_decimals() {
    let plan = one("", "type=\"int64\"");
    let five = format!("{:?}", SbeValue::from(5_i64));
    for value in [SbeValue::from(5.0), decimal(500, -2), decimal(5, 0)] {
        assert_eq!(returned(&plan, value), five);
    }
    assert_eq!(
        returned(&plan, decimal(-5, 0)),
        format!("{:?}", SbeValue::from(-5_i64))
    );
    for value in [
        SbeValue::from(5.5),
        SbeValue::from(1e18),
        SbeValue::from(f64::NAN),
    ] {
        assert!(refused(&plan, value).contains("needs an integer"));
    }
    assert!(refused(&plan, decimal(55, -1)).contains("no exact mantissa"));
    let float = one("", "type=\"double\"");
    assert_eq!(
        returned(&float, decimal(15, -1)),
        format!("{:?}", SbeValue::from(1.5))
    );
}

const ENUM: &str = "<enum name=\"E\" encodingType=\"uint8\"><validValue name=\"A\">1</validValue>\
    <validValue name=\"nullValue\">9</validValue></enum>";

#[test]
fn the_null_value_of_a_required_enum_has_its_name() {
    let plan = one(ENUM, "type=\"E\" presence=\"required\"");
    let returned = returned(&plan, SbeValue::from("nullValue"));
    assert!(returned.contains("Some(\"nullValue\")"), "{returned}");
    let optional = one(ENUM, "type=\"E\"");
    assert!(refused(&optional, SbeValue::from("nullValue")).contains("leave the field out"));
}

#[test]
fn a_time_that_is_not_in_its_day_is_neither_read_nor_written() {
    const DAY: u64 = 86_400_000_000_000;
    let plan = one("", "type=\"uint64\" semanticType=\"UTCTimeOnly\"");
    let mut bytes = encoded(&plan.templates[0], vec![SbeValue::from(DAY - 1)]);
    assert!(refused(&plan, SbeValue::from(DAY)).contains("is not from 0 to 86399999999999"));
    bytes[8..].copy_from_slice(&DAY.to_le_bytes());
    let opened = plan.templates[0].open(&bytes).expect("a whole message");
    let reason = opened.decode().expect_err("24 hours").to_string();
    assert!(reason.contains("is not a time of a day"), "{reason}");
}

#[test]
fn sizes_beyond_the_dimension_are_refused() {
    let group = "<group name=\"g\" id=\"1\"><field name=\"x\" id=\"2\" type=\"int8\"/></group>\
        <data name=\"d\" id=\"3\" type=\"varDataEncoding\"/>";
    let plan = plan(&message("", group));
    let template = &plan.templates[0];
    template
        .check_sizes(&[65_534], &[65_534])
        .expect("the greatest sizes");
    let entries = template.check_sizes(&[70_000], &[]).expect_err("too many");
    assert!(
        entries
            .to_string()
            .contains("'g': 70000 is not from 0 to 65534"),
        "{entries}"
    );
    template
        .check_sizes(&[], &[usize::MAX])
        .expect_err("too long");
}

#[test]
fn texts_of_errors_do_not_show_values_of_any_length() {
    let plan = one("", "type=\"int8\"");
    let list = SbeValue::List(vec![SbeValue::from(1_i64); 1000]);
    assert!(refused(&plan, list).contains("not a list of 1000 items"));
    let bytes = SbeValue::Bytes(vec![98; 9].into());
    assert!(refused(&plan, bytes).contains("not 9 bytes"));
}
