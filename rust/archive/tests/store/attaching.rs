//! Attaches detached segment files to their recording.

use aeron_archive::memory_storage::MemoryStorage;
use aeron_archive::storage::Storage;

use crate::recordings::stream::{SEGMENT_LENGTH, TERM_LENGTH};
use crate::store::common::*;

const START: i64 = TERM_LENGTH + 1024;
const FRAME_LENGTH: usize = 1056;

const fn base(index: i64) -> i64 {
    TERM_LENGTH + index * SEGMENT_LENGTH
}

fn name(index: i64) -> String {
    format!("0-{}.rec", base(index))
}

/// Returns a store with a recording of four segments. The first two segments are detached.
fn prepared() -> (MemoryStorage, Store) {
    let (storage, mut store) = empty();
    recorded(&mut store, START, 450);
    store.detach_segments(0, base(2), &IDLE).unwrap();
    (storage, store)
}

/// Changes the bytes of the second segment's file. Returns the error of attaching the file.
fn refusal_of(change: impl FnOnce(&mut Vec<u8>)) -> String {
    let (storage, mut store) = prepared();
    let mut bytes = storage.bytes(&name(1)).unwrap();
    change(&mut bytes);
    storage.put(&name(1), &bytes);
    let (code, text) = refusal(store.attach_segments(0));
    assert_eq!((code, positions(&store, 0).0), (0, base(2)));
    text
}

/// 07-110, 07-112
#[test]
fn segments_belong_to_the_recording_again_after_attaching() {
    let (storage, mut store) = empty();
    recorded(&mut store, START, 450);
    let before = frames(&storage, &store, 0);
    assert_eq!(store.attach_segments(0).unwrap(), 0);
    store.detach_segments(0, base(2), &IDLE).unwrap();
    assert_eq!(store.attach_segments(0).unwrap(), 2);
    assert_eq!(positions(&store, 0).0, START);
    assert_eq!(frames(&storage, &store, 0), before);
    assert_eq!(store.attach_segments(0).unwrap(), 0);
}

/// 07-110: files with lower positions than the gap stay detached.
#[test]
fn only_segments_without_a_gap_before_the_start_are_attached() {
    let (storage, mut store) = empty();
    recorded(&mut store, 0, 450);
    store.detach_segments(0, 3 * SEGMENT_LENGTH, &IDLE).unwrap();
    storage.remove(&format!("0-{SEGMENT_LENGTH}.rec")).unwrap();
    assert_eq!(store.attach_segments(0).unwrap(), 1);
    assert_eq!(positions(&store, 0).0, 2 * SEGMENT_LENGTH);
}

/// 07-110: a segment file begins with zeros if its recording started inside this segment.
#[test]
fn a_file_that_begins_with_zeros_moves_the_start_to_its_first_frame() {
    let (storage, mut store) = prepared();
    let mut bytes = storage.bytes(&name(1)).unwrap();
    bytes[..3 * FRAME_LENGTH].fill(0);
    storage.put(&name(1), &bytes);
    assert_eq!(store.attach_segments(0).unwrap(), 1);
    let start = base(1) + 3 * FRAME_LENGTH as i64;
    assert_eq!(positions(&store, 0).0, start);
    assert_eq!(frames(&storage, &store, 0)[0].0, start);
    assert_eq!(store.attach_segments(0).unwrap(), 0);
}

/// 07-110
#[test]
fn files_that_do_not_belong_to_the_recording_are_not_attached() {
    let short = refusal_of(|bytes| bytes.truncate(4096));
    let expected = "fileLength=4096 not equal to segmentLength=131072: ";
    assert!(short.starts_with(expected), "{short}");
    let stream_id = refusal_of(|bytes| bytes[16] ^= 1);
    let expected = "stream id does not match: actual=1000 expected=1001: ";
    assert!(stream_id.starts_with(expected), "{stream_id}");
    let term_id = refusal_of(|bytes| bytes[20] ^= 1);
    let expected = "term id does not match: actual=";
    assert!(term_id.starts_with(expected), "{term_id}");
    let none = refusal_of(|bytes| bytes[..TERM_LENGTH as usize].fill(0));
    let expected = "fragment not found in first term of segment ";
    assert_eq!(none, format!("{expected}{}", name(1)));
    let rubbish = refusal_of(|bytes| bytes.fill(0xFF));
    assert!(rubbish.contains(&name(1)), "{rubbish}");
}

#[test]
fn attaching_is_refused_for_an_unknown_recording_and_during_a_deletion() {
    let (_, mut store) = prepared();
    assert_eq!(refusal(store.attach_segments(7)).0, 5);
    let operation = store.delete_detached_segments(0).unwrap();
    assert_eq!(
        refusal(store.attach_segments(0)).1,
        "another delete operation in progress for recording id: 0"
    );
    assert_eq!(operation.count(), 2);
}

/// 07-110
#[test]
fn a_kill_during_detaching_or_attaching_loses_no_segment() {
    let (_, store) = prepared();
    let stop_position = positions(&store, 0).1;
    killed_at_each_step(
        prepared,
        |store| {
            store.attach_segments(0)?;
            store.detach_segments(0, base(3), &IDLE)
        },
        |storage, mut store, _| {
            store.attach_segments(0).unwrap();
            assert_eq!(positions(&store, 0), (START, stop_position));
            let messages = frames(storage, &store, 0);
            assert_eq!(messages.iter().filter(|frame| !frame.4).count(), 450);
        },
    );
}
