//! Tests of batch reads: which archive and recordings are selected, and how recordings are cut into partitions.

use std::fs;
use std::num::NonZeroUsize;
use std::time::SystemTime;

use crate::archives::{Archive, contents, descriptor, messages};
use crate::stream::{SEGMENT_LENGTH, STREAM_ID, TERM_LENGTH};
use aeron_archive::catalog::{Catalog, DEFAULT_CAPACITY, RecordingDescriptor};
use aeron_archive::mark_file::{MarkFile, Owner};
use aeron_archive::storage::Directory;
use aeron_pipeline::partition::Partition;
use aeron_pipeline::recordings::{
    RecordingCutting, RecordingSelection, RecordingsError, find_archive, plan,
};
use proptest::prelude::*;

const ALL: RecordingCutting = RecordingCutting {
    min_partitions: None,
    max_rows: None,
    record_length: None,
};

impl Archive {
    fn plan(&self, cutting: &RecordingCutting) -> Vec<Partition> {
        plan(self.path(), &RecordingSelection::default(), cutting).unwrap()
    }

    fn plan_of(&self, recordings: (i64, i64)) -> Result<Vec<Partition>, RecordingsError> {
        let wanted = RecordingSelection {
            recording_ids: Some(vec![recordings]),
            ..RecordingSelection::default()
        };
        plan(self.path(), &wanted, &ALL)
    }
}

fn error(result: Result<Vec<Partition>, RecordingsError>) -> String {
    result.unwrap_err().to_string()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// 08-58: each message occurs once, for any number of partitions.
    #[test]
    fn every_message_is_in_exactly_one_piece(
        lengths in prop::collection::vec(prop_oneof![0..200_usize, 1_000..20_000_usize], 1..60),
        start in (0..3_i64, 0..200_i64).prop_map(|(term, frame)| term * TERM_LENGTH + frame * 32),
        min_partitions in prop::option::of(1..40_usize),
        max_rows in prop::option::of(1..30_u64),
    ) {
        let mut archive = Archive::new();
        let end = archive.record(STREAM_ID, start, &lengths, true);
        let pieces = archive.plan(&RecordingCutting { min_partitions, max_rows, record_length: None });
        let bounds: Vec<_> = pieces.iter().map(|piece| (piece.from, piece.to)).collect();
        prop_assert_eq!(bounds.first().map(|piece| piece.0), Some(start));
        prop_assert_eq!(bounds.last().map(|piece| piece.1), Some(end));
        prop_assert!(bounds.windows(2).all(|pair| pair[0].1 == pair[1].0), "{:?}", bounds);
        let found: Vec<_> = pieces.iter().map(|piece| messages(archive.path(), piece)).collect();
        if let Some(max_rows) = max_rows {
            prop_assert!(found.iter().all(|piece| piece.len() as u64 <= max_rows), "{:?}", found);
        }
        let found: Vec<_> = found.into_iter().flatten().map(|(_, length)| length).collect();
        prop_assert_eq!(found, lengths);
    }
}

#[test]
fn without_limits_each_segment_is_a_piece() {
    let mut archive = Archive::new();
    archive.record(STREAM_ID, 64, &[1_000; 400], true);
    let pieces = archive.plan(&ALL);
    let segments = fs::read_dir(archive.path()).unwrap().count() - 1;
    assert_eq!(pieces.len(), segments);
    assert_eq!((pieces[0].from, pieces[1].from), (64, SEGMENT_LENGTH));
}

#[test]
fn segments_are_joined_or_split_to_the_requested_number_of_pieces() {
    let mut archive = Archive::new();
    archive.record(STREAM_ID, 0, &[1_000; 400], true);
    archive.record(STREAM_ID, 0, &[1_000; 400], true);
    let count = |min_partitions| {
        let min_partitions = Some(min_partitions);
        archive
            .plan(&RecordingCutting {
                min_partitions,
                ..ALL
            })
            .len()
    };
    assert_eq!((count(1), count(2), count(4), count(50)), (2, 2, 4, 50));
}

#[test]
fn recordings_without_messages_have_no_pieces_for_any_number_of_partitions() {
    let mut archive = Archive::new();
    archive.record(STREAM_ID, 64, &[], true);
    archive.record(STREAM_ID, 64, &[], true);
    for min_partitions in [None, Some(1), Some(4)] {
        let pieces = archive.plan(&RecordingCutting {
            min_partitions,
            ..ALL
        });
        assert_eq!(pieces.len(), 0, "{min_partitions:?}");
    }
}

/// 08-35: huge positions in a damaged catalog cost neither memory nor time. Without `minPartitions`, they are an error.
#[test]
fn more_segments_than_partitions_are_refused_with_their_number() {
    let mut archive = Archive::new();
    for _ in 0..9 {
        let absurd = RecordingDescriptor {
            term_length: 1 << 30,
            segment_length: 1 << 30,
            ..descriptor(STREAM_ID, 0)
        };
        let id = archive.catalog.add(absurd).unwrap();
        archive.catalog.stop(id, 1 << 61, 2_000).unwrap();
    }
    let error = error(plan(archive.path(), &RecordingSelection::default(), &ALL));
    let count = 9 * (1_i64 << 31);
    assert!(
        error.contains(&format!(
            "{count} segments by the catalog, more than 100000 partitions: set minPartitions"
        )),
        "{error}"
    );
    let min_partitions = Some(18);
    let few = RecordingCutting {
        min_partitions,
        ..ALL
    };
    assert_eq!(archive.plan(&few).len(), 18);
}

#[test]
fn rows_of_records_are_counted_by_the_record_length() {
    let mut archive = Archive::new();
    archive.record(STREAM_ID, 0, &[100; 60], true);
    let cutting = RecordingCutting {
        max_rows: Some(50),
        record_length: NonZeroUsize::new(10),
        ..ALL
    };
    assert_eq!(archive.plan(&cutting).len(), 12);
}

/// 08-58: filters by id and stream.
#[test]
fn recordings_are_selected_by_id_and_stream() {
    let mut archive = Archive::new();
    for stream_id in [1, 2, 2] {
        archive.record(stream_id, 0, &[10], true);
    }
    let wanted = |stream_ids, recording_ids| {
        let wanted = RecordingSelection {
            stream_ids,
            recording_ids,
        };
        let pieces = plan(archive.path(), &wanted, &ALL).unwrap();
        pieces
            .iter()
            .map(|piece| piece.recording.id)
            .collect::<Vec<_>>()
    };
    assert_eq!(wanted(None, None), [0, 1, 2]);
    assert_eq!(wanted(Some(vec![2]), None), [1, 2]);
    assert_eq!(wanted(None, Some(vec![(0, 0), (2, 9)])), [0, 2]);
    assert_eq!(wanted(Some(vec![1]), Some(vec![(1, 2)])), [0_i64; 0]);
    let text = error(archive.plan_of((9, 9)));
    assert!(
        text.starts_with("no recording 9 in ") && text.ends_with("; it has 0-2"),
        "{text}"
    );
}

/// 08-58: a recording of a killed writer is read to the end that recovery would find. The read changes no file.
#[test]
fn a_recording_without_a_stop_position_is_read_to_its_end_and_nothing_is_written() {
    let mut archive = Archive::new();
    let end = archive.record(STREAM_ID, 0, &[1_000; 300], false);
    let before = contents(archive.path());
    let pieces = archive.plan(&ALL);
    let last = pieces.last().unwrap();
    assert_eq!(last.end, end);
    let channel = last.recording.channel.as_deref();
    assert_eq!(channel, Some("aeron:ipc?alias=trades"));
    assert_eq!(contents(archive.path()), before);
}

/// 08-58: an archive in use is refused.
#[test]
fn an_archive_with_a_living_owner_is_refused_until_the_owner_has_ended() {
    let mut archive = Archive::new();
    archive.record(STREAM_ID, 0, &[10], true);
    let now = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap();
    let now_ms = now.as_millis() as i64;
    let owner = Owner::without_server(42, now_ms, "/dev/shm/aeron".to_owned());
    let mut mark = MarkFile::take(&Directory::new(archive.path()), &owner, now_ms).unwrap();
    mark.ready(now_ms).unwrap();
    let text = error(plan(archive.path(), &RecordingSelection::default(), &ALL));
    assert!(text.contains("is in use by process 42"), "{text}");
    mark.close().unwrap();
    assert_eq!(archive.plan(&ALL).len(), 1);
}

/// 08-58: the path of a directory with a single private archive selects this archive.
#[test]
fn a_directory_selects_its_own_archive_or_the_only_private_archive_below_it() {
    let place = tempfile::tempdir().unwrap();
    let text = find_archive(place.path()).unwrap_err().to_string();
    assert!(text.starts_with("no archive at "), "{text}");
    assert!(find_archive(&place.path().join("none")).is_err());

    for name in ["one", "two"] {
        let directory = place.path().join(name);
        fs::create_dir(&directory).unwrap();
        Catalog::create(&Directory::new(&directory), DEFAULT_CAPACITY).unwrap();
        fs::write(directory.join("private.lock"), []).unwrap();
        if name == "one" {
            assert_eq!(find_archive(place.path()).unwrap(), directory);
        }
    }
    let text = find_archive(place.path()).unwrap_err().to_string();
    assert!(
        text.contains("holds 2 private archives") && text.contains("s ago"),
        "{text}"
    );
    let two = place.path().join("two");
    assert_eq!(find_archive(&two).unwrap(), two);
}
