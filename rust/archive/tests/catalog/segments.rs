//! Names and bases of segment files.

use aeron_archive::segments::{SegmentFileName, segment_base, segment_name};

use crate::catalog::common::{SEGMENT_LENGTH, TERM_LENGTH};

const SEGMENT: i64 = SEGMENT_LENGTH as i64;

#[test]
fn the_first_segment_begins_with_the_term_of_the_start_position() {
    // The start position and base were observed in a real archive.
    let start = 132_096;
    let base = |position| segment_base(position, start, TERM_LENGTH, SEGMENT_LENGTH);
    assert_eq!(base(start), 131_072);
    assert_eq!(base(131_072 + SEGMENT - 32), 131_072);
    assert_eq!(base(131_072 + SEGMENT), 131_072 + SEGMENT);
    assert_eq!(segment_name(0, 131_072), "0-131072.rec");

    let last = i64::from(1 << 30) << 31;
    assert_eq!(segment_base(last, last - 64, 1 << 30, 1 << 30), last);
}

#[test]
fn only_the_exact_form_of_a_segment_name_is_parsed() {
    let parsed = SegmentFileName::parse("7-131072.rec").unwrap();
    assert_eq!((parsed.recording_id, parsed.base), (7, 131_072));
    assert_eq!(parsed.extension, "rec");
    for name in [
        "",
        "7",
        "7-0",
        "-0.rec",
        "7-.rec",
        "7--1.rec",
        "07-0.rec",
        "7-00.rec",
        "+7-0.rec",
        "7-9223372036854775808.rec",
        "x-0.rec",
        "7-0x.rec",
        "archive.catalog",
    ] {
        assert_eq!(SegmentFileName::parse(name), None, "{name}");
    }
    let deleted = SegmentFileName::parse("7-0.rec.del").unwrap();
    assert_eq!(deleted.extension, "rec.del");
}
