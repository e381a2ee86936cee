//! Migrates the segments of a recording to another recording.

use aeron_archive::catalog::Catalog;
use aeron_archive::memory_storage::{MemoryStorage, StorageFault};
use aeron_archive::storage::Storage;
use aeron_archive::store::{ArchiveStore, Migration, NewRecording, StoreError};

use crate::recordings::stream::{
    INITIAL_TERM_ID, MTU_LENGTH, SEGMENT_LENGTH, STREAM_ID, TERM_LENGTH,
};
use crate::store::common::*;

/// Position at which the first recording stops and the second starts.
const JOIN: i64 = 2 * SEGMENT_LENGTH;

/// Returns a store with recording 0 up to `JOIN`, and recording 1 from there on.
fn prepared() -> (MemoryStorage, Store) {
    let (storage, mut store) = empty();
    recorded(&mut store, 1024, 300);
    let end = store.truncate(0, JOIN);
    delete_all(&mut store, end).unwrap();
    recorded(&mut store, JOIN, 200);
    (storage, store)
}

fn migrate(store: &mut Store, source: i64, destination: i64) -> Result<Migration, StoreError> {
    let Migration {
        moved,
        mut deletion,
    } = store.migrate_segments(source, destination)?;
    while deletion.step(store)? {}
    Ok(Migration { moved, deletion })
}

/// Returns the position and the payload of all data frames of both recordings.
fn messages(storage: &MemoryStorage, store: &Store) -> Vec<(i64, Vec<u8>)> {
    let mut all: Vec<_> = [0, 1]
        .iter()
        .flat_map(|&id| frames(storage, store, id))
        .map(|frame| (frame.0, frame.1))
        .collect();
    all.sort();
    all
}

/// 07-111
#[test]
fn segments_of_a_recording_that_ends_at_the_start_of_the_destination_are_moved() {
    let (storage, mut store) = prepared();
    let before = messages(&storage, &store);
    let end = positions(&store, 1).1;
    let migration = migrate(&mut store, 0, 1).unwrap();
    assert_eq!((migration.moved, migration.deletion.count()), (2, 0));
    assert_eq!(positions(&store, 0), (1024, 1024));
    assert_eq!(positions(&store, 1), (1024, end));
    assert_eq!(bases(&storage, 0), []);
    assert_eq!(bases(&storage, 1).len(), 4);
    assert_eq!(messages(&storage, &store), before);
}

/// 07-111
#[test]
fn segments_of_a_recording_that_starts_at_the_end_of_the_destination_are_moved() {
    let (storage, mut store) = prepared();
    let before = messages(&storage, &store);
    let end = positions(&store, 1).1;
    assert_eq!(migrate(&mut store, 1, 0).unwrap().moved, 2);
    assert_eq!(positions(&store, 0), (1024, end));
    assert_eq!(positions(&store, 1), (JOIN, JOIN));
    assert_eq!(bases(&storage, 1), []);
    assert_eq!(messages(&storage, &store), before);
    let mut session = store.extend_recording(0, &continuation(end)).unwrap();
    record(&mut session, 100);
    stop(&mut store, &session);
    assert_eq!(messages(&storage, &store)[..before.len()], before);
}

/// 07-111, 07-112: a recording that ends exactly at the end of a segment has an empty last file.
#[test]
fn the_empty_last_file_of_the_source_is_deleted() {
    let (storage, mut store) = prepared();
    storage
        .create(&format!("0-{JOIN}.rec"), SEGMENT_LENGTH as u64)
        .unwrap();
    let migration = migrate(&mut store, 0, 1).unwrap();
    assert_eq!((migration.moved, migration.deletion.count()), (2, 1));
    assert_eq!(bases(&storage, 0), []);
}

/// 07-111: the real archive refuses such a migration too. Truncating the destination to its stop position deletes the
/// file.
#[test]
fn a_migration_is_refused_if_the_destination_has_an_empty_last_file() {
    let (storage, mut store) = prepared();
    storage
        .create(&format!("0-{JOIN}.rec"), SEGMENT_LENGTH as u64)
        .unwrap();
    assert_eq!(refusal(store.migrate_segments(1, 0)).0, 0);
    let end = store.truncate(0, JOIN);
    assert_eq!(delete_all(&mut store, end).unwrap(), 1);
    assert_eq!(migrate(&mut store, 1, 0).unwrap().moved, 2);
}

/// 07-111: the destination may be active.
#[test]
fn segments_are_moved_to_an_active_destination() {
    let (storage, mut store) = empty();
    recorded(&mut store, 0, 300);
    let end = store.truncate(0, JOIN);
    delete_all(&mut store, end).unwrap();
    let mut session = store.start_recording(image(JOIN)).unwrap();
    record(&mut session, 10);
    migrate(&mut store, 0, 1).unwrap();
    assert_eq!(positions(&store, 1), (0, -1));
    record(&mut session, 300);
    stop(&mut store, &session);
    let count = frames(&storage, &store, 1)
        .iter()
        .filter(|frame| !frame.4)
        .count();
    assert_eq!(count, 248 + 310);
}

/// 07-111
#[test]
fn a_migration_between_recordings_with_different_streams_or_a_gap_is_refused() {
    let other = |change: fn(&mut NewRecording)| {
        let (storage, mut store) = prepared();
        let mut new = image(JOIN);
        change(&mut new);
        let session = store.start_recording(new).unwrap();
        stop(&mut store, &session);
        let (code, text) = refusal(store.migrate_segments(0, 2));
        assert_eq!((code, positions(&store, 0)), (0, (1024, JOIN)));
        assert_eq!(bases(&storage, 0).len(), 2);
        assert!(text.starts_with("invalid migrate: "), "{text}");
        text
    };
    assert!(
        other(|new| new.term_length = 2 * TERM_LENGTH as i32)
            .ends_with("srcTermBufferLength=65536 dstTermBufferLength=131072")
    );
    assert!(
        other(|new| new.term_length = 4 * TERM_LENGTH as i32)
            .ends_with("srcSegmentFileLength=131072 dstSegmentFileLength=262144")
    );
    assert!(
        other(|new| new.initial_term_id = INITIAL_TERM_ID - 1)
            .ends_with("srcInitialTermId=2147483647 dstInitialTermId=2147483646")
    );
    assert!(
        other(|new| new.stream_id = STREAM_ID + 1).ends_with("srcStreamId=1001 dstStreamId=1002")
    );
    assert!(
        other(|new| new.mtu_length = MTU_LENGTH as i32 * 2)
            .ends_with("srcMtuLength=1408 dstMtuLength=2816")
    );
    let gap = other(|new| new.join_position += SEGMENT_LENGTH);
    assert_eq!(
        gap,
        "invalid migrate: src and dst are not contiguous srcStartPosition=1024 srcStopPosition=262144 dstStartPosition=393216 dstStopPosition=393216"
    );
    other(|new| new.join_position = 1024);
}

/// 07-111: the recordings must meet at a segment base of both recordings.
#[test]
fn a_migration_of_recordings_that_meet_within_a_segment_is_refused() {
    for join in [JOIN - 1056, JOIN - TERM_LENGTH] {
        let (_, mut store) = empty();
        let mut session = store.start_recording(image(0)).unwrap();
        while session.recorded_position() < join {
            record(&mut session, 1);
        }
        let join = session.recorded_position();
        stop(&mut store, &session);
        recorded(&mut store, join, 10);
        let is_base_of_later = join % TERM_LENGTH == 0;
        for (source, destination, role) in [
            (0, 1, "src"),
            (1, 0, if is_base_of_later { "dst" } else { "src" }),
        ] {
            let (code, text) = refusal(store.migrate_segments(source, destination));
            assert_eq!(code, 0);
            let expected = format!(
                "invalid migrate: join position is not on segment boundary of {role} recording seamPosition={join} "
            );
            assert!(text.starts_with(&expected), "{text}");
        }
        assert_eq!(positions(&store, 1).0, join);
    }
}

/// 07-111
#[test]
fn a_migration_is_refused_if_a_recording_is_unknown_or_both_are_the_same_or_the_source_is_active() {
    let (_, mut store) = prepared();
    let session = store.start_recording(image(JOIN)).unwrap();
    assert_eq!(refusal(store.migrate_segments(7, 1)).0, 5);
    assert_eq!(refusal(store.migrate_segments(0, 7)).0, 5);
    assert_eq!(refusal(store.migrate_segments(0, 0)).0, 0);
    assert_eq!(
        refusal(store.migrate_segments(2, 0)),
        (0, "recording 2 is still active".to_owned())
    );
    drop(session);
}

/// 07-111
#[test]
fn a_migration_with_a_missing_source_file_or_an_existing_new_file_moves_nothing() {
    let (storage, mut store) = prepared();
    storage.remove("0-0.rec").unwrap();
    assert_eq!(
        refusal(store.migrate_segments(0, 1)),
        (0, "missing src segment file 0-0.rec".to_owned())
    );
    let (other, mut blocked) = prepared();
    other.put("1-0.rec", b"in the way");
    assert_eq!(
        refusal(blocked.migrate_segments(0, 1)),
        (0, "preexisting dst segment file 1-0.rec".to_owned())
    );
    for (storage, store) in [(storage, store), (other, blocked)] {
        assert_eq!(positions(&store, 0), (1024, JOIN));
        assert_eq!(positions(&store, 1).0, JOIN);
        assert_eq!(bases(&storage, 0).last(), Some(&SEGMENT_LENGTH));
    }
}

/// 07-111: neither recording loses bytes, and no file is left that would block the next extension.
#[test]
fn a_kill_leaves_both_recordings_in_the_state_before_or_after_the_migration() {
    let (storage, store) = prepared();
    let before = messages(&storage, &store);
    for (source, destination) in [(0, 1), (1, 0)] {
        let (_, mut moved) = prepared();
        migrate(&mut moved, source, destination).unwrap();
        let ends = [
            [0, 1].map(|id| positions(&store, id)),
            [0, 1].map(|id| positions(&moved, id)),
        ];
        killed_at_each_step(
            prepared,
            |store| migrate(store, source, destination).map(drop),
            |storage, mut store, is_done| {
                let found = [0, 1].map(|id| positions(&store, id));
                assert!(found == ends[1] || found == ends[0] && !is_done);
                assert_eq!(messages(storage, &store), before);
                assert_eq!(names_of_notes(storage), [""; 0]);
                let id = if found == ends[1] { destination } else { 1 };
                let end = positions(&store, id).1;
                store.extend_recording(id, &continuation(end)).unwrap();
            },
        );
    }
}

/// 07-111: the process is killed during the migration, and the next process while it opens the store.
#[test]
fn a_migration_is_finished_even_if_the_next_opening_is_killed_too() {
    let (storage, store) = prepared();
    let before = messages(&storage, &store);
    for (first, second) in (0..6).flat_map(|first| (0..8).map(move |second| (first, second))) {
        let (storage, mut store) = prepared();
        storage.fail_at(storage.steps() + first, StorageFault::Kill { progress: 1 });
        let _ = migrate(&mut store, 0, 1);
        storage.restart();
        storage.fail_at(storage.steps() + second, StorageFault::Kill { progress: 1 });
        let _ = ArchiveStore::open(storage.clone(), options(), OPENED_MS);
        storage.restart();
        let (store, _) = open(&storage);
        assert_eq!(messages(&storage, &store), before);
        assert_eq!(names_of_notes(&storage), [""; 0]);
    }
}

/// 07-111: until the store is opened again, no operation changes the end of either recording.
#[test]
fn a_migration_that_fails_midway_is_finished_at_the_next_opening() {
    let (storage, store) = prepared();
    let before = messages(&storage, &store);
    for step in 1..6 {
        let (storage, mut store) = prepared();
        let denied = StorageFault::Error(std::io::ErrorKind::PermissionDenied);
        storage.fail_at(storage.steps() + step, denied);
        assert!(migrate(&mut store, 0, 1).is_err(), "step {step}");
        let half = "has failed midway: start the archive again to finish it";
        for text in [
            refusal(store.extend_recording(0, &continuation(JOIN))).1,
            refusal(store.truncate(0, 1024)).1,
            refusal(store.purge_recording(1, &IDLE)).1,
            refusal(store.detach_segments(1, JOIN + SEGMENT_LENGTH, &IDLE)).1,
            refusal(store.attach_segments(1)).1,
            refusal(store.migrate_segments(1, 0)).1,
        ] {
            assert!(text.ends_with(half), "step {step}: {text}");
        }
        let (store, _) = open(&storage);
        assert_eq!(positions(&store, 0), (1024, 1024));
        assert_eq!(messages(&storage, &store), before);
        assert_eq!(names_of_notes(&storage), [""; 0]);
    }
}

/// 07-66, 07-111: a tool may mark a recording as invalid before the archive starts again.
#[test]
fn an_unfinished_migration_is_finished_only_if_both_recordings_are_valid() {
    let (storage, mut store) = prepared();
    let before = messages(&storage, &store);
    storage.fail_at(storage.steps() + 2, StorageFault::Kill { progress: 1 });
    assert!(migrate(&mut store, 0, 1).is_err());
    storage.restart();
    Catalog::open(&storage, 0).unwrap().invalidate(0).unwrap();
    assert_eq!(open(&storage).0.recordings().count(), 1);
    Catalog::open(&storage, 0).unwrap().revalidate(0).unwrap();
    let (store, _) = open(&storage);
    assert_eq!(positions(&store, 1).0, 1024);
    assert_eq!(messages(&storage, &store), before);
}

fn names_of_notes(storage: &MemoryStorage) -> Vec<String> {
    let mut names = storage.names().unwrap();
    names.retain(|name| name.ends_with(".note"));
    names
}
