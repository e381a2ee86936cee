//! Record layouts and records. The input is a text, a line end, and bytes that are read as records. The layout of a
//! valid text is printed to a text that parses to the same layout. Any records become columns, or an error names the
//! bad record. The columns become records again, and these records become the same columns.
#![no_main]

use std::sync::Arc;

use aeron_columns::layout::{MAX_RECORD_LENGTH, RecordDecoder, RecordLayout};
use arrow_array::RecordBatch;
use arrow_schema::Schema;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let mut parts = data.splitn(2, |byte| *byte == b'\n');
    let Some(Ok(text)) = parts.next().map(std::str::from_utf8) else {
        return;
    };
    let Ok(layout) = RecordLayout::parse(text) else {
        return;
    };
    let length = layout.record_length();
    assert!(length <= MAX_RECORD_LENGTH);
    assert_eq!(
        RecordLayout::parse(&layout.to_string()).as_ref(),
        Ok(&layout)
    );

    let bytes = parts.next().unwrap_or_default();
    let records = &bytes[..bytes.len() / length * length];
    let decoder = RecordDecoder::new(&layout);
    let columns = match decoder.decode(records) {
        Ok(columns) => columns,
        Err(malformed) => {
            let begin = malformed.record * length;
            let record = &records[begin..begin + length];
            assert!(decoder.first_malformed(record).is_some());
            return;
        }
    };
    let schema = Arc::new(Schema::new(layout.columns()));
    let batch = RecordBatch::try_new(schema, columns).expect("columns of the layout");
    let mut again = Vec::new();
    let encoder = layout.encoder(&batch).expect("a column for each field");
    // A time in nanoseconds is rounded down to microseconds. For the earliest times, the result is out of range in
    // nanoseconds, and encoding it fails.
    if encoder.encode(0..batch.num_rows(), &mut again).is_ok() {
        assert_eq!(decoder.decode(&again).as_deref(), Ok(batch.columns()));
    }
});
