//! Tests of the directory of a driver that runs, has ended or was killed, and of directories with foreign files.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use std::{hint, thread};

use aeron_agent::{EpochClock, SystemEpochClock};
use aeron_driver::{Context, MediaDriver, StartError, ThreadingMode};
use aeron_memory::cnc::{CncFile, CncLengths, DriverIdentity};
use aeron_memory::counters::{STATE_ALLOCATED, STATE_RECLAIMED};
use aeron_memory::error_log::DistinctErrorLog;
use aeron_protocol::event::Event;

use crate::media_driver::rig::{Client, Place, await_true, publication};

/// 04-11, 01-5, 05-52
#[test]
fn a_second_driver_is_refused_and_the_first_continues() {
    let place = Place::new();
    let _first = place.launch();
    let cnc = place.cnc();
    let refused = MediaDriver::launch(place.context(ThreadingMode::Shared)).unwrap_err();
    assert!(matches!(refused, StartError::ActiveDriver(_)));
    let expected = format!(
        "(16) Device or resource busy\nActive media driver detected: {}",
        place.dir().join("cnc.dat").display()
    );
    assert_eq!(refused.to_string(), expected);
    assert_eq!(place.names().len(), 5);
    let heartbeat = cnc.to_driver().consumer_heartbeat_ms();
    await_true("the first driver's heartbeat", || {
        cnc.to_driver().consumer_heartbeat_ms() > heartbeat
    });
}

/// 01-7: if a client's heartbeat counter disappears while the driver seems active, the client concludes that the driver
/// has timed out the client.
#[test]
fn counters_are_freed_after_the_heartbeat_shows_the_end_of_the_driver() {
    let place = Place::new();
    let mut driver = place.launch();
    let client = Client::connect(&place);
    let watch = thread::spawn(move || {
        let counters = client.cnc.counters();
        while counters.state(0) == Some(STATE_ALLOCATED) {
            hint::spin_loop();
        }
        client.cnc.to_driver().consumer_heartbeat_ms()
    });
    driver.close().unwrap();
    assert_eq!(watch.join().unwrap(), -1);
}

/// 04-13, 01-7, 03-8
#[test]
fn after_an_orderly_close_another_driver_starts_at_once() {
    let place = Place::new();
    let mut client = {
        let mut driver = place.launch();
        let mut client = Client::connect(&place);
        client.send(publication(100));
        client.await_event(
            || {},
            |event| matches!(event, Event::PublicationReady(_)).then_some(()),
        );
        driver.close().unwrap();
        driver.close().unwrap();
        client
    };
    assert_eq!(client.cnc.to_driver().consumer_heartbeat_ms(), -1);
    assert_eq!(client.cnc.counters().records().count(), 0);
    assert_eq!(client.cnc.counters().state(0), Some(STATE_RECLAIMED));
    assert_eq!(
        fs::read_dir(place.dir().join("publications"))
            .unwrap()
            .count(),
        0
    );
    assert_eq!(place.names().len(), 5);
    let _driver = place.launch();
    client = Client::connect(&place);
    assert_eq!(client.cnc.to_driver().next_correlation_id(), 1);
}

/// 04-14, 01-6, 05-52. This differs from 04-12: the start does not wait, because the lock of the dead driver is free.
#[test]
fn a_killed_drivers_directory_is_taken_over_at_once_and_its_errors_are_saved() {
    let place = Place::new();
    drop(place.launch());
    let dead = place.cnc();
    let log = DistinctErrorLog::new(dead.error_log().clone());
    log.record(1_000, "(22) Invalid argument\nsome failure\n")
        .unwrap();
    log.record(2_000, "(22) Invalid argument\nsome failure\n")
        .unwrap();
    fs::write(place.dir().join("publications/7.logbuffer"), b"left over").unwrap();
    dead.to_driver()
        .set_consumer_heartbeat_ms(SystemEpochClock.time_ms());
    let _driver = MediaDriver::launch(Context {
        // With a slash at the end of the path, the report must still be outside of the directory.
        dir: place.dir().join(""),
        ..place.context(ThreadingMode::Shared)
    })
    .unwrap();
    assert_eq!(
        fs::read_dir(place.dir().join("publications"))
            .unwrap()
            .count(),
        0
    );
    let [saved] = &place.siblings()[..] else {
        panic!("{:?}", place.siblings())
    };
    let name = saved.file_name().unwrap().to_str().unwrap();
    assert!(
        name.starts_with("aeron-2") && name.ends_with("-error.log") && !name.contains(':'),
        "{name}"
    );
    let report = fs::read_to_string(saved).unwrap();
    assert!(
        report.starts_with("***\n2 observations from 1970-01-01 "),
        "{report}"
    );
    assert!(
        report.contains(" for:\n (22) Invalid argument\nsome failure\n"),
        "{report}"
    );
    assert!(
        report.ends_with("\n1 distinct errors observed.\n"),
        "{report}"
    );
}

/// Creates the directory of a driver of another implementation, without our lock file.
///
/// That driver has the process id `pid` and has just written its heartbeat.
fn leave_foreign_driver(place: &Place, pid: i64) -> CncFile {
    for name in ["publications", "images"] {
        fs::create_dir_all(place.dir().join(name)).unwrap();
    }
    let identity = DriverIdentity {
        client_liveness_timeout_ns: 10_000_000_000,
        start_timestamp_ms: SystemEpochClock.time_ms(),
        pid,
    };
    let lengths = CncLengths::default();
    let cnc = CncFile::create(&place.dir().join("cnc.dat"), &lengths, &identity).unwrap();
    cnc.to_driver()
        .set_consumer_heartbeat_ms(SystemEpochClock.time_ms());
    cnc.publish();
    cnc
}

/// A process id that no process has, because it is larger than any process id on Linux.
const NO_PROCESS: i64 = i32::MAX as i64;

/// 04-11, 04-12
#[test]
fn a_driver_without_our_lock_is_active_if_its_process_lives_and_its_heartbeat_is_recent() {
    let place = Place::new();
    let cnc = leave_foreign_driver(&place, i64::from(std::process::id()));
    let context = Context {
        driver_timeout_ms: 500,
        ..place.context(ThreadingMode::Shared)
    };
    let refused = MediaDriver::launch(context.clone()).unwrap_err();
    assert!(
        matches!(refused, StartError::ActiveDriver(_)),
        "{refused:?}"
    );
    assert_eq!(place.names().len(), 3, "a refused driver adds no files");
    cnc.to_driver()
        .set_consumer_heartbeat_ms(SystemEpochClock.time_ms() - 501);
    drop(MediaDriver::launch(context).unwrap());
}

#[test]
fn a_driver_without_our_lock_is_dead_if_its_process_has_ended_and_its_heartbeat_does_not_advance() {
    let place = Place::new();
    leave_foreign_driver(&place, NO_PROCESS);
    drop(place.launch());
}

/// The driver's process may be in another pid namespace, where this process cannot see it.
#[test]
fn a_driver_with_an_advancing_heartbeat_is_active_even_if_its_process_is_not_found() {
    for dir_delete_on_start in [false, true] {
        let place = Place::new();
        let cnc = leave_foreign_driver(&place, NO_PROCESS);
        let is_over = AtomicBool::new(false);
        let refused = thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::Acquire) {
                    thread::sleep(Duration::from_millis(20));
                    cnc.to_driver()
                        .set_consumer_heartbeat_ms(SystemEpochClock.time_ms());
                }
            });
            let result = MediaDriver::launch(Context {
                dir_delete_on_start,
                ..place.context(ThreadingMode::Shared)
            });
            is_over.store(true, Ordering::Release);
            result.map(drop).unwrap_err()
        });
        assert!(
            matches!(refused, StartError::ActiveDriver(_)),
            "{refused:?}"
        );
        assert_eq!(place.names(), ["cnc.dat", "images", "publications"]);
    }
}

/// This differs from 01-5 and 04-15, where a driver deletes all files in its directory.
#[test]
fn a_directory_with_an_entry_that_drivers_do_not_create_is_refused_and_not_changed() {
    let places: [(&str, &[u8]); 6] = [
        ("main.rs", b"fn main() {}"),
        ("cnc.dat.bak", b""),
        ("aeron-driver.lock", b"of another program"),
        ("publications/notes.txt", b"notes"),
        ("images/01.logbuffer", b"not a number as drivers write it"),
        ("loss-report.dat/file", b"a directory"),
    ];
    for (name, content) in places {
        for dir_delete_on_start in [false, true] {
            let place = Place::new();
            let path = place.dir().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, content).unwrap();
            let before = place.names();
            let refused = MediaDriver::launch(Context {
                dir_delete_on_start,
                dir_delete_on_shutdown: true,
                ..place.context(ThreadingMode::Shared)
            })
            .unwrap_err();
            assert!(
                matches!(refused, StartError::ForeignEntry(_)),
                "{refused:?}"
            );
            let text = refused.to_string();
            assert!(text.contains(name.split('/').next().unwrap()), "{text}");
            assert!(text.contains("name another directory"), "{text}");
            assert_eq!(fs::read(&path).unwrap(), content);
            assert_eq!(place.names(), before);
        }
    }
}

#[test]
fn symbolic_links_are_refused_and_not_followed() {
    for name in [
        "cnc.dat",
        "publications",
        "images/1.logbuffer",
        "aeron-driver.lock",
    ] {
        let place = Place::new();
        let precious = place.0.path().join("precious");
        fs::create_dir(&precious).unwrap();
        fs::write(precious.join("1.logbuffer"), b"mine").unwrap();
        let link = place.dir().join(name);
        fs::create_dir_all(link.parent().unwrap()).unwrap();
        symlink(&precious, &link).unwrap();
        let refused = MediaDriver::launch(Context {
            dir_delete_on_start: true,
            ..place.context(ThreadingMode::Shared)
        })
        .unwrap_err();
        assert!(
            matches!(&refused, StartError::ForeignEntry(path) if *path == link),
            "{refused:?}"
        );
        assert_eq!(fs::read(precious.join("1.logbuffer")).unwrap(), b"mine");
    }
    let place = Place::new();
    let precious = place.0.path().join("precious");
    fs::create_dir(&precious).unwrap();
    symlink(&precious, place.dir()).unwrap();
    let refused = MediaDriver::launch(place.context(ThreadingMode::Shared)).unwrap_err();
    assert!(refused.to_string().contains("symbolic link"), "{refused}");
}

/// A driver deletes only its own files when it ends.
#[test]
fn a_driver_does_not_delete_foreign_files_in_its_directory() {
    let place = Place::new();
    let driver = MediaDriver::launch(Context {
        dir_delete_on_shutdown: true,
        ..place.context(ThreadingMode::Shared)
    })
    .unwrap();
    fs::write(place.dir().join("notes.txt"), b"mine").unwrap();
    fs::write(place.dir().join("images/notes.txt"), b"mine").unwrap();
    drop(driver);
    assert_eq!(place.names(), ["images", "notes.txt"]);
    assert_eq!(
        fs::read(place.dir().join("images/notes.txt")).unwrap(),
        b"mine"
    );
}

#[test]
fn a_file_with_the_name_of_a_cnc_file_is_refused_even_if_the_directory_may_be_deleted() {
    let contents = [
        vec![],
        vec![0; 200],
        vec![0; 1 << 20],
        b"some,data,of,the,user\n".repeat(20),
        b"\0\0\x05\0".repeat(1_000),
    ];
    for content in contents {
        let place = Place::new();
        fs::create_dir(place.dir()).unwrap();
        let path = place.dir().join("cnc.dat");
        fs::write(&path, &content).unwrap();
        let refused = MediaDriver::launch(Context {
            driver_timeout_ms: 100,
            dir_delete_on_start: true,
            ..place.context(ThreadingMode::Shared)
        })
        .unwrap_err();
        assert!(
            matches!(refused, StartError::ForeignCnc { .. }),
            "{refused:?}"
        );
        assert!(refused.to_string().contains(path.to_str().unwrap()));
        assert_eq!(fs::read(&path).unwrap(), content);
        assert_eq!(place.names(), ["cnc.dat"]);
    }
}

/// The CnC file is complete but not yet published, and its driver is dead.
#[test]
fn the_directory_of_a_driver_that_died_during_its_start_can_be_used_again() {
    let place = Place::new();
    fs::create_dir(place.dir()).unwrap();
    let identity = DriverIdentity {
        client_liveness_timeout_ns: 10_000_000_000,
        start_timestamp_ms: 1,
        pid: NO_PROCESS,
    };
    let path = place.dir().join("cnc.dat");
    drop(CncFile::create(&path, &CncLengths::default(), &identity).unwrap());
    let context = Context {
        driver_timeout_ms: 100,
        ..place.context(ThreadingMode::Shared)
    };
    drop(MediaDriver::launch(context).unwrap());
    // A driver of this implementation that stops even earlier leaves an empty CnC file and its lock file.
    fs::write(&path, b"").unwrap();
    drop(place.launch());
}

#[test]
fn a_damaged_cnc_file_is_refused_unless_its_deletion_is_configured() {
    let of_nobody = b"\0\x02\0\0".repeat(1_000);
    let cut = [&512_i32.to_le_bytes()[..], &[0, 0, 16, 0].repeat(40)].concat();
    let reasons = [
        (of_nobody, "CnC file is damaged"),
        (cut, "CnC file of 164 bytes is shorter than"),
    ];
    for (content, reason) in reasons {
        let place = Place::new();
        fs::create_dir(place.dir()).unwrap();
        let cnc_file = place.dir().join("cnc.dat");
        fs::write(&cnc_file, &content).unwrap();
        let context = Context {
            driver_timeout_ms: 100,
            ..place.context(ThreadingMode::Shared)
        };
        let error = MediaDriver::launch(context.clone()).unwrap_err();
        let text = error.to_string();
        assert!(text.contains(reason), "{text}");
        assert!(text.contains(&cnc_file.display().to_string()), "{text}");
        assert!(text.contains("AERON_DIR_DELETE_ON_START=true"), "{text}");
        assert_eq!(fs::read(&cnc_file).unwrap(), content);
        let _driver = MediaDriver::launch(Context {
            dir_delete_on_start: true,
            ..context
        })
        .unwrap();
    }
}

/// This differs from 01-5 and 04-15: the directory of an active driver is not deleted.
#[test]
fn a_directory_can_be_deleted_at_the_start_and_the_end_unless_its_driver_is_active() {
    let place = Place::new();
    let first = place.launch();
    let context = Context {
        dir_delete_on_start: true,
        dir_delete_on_shutdown: true,
        dir_warn_if_exists: true,
        ..place.context(ThreadingMode::Shared)
    };
    let refused = MediaDriver::launch(context.clone()).unwrap_err();
    assert!(
        matches!(refused, StartError::ActiveDriver(_)),
        "{refused:?}"
    );
    assert_eq!(place.names().len(), 5);
    drop(first);
    let second = MediaDriver::launch(context).unwrap();
    assert_eq!(place.names().len(), 5);
    drop(second);
    assert!(!place.dir().exists());
}

/// If `AERON_DIR_DELETE_ON_START` is set, a C driver replaces the directory of an active driver in this way.
#[test]
fn a_driver_does_not_delete_a_directory_that_another_driver_has_replaced() {
    let place = Place::new();
    let first = MediaDriver::launch(Context {
        dir_delete_on_shutdown: true,
        ..place.context(ThreadingMode::Shared)
    })
    .unwrap();
    fs::remove_dir_all(place.dir()).unwrap();
    leave_foreign_driver(&place, NO_PROCESS);
    drop(first);
    assert_eq!(place.names(), ["cnc.dat", "images", "publications"]);
}

/// Creates the directory of a killed embedded driver: all files exist, and no process holds the lock.
fn leave_embedded(place: &Place, name: &str, is_dir_private: bool) -> PathBuf {
    let dir = place.0.path().join(name);
    let context = Context {
        dir: dir.clone(),
        is_dir_private,
        ..place.context(ThreadingMode::Shared)
    };
    drop(MediaDriver::launch(context).unwrap());
    dir
}

/// A directory that is empty, or contains only an empty lock file, is reported as left over but not removed.
#[test]
fn a_directory_without_a_marker_is_reported_but_not_removed() {
    let place = Place::new();
    let make = |name: &str| {
        let dir = place.0.path().join(name);
        fs::create_dir(&dir).unwrap();
        dir
    };
    let empty = make("aeron-1-ab");
    let with_empty_lock = make("aeron-2-ab");
    fs::write(with_empty_lock.join("aeron-driver.lock"), b"").unwrap();
    let with_guest = make("aeron-3-ab");
    fs::write(with_guest.join("notes.txt"), b"mine").unwrap();
    let left: Vec<_> = aeron_driver::left_directories(&place.dir())
        .into_iter()
        .map(|left| (left.path, left.is_removed_next))
        .collect();
    assert_eq!(
        left,
        [(empty.clone(), false), (with_empty_lock.clone(), false)]
    );
    assert!(aeron_driver::remove_abandoned(&place.dir()).is_empty());
    for stays in [empty, with_empty_lock, with_guest] {
        assert!(stays.exists(), "{}", stays.display());
    }
}

#[test]
fn only_directories_of_killed_embedded_drivers_are_removed() {
    let place = Place::new();
    let killed = leave_embedded(&place, "aeron-1-ab", true);
    let named = leave_embedded(&place, "aeron-named", false);
    let other_prefix = leave_embedded(&place, "other-1-ab", true);
    let with_guest = leave_embedded(&place, "aeron-2-ab", true);
    fs::write(with_guest.join("notes.txt"), b"mine").unwrap();
    let without_lock = leave_embedded(&place, "aeron-3-ab", true);
    fs::remove_file(without_lock.join("aeron-driver.lock")).unwrap();
    let live = place.0.path().join("aeron-4-ab");
    let _live = MediaDriver::launch(Context {
        dir: live.clone(),
        is_dir_private: true,
        ..place.context(ThreadingMode::Shared)
    })
    .unwrap();
    symlink(&other_prefix, place.0.path().join("aeron-5-ab")).unwrap();

    let left: Vec<_> = aeron_driver::left_directories(&place.dir())
        .into_iter()
        .map(|left| (left.path, left.bytes > 1 << 20, left.is_removed_next))
        .collect();
    let expected = [
        (killed.clone(), true, true),
        (with_guest.clone(), true, false),
        (without_lock.clone(), true, false),
        (named.clone(), true, false),
    ];
    assert_eq!(left, expected);
    assert_eq!(
        aeron_driver::remove_abandoned(&place.dir()),
        std::slice::from_ref(&killed)
    );
    assert!(!killed.exists());
    for stays in [named, other_prefix, with_guest, without_lock, live] {
        assert!(stays.join("cnc.dat").exists(), "{}", stays.display());
    }
}

#[test]
fn a_refused_configuration_creates_no_directory() {
    let place = Place::new();
    let context = Context {
        ipc_term_buffer_length: 1,
        ..place.context(ThreadingMode::Shared)
    };
    assert!(matches!(
        MediaDriver::launch(context),
        Err(StartError::Configuration(_))
    ));
    assert!(!place.dir().exists());
}

#[test]
fn a_directory_that_cannot_be_created_is_an_error() {
    let place = Place::new();
    fs::write(place.0.path().join("file"), b"").unwrap();
    let context = Context {
        dir: place.0.path().join("file/aeron"),
        ..place.context(ThreadingMode::Shared)
    };
    let refused = MediaDriver::launch(context).unwrap_err();
    assert!(refused.to_string().contains("Not a directory"), "{refused}");
}

#[test]
fn a_relative_directory_is_made_absolute() {
    let place = Place::new();
    let relative = pathdiff(&place.dir());
    let driver = MediaDriver::launch(Context {
        dir: relative,
        ..place.context(ThreadingMode::Shared)
    })
    .unwrap();
    assert!(driver.context().dir.is_absolute());
    assert_eq!(
        fs::canonicalize(&driver.context().dir).unwrap(),
        fs::canonicalize(place.dir()).unwrap()
    );
}

/// Returns `path` relative to the working directory.
fn pathdiff(path: &Path) -> PathBuf {
    let depth = std::env::current_dir().unwrap().components().count() - 1;
    let up: PathBuf = std::iter::repeat_n("..", depth).collect();
    up.join(path.strip_prefix("/").unwrap())
}
