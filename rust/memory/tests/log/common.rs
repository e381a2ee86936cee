//! Logs for tests, and helpers that read captures of real logs.

use std::path::PathBuf;

use aeron_memory::log::buffers::log_length;
use aeron_memory::log::{LogBuffers, LogDescription, LogType};
use aeron_memory::{SharedBuffer, Words};
use serde_json::Value;

pub const TERM: usize = 64 * 1024;
pub const SESSION: i32 = -17;
pub const STREAM: i32 = 1001;
pub const INITIAL_TERM: i32 = 7;
pub const NO_LIMIT: i64 = i64::MAX;

pub type Log = LogBuffers<SharedBuffer>;

pub fn description() -> LogDescription {
    LogDescription::new(
        LogType::ConcurrentPublication,
        SESSION,
        STREAM,
        INITIAL_TERM,
    )
}

/// Returns a log and all its memory. A test can change the memory as another process could.
pub fn log_in_memory() -> (SharedBuffer, Log) {
    let memory = SharedBuffer::heap(3 * TERM + 4096);
    let log = LogBuffers::create(&memory, &description(), 0).unwrap();
    log.metadata().set_is_connected(true);
    (memory, log)
}

/// Creates a log on the heap; its first publisher starts at `position`.
pub fn log_of(description: &LogDescription, position: i64) -> Log {
    let length = log_length(description.term_length.into(), description.page_size.into()).unwrap();
    let log = LogBuffers::create(&SharedBuffer::heap(length), description, position).unwrap();
    log.metadata().set_is_connected(true);
    log
}

pub fn log() -> Log {
    log_of(&description(), 0)
}

pub fn bytes_of(memory: &SharedBuffer, offset: usize, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    memory.copy_out(offset, &mut bytes);
    bytes
}

/// Returns all bytes of a log's terms.
pub fn terms_of(log: &Log) -> Vec<u8> {
    [0, 1, 2]
        .map(|partition| bytes_of(log.term(partition), 0, log.term_length()))
        .concat()
}

/// Returns all payloads from `position` on, over all terms, and the position at which reading ended.
pub fn read_all(log: &Log, mut position: i64) -> (Vec<Vec<u8>>, i64) {
    let mut payloads = Vec::new();
    loop {
        let mut cursor = log.cursor(position).unwrap();
        while let Some(fragment) = cursor.next_fragment().unwrap() {
            payloads.push(fragment.to_vec());
        }
        if cursor.position() == position {
            return (payloads, position);
        }
        position = cursor.position();
    }
}

pub fn vector(name: &str) -> Vec<u8> {
    std::fs::read(vector_path(name)).unwrap()
}

pub fn expectation(name: &str) -> Value {
    serde_json::from_slice(&vector(name)).unwrap()
}

fn vector_path(name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "tests", "vectors", name]
        .iter()
        .collect()
}

/// Creates an empty log with the metadata of a capture.
pub fn captured_log(metadata: &str) -> Log {
    let metadata = vector(metadata);
    let memory = SharedBuffer::heap(3 * TERM + 4096);
    memory.copy_in(3 * TERM, &metadata);
    LogBuffers::attach(&memory).unwrap()
}

pub fn int(value: &Value) -> i64 {
    value
        .as_i64()
        .unwrap_or_else(|| panic!("{value} is not an integer"))
}

pub fn unhex(text: &str) -> Vec<u8> {
    (0..text.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap())
        .collect()
}
