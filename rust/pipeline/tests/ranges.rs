//! Tests of ranges of a recording: the bounds of a range, and the end of a recording that another process writes.

use std::path::Path;
use std::time::SystemTime;

use crate::archives::{Archive, contents};
use crate::stream::{MTU_LENGTH, STREAM_ID, TERM_LENGTH};
use aeron_agent::clock::SystemEpochClock;
use aeron_archive::mark_file::{MarkFile, Owner};
use aeron_archive::storage::Directory;
use aeron_columns::read::{Mode, Projection, ValueFormat};
use aeron_memory::cnc::{CncFile, CncLengths, DriverIdentity};
use aeron_memory::counters::types::ARCHIVE_RECORDING_POSITION;
use aeron_memory::counters::{CountersManager, NewCounter};
use aeron_memory::directory::cnc_file;
use aeron_pipeline::private::{DirectoryLock, LockRequest, PrivateArchiveId};
use aeron_pipeline::recordings::{PositionRange, RecordingRange, RecordingsError, plan_range};
use aeron_pipeline::rows::PartitionRowReader;
use arrow_array::cast::AsArray;
use proptest::prelude::*;
use tempfile::TempDir;

const WHOLE: PositionRange = PositionRange {
    from: None,
    to: None,
};
const ARCHIVE_ID: i64 = 77;

fn range(from: i64, to: i64) -> PositionRange {
    PositionRange {
        from: Some(from),
        to: Some(to),
    }
}

fn planned(archive: &Archive, range: PositionRange) -> RecordingRange {
    plan_range(archive.path(), 0, range).unwrap()
}

fn refusal(archive: &Archive, range: PositionRange) -> String {
    plan_range(archive.path(), 0, range)
        .unwrap_err()
        .to_string()
}

/// Returns the lengths of the messages in a range, and the reader's position after the last message.
fn read(archive: &Archive, range: PositionRange) -> (Vec<usize>, i64) {
    let planned = planned(archive, range);
    let storage = Directory::new(archive.path());
    let value = [String::from("value")];
    let projection =
        Projection::of_columns(Some(&value), &ValueFormat::binary(), Mode::FailFast).unwrap();
    let partition = &planned.partition;
    let mut reader =
        PartitionRowReader::new(storage, partition, projection, Mode::FailFast, None, true)
            .unwrap();
    let mut lengths = Vec::new();
    while let Some(batch) = reader.next_batch().unwrap() {
        let values = batch.column(0).as_binary::<i32>();
        lengths.extend(values.iter().map(|value| value.unwrap().len()));
    }
    (lengths, reader.position())
}

/// A living archive server: its mark file, and the counters of its driver.
struct Server {
    driver: TempDir,
    _mark: MarkFile<std::fs::File>,
}

impl Server {
    fn of(archive: &Path) -> Self {
        let driver = tempfile::tempdir().unwrap();
        let now_ms = now_ms();
        let aeron_directory = driver.path().display().to_string();
        let owner = Owner {
            archive_id: ARCHIVE_ID,
            ..Owner::without_server(42, now_ms, aeron_directory)
        };
        let mut mark = MarkFile::take(&Directory::new(archive), &owner, now_ms).unwrap();
        mark.ready(now_ms).unwrap();
        Self {
            driver,
            _mark: mark,
        }
    }

    /// Creates the counters of the driver: one recorded position for each item of `positions`. An item has the archive
    /// id, the recording id and the position.
    fn count(&self, positions: &[(i64, i64, i64)]) {
        let lengths = CncLengths::default();
        let identity = DriverIdentity {
            pid: 41,
            start_timestamp_ms: now_ms(),
            client_liveness_timeout_ns: 1,
        };
        let cnc = CncFile::create(&cnc_file(self.driver.path()), &lengths, &identity).unwrap();
        let (metadata, values) = (
            cnc.counters_metadata().clone(),
            cnc.counters_values().clone(),
        );
        let mut counters = CountersManager::new(metadata, values, 0).unwrap();
        for &(archive_id, recording_id, value) in positions {
            let mut key = recording_id.to_le_bytes().to_vec();
            key.extend(1_i32.to_le_bytes());
            key.extend(9_i32.to_le_bytes());
            key.extend(b"aeron:ipc");
            key.extend(archive_id.to_le_bytes());
            let new = NewCounter {
                type_id: ARCHIVE_RECORDING_POSITION,
                key: &key,
                label: b"rec-pos",
                registration_id: 0,
                owner_id: 0,
                reference_id: 0,
                value,
            };
            counters.allocate(&new, now_ms()).unwrap();
        }
        cnc.publish();
    }
}

fn now_ms() -> i64 {
    let since = SystemTime::UNIX_EPOCH.elapsed().unwrap();
    since.as_millis() as i64
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn adjacent_ranges_with_any_bounds_contain_each_message_once(
        lengths in prop::collection::vec(prop_oneof![0..200_usize, 1_000..20_000_usize], 1..40),
        start in (0..3_i64, 0..200_i64).prop_map(|(term, frame)| term * TERM_LENGTH + frame * 32),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
        is_stopped: bool,
    ) {
        let mut archive = Archive::new();
        let end = archive.record(STREAM_ID, start, &lengths, is_stopped);
        let within = usize::try_from(end - start).unwrap() + 1;
        let mut bounds: Vec<i64> = cuts.iter().map(|cut| start + cut.index(within) as i64).collect();
        bounds.extend([start, end]);
        bounds.sort_unstable();
        let mut found = Vec::new();
        for pair in bounds.windows(2) {
            let (lengths, position) = read(&archive, range(pair[0], pair[1]));
            prop_assert!((pair[1]..pair[1] + 32).contains(&position));
            found.extend(lengths);
        }
        prop_assert_eq!(found, lengths);
    }
}

#[test]
fn a_position_outside_of_the_recording_is_refused_with_the_valid_positions() {
    let mut archive = Archive::new();
    let end = archive.record(STREAM_ID, 96, &[100; 3], true);
    assert_eq!(end, 96 + 3 * 160);
    for (bad, text) in [
        (range(95, end), "from_position=95 is not within 96 to 576"),
        (
            range(96, end + 1),
            "to_position=577 is not within 96 to 576",
        ),
        (range(200, 199), "to_position=199 is not within 200 to 576"),
        (range(i64::MIN, end), "is not within 96 to 576"),
        (range(96, i64::MAX), "is not within 96 to 576"),
    ] {
        let refusal = refusal(&archive, bad);
        assert!(refusal.contains(text), "{refusal}");
    }
    let unknown = plan_range(archive.path(), 1, WHOLE)
        .unwrap_err()
        .to_string();
    assert!(unknown.starts_with("no recording 1 in ") && unknown.ends_with("it has 0"));
}

#[test]
fn an_invalid_recording_is_refused_and_the_error_names_the_repair_command() {
    let mut archive = Archive::new();
    archive.record(STREAM_ID, 0, &[100], true);
    archive.catalog.invalidate(0).unwrap();
    let text = refusal(&archive, WHOLE);
    assert!(text.contains("`aeron archive verify --repair`"), "{text}");
}

#[test]
fn a_recording_of_a_killed_archive_is_read_to_its_end_and_nothing_is_written() {
    let mut archive = Archive::new();
    let end = archive.record(STREAM_ID, 0, &[1_000; 300], false);
    let before = contents(archive.path());
    assert_eq!(read(&archive, WHOLE), (vec![1_000; 300], end));
    assert_eq!(contents(archive.path()), before);
}

#[test]
fn an_active_recording_is_read_up_to_the_counter_of_its_own_archive() {
    let mut archive = Archive::new();
    archive.record(STREAM_ID, 0, &[100; 50], false);
    let server = Server::of(archive.path());
    let other = ARCHIVE_ID + 1;
    server.count(&[(other, 0, 160), (ARCHIVE_ID, 1, 320), (ARCHIVE_ID, 0, 480)]);
    assert_eq!(read(&archive, WHOLE), (vec![100; 3], 480));
    assert!(refusal(&archive, range(0, 481)).contains("to_position=481 is not within 0 to 480"));
}

#[test]
fn a_message_without_its_end_is_left_for_a_later_read() {
    let mut archive = Archive::new();
    let end = archive.record(STREAM_ID, 0, &[100, 5_000], false);
    let server = Server::of(archive.path());
    server.count(&[(ARCHIVE_ID, 0, 160 + MTU_LENGTH as i64)]);
    let (lengths, position) = read(&archive, WHOLE);
    assert_eq!((lengths, position), (vec![100], 160));
    drop(server);
    std::fs::remove_file(archive.path().join("archive-mark.dat")).unwrap();
    assert_eq!(read(&archive, range(position, end)), (vec![5_000], end));
}

#[test]
fn without_counter_and_index_a_read_of_an_active_recording_needs_an_end_position() {
    let mut archive = Archive::new();
    archive.record(STREAM_ID, 0, &[100; 50], false);
    let server = Server::of(archive.path());
    let error = plan_range(archive.path(), 0, WHOLE).unwrap_err();
    assert!(matches!(error, RecordingsError::UnknownEnd { .. }));
    let text = error.to_string();
    assert!(
        text.contains(&server.driver.path().display().to_string()),
        "{text}"
    );
    assert_eq!(read(&archive, range(0, 320)), (vec![100; 2], 320));
}

#[test]
fn a_stopped_recording_of_a_running_archive_ends_at_its_stop_position() {
    let mut archive = Archive::new();
    let end = archive.record(STREAM_ID, 0, &[100; 50], true);
    let _server = Server::of(archive.path());
    assert_eq!(read(&archive, WHOLE), (vec![100; 50], end));
}

#[test]
fn a_recording_of_a_running_query_is_read_up_to_the_last_block_in_its_index() {
    let directory = tempfile::tempdir().unwrap();
    let request = LockRequest {
        id: PrivateArchiveId::random().unwrap(),
        aeron_directory: "",
        clock: &SystemEpochClock,
        pause: &mut |_| Ok(()),
    };
    let _lock = DirectoryLock::create(directory.path(), &request).unwrap();
    let mut recording =
        crate::recordings::Recording::within(Directory::new(directory.path()), 64 * 1024);
    let end = recording.message(&[1; 3_000], 0);
    recording.at(1);
    let planned = plan_range(directory.path(), 0, WHOLE).unwrap();
    assert_eq!((planned.partition.from, planned.partition.to), (0, end));
}
