//! Tests of the length of log files, and of the fields of their metadata.

use aeron_memory::log::buffers::{OpenLogError, log_length};
use aeron_memory::log::{LogBuffers, LogDescription, LogError, LogType, RawTail};
use aeron_memory::mapped::{Allocation, MappedFile};
use aeron_memory::{SharedBuffer, Words};
use serde_json::Value;

use crate::log::common::*;

#[test]
fn the_metadata_is_the_last_4096_bytes_of_the_file_for_small_and_large_pages_01_54() {
    assert_eq!(log_length(64 * 1024, 4096), Ok(200_704));
    assert_eq!(log_length(64 * 1024, 2 * 1024 * 1024), Ok(2_097_152));
    assert_eq!(log_length(1 << 30, 4096), Ok(3_221_229_568));

    let mut large_pages = description();
    large_pages.page_size = 2 * 1024 * 1024;
    let memory = SharedBuffer::heap(2_097_152);
    LogBuffers::create(&memory, &large_pages, 0).unwrap();
    assert_eq!(memory.load_i32_relaxed(2_093_056 + 276), 65_536);
    assert_eq!(memory.load_i32_relaxed(2_093_056 + 280), 2_097_152);
    let log = LogBuffers::attach(&memory).unwrap();
    log.term(2).store_i32_relaxed(0, 9);
    assert_eq!(memory.load_i32_relaxed(2 * TERM), 9);
}

#[test]
fn a_log_file_larger_than_two_gibibytes_is_mapped_whole_01_54() {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let path = dir.path().join("1.logbuffer");
    let mut description = description();
    description.term_length = 1 << 30;
    let length = log_length(1 << 30, 4096).unwrap();
    let file = MappedFile::create(&path, length, Allocation::Sparse).unwrap();
    let created = LogBuffers::create(file.buffer(), &description, 0).unwrap();
    let opened = LogBuffers::open(&path, false).unwrap();
    let last = (1 << 30) - 32;
    created.term(2).store_i32_release(last, 77);
    assert_eq!(opened.term(2).load_i32_acquire(last), 77);
    assert_eq!(opened.positions().max_position(), 1 << 61);
}

#[test]
fn impossible_lengths_are_refused_when_creating_and_when_opening_01_55() {
    type Change = fn(&mut LogDescription);
    let cases: [(Change, LogError); 6] = [
        (
            |d| d.term_length = 32 * 1024,
            LogError::TermLength(32 * 1024),
        ),
        (|d| d.term_length = 65_568, LogError::TermLength(65_568)),
        (
            |d| d.term_length = i32::MIN,
            LogError::TermLength(i32::MIN.into()),
        ),
        (|d| d.page_size = 2048, LogError::PageSize(2048)),
        (|d| d.page_size = 12_288, LogError::PageSize(12_288)),
        (|d| d.mtu_length = 1400, LogError::MtuLength(1400)),
    ];
    for (change, error) in cases {
        let mut wrong = description();
        change(&mut wrong);
        let memory = SharedBuffer::heap(200_704);
        assert_eq!(LogBuffers::create(&memory, &wrong, 0).unwrap_err(), error);
        // The same values in a file that another process wrote.
        LogBuffers::create(&memory, &description(), 0).unwrap();
        let metadata = 200_704 - 4096;
        memory.store_i32_relaxed(metadata + 272, wrong.mtu_length);
        memory.store_i32_relaxed(metadata + 276, wrong.term_length);
        memory.store_i32_relaxed(metadata + 280, wrong.page_size);
        assert_eq!(LogBuffers::attach(&memory).unwrap_err(), error);
    }
}

#[test]
fn a_file_too_short_for_its_terms_is_refused_01_55() {
    let memory = SharedBuffer::heap(200_704);
    LogBuffers::create(&memory, &description(), 0).unwrap();
    for length in [0, 32, 4096, 200_704 - 4096] {
        let part = memory.slice(200_704 - length, length);
        let error = LogBuffers::attach(&part).unwrap_err();
        assert!(matches!(error, LogError::Length { .. }), "{error}");
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("1.logbuffer");
    std::fs::write(&path, vec![0; 200_704]).unwrap();
    let error = LogBuffers::open(&path, false).unwrap_err();
    assert!(matches!(
        error,
        OpenLogError::Invalid(LogError::TermLength(0))
    ));
    let error = LogBuffers::open(&dir.path().join("absent"), false).unwrap_err();
    assert!(matches!(error, OpenLogError::Io(_)));
}

/// 01-56
#[test]
fn all_captured_metadata_decodes_and_equals_the_metadata_that_we_write() {
    let captures = [
        ("log-ipc-concurrent", "log-ipc-concurrent", "metadata"),
        ("log-udp-concurrent", "log-udp-concurrent", "metadata"),
        ("log-udp-exclusive", "log-udp-exclusive", "metadata"),
        ("image-udp-concurrent", "log-udp-concurrent", "image"),
        ("image-udp-exclusive", "log-udp-exclusive", "image"),
    ];
    for (capture, json, key) in captures {
        let expected = &expectation(&format!("{json}.json"))[key];
        let expected = if key == "image" {
            &expected["metadata"]
        } else {
            expected
        };
        let name = format!("{capture}-meta.bin");
        let log = captured_log(&name);
        check_metadata(&log, expected);
        assert_eq!(
            bytes_of_recreated(&log, expected),
            vector(&name),
            "{capture}"
        );
    }
}

fn check_metadata(log: &Log, expected: &Value) {
    let metadata = log.metadata();
    let description = metadata.description();
    for partition in 0..3 {
        let tail = metadata.tail(partition);
        assert_eq!(tail.0, int(&expected["term_tail_counters"][partition]));
        let decoded = &expected["tails_decoded"][partition];
        assert_eq!(i64::from(tail.term_id()), int(&decoded["term_id"]));
        assert_eq!(tail.unclamped_offset() as i64, int(&decoded["term_offset"]));
    }
    let check = |key: &str, value: i64| assert_eq!(value, int(&expected[key]), "{key}");
    check("active_term_count", metadata.active_term_count().into());
    check("end_of_stream_position", metadata.end_of_stream_position());
    check("is_connected", metadata.is_connected().into());
    check(
        "active_transport_count",
        metadata.active_transport_count().into(),
    );
    check(
        "is_publication_revoked",
        metadata.is_publication_revoked().into(),
    );
    check("correlation_id", description.correlation_id);
    check("initial_term_id", description.initial_term_id.into());
    check("mtu_length", description.mtu_length.into());
    check("term_length", description.term_length.into());
    check("page_size", description.page_size.into());
    check(
        "publication_window_length",
        description.publication_window_length.into(),
    );
    check(
        "receiver_window_length",
        description.receiver_window_length.into(),
    );
    check(
        "socket_sndbuf_length",
        description.socket_sndbuf_length.into(),
    );
    check(
        "os_default_socket_sndbuf_length",
        description.os_default_socket_sndbuf_length.into(),
    );
    check(
        "os_max_socket_sndbuf_length",
        description.os_max_socket_sndbuf_length.into(),
    );
    check(
        "socket_rcvbuf_length",
        description.socket_rcvbuf_length.into(),
    );
    check(
        "os_default_socket_rcvbuf_length",
        description.os_default_socket_rcvbuf_length.into(),
    );
    check(
        "os_max_socket_rcvbuf_length",
        description.os_max_socket_rcvbuf_length.into(),
    );
    check("max_resend", description.max_resend.into());
    check("entity_tag", description.entity_tag);
    check(
        "response_correlation_id",
        description.response_correlation_id,
    );
    check("linger_timeout_ns", description.linger_timeout_ns);
    check(
        "untethered_window_limit_timeout_ns",
        description.untethered_window_limit_timeout_ns,
    );
    check(
        "untethered_linger_timeout_ns",
        description.untethered_linger_timeout_ns,
    );
    check(
        "untethered_resting_timeout_ns",
        description.untethered_resting_timeout_ns,
    );
    check("group", description.group.into());
    check("is_response", description.is_response.into());
    check("rejoin", description.rejoin.into());
    check("reliable", description.reliable.into());
    check("sparse", description.sparse.into());
    check("signal_eos", description.signal_eos.into());
    check(
        "spies_simulate_connection",
        description.spies_simulate_connection.into(),
    );
    check("tether", description.tether.into());
    check("type", description.log_type.code().into());
    let header = unhex(expected["default_header"].as_str().unwrap());
    assert_eq!(description.session_id.to_le_bytes(), header[12..16]);
    assert_eq!(description.stream_id.to_le_bytes(), header[16..20]);
}

/// Returns the metadata that this crate writes for the captured log in the same state.
fn bytes_of_recreated(log: &Log, expected: &Value) -> Vec<u8> {
    let memory = SharedBuffer::heap(3 * TERM + 4096);
    let description = log.metadata().description();
    let recreated =
        LogBuffers::create(&memory, &description, log.producer_position().max(0)).unwrap();
    recreated
        .metadata()
        .set_is_connected(int(&expected["is_connected"]) == 1);
    recreated
        .metadata()
        .set_active_transport_count(int(&expected["active_transport_count"]) as i32);
    // A tail after the end of its term does not follow from the position, so the tails are copied.
    for partition in 0..3 {
        memory.store_i64_relaxed(3 * TERM + 8 * partition, log.metadata().tail(partition).0);
    }
    bytes_of(&memory, 3 * TERM, 4096)
}

#[test]
fn the_tail_of_an_unused_partition_has_a_term_id_3_less_than_its_next_term_01_57() {
    let log = log();
    let tail = |partition| log.metadata().tail(partition);
    assert_eq!(tail(0), RawTail::new(7, 0));
    assert_eq!(tail(1), RawTail::new(5, 0));
    assert_eq!(tail(2), RawTail::new(6, 0));
    assert_eq!(log.metadata().active_term_count(), 0);
    assert_eq!(log.producer_position(), 0);
}

#[test]
fn the_tails_of_a_log_match_its_start_position_01_57() {
    let mut description = description();
    description.initial_term_id = 100;
    let log = log_of(&description, 4 * TERM as i64 + 256);
    let tail = |partition| log.metadata().tail(partition);
    assert_eq!(tail(0), RawTail::new(103, 0));
    assert_eq!(tail(1), RawTail::new(104, 256));
    assert_eq!(tail(2), RawTail::new(102, 0));
    assert_eq!(log.metadata().active_term_count(), 4);
    assert_eq!(log.producer_position(), 4 * TERM as i64 + 256);

    description.initial_term_id = i32::MAX;
    let log = log_of(&description, TERM as i64);
    assert_eq!(log.metadata().tail(1), RawTail::new(i32::MIN, 0));
    assert_eq!(log.metadata().tail(0), RawTail::new(i32::MAX, 0));
    assert_eq!(log.metadata().tail(2), RawTail::new(i32::MAX - 1, 0));
}

#[test]
fn a_log_may_start_at_the_end_of_its_stream_but_not_after_it_01_57() {
    let end = log().positions().max_position();
    let log = log_of(&description(), end);
    assert_eq!(log.metadata().active_term_count(), i32::MAX);
    assert_eq!(log.producer_position(), end);
    for wrong in [-32, 16, end + 32] {
        let memory = SharedBuffer::heap(200_704);
        let error = LogBuffers::create(&memory, &description(), wrong).unwrap_err();
        assert_eq!(error, LogError::StartPosition(wrong));
    }
}

#[test]
fn the_tails_of_an_image_stay_zero() {
    let image = LogDescription::new(LogType::Image, SESSION, STREAM, INITIAL_TERM);
    let log = log_of(&image, TERM as i64);
    assert!((0..3).all(|partition| log.metadata().tail(partition) == RawTail(0)));
}

#[test]
fn revoking_keeps_the_type_of_the_log_01_77() {
    let mut exclusive = description();
    exclusive.log_type = LogType::ExclusivePublication;
    let log = log_of(&exclusive, 0);
    assert!(!log.metadata().is_publication_revoked());
    log.metadata().set_publication_revoked();
    assert!(log.metadata().is_publication_revoked());
    assert_eq!(
        log.metadata().description().log_type,
        LogType::ExclusivePublication
    );
}
