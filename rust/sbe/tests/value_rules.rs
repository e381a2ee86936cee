//! Each rule of values: their nulls, texts, decimals and times, on reading and on writing.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::support::{decoded, encoded, message, plan, sound};
use aeron_sbe::number::SbeNumber;
use aeron_sbe::plan::{SbePlan, SbePlanError, SbePlanOptions, SbeTimeUnit};
use aeron_sbe::read::{SbeMalformed, SbeWireNumber};
use aeron_sbe::value::{SbeRecord, SbeValue};
use aeron_sbe::write::SbeEncodeError;

fn decimal(mantissa: i128, exponent: i32) -> SbeValue<'static> {
    SbeValue::Decimal { mantissa, exponent }
}

/// Returns the plan of a message with one field `a` of a type `T`.
fn one(types: &str, attributes: &str) -> SbePlan {
    let field = format!("<field name=\"a\" id=\"1\" {attributes}/>");
    plan(&message(types, &field))
}

/// Returns the bytes of the field.
fn written(plan: &SbePlan, value: SbeValue<'_>) -> Vec<u8> {
    encoded(&plan.templates[0], vec![value])[8..].to_vec()
}

/// Returns the error of the field's value.
fn refused(plan: &SbePlan, value: SbeValue<'_>) -> SbeEncodeError {
    let record = SbeRecord {
        fields: vec![value],
        ..SbeRecord::default()
    };
    match plan.templates[0].encode(&record, &mut Vec::new()) {
        Ok(()) => panic!("{record:?} was encoded"),
        Err(error) => error,
    }
}

/// Returns the value of the field's bytes.
fn read(plan: &SbePlan, bytes: &[u8]) -> Result<String, SbeMalformed> {
    let mut message = vec![bytes.len() as u8, 0, 1, 0, 1, 0, 3, 0];
    message.extend(bytes);
    let opened = plan.templates[0].open(&message)?;
    Ok(format!("{:?}", opened.decode()?.fields[0]))
}

/// 13-11
#[test]
fn texts_are_decoded_and_encoded_in_each_character_set() {
    for (name, text, bytes) in [
        ("US-ASCII", "ab", &b"ab"[..]),
        ("iso-8859-1", "\u{e9}", b"\xe9"),
        ("UTF-8", "\u{e9}", "\u{e9}".as_bytes()),
        ("UTF-16", "\u{e9}\u{1f600}", b"\xe9\x00\x3d\xd8\x00\xde"),
        ("UTF-16BE", "\u{e9}", b"\x00\xe9"),
    ] {
        let plan = one(
            &format!(
                "<type name=\"T\" primitiveType=\"char\" length=\"6\" characterEncoding=\"{name}\"/>"
            ),
            "type=\"T\"",
        );
        let mut expected = bytes.to_vec();
        expected.resize(6, 0);
        assert_eq!(written(&plan, SbeValue::from(text)), expected, "{name}");
        let message = encoded(&plan.templates[0], vec![SbeValue::from(text)]);
        assert_eq!(
            decoded(&plan.templates[0], &message),
            [SbeValue::from(text)],
            "{name}"
        );
    }
    let binary = one(
        "<type name=\"T\" primitiveType=\"char\" length=\"2\" characterEncoding=\"Shift_JIS\"/>",
        "type=\"T\"",
    );
    assert_eq!(
        written(&binary, SbeValue::Bytes(Cow::Borrowed(b"\x88"))),
        [0x88, 0]
    );
    assert_eq!(read(&binary, b"\x88\x9f").unwrap(), "Bytes([136, 159])");
}

/// 13-13
#[test]
fn each_kind_of_optional_field_has_its_null() {
    let array =
        |primitive: &str| format!("<type name=\"T\" primitiveType=\"{primitive}\" length=\"2\"/>");
    let composite = |members: &str| format!("<composite name=\"T\">{members}</composite>");
    let names = |null: &str| {
        format!(
            "<enum name=\"T\" encodingType=\"uint8\"><validValue name=\"x\">1</validValue>{null}</enum>"
        )
    };
    let cases = [
        (
            "<type name=\"T\" primitiveType=\"int16\"/>".to_owned(),
            vec![0, 0x80],
        ),
        (
            "<type name=\"T\" primitiveType=\"uint16\"/>".to_owned(),
            vec![0xff, 0xff],
        ),
        (
            "<type name=\"T\" primitiveType=\"char\"/>".to_owned(),
            vec![0],
        ),
        (
            "<type name=\"T\" primitiveType=\"char\" nullValue=\"0\"/>".to_owned(),
            vec![0],
        ),
        (
            "<type name=\"T\" primitiveType=\"char\" nullValue=\"x\"/>".to_owned(),
            vec![b'x'],
        ),
        (
            "<type name=\"T\" primitiveType=\"uint8\" nullValue=\"7\"/>".to_owned(),
            vec![7],
        ),
        (array("char"), vec![0, 0]),
        (array("uint8"), vec![0xff, 0xff]),
        (array("int8"), vec![0x80, 0x80]),
        (names(""), vec![0xff]),
        (
            names("<validValue name=\"nullValue\">9</validValue>"),
            vec![9],
        ),
        (
            composite(
                "<type name=\"mantissa\" primitiveType=\"int16\"/><type name=\"exponent\" primitiveType=\"int8\"/>",
            ),
            vec![0, 0x80, 0x80],
        ),
        (
            composite(
                "<type name=\"exponent\" primitiveType=\"int8\"/><type name=\"mantissa\" primitiveType=\"uint8\"/>",
            ),
            vec![0x80, 0xff],
        ),
        (
            composite(
                "<type name=\"c\" primitiveType=\"int8\" presence=\"constant\">1</type>\
                 <type name=\"x\" primitiveType=\"int8\"/><type name=\"y\" primitiveType=\"uint8\"/>",
            ),
            vec![0x80, 0xff],
        ),
    ];
    for (types, bytes) in cases {
        let plan = one(&types, "type=\"T\" presence=\"optional\"");
        assert_eq!(written(&plan, SbeValue::Null), bytes, "{types}");
        assert_eq!(read(&plan, &bytes).unwrap(), "Null", "{types}");
    }
    let float = one("", "type=\"float\" presence=\"optional\"");
    assert_eq!(read(&float, &0x7fc1_2345u32.to_le_bytes()).unwrap(), "Null");
}

/// 13-13
#[test]
fn a_number_that_an_enum_does_not_have_has_no_name() {
    let plan = one(
        "<enum name=\"T\" encodingType=\"uint8\"><validValue name=\"x\">1</validValue></enum>",
        "type=\"T\"",
    );
    assert_eq!(
        read(&plan, &[1]).unwrap(),
        "Symbol { number: Unsigned(1), name: Some(\"x\") }"
    );
    assert_eq!(
        read(&plan, &[2]).unwrap(),
        "Symbol { number: Unsigned(2), name: None }"
    );
    assert_eq!(written(&plan, SbeValue::from(2u64)), [2]);
}

/// 13-13
#[test]
fn a_field_of_an_enum_with_a_null_value_is_optional() {
    let types = "<enum name=\"T\" encodingType=\"uint8\"><validValue name=\"false\">0</validValue>\
                 <validValue name=\"nullValue\">255</validValue></enum>";
    assert_eq!(read(&one(types, "type=\"T\""), &[255]).unwrap(), "Null");
    let required = one(types, "type=\"T\" presence=\"required\"");
    assert_eq!(
        read(&required, &[255]).unwrap(),
        "Symbol { number: Unsigned(255), name: Some(\"nullValue\") }"
    );
    let types = "<type name=\"U\" primitiveType=\"uint8\" presence=\"optional\" nullValue=\"9\"/>\
                 <enum name=\"T\" encodingType=\"U\"><validValue name=\"x\">0</validValue></enum>";
    assert_eq!(read(&one(types, "type=\"T\""), &[9]).unwrap(), "Null");
}

/// 13-14
#[test]
fn a_null_value_of_a_required_field_is_a_value() {
    assert_eq!(
        read(&one("", "type=\"uint8\""), &[255]).unwrap(),
        "Number(Unsigned(255))"
    );
    assert_eq!(
        read(&one("", "type=\"int8\""), &[128]).unwrap(),
        "Number(Signed(-128))"
    );
    assert_eq!(read(&one("", "type=\"char\""), &[0]).unwrap(), "Text(\"\")");
    assert_eq!(
        written(&one("", "type=\"uint8\""), SbeValue::from(255u64)),
        [255]
    );
}

/// 13-21
#[test]
fn a_text_ends_at_its_first_nul_and_has_no_foreign_bytes() {
    let text = |name: &str| {
        one(
            &format!(
                "<type name=\"T\" primitiveType=\"char\" length=\"4\" characterEncoding=\"{name}\"/>"
            ),
            "type=\"T\"",
        )
    };
    assert_eq!(read(&text("US-ASCII"), b"a\0\xffc").unwrap(), "Text(\"a\")");
    assert_eq!(read(&text("UTF-16"), b"a\0\0\0").unwrap(), "Text(\"a\")");
    for (name, bytes, offset) in [
        ("US-ASCII", b"ab\x80c", 2),
        ("UTF-8", b"ab\xffc", 2),
        ("UTF-16", b"a\0\x00\xdc", 2),
    ] {
        let error = read(&text(name), bytes).expect_err("a foreign byte");
        let SbeMalformed::Text { offset: found, .. } = error else {
            panic!("{error}");
        };
        assert_eq!(found, offset, "{name}");
    }
}

/// 13-22
#[test]
fn a_decimal_has_an_exponent_of_the_schema_of_the_wire_or_of_another_field() {
    let composite = |exponent: &str| {
        format!(
            "<composite name=\"T\"><type name=\"mantissa\" primitiveType=\"int16\"/>{exponent}</composite>"
        )
    };
    let constant = |exponent: i8| {
        let member = format!(
            "<type name=\"exponent\" primitiveType=\"int8\" presence=\"constant\">{exponent}</type>"
        );
        one(&composite(&member), "type=\"T\"")
    };
    assert_eq!(written(&constant(-2), decimal(15, -1)), [150, 0]);
    assert_eq!(
        read(&constant(-2), &[150, 0]).unwrap(),
        format!("{:?}", decimal(150, -2))
    );
    assert_eq!(written(&constant(2), SbeValue::from(500u64)), [5, 0]);
    let wire = one(
        &composite("<type name=\"exponent\" primitiveType=\"int8\"/>"),
        "type=\"T\"",
    );
    assert_eq!(written(&wire, decimal(15, -1)), [15, 0, 255]);
    let holder = |fields: &str| plan(&message("", fields));
    let fields = "<field name=\"e\" id=\"1\" type=\"int8\"/><group name=\"g\" id=\"3\">\
                  <field name=\"p\" id=\"2\" type=\"int16\" m:exponent=\"e\" xmlns:m=\"urn:m\"/></group>";
    let plan = holder(fields);
    let entry = SbeRecord {
        fields: vec![decimal(15, 0)],
        ..SbeRecord::default()
    };
    let record = SbeRecord {
        fields: vec![SbeValue::from(-1i64)],
        groups: vec![vec![entry]],
        data: Vec::new(),
    };
    let mut bytes = Vec::new();
    plan.templates[0].encode(&record, &mut bytes).unwrap();
    assert_eq!(bytes[8..], [255, 2, 0, 1, 0, 150, 0]);
    let read = plan.templates[0].open(&bytes).unwrap().decode().unwrap();
    assert_eq!(read.groups[0][0].fields, [decimal(150, -1)]);
}

/// 13-22
#[test]
fn an_exponent_in_a_field_that_does_not_exist_is_a_warning() {
    let plan = one("", "type=\"int8\" m:exponent=\"e\" xmlns:m=\"urn:m\"");
    assert_eq!(read(&plan, &[5]).unwrap(), "Number(Signed(5))");
    let warnings: Vec<_> = plan.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(warnings, ["exponent 'M.a': no integer field 'e' exists"]);
}

/// 13-22
#[test]
fn an_option_names_the_field_of_an_exponent() {
    let schema = sound(&message(
        "",
        "<field name=\"e\" id=\"1\" type=\"int8\"/><field name=\"p\" id=\"2\" type=\"int16\"/>\
         <field name=\"f\" id=\"3\" type=\"float\"/>",
    ));
    let planned = |field: &str, exponent: &str| -> Result<SbePlan, SbePlanError> {
        let decimals = BTreeMap::from([(field.to_owned(), exponent.to_owned())]);
        SbePlan::new(
            &schema,
            &SbePlanOptions {
                decimals,
                ..SbePlanOptions::default()
            },
        )
    };
    let plan = planned("M.p", "e").expect("sound options");
    let fields = vec![SbeValue::from(2u64), decimal(15, 2), SbeValue::from(0.5)];
    let bytes = encoded(&plan.templates[0], fields);
    assert_eq!(decoded(&plan.templates[0], &bytes)[1], decimal(15, 2));
    for (field, exponent, reason) in [
        ("q", "e", "decimals 'q': no such field exists"),
        ("p", "x", "decimals 'p': no integer field 'x' exists"),
        ("p", "f", "decimals 'p': no integer field 'f' exists"),
        ("f", "e", "decimals 'f': the field is not an integer"),
    ] {
        assert_eq!(
            planned(field, exponent)
                .expect_err("unsound options")
                .to_string(),
            reason
        );
    }
}

/// 13-23
#[test]
fn a_time_has_a_unit_of_the_schema_of_the_wire_or_of_the_options() {
    let nanoseconds = one("", "type=\"uint64\" semanticType=\"utctimestamp\"");
    assert_eq!(
        read(&nanoseconds, &5u64.to_le_bytes()).unwrap(),
        "Number(Signed(5))"
    );
    let error = read(&nanoseconds, &u64::MAX.to_le_bytes()).expect_err("a time beyond 64 bits");
    assert_eq!(
        error.to_string(),
        "'a': value 18446744073709551615 is beyond the times of 64 bits"
    );
    let wire = one(
        "<composite name=\"T\"><type name=\"time\" primitiveType=\"uint64\"/>\
         <type name=\"unit\" primitiveType=\"uint8\"/></composite>",
        "type=\"T\" semanticType=\"UTCTimestamp\"",
    );
    let time = |time: u64, unit: u8| {
        let mut bytes = time.to_le_bytes().to_vec();
        bytes.push(unit);
        read(&wire, &bytes)
    };
    assert_eq!(time(2, 0).unwrap(), "Number(Signed(2000000000))");
    assert_eq!(time(2, 6).unwrap(), "Number(Signed(2000))");
    assert_eq!(
        time(2, 7).unwrap_err().to_string(),
        "'a': value 7 is no unit of a time"
    );
    assert!(time(u64::MAX / 4, 0).is_err());
    assert_eq!(written(&wire, SbeValue::from(2i64))[8], 9);
}

/// 13-23
#[test]
fn names_that_speak_of_another_unit_give_a_warning_and_an_option_names_the_type() {
    let schema = |unit: &str, name: &str, description: &str| {
        sound(&message(
            &format!(
                "<type name=\"{name}\" primitiveType=\"int64\" semanticType=\"UTCTimestamp\" {unit}/>"
            ),
            &format!(
                "<field name=\"a\" id=\"1\" type=\"{name}\" description=\"{description}\"/>
                 <field name=\"b\" id=\"2\" type=\"{name}\"/>"
            ),
        ))
    };
    let warnings = |unit, name, description| {
        let schema = schema(unit, name, description);
        let plan = SbePlan::new(&schema, &SbePlanOptions::default()).unwrap();
        plan.warnings.len()
    };
    assert_eq!(warnings("", "utcTimestampUs", ""), 2);
    assert_eq!(warnings("", "time", "time in milliseconds"), 1);
    assert_eq!(warnings("", "time", "nanoseconds since 1970"), 0);
    assert_eq!(warnings("timeUnit=\"microsecond\"", "timeUs", ""), 0);

    let options = SbePlanOptions {
        timestamps: [("utcTimestampUs".to_owned(), SbeTimeUnit::Microsecond)].into(),
        ..SbePlanOptions::default()
    };
    let plan = SbePlan::new(&schema("", "utcTimestampUs", ""), &options).unwrap();
    assert_eq!(plan.warnings, []);
    for field in &plan.templates[0].block.fields {
        let aeron_sbe::plan::SbeKind::Time(time) = &field.kind else {
            panic!("{} is no time", field.name);
        };
        assert_eq!(time.unit(), SbeTimeUnit::Microsecond);
    }
}

/// 13-23
#[test]
fn the_options_and_the_attributes_of_drafts_have_units_too() {
    let unit = |attributes: &str| {
        let schema = sound(&message(
            "",
            &format!("<field name=\"a\" id=\"1\" type=\"int64\" {attributes}/>"),
        ));
        let options = |timestamps: &[(&str, SbeTimeUnit)]| SbePlanOptions {
            timestamps: timestamps
                .iter()
                .map(|(name, unit)| ((*name).to_owned(), *unit))
                .collect(),
            ..SbePlanOptions::default()
        };
        let kind = |options: &SbePlanOptions| {
            let plan = SbePlan::new(&schema, options).ok()?;
            match &plan.templates[0].block.fields[0].kind {
                aeron_sbe::plan::SbeKind::Time(time) => Some(time.unit()),
                _ => None,
            }
        };
        let plain = kind(&options(&[]));
        (plain, kind(&options(&[("a", SbeTimeUnit::Microsecond)])))
    };
    let chosen = Some(SbeTimeUnit::Microsecond);
    assert_eq!(unit(""), (None, chosen));
    assert_eq!(
        unit("semanticType=\"UTCTimestamp\""),
        (Some(SbeTimeUnit::Nanosecond), chosen)
    );
    assert_eq!(
        unit("semanticType=\"UTCTimestamp\" timeUnit=\"millisecond\""),
        (Some(SbeTimeUnit::Millisecond), chosen)
    );
    assert_eq!(
        unit("semanticType=\"UTCTimestamp\" epoch=\"midnight\""),
        (None, chosen)
    );
    // A date is no timestamp, so the option is an error.
    assert_eq!(
        unit("semanticType=\"UTCDateOnly\" timeUnit=\"second\""),
        (Some(SbeTimeUnit::Day), None)
    );
}

/// 13-24
#[test]
fn bytes_between_and_after_fields_are_zero() {
    let plan = plan(&message(
        "<type name=\"T\" primitiveType=\"char\" length=\"4\"/>",
        "<field name=\"a\" id=\"1\" type=\"T\"/><field name=\"b\" id=\"2\" type=\"uint8\" offset=\"6\"/>",
    ));
    let record = SbeRecord {
        fields: vec![SbeValue::from("xy"), SbeValue::from(9u64)],
        ..SbeRecord::default()
    };
    let mut buffer = [0xee; 20];
    let length = plan.templates[0].encode_into(&record, &mut buffer).unwrap();
    assert_eq!(length, 15);
    assert_eq!(
        buffer[8..],
        [b'x', b'y', 0, 0, 0, 0, 9, 0xee, 0xee, 0xee, 0xee, 0xee]
    );
    let error = plan.templates[0].encode_into(&record, &mut buffer[..14]);
    assert_eq!(
        error,
        Err(SbeEncodeError::Buffer {
            needed: 15,
            available: 14
        })
    );
}

/// 13-25
#[test]
fn missing_values_and_values_out_of_range_are_not_encoded() {
    let limited = "<type name=\"T\" primitiveType=\"int16\" minValue=\"1\" maxValue=\"5\"/>";
    let cases = [
        (one("", "type=\"int8\""), SbeValue::Null, "'a' is required"),
        (
            one("", "type=\"int8\""),
            SbeValue::from(128u64),
            "128 is not from -128 to 127",
        ),
        (
            one("", "type=\"uint8\""),
            SbeValue::from(-1i64),
            "-1 is not from 0 to 255",
        ),
        (
            one("", "type=\"uint8\""),
            SbeValue::from(1.5),
            "needs an integer",
        ),
        (
            one("", "type=\"uint8\""),
            SbeValue::from("1"),
            "needs a number",
        ),
        (
            one(limited, "type=\"T\""),
            SbeValue::from(6u64),
            "6 is not from 1 to 5",
        ),
        (
            one(limited, "type=\"T\" maxValue=\"4\""),
            SbeValue::from(5u64),
            "5 is not from 1 to 4",
        ),
        (
            one("", "type=\"uint8\" presence=\"optional\""),
            SbeValue::from(255u64),
            "255 is the null value",
        ),
        (
            one(
                "<type name=\"T\" primitiveType=\"char\" length=\"2\"/>",
                "type=\"T\"",
            ),
            SbeValue::from("abc"),
            "length 3 does not fit the length 2",
        ),
        (
            one(
                "<type name=\"T\" primitiveType=\"char\" length=\"2\"/>",
                "type=\"T\"",
            ),
            SbeValue::from("\u{e9}"),
            "its character set does not have",
        ),
        (
            one(
                "<type name=\"T\" primitiveType=\"char\" length=\"2\"/>",
                "type=\"T\"",
            ),
            SbeValue::from("\0a"),
            "or a NUL",
        ),
        (
            one(
                "<type name=\"T\" primitiveType=\"int8\" length=\"2\"/>",
                "type=\"T\"",
            ),
            SbeValue::List(vec![SbeValue::from(1u64)]),
            "length 1 does not fit the length 2",
        ),
        (
            one(
                "<enum name=\"T\" encodingType=\"uint8\"><validValue name=\"x\">1</validValue></enum>",
                "type=\"T\"",
            ),
            SbeValue::from("y"),
            "'T' has no value 'y'",
        ),
        (
            one(
                "<type name=\"T\" primitiveType=\"uint8\" presence=\"constant\">1</type>",
                "type=\"T\"",
            ),
            SbeValue::from(2u64),
            "'a' is constant",
        ),
    ];
    for (plan, value, words) in cases {
        let error = refused(&plan, value).to_string();
        assert!(error.contains(words), "{error}, not {words}");
    }
    // The limits are not those of reading.
    assert_eq!(
        read(&one(limited, "type=\"T\""), &[9, 0]).unwrap(),
        "Number(Signed(9))"
    );
    assert_eq!(
        SbeNumber::Unsigned(1),
        SbeNumber::Signed(1),
        "the form of a number does not matter"
    );
}

/// 13-26
#[test]
fn a_decimal_that_would_have_to_be_rounded_is_not_encoded() {
    let plan = one(
        "<composite name=\"T\"><type name=\"mantissa\" primitiveType=\"int8\"/>\
         <type name=\"exponent\" primitiveType=\"int8\" presence=\"constant\">-1</type></composite>",
        "type=\"T\"",
    );
    assert_eq!(written(&plan, decimal(150, -2)), [15]);
    for (value, words) in [
        (
            decimal(155, -2),
            "155e-2 has no exact mantissa with exponent -1",
        ),
        (decimal(13, 0), "130 is not from -128 to 127"),
        (decimal(1, i32::MAX), "no exact mantissa"),
        (decimal(1, i32::MIN), "no exact mantissa"),
        (decimal(i128::MAX, 0), "no exact mantissa"),
        (decimal(i128::MAX, -1), "is not from -128 to 127"),
    ] {
        let error = refused(&plan, value).to_string();
        assert!(error.contains(words), "{error}, not {words}");
    }
    assert_eq!(written(&plan, decimal(0, i32::MAX)), [0]);
}

/// Returns the bytes of a column of the field, and those of single values; `None` if a value is refused.
fn columns<T: SbeWireNumber>(plan: &SbePlan, numbers: &[Option<T>]) -> [Option<Vec<u8>>; 2] {
    let block = &plan.templates[0].block;
    let field = &block.fields[0];
    let stride = block.block_length + 3;
    let mut blocks = vec![0; stride * numbers.len()];
    let place = |number: usize| (number * stride) as u32;
    let given = (0..numbers.len()).filter(|number| numbers[*number].is_some());
    let (given, missing): (Vec<u32>, Vec<u32>) = (
        given.map(place).collect(),
        (0..numbers.len())
            .filter(|number| numbers[*number].is_none())
            .map(place)
            .collect(),
    );
    let values: Vec<T> = numbers.iter().flatten().copied().collect();
    let written =
        field.put_column(&mut blocks, &given, &values) && field.put_nulls(&mut blocks, &missing);
    let column = written.then_some(blocks);
    let mut blocks = vec![0; stride * numbers.len()];
    let mut is_written = true;
    for (number, place) in numbers.iter().zip(blocks.chunks_mut(stride)) {
        let value = number.map_or(SbeValue::Null, |number| SbeValue::Number(number.number()));
        is_written &= field.put(place, &value).is_ok();
    }
    [column, is_written.then_some(blocks)]
}

/// 13-25
#[test]
fn a_column_of_numbers_is_written_as_its_single_values() {
    let limited = "<type name=\"T\" primitiveType=\"int16\" minValue=\"1\" maxValue=\"5\"/>";
    let names =
        "<enum name=\"T\" encodingType=\"int16\"><validValue name=\"x\">1</validValue></enum>";
    let whole = "<composite name=\"T\"><type name=\"mantissa\" primitiveType=\"int16\"/>\
                 <type name=\"exponent\" primitiveType=\"int8\" presence=\"constant\">0</type></composite>";
    let plans = [
        one("", "type=\"int16\""),
        one("", "type=\"int16\" presence=\"optional\""),
        one("", "type=\"int16\" semanticType=\"UTCTimestamp\""),
        one(limited, "type=\"T\""),
        one(limited, "type=\"T\" presence=\"optional\""),
        one(names, "type=\"T\""),
        one(whole, "type=\"T\" presence=\"optional\""),
    ];
    let null = Some(i16::MIN);
    let cases = [
        &[Some(1i16), Some(2)][..],
        &[Some(1), None, Some(3)],
        &[Some(1), null],
        &[Some(1), Some(6)],
        &[Some(1), Some(-1)],
        &[],
    ];
    for plan in &plans {
        for numbers in cases {
            let [column, single] = columns(plan, numbers);
            assert_eq!(
                column, single,
                "{numbers:?} in {:?}",
                plan.templates[0].block.fields[0]
            );
        }
        let [wide, _] = columns(plan, &[Some(1i64)]);
        assert_eq!(wide, None, "the numbers have another type");
    }
    let float = one("", "type=\"float\" presence=\"optional\"");
    let [column, single] = columns(&float, &[Some(1.5f32), None, Some(f32::NAN)]);
    assert_eq!(column, single);
    let field = &plans[0].templates[0].block.fields[0];
    assert!(!field.put_column(&mut [0; 3], &[0, 2], &[1i16, 2]));
    assert!(!field.put_column(&mut [0; 4], &[0], &[1i16, 2]));
    let optional = &plans[1].templates[0].block.fields[0];
    assert!(!optional.put_nulls(&mut [0; 3], &[2]));
}
