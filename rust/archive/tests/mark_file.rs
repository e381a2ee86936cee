//! The mark file: its bytes, compared with the mark file of a real archive, and its changes while
//! an archive runs.

use std::io;

use aeron_archive::mark_file::{
    self, ACTIVITY_TIMEOUT_MS, FILE_LENGTH, HEADER_LENGTH, LINK_FILE, MARK_FILE, MarkFile,
    MarkFileError, MarkFileState, Owner,
};
use aeron_archive::memory_storage::{MemoryFile, MemoryStorage, StorageFault};
use aeron_archive::storage::{Directory, Storage};
use aeron_memory::error_log::ErrorObservation;

const REAL: &[u8] = include_bytes!("vectors/mark-file.bin");
const NOW: i64 = 1_795_000_000_000;

fn ours() -> Owner {
    Owner::without_server(4711, NOW - 5, "/dev/shm/aeron-x".into())
}

fn take(storage: &MemoryStorage, now_ms: i64) -> MarkFile<MemoryFile> {
    MarkFile::take(storage, &ours(), now_ms).expect("nothing is in the way")
}

fn ready(storage: &MemoryStorage) -> MarkFile<MemoryFile> {
    let mut mark = take(storage, NOW);
    mark.ready(NOW).unwrap();
    mark
}

fn state(storage: &MemoryStorage) -> MarkFileState {
    mark_file::read(storage).unwrap().expect("a mark file")
}

fn with_header(header: &[u8]) -> MemoryStorage {
    let storage = MemoryStorage::new();
    storage.put(MARK_FILE, header);
    storage
}

/// 08-18, 07-71
#[test]
fn the_mark_file_of_the_same_owner_has_the_same_bytes_as_in_a_real_archive() {
    let real = state(&with_header(REAL));
    let storage = MemoryStorage::new();
    let mut mark = MarkFile::take(&storage, &real.owner, NOW).unwrap();
    mark.ready(real.activity_timestamp_ms).unwrap();
    let bytes = storage.bytes(MARK_FILE).unwrap();
    assert_eq!(bytes.len(), 1_056_768);
    assert_eq!(bytes[..REAL.len()], *REAL);
    assert!(bytes[REAL.len()..].iter().all(|&byte| byte == 0));
}

/// 08-18, 07-71
#[test]
fn a_mark_file_of_a_real_archive_is_read() {
    let real = state(&with_header(REAL));
    assert_eq!(real.version.to_string(), "3.1.0");
    assert_eq!(real.error_buffer_length, 1 << 20);
    assert_eq!(
        (real.owner.archive_id, real.owner.control_stream_id),
        (7, 10)
    );
    assert_eq!(
        (
            real.owner.local_control_stream_id,
            real.owner.events_stream_id
        ),
        (10, 30)
    );
    assert_eq!(
        real.owner.control_channel,
        "aeron:udp?endpoint=127.0.0.1:18110"
    );
    assert_eq!(
        real.owner.local_control_channel,
        "aeron:ipc?term-length=64k"
    );
    assert_eq!(real.owner.events_channel, "");
    assert_eq!(real.owner.aeron_directory, "/dev/shm/aeron-catalog-cap");
    assert!(real.activity_timestamp_ms > real.owner.start_timestamp_ms);
}

/// 08-18
#[test]
fn an_owner_without_a_server_has_no_archive_id_no_stream_ids_and_no_channels() {
    let storage = MemoryStorage::new();
    let _mark = ready(&storage);
    let state = state(&storage);
    assert_eq!(state.owner, ours());
    assert_eq!(
        (state.owner.archive_id, state.owner.events_stream_id),
        (-1, 0)
    );
    assert_eq!(state.activity_timestamp_ms, NOW);
}

/// 08-18, 07-72
#[test]
fn the_heartbeat_is_written_once_a_second_and_is_minus_one_after_closing() {
    let storage = MemoryStorage::new();
    let mut mark = ready(&storage);
    let written = storage.steps();
    for (now_ms, seen) in [
        (NOW + 999, NOW),
        (NOW + 1_000, NOW + 1_000),
        (NOW + 1_999, NOW + 1_000),
        (NOW + 2_500, NOW + 2_500),
    ] {
        mark.heartbeat(now_ms).unwrap();
        assert_eq!(state(&storage).activity_timestamp_ms, seen);
    }
    assert_eq!(storage.steps(), written + 2);
    mark.close().unwrap();
    assert_eq!(state(&storage).activity_timestamp_ms, -1);
    assert!(!state(&storage).is_active(NOW + 2_500));
}

/// 08-18
#[test]
fn an_owner_is_active_for_ten_seconds_after_its_last_heartbeat() {
    let storage = MemoryStorage::new();
    let _mark = ready(&storage);
    let state = state(&storage);
    assert!(!state.is_active(NOW + ACTIVITY_TIMEOUT_MS));
    assert!(state.is_active(NOW + ACTIVITY_TIMEOUT_MS - 1));
    assert!(
        state.is_active(i64::MIN),
        "if the clock goes back, the owner is still active"
    );
    let starting = MarkFileState {
        activity_timestamp_ms: i64::MAX,
        ..state
    };
    assert!(
        starting.is_active(NOW),
        "an archive that is just starting is active"
    );
}

/// 08-18
#[test]
fn after_a_start_that_was_killed_at_any_step_the_next_start_succeeds() {
    for old in [false, true] {
        for step in 0..8 {
            for progress in 0..4 {
                let storage = MemoryStorage::new();
                if old {
                    let mut mark = ready(&storage);
                    mark.record_error(NOW, "an error").unwrap();
                }
                let before = mark_file::read(&storage).unwrap();
                storage.fail_at(storage.steps() + step, StorageFault::Kill { progress });
                let started = MarkFile::take(&storage, &ours(), NOW + 20_000)
                    .and_then(|mut mark| mark.ready(NOW + 20_000));
                storage.restart();
                match mark_file::read(&storage).expect("never damaged") {
                    Some(state) if state.version.0 != 0 => {
                        assert!(started.is_ok() || progress > 0 || Some(state) == before);
                    }
                    _ => assert!(started.is_err()),
                }

                let _mark = ready(&storage);
                assert_eq!(state(&storage).owner, ours());
                assert_eq!(storage.bytes(MARK_FILE).unwrap().len() as u64, FILE_LENGTH);
                assert!(mark_file::read_errors(&storage).unwrap().is_empty());
                let saved = storage.names().unwrap();
                let saved = saved.iter().any(|name| name.ends_with("-error.log"));
                assert_eq!(saved, old, "the errors of the previous owner are saved");
            }
        }
    }
}

#[test]
fn before_the_owner_is_ready_the_version_is_0() {
    let storage = MemoryStorage::new();
    let mut mark = take(&storage, NOW);
    let starting = state(&storage);
    assert_eq!(
        (starting.version.0, starting.activity_timestamp_ms),
        (0, NOW)
    );
    assert_eq!(starting.owner.pid, 4711);
    mark.ready(NOW + 7).unwrap();
    assert_eq!(state(&storage).activity_timestamp_ms, NOW + 7);
}

/// 08-18
#[test]
fn observations_of_errors_with_the_same_text_are_counted_together() {
    let storage = MemoryStorage::new();
    let mut mark = ready(&storage);
    for (after_ms, text) in [(1, "disk full"), (2, "image gone: ä"), (3, "disk full")] {
        mark.record_error(NOW + after_ms, text).unwrap();
    }
    let errors = mark_file::read_errors(&storage).unwrap();
    let seen: Vec<_> = errors
        .iter()
        .map(|error| {
            let (first, last) = (error.first_observation_ms, error.last_observation_ms);
            (
                error.text.as_str(),
                error.observation_count,
                first - NOW,
                last - NOW,
            )
        })
        .collect();
    assert_eq!(seen, [("disk full", 2, 1, 3), ("image gone: ä", 1, 2, 2)]);
}

/// Returns text and number of observations of each entry.
fn entries(storage: &MemoryStorage) -> Vec<(String, i32)> {
    let errors = mark_file::read_errors(storage).unwrap();
    let entry = |error: &ErrorObservation| (error.text.clone(), error.observation_count);
    errors.iter().map(entry).collect()
}

const FURTHER: &str = "further errors of the archive: the error log has no room for their texts";
const FURTHER_OF_CLIENTS: &str =
    "WARN - further errors that clients caused: the error log has no room for their texts";

#[test]
fn a_full_error_log_counts_new_texts_in_one_entry_and_still_counts_known_texts() {
    let storage = MemoryStorage::new();
    let mut mark = ready(&storage);
    mark.record_error(NOW, "small").unwrap();
    // The last entries need 96 and 108 bytes, aligned to 8 bytes.
    let longest = 1024 * 1024 - 32 - 24 - 96 - 112;
    mark.record_error(NOW, &"x".repeat(longest)).unwrap();
    for text in ["new", "newer"] {
        let full = mark.record_error(NOW, text).unwrap_err().to_string();
        let needed = 24 + text.len();
        assert_eq!(
            full,
            format!("error log of 1048576 bytes is full: an entry of {needed} bytes does not fit")
        );
    }
    mark.record_client_error(NOW, "a request").unwrap_err();
    mark.record_error(NOW + 1, "small").unwrap();
    let entries = entries(&storage);
    assert_eq!(entries[0], ("small".into(), 2));
    assert_eq!(entries[2], (FURTHER.into(), 2));
    assert_eq!(entries[3], (FURTHER_OF_CLIENTS.into(), 1));
}

/// 07-164
#[test]
fn errors_that_clients_cause_leave_room_for_the_errors_of_the_archive() {
    let storage = MemoryStorage::new();
    let mut mark = ready(&storage);
    let mut refused = 0;
    for number in 0..10_000 {
        let text = format!("{number}: {}", "ä".repeat(1000));
        refused += i32::from(mark.record_client_error(NOW, &text).is_err());
    }
    mark.record_error(NOW, &"y".repeat(512 * 1024)).unwrap();
    mark.record_client_error(NOW, &"z".repeat(1000))
        .unwrap_err();
    mark.record_error(NOW, "segment 3-0.rec is damaged")
        .unwrap();
    let entries = entries(&storage);
    let (of_clients, further) = (&entries[..entries.len() - 3], &entries[entries.len() - 3]);
    assert!(of_clients.iter().all(|(text, _)| text.len() <= 1024));
    let bytes: usize = of_clients.iter().map(|(text, _)| text.len() + 24).sum();
    assert!((200_000..=256 * 1024).contains(&bytes), "{bytes}");
    assert_eq!(*further, (FURTHER_OF_CLIENTS.into(), refused + 1));
    assert_eq!(entries.last().unwrap().0, "segment 3-0.rec is damaged");
}

#[test]
fn an_error_that_could_not_be_written_is_written_as_new_at_its_next_observation() {
    let storage = MemoryStorage::new();
    let mut mark = ready(&storage);
    for step in 0..2 {
        storage.fail_at(
            storage.steps() + step,
            StorageFault::Error(std::io::ErrorKind::StorageFull),
        );
        let failure = mark.record_error(NOW, "text").unwrap_err();
        assert!(matches!(failure, MarkFileError::Io { .. }));
        assert!(mark_file::read_errors(&storage).unwrap().is_empty());
    }
    mark.record_error(NOW + 5, "text").unwrap();
    let errors = mark_file::read_errors(&storage).unwrap();
    assert_eq!(
        (errors[0].observation_count, errors[0].first_observation_ms),
        (1, NOW + 5)
    );
}

/// 07-75
#[test]
fn errors_of_the_previous_owner_are_saved_in_a_file_and_the_log_is_cleared() {
    let storage = MemoryStorage::new();
    ready(&storage)
        .record_error(NOW, "what went wrong")
        .unwrap();
    let _next = take(&storage, 0);
    let bytes = storage.bytes(MARK_FILE).unwrap();
    assert!(bytes[HEADER_LENGTH..].iter().all(|&byte| byte == 0));
    let names = storage.names().unwrap();
    let saved = names
        .iter()
        .find(|name| name.ends_with("-error.log"))
        .unwrap();
    // The name is archive-1970-01-01-00-00-00-000+0000-error.log, in the time zone of the machine.
    assert!(
        saved.starts_with("archive-19") && saved.len() == 46,
        "{saved}"
    );
    assert!(
        saved[8..31]
            .bytes()
            .all(|byte| byte == b'-' || byte.is_ascii_digit()),
        "{saved}"
    );
    let report = String::from_utf8(storage.bytes(saved).unwrap()).unwrap();
    assert!(report.contains("1 observations from"), "{report}");
    assert!(report.contains(" what went wrong\n"), "{report}");
    assert!(
        report.ends_with("1 distinct errors observed.\n"),
        "{report}"
    );
}

/// The mark file of an incompatible version has other bytes at the offset of the error log.
#[test]
fn bytes_of_an_incompatible_mark_file_are_not_read_as_errors() {
    let mut header = REAL.to_vec();
    header[10] = 2;
    header.resize(HEADER_LENGTH + 5000, 0xAB);
    let storage = with_header(&header);
    ready(&storage).record_error(NOW, "text").unwrap();
    let errors = mark_file::read_errors(&storage).unwrap();
    assert_eq!((errors.len(), errors[0].text.as_str()), (1, "text"));
}

/// The link file has the path of the mark file's directory. It must not exist if the mark file is
/// in the archive directory.
#[test]
fn the_link_file_is_read_and_is_removed_by_an_owner_with_a_local_mark_file() {
    let storage = MemoryStorage::new();
    assert_eq!(mark_file::read_link(&storage).unwrap(), None);
    storage.put(LINK_FILE, b"/var/marks");
    let elsewhere = mark_file::read_link(&storage).unwrap();
    assert_eq!(elsewhere.as_deref(), Some("/var/marks"));
    storage.put(LINK_FILE, &[b'x'; 4097]);
    assert!(mark_file::read_link(&storage).is_err());
    storage.put(LINK_FILE, &[0xFF]);
    assert!(mark_file::read_link(&storage).is_err());
    let _mark = take(&storage, NOW);
    assert_eq!(storage.names().unwrap(), [MARK_FILE]);
}

/// 08-27
#[test]
fn the_error_of_another_major_version_has_the_version() {
    let mut header = REAL.to_vec();
    header[10] = 2;
    let refusal = mark_file::read(&with_header(&header)).unwrap_err();
    assert_eq!(
        refusal.to_string(),
        "mark file version 2.1.0 is not compatible with software: 3.1.0"
    );
}

/// 08-27, 08-35
#[test]
fn the_error_of_a_damaged_field_has_its_name_offset_and_value() {
    let cases: [(usize, &[u8], &str); 5] = [
        (
            0,
            &[127, 0],
            "blockLength at offset 0 is 127, expected at least 128",
        ),
        (
            0,
            &[0xFF, 0xFF],
            "controlChannel at offset 65543 is 0, expected the 4 bytes of a text's length",
        ),
        (
            136,
            &[0xFF; 4],
            "controlChannel at offset 136 is 4294967295, expected a length",
        ),
        (
            140,
            &[0x80],
            "controlChannel at offset 140 is 128, expected UTF-8 text",
        ),
        (
            207,
            &[0, 0, 1],
            "aeronDirectory at offset 207 is 65536, expected a length",
        ),
    ];
    for (offset, bytes, expected) in cases {
        let mut header = REAL.to_vec();
        header[offset..offset + bytes.len()].copy_from_slice(bytes);
        let storage = with_header(&header);
        let refusal = mark_file::read(&storage).unwrap_err().to_string();
        let expected = format!("archive-mark.dat is damaged: {expected}");
        assert!(refusal.starts_with(&expected), "{refusal}\nnot {expected}");
        let _taken = ready(&storage);
        assert_eq!(
            state(&storage).owner,
            ours(),
            "a damaged mark file does not prevent a process from becoming the owner"
        );
    }
}

/// 08-18
#[test]
fn a_mark_file_of_zeros_has_version_0() {
    for length in [0, 1, 100, HEADER_LENGTH, HEADER_LENGTH + 5] {
        assert_eq!(state(&with_header(&vec![0; length])).version.0, 0);
    }
    assert_eq!(mark_file::read(&MemoryStorage::new()).unwrap(), None);
}

#[test]
fn mark_files_of_older_archives_are_read() {
    // Version 1 of the schema has no archive id. Older files have no message header and no error log.
    let mut old = REAL.to_vec();
    old[6] = 1;
    assert_eq!(state(&with_header(&old)).owner.archive_id, -1);
    assert_eq!(state(&with_header(&old)).error_buffer_length, 1 << 20);

    let oldest = state(&with_header(&REAL[8..]));
    assert_eq!(
        (oldest.owner.archive_id, oldest.error_buffer_length),
        (-1, 0)
    );
    assert_eq!(oldest.owner.aeron_directory, "/dev/shm/aeron-catalog-cap");
    assert_eq!(oldest.owner.pid, state(&with_header(REAL)).owner.pid);
}

#[test]
fn texts_that_do_not_fit_into_the_header_are_refused_before_any_file_is_changed() {
    let storage = MemoryStorage::new();
    let fitting = HEADER_LENGTH - 136 - 16;
    for (length, fits) in [(fitting, true), (fitting + 1, false)] {
        let owner = Owner::without_server(1, 2, "d".repeat(length));
        assert_eq!(MarkFile::take(&storage, &owner, NOW).is_ok(), fits);
    }
    let owner = Owner::without_server(1, 2, "d".repeat(fitting + 1));
    assert_eq!(
        MarkFile::take(&storage, &owner, NOW)
            .unwrap_err()
            .to_string(),
        "mark file header of 8193 bytes exceeds 8192"
    );
}

/// 07-192: Aeron's archive refuses a directory whose mark file has version 0.
#[test]
fn after_a_start_that_failed_at_any_step_the_mark_file_is_ended_and_has_its_version() {
    for step in 0.. {
        let storage = MemoryStorage::new();
        storage.fail_at(step, StorageFault::Error(io::ErrorKind::StorageFull));
        match MarkFile::take(&storage, &ours(), NOW) {
            Ok(mark) => {
                if storage.steps() <= step {
                    storage.forget_faults();
                    mark.close().unwrap();
                    break;
                }
            }
            Err(_) => {
                if let Some(state) = mark_file::read(&storage).unwrap() {
                    assert_eq!(state.version.to_string(), "3.1.0", "step {step}");
                    assert_eq!(state.activity_timestamp_ms, -1, "step {step}");
                }
            }
        }
    }
}

/// 07-193: a sparse file of a tebibyte would take hours to read.
#[test]
fn the_length_of_an_existing_mark_file_does_not_delay_the_start() {
    let directory = tempfile::tempdir().unwrap();
    let file = std::fs::File::create(directory.path().join(MARK_FILE)).unwrap();
    file.set_len(1 << 40).unwrap();
    MarkFile::take(&Directory::new(directory.path()), &ours(), NOW).unwrap();
    assert_eq!(file.metadata().unwrap().len(), FILE_LENGTH);
}
