//! Purges segments and recordings: bounds, order, and the state after a kill.

use aeron_archive::catalog::{Catalog, NULL_VALUE, RecordingDescriptor, RecordingState};
use aeron_archive::memory_storage::{MemoryStorage, StorageFault};
use aeron_archive::purge::{Deletion, purge_recording, purge_segments, remove_orphans};
use aeron_archive::segments::{SegmentFileName, segment_base, segment_name, sidecar_name};
use aeron_archive::storage::Storage;

use crate::common::{SEGMENT_LENGTH, TERM_LENGTH, empty, open, recording};

const SEGMENT: i64 = SEGMENT_LENGTH as i64;
const SIDECARS: [&str; 1] = ["idx"];

/// Returns a catalog with a recording that starts inside a term, and five segment files with their index files.
fn five_segments() -> (MemoryStorage, Catalog<MemoryStorage>, RecordingDescriptor) {
    let (storage, mut catalog) = empty();
    catalog.add(recording(1)).unwrap();
    let id = catalog
        .add(RecordingDescriptor {
            start_position: 132_096,
            ..recording(2)
        })
        .unwrap();
    let descriptor = catalog.recording(id).unwrap().clone();
    for number in 0..5 {
        let base = descriptor.first_segment_base() + number * SEGMENT;
        storage.put(&segment_name(id, base), b"frames");
        storage.put(&sidecar_name(id, base, "idx"), b"index");
    }
    for other in [
        "0-0.rec", "9-0.rec", "1-0.txt", "1-x.rec", "notes", "1-00.rec",
    ] {
        storage.put(other, b"not ours to touch");
    }
    (storage, catalog, descriptor)
}

/// Returns the bases of a recording's segment files. Checks that each segment file has its index file.
fn bases(storage: &MemoryStorage, recording_id: i64) -> Vec<i64> {
    let names = storage.names().unwrap();
    let of = |extension: &str| {
        let files = names.iter().filter_map(|name| SegmentFileName::parse(name));
        let mut bases: Vec<_> = files
            .filter(|file| file.recording_id == recording_id && file.extension == extension)
            .map(|file| file.base)
            .collect();
        bases.sort_unstable();
        bases
    };
    assert_eq!(of("rec"), of("idx"));
    of("rec")
}

fn finish(storage: &MemoryStorage, mut deletion: Deletion) -> usize {
    let mut steps = 0;
    while deletion.step(storage, &SIDECARS).unwrap() {
        steps += 1;
    }
    steps
}

#[test]
fn segments_begin_at_the_term_of_the_start_position_and_are_named_by_their_base() {
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
fn a_name_is_a_segment_only_as_an_archive_writes_it() {
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

/// 08-30
#[test]
fn a_purge_moves_the_start_position_and_removes_exactly_the_segments_before_it() {
    let (storage, mut catalog, old) = five_segments();
    let first = old.first_segment_base();
    let (new_start, end) = (first + 2 * SEGMENT, first + 4 * SEGMENT + 32);
    let deletion = purge_segments(&mut catalog, 1, new_start, end).unwrap();
    assert_eq!(
        open(&storage).recording(1).unwrap().start_position,
        new_start
    );
    assert_eq!(
        bases(&storage, 1).len(),
        5,
        "the catalog changes before the first file is deleted"
    );

    assert_eq!(finish(&storage, deletion), 2);
    let left: Vec<_> = (2..5).map(|number| first + number * SEGMENT).collect();
    assert_eq!(bases(&storage, 1), left);
    assert!(
        storage.bytes("0-0.rec").is_some(),
        "the file belongs to another recording"
    );

    let again = purge_segments(&mut catalog, 1, first + 4 * SEGMENT, end).unwrap();
    assert_eq!(finish(&storage, again), 2);
    assert_eq!(bases(&storage, 1), [first + 4 * SEGMENT]);
}

/// 08-30
#[test]
fn a_purge_refuses_a_start_that_is_not_a_segment_base_or_removes_no_segment_or_too_many() {
    let (storage, mut catalog, recording) = five_segments();
    let first = recording.first_segment_base();
    let end = first + 4 * SEGMENT + 32;
    let mut refusal = |new_start| {
        purge_segments(&mut catalog, 1, new_start, end)
            .unwrap_err()
            .to_string()
    };
    let second = first + SEGMENT;
    assert_eq!(
        refusal(second + 32),
        format!("invalid segment start: newStartPosition={}", second + 32)
    );
    for new_start in [i64::MIN, -1, 0, first, second - 32] {
        let expected = format!("invalid detach: newStartPosition={new_start} lowerBound={second}");
        assert_eq!(refusal(new_start), expected);
    }
    let (fifth, beyond) = (first + 4 * SEGMENT, first + 5 * SEGMENT);
    assert_eq!(
        refusal(beyond),
        format!("invalid detach: in use, newStartPosition={beyond} upperBound={fifth}")
    );
    assert!(refusal(i64::MAX).starts_with("invalid segment start"));
    assert_eq!(
        purge_segments(&mut catalog, 7, second, end)
            .unwrap_err()
            .to_string(),
        "unknown recording id 7"
    );
    assert_eq!(open(&storage).recording(1).unwrap(), &recording);
    assert_eq!(bases(&storage, 1).len(), 5);
}

/// 08-30
#[test]
fn a_recording_is_purged_wholly_once_it_has_ended() {
    let (storage, mut catalog, recording) = five_segments();
    let active = purge_recording(&mut catalog, 1, NULL_VALUE).unwrap_err();
    assert_eq!(
        active.to_string(),
        "recording 1 is active: stop it before it is purged"
    );

    // The recording ends exactly at the start of the last segment, so the last segment is an empty file.
    let stop = recording.first_segment_base() + 4 * SEGMENT;
    catalog.stop(1, stop, 9).unwrap();
    let deletion = purge_recording(&mut catalog, 1, stop - 64).unwrap();
    let entry = open(&storage).entry(1).unwrap().clone();
    assert_eq!(entry.state, RecordingState::Deleted);
    assert_eq!(entry.descriptor.stop_position, stop - 64);
    assert_eq!(
        bases(&storage, 1).len(),
        5,
        "the catalog changes before the first file is deleted"
    );
    assert_eq!(finish(&storage, deletion), 5);
    assert!(bases(&storage, 1).is_empty());
    assert!(
        purge_recording(&mut catalog, 1, stop).is_err(),
        "a purged recording is unknown"
    );
}

#[test]
fn a_missing_file_is_not_an_error_and_a_remaining_one_is_deleted_later() {
    let (storage, mut catalog, recording) = five_segments();
    let first = recording.first_segment_base();
    let end = first + 4 * SEGMENT;
    let mut deletion = purge_segments(&mut catalog, 1, end, end).unwrap();
    storage.remove(&segment_name(1, first)).unwrap();
    assert!(deletion.step(&storage, &SIDECARS).unwrap());

    let busy = StorageFault::Error(std::io::ErrorKind::ResourceBusy);
    storage.fail_at(storage.steps(), busy);
    let failure = deletion.step(&storage, &SIDECARS).unwrap_err().to_string();
    let name = segment_name(1, first + SEGMENT);
    assert_eq!(
        failure,
        format!("unable to delete segment file: {name}: resource busy")
    );
    assert_eq!(finish(&storage, deletion), 3);
    assert_eq!(bases(&storage, 1), [end]);
}

#[test]
fn positions_that_span_more_segments_than_there_can_be_purge_nothing() {
    let (storage, mut catalog) = empty();
    let id = catalog.add(recording(1)).unwrap();
    let far = i64::from(TERM_LENGTH) << 31;
    catalog.stop(id, far, 9).unwrap();
    let refusal = purge_recording(&mut catalog, id, NULL_VALUE).unwrap_err();
    assert_eq!(
        refusal.to_string(),
        "recording 0 spans 1073741825 segments, more than 16777216"
    );
    assert!(purge_segments(&mut catalog, id, far, far).is_err());
    assert_eq!(open(&storage).recording(id).unwrap().stop_position, far);
}

/// 08-30
#[test]
fn a_kill_at_any_step_of_a_purge_leaves_orphans_at_most_and_the_next_open_removes_them() {
    for whole in [false, true] {
        for step in 0..12 {
            for progress in 0..2 {
                kill_in_purge(whole, step, progress);
            }
        }
    }
}

fn kill_in_purge(whole: bool, step: u64, progress: usize) {
    let (storage, mut catalog, recording) = five_segments();
    let first = recording.first_segment_base();
    let new_start = first + 3 * SEGMENT;
    let stop = first + 4 * SEGMENT + 64;
    catalog.stop(1, stop, 9).unwrap();
    storage.fail_at(storage.steps() + step, StorageFault::Kill { progress });
    let deletion = match whole {
        true => purge_recording(&mut catalog, 1, stop),
        false => purge_segments(&mut catalog, 1, new_start, stop),
    };
    let _ = deletion.and_then(|mut deletion| {
        while deletion.step(&storage, &SIDECARS)? {}
        Ok(())
    });
    storage.restart();

    let catalog = open(&storage);
    remove_orphans(&storage, &catalog, &SIDECARS).unwrap();
    let left = bases(&storage, 1);
    match catalog.entry(1).unwrap() {
        entry if entry.state == RecordingState::Deleted => assert!(left.is_empty()),
        entry if entry.descriptor.start_position == new_start => {
            assert_eq!(left, [new_start, new_start + SEGMENT]);
        }
        _ => assert_eq!(
            left.len(),
            5,
            "without a change of the catalog, no file is deleted"
        ),
    }
    for other in [
        "0-0.rec", "9-0.rec", "1-0.txt", "1-x.rec", "notes", "1-00.rec",
    ] {
        assert!(storage.bytes(other).is_some(), "{other}");
    }
    assert_eq!(remove_orphans(&storage, &catalog, &SIDECARS).unwrap(), 0);
}

#[test]
fn files_of_an_invalid_recording_are_nobodys_orphans() {
    let (storage, catalog, recording) = five_segments();
    drop(catalog);
    let mut file = storage.bytes("archive.catalog").unwrap();
    file[224 + 4] = 0;
    storage.put("archive.catalog", &file);
    let catalog = open(&storage);
    assert_eq!(
        catalog.entry(recording.recording_id).unwrap().state,
        RecordingState::Invalid
    );
    assert_eq!(remove_orphans(&storage, &catalog, &SIDECARS).unwrap(), 0);
    assert_eq!(bases(&storage, 1).len(), 5);
}
