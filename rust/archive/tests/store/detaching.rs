//! Detaches and purges the first segments of recordings.

use aeron_archive::memory_storage::MemoryStorage;
use aeron_archive::storage::Storage;
use aeron_archive::store::{RecordingActivity, StoreError};

use crate::recordings::stream::{SEGMENT_LENGTH, Seen, TERM_LENGTH};
use crate::store::common::*;

const START: i64 = TERM_LENGTH + 1024;

/// Returns the base of the segment with this index. The first segment begins with the term of the
/// start position.
const fn base(index: i64) -> i64 {
    TERM_LENGTH + index * SEGMENT_LENGTH
}

/// Returns a store with a recording of four segments.
fn prepared() -> (MemoryStorage, Store) {
    let (storage, mut store) = empty();
    recorded(&mut store, START, 450);
    assert_eq!(bases(&storage, 0), [0, 1, 2, 3].map(base));
    (storage, store)
}

fn purge_segments(store: &mut Store, new_start: i64) -> Result<usize, StoreError> {
    let operation = store.purge_segments(0, new_start, &IDLE);
    delete_all(store, operation)
}

fn delete_detached(store: &mut Store) -> Result<usize, StoreError> {
    let operation = store.delete_detached_segments(0);
    delete_all(store, operation)
}

/// Returns the frames from `position` on.
fn since(position: i64, frames: &[Seen]) -> Vec<Seen> {
    let later = frames.iter().filter(|frame| frame.0 >= position);
    later.cloned().collect()
}

/// 07-110
#[test]
fn detached_segments_are_not_part_of_the_recording_and_their_files_stay() {
    let (storage, mut store) = prepared();
    let before = frames(&storage, &store, 0);
    let stop = positions(&store, 0).1;
    store.detach_segments(0, base(2), &IDLE).unwrap();
    assert_eq!(positions(&store, 0), (base(2), stop));
    assert_eq!(bases(&storage, 0), [0, 1, 2, 3].map(base));
    assert_eq!(frames(&storage, &store, 0), since(base(2), &before));
    assert_eq!(delete_detached(&mut store).unwrap(), 2);
    assert_eq!(bases(&storage, 0), [2, 3].map(base));
    assert_eq!(delete_detached(&mut store).unwrap(), 0);
}

/// 07-110, 07-112: the number of deleted files includes a missing file between two files.
#[test]
fn a_missing_file_between_detached_segments_is_counted_as_deleted() {
    let (storage, mut store) = prepared();
    store.detach_segments(0, base(3), &IDLE).unwrap();
    storage.remove(&format!("0-{}.rec", base(1))).unwrap();
    assert_eq!(delete_detached(&mut store).unwrap(), 3);
    assert_eq!(bases(&storage, 0), [base(3)]);
}

/// 07-110, 07-112
#[test]
fn purging_deletes_segments_but_not_the_segments_that_were_detached_before() {
    let (storage, mut store) = prepared();
    let before = frames(&storage, &store, 0);
    store.detach_segments(0, base(1), &IDLE).unwrap();
    assert_eq!(purge_segments(&mut store, base(3)).unwrap(), 2);
    assert_eq!(positions(&store, 0).0, base(3));
    assert_eq!(bases(&storage, 0), [0, 3].map(base));
    assert_eq!(frames(&storage, &store, 0), since(base(3), &before));
}

/// 07-110
#[test]
fn a_new_start_that_is_not_a_segment_base_or_is_out_of_bounds_is_refused() {
    let (storage, mut store) = prepared();
    let refusals = [
        (-1, "invalid segment start: newStartPosition=-1".to_owned()),
        (
            base(1) + 32,
            format!("invalid segment start: newStartPosition={}", base(1) + 32),
        ),
        (
            base(0),
            format!(
                "invalid detach: newStartPosition={} lowerBound={}",
                base(0),
                base(1)
            ),
        ),
        (
            base(4),
            format!(
                "invalid detach: in use, newStartPosition={} upperBound={}",
                base(4),
                base(3)
            ),
        ),
    ];
    for (new_start, text) in refusals {
        let expected = (0, text);
        assert_eq!(
            refusal(store.detach_segments(0, new_start, &IDLE)),
            expected
        );
        assert_eq!(refusal(store.purge_segments(0, new_start, &IDLE)), expected);
    }
    assert_eq!(
        refusal(store.detach_segments(7, base(1), &IDLE)),
        (5, "unknown recording id: 7".to_owned())
    );
    assert_eq!(positions(&store, 0).0, START);
    assert_eq!(bases(&storage, 0).len(), 4);
}

/// 07-110: an active recording ends at its recorded position.
#[test]
fn segments_of_an_active_recording_are_detached_up_to_the_recorded_position() {
    let (_, mut store) = empty();
    let mut session = store.start_recording(image(0)).unwrap();
    record(&mut session, 130);
    let at = |recorded_position| RecordingActivity {
        recorded_position: Some(recorded_position),
        ..IDLE
    };
    let refused = store.detach_segments(0, SEGMENT_LENGTH, &at(SEGMENT_LENGTH - 32));
    assert!(refused.is_err());
    let recorded = session.recorded_position();
    store
        .detach_segments(0, SEGMENT_LENGTH, &at(recorded))
        .unwrap();
    record(&mut session, 130);
    stop(&mut store, &session);
    assert_eq!(positions(&store, 0).0, SEGMENT_LENGTH);
}

/// 07-110
#[test]
fn segments_that_a_replay_reads_are_not_detached() {
    let (_, mut store) = prepared();
    let position = base(1) + 1056;
    let text = format!(
        "invalid detach: replay in progress - newStartPosition={} upperBound={}",
        base(2),
        base(1)
    );
    assert_eq!(
        refusal(store.detach_segments(0, base(2), &replayed_at(position))),
        (0, text)
    );
    assert!(
        store
            .purge_segments(0, base(2), &replayed_at(position))
            .is_err()
    );
    store
        .detach_segments(0, base(1), &replayed_at(position))
        .unwrap();
}

/// 07-110: a killed purge may leave files. They count as detached, so they can be deleted or attached.
#[test]
fn a_kill_during_a_purge_of_segments_leaves_the_old_or_the_new_start_position() {
    let (storage, store) = prepared();
    let before = frames(&storage, &store, 0);
    killed_at_each_step(
        prepared,
        |store| purge_segments(store, base(2)).map(drop),
        |storage, mut store, is_done| {
            let start = positions(&store, 0).0;
            assert!(start == base(2) || start == START && !is_done);
            assert_eq!(frames(storage, &store, 0), since(start, &before));
            delete_detached(&mut store).unwrap();
            let left: Vec<i64> = [0, 1, 2, 3].map(base).into();
            let first = left.iter().position(|&it| it + SEGMENT_LENGTH > start);
            assert_eq!(bases(storage, 0), left[first.unwrap()..]);
        },
    );
}

/// 07-110
#[test]
fn a_kill_during_the_deletion_of_detached_segments_does_not_change_the_recording() {
    let detached = || {
        let (storage, mut store) = prepared();
        store.detach_segments(0, base(3), &IDLE).unwrap();
        (storage, store)
    };
    let (storage, store) = detached();
    let before = frames(&storage, &store, 0);
    killed_at_each_step(
        detached,
        |store| delete_detached(store).map(drop),
        |storage, mut store, _| {
            assert_eq!(positions(&store, 0).0, base(3));
            assert_eq!(frames(storage, &store, 0), before);
            delete_detached(&mut store).unwrap();
            assert_eq!(bases(storage, 0), [base(3)]);
        },
    );
}
