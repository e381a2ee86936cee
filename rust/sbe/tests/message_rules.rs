//! Rules of groups and variable data: counts, versions, and bytes that lie.

use std::borrow::Cow;

use crate::support::{message, plan};
use aeron_sbe::limits::{MAX_DECODED_VALUES, MAX_EMPTY_ENTRIES, MAX_SKIP_DEPTH};
use aeron_sbe::plan::{SbePlan, SbeTemplate};
use aeron_sbe::read::SbeMalformed;
use aeron_sbe::value::{SbeRecord, SbeValue};
use aeron_sbe::write::SbeEncodeError;

/// Returns a plan whose header and dimensions count groups and data.
fn counting(elements: &str) -> SbePlan {
    let member = |name: &str| format!("<type name=\"{name}\" primitiveType=\"uint8\"/>");
    let counts = member("numGroups") + &member("numVarDataFields");
    plan(&format!(
        "<messageSchema id=\"1\" version=\"3\"><types><composite name=\"messageHeader\">{}{}{}{}{counts}</composite>\
         <composite name=\"groupSizeEncoding\">{}{}{counts}</composite>\
         <composite name=\"varDataEncoding\">{}<type name=\"varData\" primitiveType=\"uint8\" length=\"0\"/></composite>\
         </types><message name=\"M\" id=\"1\">{elements}</message></messageSchema>",
        member("blockLength"),
        member("templateId"),
        member("schemaId"),
        member("version"),
        member("blockLength"),
        member("numInGroup"),
        member("length"),
    ))
}

fn check(template: &SbeTemplate, bytes: &[u8]) -> Result<usize, String> {
    let message = template.open(bytes).map_err(|error| error.to_string())?;
    message.check().map_err(|error| error.to_string())
}

/// 13-15
#[test]
fn an_absent_group_has_no_entries_and_absent_data_have_no_bytes() {
    let plan = plan(&message(
        "",
        "<group name=\"g\" id=\"1\" sinceVersion=\"1\"><field name=\"a\" id=\"1\" type=\"int8\"/></group>\
         <data name=\"d\" id=\"2\" type=\"varDataEncoding\" sinceVersion=\"2\"/>",
    ));
    let record = |version: u8, rest: &[u8]| {
        let bytes = [&[0, 0, 1, 0, 1, 0, version, 0], rest].concat();
        let message = plan.templates[0].open(&bytes).unwrap();
        let record = message.decode().unwrap();
        (
            record.groups[0].len(),
            record.data[0].as_ref().map(|data| data.to_vec()),
            message.check().unwrap(),
        )
    };
    assert_eq!(record(0, &[7, 7]), (0, None, 2));
    assert_eq!(record(1, &[1, 0, 2, 0, 5, 6, 7]), (2, None, 1));
    assert_eq!(record(2, &[1, 0, 1, 0, 5, 1, 0, 9]), (1, Some(vec![9]), 0));
    // Entries of a later version are longer, and a group without entries may state any length.
    assert_eq!(
        record(4, &[3, 0, 1, 0, 5, 6, 7, 0, 0]),
        (1, Some(vec![]), 0)
    );
    assert_eq!(record(2, &[0, 0, 0, 0, 0, 0]), (0, Some(vec![]), 0));
}

/// 13-16
#[test]
fn unknown_groups_and_data_are_skipped_by_their_counts() {
    let plan = counting(
        "<group name=\"g\" id=\"1\"/><data name=\"d\" id=\"2\" type=\"varDataEncoding\"/>",
    );
    let template = &plan.templates[0];
    let record = SbeRecord {
        fields: vec![],
        groups: vec![vec![SbeRecord::default()]],
        data: vec![Some(Cow::Borrowed(b"x"))],
    };
    let mut bytes = Vec::new();
    template.encode(&record, &mut bytes).unwrap();
    assert_eq!(bytes, [0, 1, 1, 3, 1, 1, 0, 1, 0, 0, 1, b'x']);
    // Two unknown groups after the known one: a flat one, and one whose entries have a group and data.
    let flat = [2, 2, 0, 0, 8, 8, 8, 8];
    let nested = [1, 1, 1, 1, 9, 1, 1, 0, 0, 5, 2, 6, 6];
    let newer = [
        &[0, 1, 1, 9, 3, 2, 0, 1, 0, 0][..],
        &flat,
        &nested,
        &[1, b'x', 2, 7, 7],
    ]
    .concat();
    let message = template.open(&newer).unwrap();
    assert_eq!(message.check(), Ok(0));
    assert_eq!(message.decode().unwrap(), record);
    for end in 6..newer.len() {
        assert!(check(template, &newer[..end]).is_err(), "{end} bytes");
    }
}

/// 13-19
#[test]
fn entries_of_unknown_groups_end_with_the_message() {
    let plan = counting("<group name=\"g\" id=\"1\"/>");
    // The data of the first entry have all bytes that the second entry needs.
    let bytes = [0, 1, 1, 9, 2, 0, 0, 0, 0, 0, 1, 2, 0, 1, 9, 2, 7, 7];
    assert_eq!(
        check(&plan.templates[0], &bytes).unwrap_err(),
        "group 'M': 1 entries of at least 2 bytes are more than the 0 bytes left"
    );
}

/// 13-16
#[test]
fn entries_with_unknown_groups_are_read_one_by_one() {
    let plan =
        counting("<group name=\"g\" id=\"1\"><field name=\"a\" id=\"1\" type=\"uint8\"/></group>");
    let bytes = [
        0, 1, 1, 9, 1, 0, 1, 2, 1, 0, 5, 1, 1, 0, 0, 9, 6, 1, 2, 0, 0, 9, 9,
    ];
    let record = plan.templates[0].open(&bytes).unwrap().decode().unwrap();
    let values: Vec<_> = record.groups[0]
        .iter()
        .map(|entry| entry.fields[0].clone())
        .collect();
    assert_eq!(values, [SbeValue::from(5u64), SbeValue::from(6u64)]);
    assert_eq!(check(&plan.templates[0], &bytes), Ok(0));
}

/// 13-16
#[test]
fn a_count_below_that_of_the_version_is_malformed_and_a_null_count_is_none() {
    let plan = counting(
        "<group name=\"g\" id=\"1\"/><data name=\"d\" id=\"2\" type=\"varDataEncoding\"/>",
    );
    let template = &plan.templates[0];
    assert_eq!(
        check(template, &[0, 1, 1, 3, 0, 1, 0, 0, 0, 0, 0]).unwrap_err(),
        "M: numGroups 0 is less than 1, the number in version 3"
    );
    assert_eq!(
        check(template, &[0, 1, 1, 3, 1, 0, 0, 0, 0, 0, 0]).unwrap_err(),
        "M: numVarDataFields 0 is less than 1, the number in version 3"
    );
    assert_eq!(
        check(template, &[0, 1, 1, 3, 255, 255, 0, 0, 255, 255, 0]),
        Ok(0)
    );
}

/// 13-16
#[test]
fn an_unknown_element_without_a_layout_cannot_be_skipped() {
    let member = |name: &str| format!("<type name=\"{name}\" primitiveType=\"uint8\"/>");
    let plan = plan(&format!(
        "<messageSchema id=\"1\" version=\"3\"><types><composite name=\"messageHeader\">{}{}{}{}{}{}</composite></types>\
         <message name=\"M\" id=\"1\"/></messageSchema>",
        member("blockLength"),
        member("templateId"),
        member("schemaId"),
        member("version"),
        member("numGroups"),
        member("numVarDataFields"),
    ));
    let error = |groups: u8, data: u8| {
        check(&plan.templates[0], &[0, 1, 1, 3, groups, data, 0]).unwrap_err()
    };
    assert!(
        error(1, 0).contains("an unknown group cannot be skipped"),
        "{}",
        error(1, 0)
    );
    assert!(
        error(0, 1).contains("an unknown data cannot be skipped"),
        "{}",
        error(0, 1)
    );
    assert_eq!(check(&plan.templates[0], &[0, 1, 1, 3, 0, 0, 0]), Ok(1));
}

/// 13-19
#[test]
fn counts_are_bounded_by_the_bytes_of_the_message() {
    let plan = plan(&message(
        "<composite name=\"wide\"><type name=\"blockLength\" primitiveType=\"uint32\"/>\
         <type name=\"numInGroup\" primitiveType=\"uint32\"/></composite>",
        "<group name=\"g\" id=\"1\" dimensionType=\"wide\"/><group name=\"h\" id=\"2\" dimensionType=\"wide\">\
         <data name=\"d\" id=\"1\" type=\"varDataEncoding\"/></group>",
    ));
    let bytes = |first: [u32; 2], second: [u32; 2]| {
        let mut bytes = vec![0, 0, 1, 0, 1, 0, 3, 0];
        [first, second]
            .concat()
            .iter()
            .for_each(|number| bytes.extend(number.to_le_bytes()));
        bytes
    };
    let error = |bytes: Vec<u8>| check(&plan.templates[0], &bytes).unwrap_err();
    assert_eq!(
        error(bytes([1, u32::MAX], [0, 0])),
        "group 'g': 4294967295 entries of at least 1 bytes are more than the 8 bytes left"
    );
    assert_eq!(
        error(bytes([u32::MAX, u32::MAX], [0, 0])),
        "group 'g': 4294967295 entries of at least 4294967295 bytes are more than the 8 bytes left"
    );
    assert_eq!(
        error(bytes([0, 0], [0, u32::MAX])),
        "group 'h': 4294967295 entries of at least 2 bytes are more than the 0 bytes left"
    );
    let empty = MAX_EMPTY_ENTRIES as u32;
    assert_eq!(check(&plan.templates[0], &bytes([0, empty], [0, 0])), Ok(0));
    assert_eq!(
        error(bytes([0, empty + 1], [0, 0])),
        "group 'g': 65536 entries without bytes are more than the limit 65535 of a message"
    );
}

/// 13-19
#[test]
fn entries_without_bytes_are_limited_over_all_groups_of_a_message() {
    let plan = plan(&message(
        "",
        "<group name=\"g\" id=\"1\"><group name=\"h\" id=\"1\"/></group>",
    ));
    let mut bytes = vec![0, 0, 1, 0, 1, 0, 3, 0, 0, 0, 2, 0];
    bytes.extend([0, 0, 0xff, 0xff, 0, 0, 1, 0]);
    assert!(
        check(&plan.templates[0], &bytes)
            .unwrap_err()
            .contains("65536 entries without bytes")
    );
}

/// 13-19
#[test]
fn unknown_groups_are_nested_to_a_limit() {
    let plan = counting("<group name=\"g\" id=\"1\"/>");
    let nested = |depth: usize| {
        let mut bytes = vec![0, 1, 1, 9, 2, 0, 0, 0, 0, 0];
        (1..depth).for_each(|_| bytes.extend([0, 1, 1, 0]));
        bytes.extend([0, 0, 0, 0]);
        check(&plan.templates[0], &bytes)
    };
    assert_eq!(nested(MAX_SKIP_DEPTH), Ok(0));
    assert_eq!(
        nested(MAX_SKIP_DEPTH + 1).unwrap_err(),
        "M: unknown groups are nested deeper than the limit 16"
    );
}

/// 13-19
#[test]
fn a_message_with_too_many_values_is_not_decoded_at_once() {
    let fields: String = (1..=200)
        .map(|id| format!("<field name=\"f{id}\" id=\"{id}\" type=\"int8\" sinceVersion=\"1\"/>"))
        .collect();
    let plan = plan(&message(
        "",
        &format!("<group name=\"g\" id=\"1\">{fields}</group>"),
    ));
    let bytes = [0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0xff, 0xff];
    let message = plan.templates[0].open(&bytes).unwrap();
    assert_eq!(message.check(), Ok(0));
    assert_eq!(
        message.decode(),
        Err(SbeMalformed::Values {
            limit: MAX_DECODED_VALUES
        })
    );
}

/// 13-20
#[test]
fn variable_data_with_a_length_of_null_are_malformed() {
    let plan = plan(&message(
        "",
        "<data name=\"d\" id=\"1\" type=\"varDataEncoding\"/>",
    ));
    let mut bytes = vec![0, 0, 1, 0, 1, 0, 3, 0, 0xff, 0xff];
    bytes.resize(70_000, 0);
    assert_eq!(
        check(&plan.templates[0], &bytes).unwrap_err(),
        "data 'd': the length 65535 is the null value of its type"
    );
    bytes[8] = 0xfe;
    assert_eq!(check(&plan.templates[0], &bytes), Ok(70_000 - 10 - 65_534));
    bytes.truncate(20);
    assert_eq!(
        check(&plan.templates[0], &bytes).unwrap_err(),
        "data 'd': length 65534 is more than the 10 bytes left"
    );
    bytes.truncate(9);
    assert_eq!(
        check(&plan.templates[0], &bytes).unwrap_err(),
        "data 'd': 1 bytes are left for a length of 2"
    );
}

/// 13-27
#[test]
fn too_many_entries_and_too_long_data_are_not_encoded() {
    let plan = plan(&message(
        "<composite name=\"few\"><type name=\"blockLength\" primitiveType=\"uint8\"/>\
         <type name=\"numInGroup\" primitiveType=\"uint8\" minValue=\"1\" maxValue=\"3\"/></composite>",
        "<group name=\"g\" id=\"1\" dimensionType=\"few\"/><data name=\"d\" id=\"2\" type=\"varDataEncoding\"/>",
    ));
    let encode = |entries: usize, length: usize| {
        let record = SbeRecord {
            fields: vec![],
            groups: vec![vec![SbeRecord::default(); entries]],
            data: vec![Some(Cow::Owned(vec![1; length]))],
        };
        let mut bytes = vec![9];
        let result = plan.templates[0].encode(&record, &mut bytes);
        assert_eq!(
            result.is_err(),
            bytes == [9],
            "nothing is appended after an error"
        );
        result.map(|()| bytes.len() - 1)
    };
    assert_eq!(encode(3, 65_534), Ok(8 + 2 + 2 + 65_534));
    assert_eq!(
        plan.templates[0].encoded_length(&[3], &[65_534]),
        8 + 2 + 2 + 65_534
    );
    assert_eq!(
        encode(4, 0),
        Err(SbeEncodeError::Count {
            element: "g".to_owned(),
            count: 4,
            min: 1,
            max: 3
        })
    );
    assert_eq!(
        encode(1, 65_535),
        Err(SbeEncodeError::Count {
            element: "d".to_owned(),
            count: 65_535,
            min: 0,
            max: 65_534
        })
    );
    assert!(encode(0, 0).is_err(), "the schema says at least one entry");
    let shape = |groups: usize, data: usize| {
        let record = SbeRecord {
            fields: vec![],
            groups: vec![vec![SbeRecord::default()]; groups],
            data: vec![None; data],
        };
        plan.templates[0].encode(&record, &mut Vec::new())
    };
    assert_eq!(shape(1, 1), Ok(()));
    for (groups, data) in [(0, 1), (2, 1), (1, 0), (1, 2)] {
        let result = shape(groups, data);
        assert!(
            matches!(result, Err(SbeEncodeError::Shape { .. })),
            "{result:?}"
        );
    }
}

/// 13-27
#[test]
fn a_length_that_is_null_is_not_encoded_even_if_the_schema_allows_it() {
    let plan = plan(&message(
        "<composite name=\"D\"><type name=\"length\" primitiveType=\"uint8\" maxValue=\"255\"/>\
         <type name=\"varData\" primitiveType=\"uint8\" length=\"0\"/></composite>",
        "<data name=\"d\" id=\"1\" type=\"D\"/>",
    ));
    let encode = |length: usize| {
        let data = vec![Some(Cow::Owned(vec![1; length]))];
        let record = SbeRecord {
            data,
            ..SbeRecord::default()
        };
        plan.templates[0].encode(&record, &mut Vec::new())
    };
    assert_eq!(encode(254), Ok(()));
    assert!(encode(255).is_err());
}
