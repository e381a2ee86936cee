//! Tests of the rows that are read from recordings: the number of rows, the values, and the handling of malformed
//! messages.

use std::collections::HashSet;
use std::sync::Arc;

use crate::recordings::{Recording, SESSION_ID, STREAM_ID};
use aeron_archive::memory_storage::MemoryStorage;
use aeron_columns::layout::timestamp_type;
use aeron_columns::read::{
    self as columns, BATCH_LENGTH, BATCH_ROWS, Mode, Projection, ValueFormat,
};
use aeron_pipeline::partition::Partition;
use aeron_pipeline::rows::{PartitionReadError, PartitionRowReader};
use aeron_protocol::frame::flags::{BEGIN, END, UNFRAGMENTED};
use arrow_array::cast::AsArray;
use arrow_array::types::{Int16Type, Int32Type, Int64Type, TimestampMicrosecondType};
use arrow_array::{Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::subsequence;

const TERM_LENGTH: i32 = 64 * 1024;

fn header_columns() -> Vec<(&'static str, DataType)> {
    vec![
        ("stream_id", DataType::Int32),
        ("session_id", DataType::Int32),
        ("position", DataType::Int64),
        ("reserved_value", DataType::Int64),
        ("timestamp", timestamp_type()),
        ("channel", DataType::Utf8),
        ("recording_id", DataType::Int64),
        ("term_id", DataType::Int32),
        ("term_offset", DataType::Int32),
        ("flags", DataType::Int16),
    ]
}

fn schema<'a>(columns: impl IntoIterator<Item = (&'a str, DataType)>) -> SchemaRef {
    let field = |(name, data_type)| Field::new(name, data_type, true);
    Arc::new(Schema::new(
        columns.into_iter().map(field).collect::<Vec<_>>(),
    ))
}

/// Returns a schema with the columns `value` and `position`.
fn value_and_position() -> SchemaRef {
    schema([("value", DataType::Binary), ("position", DataType::Int64)])
}

fn records(layout: &str) -> ValueFormat {
    ValueFormat::records(layout.parse().unwrap())
}

fn reader(
    recording: &Recording,
    partition: &Partition,
    schema: SchemaRef,
    format: &ValueFormat,
    mode: Mode,
) -> PartitionRowReader<MemoryStorage> {
    let projection = Projection::new(schema, format, mode).unwrap();
    let storage = recording.storage.clone();
    PartitionRowReader::new(
        storage,
        partition,
        projection,
        mode,
        Some("aeron:ipc"),
        true,
    )
    .unwrap()
}

fn batches(
    mut reader: PartitionRowReader<MemoryStorage>,
) -> Result<(Vec<RecordBatch>, u64), PartitionReadError> {
    let mut batches = Vec::new();
    while let Some(batch) = reader.next_batch()? {
        batches.push(batch);
    }
    Ok((batches, reader.counts().malformed))
}

/// Returns the value and position of each row.
fn rows(recording: &Recording, partition: &Partition) -> Vec<(Vec<u8>, i64)> {
    let reader = reader(
        recording,
        partition,
        value_and_position(),
        &ValueFormat::binary(),
        Mode::FailFast,
    );
    let (batches, _) = batches(reader).unwrap();
    let rows = batches.iter().flat_map(|batch| {
        let values = batch.column(0).as_binary::<i32>().iter().flatten();
        let positions = batch.column(1).as_primitive::<Int64Type>().values().iter();
        values
            .map(<[u8]>::to_vec)
            .zip(positions.copied())
            .collect::<Vec<_>>()
    });
    rows.collect()
}

fn int64s(batches: &[RecordBatch], column: usize) -> Vec<i64> {
    let columns = batches.iter().map(|batch| batch.column(column));
    columns
        .flat_map(|column| column.as_primitive::<Int64Type>().values().to_vec())
        .collect()
}

fn int32s(batches: &[RecordBatch], column: usize) -> Vec<i32> {
    let columns = batches.iter().map(|batch| batch.column(column));
    columns
        .flat_map(|column| column.as_primitive::<Int32Type>().values().to_vec())
        .collect()
}

#[test]
fn a_row_has_the_payload_the_source_and_the_arrival_time_of_its_message() {
    let mut recording = Recording::new(TERM_LENGTH);
    recording.at(1_000);
    recording.message(b"one", 7);
    recording.at(2_000);
    let second = recording.message(&[5; 3000], -8);
    let mut columns = vec![("value", DataType::Binary)];
    columns.extend(header_columns());
    let partition = recording.whole();
    let reader = reader(
        &recording,
        &partition,
        schema(columns),
        &ValueFormat::binary(),
        Mode::FailFast,
    );
    let (batches, _) = batches(reader).unwrap();
    let [batch] = &batches[..] else {
        panic!("not exactly one record batch")
    };

    let values = batch.column(0).as_binary::<i32>();
    assert_eq!(
        (values.value(0), values.value(1)),
        (&b"one"[..], &[5; 3000][..])
    );
    assert_eq!(int32s(&batches, 1), [STREAM_ID; 2]);
    assert_eq!(int32s(&batches, 2), [SESSION_ID; 2]);
    assert_eq!(int64s(&batches, 3), [64, second]);
    assert_eq!(int64s(&batches, 4), [7, -8]);
    let times = batch.column(5).as_primitive::<TimestampMicrosecondType>();
    assert_eq!(times.values()[..], [1_000, 2_000]);
    assert_eq!(times.null_count(), 0);
    let channels = batch.column(6).as_string::<i32>();
    assert_eq!(
        (channels.value(0), channels.value(1)),
        ("aeron:ipc", "aeron:ipc")
    );
    assert_eq!(int64s(&batches, 7), [0, 0]);
    assert_eq!(int32s(&batches, 8), [i32::MAX - 1; 2]);
    assert_eq!(int32s(&batches, 9), [0, 64]);
    // The column has the flags of the first fragment as an unsigned byte.
    let flags = batch.column(10).as_primitive::<Int16Type>();
    assert_eq!(flags.values()[..], [0xC0, 0x80]);
}

/// 08-21
#[test]
fn messages_without_a_first_or_a_last_fragment_give_no_row() {
    let mut recording = Recording::new(TERM_LENGTH);
    recording.fragment(0, b"middle of nothing", 0);
    recording.fragment(END, b"end of nothing", 0);
    recording.fragment(BEGIN, b"lost, ", 0);
    let first = recording.message(b"first", 0);
    recording.fragment(BEGIN, b"lost, ", 0);
    recording.fragment(BEGIN, b"se", 0);
    recording.fragment(0, b"co", 0);
    recording.fragment(END, b"nd", 0);
    let second = recording.position();
    recording.fragment(END, b"end of nothing", 0);
    recording.fragment(BEGIN, b"broken off, ", 0);
    recording.padding(64);
    recording.fragment(END, b"by padding", 0);
    let empty = recording.message(b"", 0);
    recording.fragment(BEGIN, b"without", 0);
    recording.fragment(0, b" an end", 0);

    let expected = [
        (b"first".to_vec(), first),
        (b"second".to_vec(), second),
        (b"".to_vec(), empty),
    ];
    let partition = recording.whole();
    assert_eq!(rows(&recording, &partition), expected);
}

#[test]
fn a_piece_of_a_live_stream_ends_with_its_last_message() {
    let mut recording = Recording::new(TERM_LENGTH);
    let first = recording.message(b"a", 0);
    let second = recording.message(&[1; 5000], 0);
    recording.message(b"c", 0);
    let mut partition = recording.partition(first, second);
    partition.end = second;
    assert_eq!(rows(&recording, &partition), [(vec![1; 5000], second)]);
    partition.from = second;
    assert_eq!(rows(&recording, &partition), []);
}

#[test]
fn record_batches_end_with_4096_messages_or_a_mebibyte_of_payload() {
    let lengths = |payload: usize, count: usize| {
        let mut recording = Recording::new(16 * 1024 * 1024);
        for number in 0..count {
            recording.message(&vec![number as u8; payload], 0);
        }
        let partition = recording.whole();
        let schema = value_and_position();
        let reader = reader(
            &recording,
            &partition,
            schema,
            &ValueFormat::binary(),
            Mode::FailFast,
        );
        let (batches, _) = batches(reader).unwrap();
        batches
            .iter()
            .map(RecordBatch::num_rows)
            .collect::<Vec<_>>()
    };
    assert_eq!(lengths(0, 2 * BATCH_ROWS + 1), [BATCH_ROWS, BATCH_ROWS, 1]);
    assert_eq!(lengths(BATCH_LENGTH / 8, 20), [8, 8, 4]);
    assert_eq!(lengths(BATCH_LENGTH, 2), [1, 1]);
    assert_eq!(lengths(3, 0), [0; 0]);
}

#[test]
fn all_messages_are_counted_if_no_column_has_the_payload() {
    let mut recording = Recording::new(TERM_LENGTH);
    for number in 0..100 {
        recording.message(&[1; 2000], number);
    }
    let partition = recording.whole();
    let one = schema([("reserved_value", DataType::Int64)]);
    let reader_of_one = reader(
        &recording,
        &partition,
        one,
        &ValueFormat::text(),
        Mode::FailFast,
    );
    let (of_one, _) = batches(reader_of_one).unwrap();
    assert_eq!(int64s(&of_one, 0), (0..100).collect::<Vec<_>>());
    let nothing = reader(
        &recording,
        &partition,
        schema([]),
        &ValueFormat::binary(),
        Mode::FailFast,
    );
    let (nothing, _) = batches(nothing).unwrap();
    assert_eq!(
        nothing.iter().map(RecordBatch::num_rows).sum::<usize>(),
        100
    );
}

/// 08-44: without an index, arrival times are null. If the schema does not allow null, the read fails.
#[test]
fn without_an_index_arrival_times_are_null() {
    let mut recording = Recording::new(TERM_LENGTH);
    recording.message(b"a", 0);
    let partition = recording.whole();
    remove_index(&recording);
    let timestamp = schema([("timestamp", timestamp_type())]);
    let read = |schema| {
        let reader = reader(
            &recording,
            &partition,
            schema,
            &ValueFormat::binary(),
            Mode::FailFast,
        );
        batches(reader)
    };
    let (nullable, _) = read(timestamp).unwrap();
    assert_eq!(nullable[0].column(0).null_count(), 1);
    let field = Field::new("timestamp", timestamp_type(), false);
    let error = read(Arc::new(Schema::new(vec![field])))
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("'timestamp'") && error.contains("recording 0"),
        "{error}"
    );
}

fn remove_index(recording: &Recording) {
    use aeron_archive::storage::Storage;
    let names = recording.storage.names().unwrap();
    let indexes = names.iter().filter(|name| name.ends_with(".idx"));
    indexes.for_each(|name| recording.storage.remove(name).unwrap());
}

#[test]
fn texts_are_checked() {
    let mut recording = Recording::new(TERM_LENGTH);
    recording.message("\u{e9}t\u{e9}".as_bytes(), 1);
    // The bytes of this message and of the next message together would be valid UTF-8. Each message is checked alone.
    let bad = recording.message(b"\xE2\x82", 2);
    recording.message(b"\xAC", 3);
    recording.message(b"", 4);
    let partition = recording.whole();
    let columns = schema([
        ("reserved_value", DataType::Int64),
        ("value", DataType::Utf8),
    ]);
    let read = |mode| {
        batches(reader(
            &recording,
            &partition,
            columns.clone(),
            &ValueFormat::text(),
            mode,
        ))
    };
    assert_eq!(
        read(Mode::FailFast).unwrap_err().to_string(),
        format!(
            "malformed message on stream 1001, session -77, position {bad} (recording 0): not UTF-8 from byte 0 on"
        )
    );
    let (kept, malformed) = read(Mode::DropMalformed).unwrap();
    assert_eq!((int64s(&kept, 0), malformed), (vec![1, 4], 2));
    let texts = kept[0].column(1).as_string::<i32>();
    assert_eq!((texts.value(0), texts.value(1)), ("\u{e9}t\u{e9}", ""));
}

/// 08-64
#[test]
fn each_record_of_a_message_is_a_row() {
    let mut recording = Recording::new(TERM_LENGTH);
    let first = recording.message(&[1, 0, 2, 0, 3, 0], 7);
    let second = recording.message(&[4, 0], 8);
    let partition = recording.whole();
    let columns = schema([
        ("record_index", DataType::Int32),
        ("v", DataType::Int16),
        ("position", DataType::Int64),
        ("reserved_value", DataType::Int64),
    ]);
    let reader = reader(
        &recording,
        &partition,
        columns,
        &records("v i16"),
        Mode::FailFast,
    );
    let (batches, _) = batches(reader).unwrap();
    assert_eq!(int32s(&batches, 0), [0, 1, 2, 0]);
    let values = batches[0].column(1).as_primitive::<Int16Type>();
    assert_eq!(values.values()[..], [1, 2, 3, 4]);
    assert_eq!(int64s(&batches, 2), [first, first, first, second]);
    assert_eq!(int64s(&batches, 3), [7, 7, 7, 8]);
}

/// 08-64
#[test]
fn a_message_with_more_records_than_a_batch_is_split_over_record_batches() {
    let count = 3 * BATCH_ROWS + 5;
    let mut recording = Recording::new(1024 * 1024);
    recording.message(&[9; 2], 0);
    recording.message(&vec![0; 2 * count], 0);
    let partition = recording.whole();
    let columns = schema([("record_index", DataType::Int32)]);
    let reader = reader(
        &recording,
        &partition,
        columns,
        &records("v i16"),
        Mode::FailFast,
    );
    let (batches, _) = batches(reader).unwrap();
    let expected: Vec<i32> = std::iter::once(0).chain(0..count as i32).collect();
    assert_eq!(int32s(&batches, 0), expected);
    assert!(
        batches
            .iter()
            .all(|batch| batch.num_rows() <= 2 * BATCH_ROWS)
    );
}

/// 08-63
#[test]
fn a_dropped_record_does_not_change_the_numbers_of_the_other_records() {
    let bad = 2 * BATCH_ROWS + 1;
    let mut payload = vec![1; 3 * BATCH_ROWS];
    payload[bad] = 2;
    let mut recording = Recording::new(1024 * 1024);
    recording.message(&payload, 0);
    let partition = recording.whole();
    let columns = schema([
        ("record_index", DataType::Int32),
        ("flag", DataType::Boolean),
    ]);
    let format = records("flag bool");
    let reader = reader(
        &recording,
        &partition,
        columns,
        &format,
        Mode::DropMalformed,
    );
    let (batches, malformed) = batches(reader).unwrap();
    let expected = (0..payload.len()).filter(|index| *index != bad);
    let expected: Vec<i32> = expected.map(|index| index as i32).collect();
    assert_eq!((int32s(&batches, 0), malformed), (expected, 1));
}

/// 08-63
#[test]
fn malformed_messages_and_records_are_an_error_or_dropped_and_counted() {
    let mut recording = Recording::new(TERM_LENGTH);
    recording.message(&[1, 0, 2, 1], 0);
    let wrong_length = recording.message(&[1, 2, 3], 1);
    recording.message(b"", 2);
    let wrong_value = recording.message(&[3, 0, 4, 7, 5, 1], 3);
    recording.message(&[6, 9], 4);
    let columns = schema([
        ("reserved_value", DataType::Int64),
        ("record_index", DataType::Int32),
        ("id", DataType::Int16),
        ("flag", DataType::Boolean),
    ]);
    let format = records("id u8, flag bool");
    let end = recording.position();
    let mut read = |from, mode| {
        let partition = recording.partition(from, end);
        batches(reader(
            &recording,
            &partition,
            columns.clone(),
            &format,
            mode,
        ))
    };
    assert_eq!(
        read(0, Mode::FailFast).unwrap_err().to_string(),
        format!(
            "malformed message on stream 1001, session -77, position {wrong_length} (recording 0): its 3 bytes are no records of \
             2 bytes"
        )
    );
    assert_eq!(
        read(wrong_value - 64, Mode::FailFast)
            .unwrap_err()
            .to_string(),
        format!(
            "malformed message on stream 1001, session -77, position {wrong_value} (recording 0): record 1: field 'flag' at offset \
             1 is 7 instead of 0 or 1"
        )
    );
    let (kept, malformed) = read(0, Mode::DropMalformed).unwrap();
    assert_eq!(malformed, 4);
    assert_eq!(int64s(&kept, 0), [0, 0, 3, 3]);
    assert_eq!(int32s(&kept, 1), [0, 1, 0, 2]);
    let ids = kept[0].column(2).as_primitive::<Int16Type>();
    assert_eq!(ids.values()[..], [1, 2, 3, 5]);
    let (nothing, malformed) = read(end - 64, Mode::DropMalformed).unwrap();
    assert_eq!((nothing.len(), malformed), (0, 1));
}

/// 08-63
#[test]
fn malformed_messages_and_records_are_kept_as_rows_without_values() {
    let mut recording = Recording::new(TERM_LENGTH);
    recording.message(&[1, 0, 2, 1], 0);
    recording.message(&[1, 2, 3], 1);
    recording.message(b"", 2);
    recording.message(&[3, 0, 4, 7, 5, 1], 3);
    recording.message(&[6, 9], 4);
    let columns = schema([
        ("reserved_value", DataType::Int64),
        ("record_index", DataType::Int32),
        ("id", DataType::Int16),
        ("_corrupt_record", DataType::Binary),
    ]);
    let format = records("id u8, flag bool");
    let partition = recording.whole();
    for flag in [true, false] {
        // Without the column `flag`, its values are not looked at.
        let mut fields = columns.fields().to_vec();
        if flag {
            fields.push(Arc::new(Field::new("flag", DataType::Boolean, true)));
        }
        let columns = Arc::new(Schema::new(fields));
        let reader = reader(&recording, &partition, columns, &format, Mode::Permissive);
        let (kept, malformed) = batches(reader).unwrap();
        assert_eq!(int64s(&kept, 0), [0, 0, 1, 2, 3, 3, 3, 4]);
        assert_eq!(int32s(&kept, 1), [0, 1, 0, 0, 0, 1, 2, 0]);
        let ids = kept[0].column(2).as_primitive::<Int16Type>();
        let corrupt = kept[0].column(3).as_binary::<i32>();
        let rows: Vec<_> = ids.iter().zip(corrupt.iter()).collect();
        let sound = |id| (Some(id), None);
        let kept_bytes = |bytes: &'static [u8]| (None, Some(bytes));
        let expected = match flag {
            true => [kept_bytes(&[4, 7]), sound(5), kept_bytes(&[6, 9])],
            false => [sound(4), sound(5), sound(6)],
        };
        assert_eq!(
            rows[..5],
            [
                sound(1),
                sound(2),
                kept_bytes(&[1, 2, 3]),
                kept_bytes(&[]),
                sound(3)
            ]
        );
        assert_eq!(rows[5..], expected);
        assert_eq!(malformed, if flag { 4 } else { 2 });
    }
}

#[test]
fn without_malformed_messages_the_column_of_their_bytes_has_nulls() {
    let mut recording = Recording::new(TERM_LENGTH);
    recording.message(b"a", 0);
    let partition = recording.whole();
    let columns = schema([
        ("_corrupt_record", DataType::Binary),
        ("value", DataType::Utf8),
    ]);
    let text = ValueFormat::text();
    assert!(Projection::new(columns.clone(), &text, Mode::DropMalformed).is_err());
    let reader = reader(&recording, &partition, columns, &text, Mode::Permissive);
    let (kept, malformed) = batches(reader).unwrap();
    assert_eq!((kept[0].column(0).null_count(), malformed), (1, 0));
}

#[test]
fn a_message_that_is_longer_than_the_maximum_is_an_error() {
    let mut recording = Recording::new(64 * 1024 * 1024);
    recording.fragment(BEGIN, &[0; 60_000], 0);
    (0..300).for_each(|_| recording.fragment(0, &[0; 60_000], 0));
    let partition = recording.whole();
    let reader = reader(
        &recording,
        &partition,
        value_and_position(),
        &ValueFormat::binary(),
        Mode::FailFast,
    );
    assert!(matches!(
        batches(reader),
        Err(PartitionReadError::Rows(columns::RowReadError::TooLong {
            position: 0,
            ..
        }))
    ));
}

#[test]
fn columns_that_do_not_exist_or_have_another_type_are_refused() {
    let refused = |column, format: &ValueFormat| {
        let error = Projection::new(schema([column]), format, Mode::FailFast).unwrap_err();
        error.to_string()
    };
    assert_eq!(
        refused(("px", DataType::Float64), &ValueFormat::binary()),
        "column 'px' does not exist; there are value, stream_id, session_id, position, reserved_value, timestamp, channel, \
         recording_id, term_id, term_offset, flags"
    );
    assert_eq!(
        refused(("value", DataType::Binary), &records("px f64")),
        "column 'value' does not exist; there are px, stream_id, session_id, position, reserved_value, timestamp, channel, \
         recording_id, term_id, term_offset, flags, record_index"
    );
    assert_eq!(
        refused(("value", DataType::LargeBinary), &ValueFormat::binary()),
        "column 'value' is of type Binary, not LargeBinary"
    );
    assert_eq!(
        refused(("px", DataType::Float32), &records("px f64")),
        "column 'px' is of type Float64, not Float32"
    );
    // A field of the record hides the header column with the same name. Names are compared without regard to case.
    let field = schema([("POSITION", DataType::Float64)]);
    assert!(Projection::new(field, &records("position f64"), Mode::FailFast).is_ok());
}

/// Generates a frame. The values are the flags and the length of the payload, or `None` for padding.
fn any_frame() -> impl Strategy<Value = Option<(u8, usize)>> {
    let flags =
        prop_oneof![3 => Just(UNFRAGMENTED), 2 => Just(BEGIN), 2 => Just(0), 2 => Just(END)];
    let length = prop_oneof![4 => 0..100_usize, 1 => 0..9000_usize];
    prop_oneof![20 => (flags, length).prop_map(Some), 1 => Just(None)]
}

fn random_recording(frames: &[Option<(u8, usize)>]) -> Recording {
    let mut recording = Recording::new(TERM_LENGTH);
    for (number, frame) in frames.iter().enumerate() {
        recording.at(number as i64);
        match frame {
            Some((flags, length)) => {
                recording.fragment(*flags, &vec![number as u8; *length], number as i64)
            }
            None => recording.padding(96),
        }
    }
    recording
}

/// Assembles messages by the rules of a fragment assembler, one frame at a time.
fn model(frames: &[Option<(u8, usize)>]) -> Vec<Vec<u8>> {
    let mut messages = Vec::new();
    let mut open: Option<Vec<u8>> = None;
    for (number, frame) in frames.iter().enumerate() {
        let Some((flags, length)) = frame else {
            open = None;
            continue;
        };
        let fragment = vec![number as u8; *length];
        if flags & BEGIN != 0 {
            open = Some(fragment);
        } else if let Some(open) = &mut open {
            open.extend(fragment);
        }
        if flags & END != 0 {
            messages.extend(open.take());
        }
    }
    messages
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// 08-21, 08-43
    #[test]
    fn the_pieces_of_a_recording_together_contain_each_message_once(
        frames in vec(any_frame(), 1..60),
        cuts in vec(any::<prop::sample::Index>(), 0..8),
    ) {
        let mut recording = random_recording(&frames);
        let whole = recording.whole();
        let all = rows(&recording, &whole);
        let mut cuts: Vec<i64> = cuts.iter().map(|cut| *cut.get(&recording.frames)).collect();
        cuts.extend([0, recording.position()]);
        cuts.sort_unstable();
        let mut union = Vec::new();
        for piece in cuts.windows(2) {
            let partition = recording.partition(piece[0], piece[1]);
            union.extend(rows(&recording, &partition));
        }
        prop_assert_eq!(&union, &all);
        // A recording of more than one term has padding at the end of each term, and the model has no such padding.
        if recording.position() < i64::from(TERM_LENGTH) {
            let values: Vec<Vec<u8>> = all.into_iter().map(|(value, _)| value).collect();
            prop_assert_eq!(values, model(&frames));
        }
    }

    /// 08-10
    #[test]
    fn record_batches_have_the_requested_schema(
        columns in subsequence(header_columns(), 0..=10).prop_shuffle(),
        with_value in any::<Option<prop::sample::Index>>(),
        nullable in vec(any::<bool>(), 11),
        kind in 0..3_usize,
    ) {
        let (format, value) = match kind {
            0 => (ValueFormat::binary(), ("value", DataType::Binary)),
            1 => (ValueFormat::text(), ("value", DataType::Utf8)),
            _ => (records("a u8, t char[2]"), ("t", DataType::Utf8)),
        };
        let mut columns = columns;
        if let Some(place) = with_value {
            columns.insert(place.index(columns.len() + 1), value);
        }
        let fields = columns.into_iter().zip(nullable);
        let fields = fields.map(|((name, data_type), nullable)| Field::new(name, data_type, nullable));
        let schema: SchemaRef = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let mut recording = Recording::new(TERM_LENGTH);
        for _ in 0..10 {
            recording.message(b"abcdef", 0);
        }
        let partition = recording.whole();
        let reader = reader(&recording, &partition, schema.clone(), &format, Mode::FailFast);
        let (batches, _) = batches(reader).unwrap();
        prop_assert_eq!(batches.len(), 1);
        let batch = &batches[0];
        prop_assert_eq!(batch.schema(), schema.clone());
        prop_assert_eq!(batch.num_rows(), if kind == 2 { 20 } else { 10 });
        for (column, field) in batch.columns().iter().zip(schema.fields()) {
            prop_assert_eq!(column.data_type(), field.data_type());
            prop_assert_eq!(column.null_count(), 0);
        }
    }

    /// 08-44
    #[test]
    fn a_second_read_gives_the_same_rows_and_arrival_times_never_decrease(frames in vec(any_frame(), 1..60)) {
        let mut recording = random_recording(&frames);
        let partition = recording.whole();
        let mut columns = header_columns();
        columns.push(("value", DataType::Binary));
        let read = || {
            let schema = schema(columns.clone());
            batches(reader(&recording, &partition, schema, &ValueFormat::binary(), Mode::FailFast)).unwrap().0
        };
        let first = read();
        prop_assert_eq!(&first, &read());
        let mut positions = HashSet::new();
        for batch in &first {
            let times = batch.column(4).as_primitive::<TimestampMicrosecondType>();
            prop_assert!(times.values().is_sorted());
            prop_assert_eq!(times.null_count(), 0);
            prop_assert!(int64s(std::slice::from_ref(batch), 2).into_iter().all(|position| positions.insert(position)));
        }
    }
}

fn names(columns: Option<&[&str]>, format: &ValueFormat) -> Result<Vec<String>, String> {
    let columns: Option<Vec<String>> =
        columns.map(|names| names.iter().map(|&name| name.into()).collect());
    let projection = Projection::of_columns(columns.as_deref(), format, Mode::FailFast);
    let projection = projection.map_err(|error| error.to_string())?;
    let fields = projection.schema().fields().iter();
    Ok(fields.map(|field| field.name().clone()).collect())
}

#[test]
fn without_names_the_columns_of_the_payload_and_five_columns_of_the_header_are_selected() {
    let headers = [
        "stream_id",
        "session_id",
        "position",
        "reserved_value",
        "timestamp",
    ];
    let with = |payload: &[&'static str]| [payload, &headers].concat();
    assert_eq!(
        names(None, &ValueFormat::binary()).unwrap(),
        with(&["value"])
    );
    assert_eq!(names(None, &ValueFormat::text()).unwrap(), with(&["value"]));
    assert_eq!(
        names(None, &records("Px f64, n i8")).unwrap(),
        with(&["Px", "n"])
    );
    let hiding = names(None, &records("Timestamp ts_ns")).unwrap();
    assert_eq!(
        hiding,
        [
            "Timestamp",
            "stream_id",
            "session_id",
            "position",
            "reserved_value"
        ]
    );
}

#[test]
fn columns_are_found_by_their_names_without_regard_to_case() {
    let format = records("Px f64, position i8");
    let columns = ["POSITION", "Record_Index", "px"];
    assert_eq!(
        names(Some(&columns), &format).unwrap(),
        ["position", "record_index", "Px"]
    );
    for (columns, text) in [
        (
            &["value"][..],
            "column 'value' does not exist; there are Px, position, stream_id",
        ),
        (&["px", "PX"], "column 'Px' is there twice"),
        (&[], "there is no column: name at least one of Px, position"),
    ] {
        let error = names(Some(columns), &format).unwrap_err();
        assert!(error.starts_with(text), "{error}");
    }
}

#[test]
fn the_position_of_a_reader_is_the_end_of_the_last_batch() {
    let mut recording = Recording::new(TERM_LENGTH);
    let ends: Vec<i64> = (0..BATCH_ROWS + 1)
        .map(|_| recording.message(b"x", 0))
        .collect();
    recording.fragment(BEGIN, b"without an end", 0);
    let partition = recording.whole();
    let mut reader = reader(
        &recording,
        &partition,
        value_and_position(),
        &ValueFormat::binary(),
        Mode::FailFast,
    );
    assert_eq!(reader.position(), 0);
    reader.next_batch().unwrap();
    assert_eq!(reader.position(), ends[BATCH_ROWS - 1]);
    reader.next_batch().unwrap();
    for _ in 0..2 {
        assert!(reader.next_batch().unwrap().is_none());
        assert_eq!(reader.position(), ends[BATCH_ROWS]);
    }
}
