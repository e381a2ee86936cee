//! Tests of connecting to a driver, with real files.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use aeron_agent::{EpochClock, SystemEpochClock};
use aeron_memory::cnc::{CncFile, CncLengths, DriverIdentity};
use aeron_memory::directory::cnc_file;
use aeron_memory::mapped::MappedFile;
use aeron_memory::ring::RingConsumer;
use aeron_memory::words::Words;
use aeron_protocol::command::{Command, type_id};
use tempfile::TempDir;

use super::text;
use crate::aeron::Aeron;
use crate::connect::{is_driver_active, next_correlation_id, request_driver_termination};
use crate::context::Context;

const TIMEOUT_MS: u64 = 60;

fn directory() -> TempDir {
    tempfile::tempdir_in("/dev/shm").unwrap()
}

/// Writes a CnC file with this version and heartbeat, as a driver would.
fn write_cnc(directory: &Path, version: i32, heartbeat_ms: i64) -> CncFile {
    let lengths = CncLengths {
        counters_values: CncLengths::MIN_COUNTERS_VALUES,
        ..CncLengths::default()
    };
    let identity = DriverIdentity {
        client_liveness_timeout_ns: 10_000_000_000,
        start_timestamp_ms: 1,
        pid: 1,
    };
    let path = cnc_file(directory);
    let cnc = CncFile::create(&path, &lengths, &identity).unwrap();
    cnc.to_driver().next_correlation_id();
    cnc.to_driver().set_consumer_heartbeat_ms(heartbeat_ms);
    set_version(&path, version);
    cnc
}

fn set_version(path: &Path, version: i32) {
    MappedFile::open(path, false)
        .unwrap()
        .buffer()
        .store_i32_release(0, version);
}

fn now_ms() -> i64 {
    SystemEpochClock.time_ms()
}

/// A heartbeat of the future, which stays recent on a busy machine.
fn recent_ms() -> i64 {
    now_ms() + 100_000
}

fn connect(directory: &Path) -> Result<Aeron, crate::error::Error> {
    Aeron::connect(Context {
        aeron_dir: directory.to_owned(),
        driver_timeout_ms: TIMEOUT_MS,
        use_conductor_agent_invoker: true,
        ..Context::default()
    })
}

/// Checks that connecting fails with this code and text, after the driver timeout.
fn assert_times_out(directory: &Path, code: i32, expected: &str) {
    let start = Instant::now();
    let error = connect(directory).map(drop).unwrap_err();
    assert!(error.to_string().contains(expected), "{error}");
    assert!(
        error.to_string().contains(directory.to_str().unwrap()),
        "{error}"
    );
    assert_eq!(error.code(), code);
    assert!(start.elapsed() >= Duration::from_millis(TIMEOUT_MS));
}

/// 03-66, 01-14
#[test]
fn connecting_waits_while_the_file_is_missing_or_too_short() {
    let directory = directory();
    assert_times_out(directory.path(), 1000, "CnC file not created: ");
    assert_times_out(
        &directory.path().join("none"),
        1000,
        "CnC file not created: ",
    );
    fs::write(cnc_file(directory.path()), []).unwrap();
    assert_times_out(directory.path(), 1000, "CnC file not created: ");
    fs::write(cnc_file(directory.path()), [0; 128]).unwrap();
    assert_times_out(directory.path(), 1000, "CnC file not created: ");
}

/// 03-66, 01-15
#[test]
fn connecting_waits_while_the_file_has_no_version() {
    let directory = directory();
    write_cnc(directory.path(), 0, now_ms());
    assert_times_out(
        directory.path(),
        1001,
        "CnC file is created but not initialised: ",
    );
}

/// 03-67, 01-16
#[test]
fn a_file_of_another_version_is_refused_at_once() {
    let directory = directory();
    write_cnc(directory.path(), 0x0001_0200, recent_ms());
    let path = cnc_file(directory.path());
    let refused = text(connect(directory.path()));
    assert_eq!(
        refused,
        format!(
            "22: CnC version not compatible: driverVersion=1.2.0 insufficient for clientVersion=0.2.0: {}",
            path.display()
        )
    );
    set_version(&path, 0x0000_0100);
    assert!(
        text(connect(directory.path()))
            .contains("driverVersion=0.1.0 insufficient for clientVersion=0.2.0")
    );
    set_version(&path, 0x0000_0300);
    assert_eq!(text(connect(directory.path())), "ok");
}

/// 03-66, 01-17
#[test]
fn without_a_recent_heartbeat_the_driver_counts_as_dead() {
    let directory = directory();
    let cnc = write_cnc(directory.path(), 512, 0);
    for heartbeat_ms in [0, -1, now_ms() - 10_000] {
        cnc.to_driver().set_consumer_heartbeat_ms(heartbeat_ms);
        assert_times_out(
            directory.path(),
            1000,
            "no driver heartbeat detected after ",
        );
    }
    cnc.to_driver()
        .set_consumer_heartbeat_ms(now_ms() + 100_000);
    assert_eq!(text(connect(directory.path())), "ok");
}

/// 01-18
#[test]
fn connecting_waits_for_a_truncated_file_until_the_timeout() {
    let directory = directory();
    write_cnc(directory.path(), 512, recent_ms());
    let file = fs::OpenOptions::new()
        .write(true)
        .open(cnc_file(directory.path()))
        .unwrap();
    file.set_len(1 << 20).unwrap();
    assert_times_out(
        directory.path(),
        1000,
        "CnC file is created but not populated: ",
    );
}

#[test]
fn a_foreign_file_is_refused_at_once() {
    let directory = directory();
    let mut bytes = vec![0xAB; 1 << 16];
    bytes[..4].copy_from_slice(&512i32.to_le_bytes());
    fs::write(cnc_file(directory.path()), &bytes).unwrap();
    let refused = text(connect(directory.path()));
    assert!(
        refused.starts_with("22: ") && refused.contains("cnc.dat"),
        "{refused}"
    );
}

/// 03-68, 01-19, 03-66
#[test]
fn a_waiting_client_finds_a_driver_that_replaces_a_dead_driver() {
    let directory = directory();
    write_cnc(directory.path(), 512, now_ms() - 100_000);
    let looks = Arc::new(AtomicUsize::new(0));
    let path = cnc_file(directory.path());
    let aeron = Aeron::connect(Context {
        aeron_dir: directory.path().to_owned(),
        driver_timeout_ms: 5_000,
        use_conductor_agent_invoker: true,
        driver_invoker: Some(Arc::new(move || {
            match looks.fetch_add(1, Ordering::Relaxed) {
                0 => fs::remove_file(&path).unwrap(),
                1 => {
                    let heartbeat_ms = now_ms();
                    write_cnc(path.parent().unwrap(), 512, heartbeat_ms);
                }
                _ => {}
            }
            1
        })),
        ..Context::default()
    })
    .unwrap();
    assert_eq!(aeron.client_id(), 1);
}

/// 01-12
#[test]
fn clients_get_ids_from_1_on() {
    let directory = directory();
    let cnc = write_cnc(directory.path(), 512, recent_ms());
    assert_eq!(connect(directory.path()).unwrap().client_id(), 1);
    assert_eq!(next_correlation_id(directory.path()).unwrap(), 2);
    assert_eq!(cnc.to_driver().next_correlation_id(), 3);
}

#[test]
fn the_inter_service_timeout_is_the_drivers_client_liveness_timeout() {
    let directory = directory();
    write_cnc(directory.path(), 512, recent_ms());
    let aeron = connect(directory.path()).unwrap();
    assert_eq!(aeron.inter_service_timeout(), Duration::from_secs(10));
    assert_eq!(aeron.driver_timeout(), Duration::from_millis(TIMEOUT_MS));
}

#[test]
fn a_driver_is_active_while_its_heartbeat_is_recent() {
    let directory = directory();
    let timeout = Duration::from_millis(1000);
    for timeout in [timeout, Duration::MAX] {
        assert!(!is_driver_active(directory.path(), timeout).unwrap());
    }
    let cnc = write_cnc(directory.path(), 512, now_ms());
    for timeout in [timeout, Duration::MAX] {
        assert!(is_driver_active(directory.path(), timeout).unwrap());
    }
    for heartbeat_ms in [-1, now_ms() - 1_100] {
        cnc.to_driver().set_consumer_heartbeat_ms(heartbeat_ms);
        assert!(!is_driver_active(directory.path(), timeout).unwrap());
    }
    set_version(&cnc_file(directory.path()), 0);
    let refused = text(is_driver_active(
        directory.path(),
        Duration::from_millis(10),
    ));
    assert!(refused.contains("created but not initialised"), "{refused}");
    set_version(&cnc_file(directory.path()), 1 << 16);
    assert!(text(is_driver_active(directory.path(), timeout)).contains("not compatible"));
}

/// 03-85
#[test]
fn termination_is_requested_from_an_existing_driver() {
    let directory = directory();
    assert!(!request_driver_termination(directory.path(), b"token").unwrap());
    let cnc = write_cnc(directory.path(), 0, now_ms());
    assert!(!request_driver_termination(directory.path(), b"token").unwrap());
    set_version(&cnc_file(directory.path()), 512);
    assert!(request_driver_termination(directory.path(), b"token").unwrap());
    let mut seen = Vec::new();
    let mut commands = RingConsumer::new(cnc.to_driver().clone());
    commands
        .read(10, |id, body| seen.push((id, body.to_vec())))
        .unwrap();
    let [(id, body)] = &seen[..] else {
        panic!("{seen:?}")
    };
    let Command::TerminateDriver(terminate) = Command::decode(*id, body).unwrap() else {
        panic!()
    };
    assert_eq!(
        (*id, terminate.token),
        (type_id::TERMINATE_DRIVER, &b"token"[..])
    );
    assert_eq!((terminate.client_id, terminate.correlation_id), (1, 2));
    set_version(&cnc_file(directory.path()), 1 << 16);
    assert!(text(request_driver_termination(directory.path(), b"")).contains("not compatible"));
}
