//! Measures the processor time for reading one row of a recording without Spark, in nanoseconds. Prints the median,
//! the minimum and the maximum of several runs. Processor time of other processes does not count.
//!
//! usage: read_rate [directory, created and removed; default /dev/shm/aeron-read-rate]

#[path = "../tests/recordings/mod.rs"]
#[expect(dead_code, reason = "only the tests use all functions")]
mod recordings;

use std::path::PathBuf;
use std::sync::Arc;

use aeron_archive::reader::RecordingReader;
use aeron_archive::storage::Directory;
use aeron_columns::layout::{RecordLayout, timestamp_type};
use aeron_columns::read::{Mode, Projection, ValueFormat};
use aeron_pipeline::partition::Partition;
use aeron_pipeline::rows::PartitionRowReader;
use arrow_schema::{DataType, Field, Schema};
use recordings::Recording;
use rustix::time::{ClockId, clock_gettime};

const TRADE: &str = "ts ts_ns, px f64, qty i64, sym i32, side i32, seq i64, flags i64";
const TERM_LENGTH: i32 = 64 * 1024 * 1024;
const RUNS: usize = 9;

fn main() {
    let argument = std::env::args_os().nth(1);
    let root = argument.map_or_else(|| "/dev/shm/aeron-read-rate".into(), PathBuf::from);
    for (length, rows) in [(48, 2_000_000), (64, 2_000_000), (1024, 200_000)] {
        std::fs::create_dir_all(&root).expect("a directory");
        let (directory, partition) = record(&root, length, rows);
        println!("{rows} messages of {length} bytes, CPU ns per row:");
        let frames = || scan(&directory, &partition);
        report("frames alone", rows, frames);
        for (name, columns, format) in cases(length) {
            let columns = columns.into_iter();
            let fields: Vec<Field> = columns
                .map(|(name, kind)| Field::new(name, kind, true))
                .collect();
            let projection =
                Projection::new(Arc::new(Schema::new(fields)), &format, Mode::FailFast);
            let projection = projection.expect("known columns");
            report(name, rows, || read(&directory, &partition, &projection));
        }
        std::fs::remove_dir_all(&root).expect("the directory");
    }
}

type Case = (&'static str, Vec<(String, DataType)>, ValueFormat);

fn cases(length: usize) -> Vec<Case> {
    let named = |columns: &[(&str, DataType)]| -> Vec<(String, DataType)> {
        let columns = columns.iter();
        columns
            .map(|(name, kind)| ((*name).to_owned(), kind.clone()))
            .collect()
    };
    let value = ("value", DataType::Binary);
    let headers = [
        value.clone(),
        ("session_id", DataType::Int32),
        ("position", DataType::Int64),
        ("reserved_value", DataType::Int64),
        ("timestamp", timestamp_type()),
    ];
    let mut cases = vec![
        ("binary", named(&[value]), ValueFormat::binary()),
        (
            "binary, 4 header columns",
            named(&headers),
            ValueFormat::binary(),
        ),
        (
            "text",
            named(&[("value", DataType::Utf8)]),
            ValueFormat::text(),
        ),
    ];
    let layout: RecordLayout = TRADE.parse().expect("a layout");
    if layout.record_length() == length {
        let columns = layout.columns().into_iter();
        let columns = columns.map(|field| (field.name().clone(), field.data_type().clone()));
        cases.push((
            "7 typed columns",
            columns.collect(),
            ValueFormat::records(layout),
        ));
    }
    cases
}

fn record(root: &PathBuf, length: usize, rows: usize) -> (Directory, Partition) {
    let directory = Directory::new(root);
    let mut recording = Recording::within(directory.clone(), TERM_LENGTH);
    let payload: Vec<u8> = (0..length).map(|byte| byte as u8 & 0x7F).collect();
    for row in 0..rows {
        recording.message(&payload, row as i64);
    }
    let partition = recording.whole();
    (directory, partition)
}

fn scan(directory: &Directory, partition: &Partition) -> usize {
    let stream = partition.stream().expect("a recording");
    let reader = RecordingReader::new(directory.clone(), stream, partition.from, partition.end);
    let mut reader = reader.expect("a range");
    let mut count = 0;
    while let Some(frame) = reader.next_frame().expect("frames") {
        count += usize::from(frame.is_end());
    }
    count
}

fn read(directory: &Directory, partition: &Partition, projection: &Projection) -> usize {
    let projection = projection.clone();
    let reader = PartitionRowReader::new(
        directory.clone(),
        partition,
        projection,
        Mode::FailFast,
        None,
        true,
    );
    let mut reader = reader.expect("a range");
    let mut count = 0;
    while let Some(batch) = reader.next_batch().expect("rows") {
        count += batch.num_rows();
    }
    count
}

fn report(name: &str, rows: usize, mut run: impl FnMut() -> usize) {
    let mut times: Vec<f64> = (0..RUNS)
        .map(|_| {
            let begin = cpu_ns();
            assert_eq!(run(), rows);
            (cpu_ns() - begin) / rows as f64
        })
        .collect();
    times.sort_by(f64::total_cmp);
    let (median, least, most) = (times[RUNS / 2], times[0], times[RUNS - 1]);
    println!("  {name:26} {median:6.1}   ({least:.1} to {most:.1})");
}

fn cpu_ns() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}
