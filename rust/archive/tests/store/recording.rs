//! Starts, extends and stops recordings.

use aeron_archive::catalog::NULL_VALUE;
use aeron_archive::checksum::Checksum;
use aeron_archive::memory_storage::{MemoryStorage, StorageFault};
use aeron_archive::storage::Storage;
use aeron_archive::store::{ArchiveStore, Continuation, StoreOptions};

use crate::recordings::stream::{
    INITIAL_TERM_ID, Publisher, SEGMENT_LENGTH, SESSION_ID, STREAM_ID, TERM_LENGTH,
};
use crate::store::common::*;

/// 07-44, 07-48
#[test]
fn a_recording_begins_at_the_join_position_in_the_segment_of_its_term() {
    let (storage, mut store) = empty();
    let start = 2 * TERM_LENGTH + TERM_LENGTH / 2;
    let session = store.start_recording(image(start)).unwrap();
    assert_eq!(session.recorded_position(), start);
    let name = format!("0-{}.rec", 2 * TERM_LENGTH);
    assert_eq!(storage.names().unwrap(), [&name, "archive.catalog"]);
    assert_eq!(storage.bytes(&name).unwrap().len() as i64, SEGMENT_LENGTH);
    assert_eq!(positions(&store, 0), (start, NULL_VALUE));
    let recording = store.recording(0).unwrap();
    assert_eq!(
        (recording.control_session_id, recording.correlation_id),
        (0, 0)
    );
    assert_eq!(&*recording.original_channel, "aeron:ipc?alias=x");
    assert_eq!(recording.start_timestamp_ms, 1_000);
}

/// 07-48
#[test]
fn segments_have_at_least_the_length_of_a_term() {
    let storage = MemoryStorage::new();
    let options = StoreOptions {
        segment_length: TERM_LENGTH as i32,
        ..options()
    };
    let (mut store, _) = ArchiveStore::open(storage, options, 0).unwrap();
    let mut long = image(0);
    long.term_length = 8 * TERM_LENGTH as i32;
    store.start_recording(long).unwrap();
    store.start_recording(image(0)).unwrap();
    let lengths: Vec<_> = store.recordings().map(|it| it.segment_length).collect();
    assert_eq!(lengths, [8 * TERM_LENGTH as i32, TERM_LENGTH as i32]);
}

/// 07-55, 07-64, 07-81
#[test]
fn a_stopped_recording_has_a_stop_position_and_a_stop_time() {
    let (storage, mut store) = empty();
    let id = recorded(&mut store, 96, 300);
    let (start, stop) = positions(&store, id);
    assert_eq!(start, 96);
    assert!(stop > 2 * SEGMENT_LENGTH);
    assert_eq!(store.recording(id).unwrap().stop_timestamp_ms, STOPPED_MS);
    let messages = frames(&storage, &store, id);
    assert_eq!(messages.iter().filter(|frame| !frame.4).count(), 300);

    let (mut reopened, recovered) = open(&storage);
    assert_eq!(recovered, []);
    assert_eq!(positions(&reopened, id), (96, stop));
    assert_eq!(recorded(&mut reopened, 0, 1), id + 1);
    let ids = |from| -> Vec<i64> {
        reopened
            .recordings_from(from)
            .map(|it| it.recording_id)
            .collect()
    };
    assert_eq!((ids(-7), ids(1), ids(2)), (vec![0, 1], vec![1], vec![]));
}

/// 07-60
#[test]
fn no_recording_begins_or_continues_while_space_is_low() {
    let (storage, mut store) = empty();
    let id = recorded(&mut store, 0, 1);
    let stop = positions(&store, id).1;
    let options = StoreOptions {
        low_storage_space_threshold: storage.free_bytes().unwrap(),
        ..options()
    };
    let usable = storage.free_bytes().unwrap();
    let (mut store, _) = ArchiveStore::open(storage.clone(), options, 0).unwrap();
    let expected = (
        11,
        format!("low storage threshold={usable} <= usableSpace={usable}"),
    );
    assert_eq!(refusal(store.start_recording(image(0))), expected);
    assert_eq!(
        refusal(store.extend_recording(id, &continuation(stop))),
        expected
    );
    assert_eq!(refusal(store.check_extension(id, STREAM_ID)), expected);
    assert_eq!(refusal(store.check_storage_space()), expected);
    assert_eq!(store.recordings().count(), 1);
}

#[test]
fn a_recording_ends_at_its_start_if_its_first_segment_cannot_be_created() {
    let (storage, mut store) = empty();
    storage.put("0-0.rec", b"in the way");
    let (code, text) = refusal(store.start_recording(image(0)));
    assert_eq!(code, 0);
    assert!(
        text.starts_with("segment file 0-0.rec cannot be created"),
        "{text}"
    );
    assert_eq!(positions(&store, 0), (0, 0));
}

/// 07-59
#[test]
fn an_extended_recording_continues_in_the_same_file_with_another_session_id() {
    for (start, count) in [(0, 0), (1024, 1), (1024, 300), (TERM_LENGTH, 40)] {
        let (storage, mut store) = empty();
        let id = recorded(&mut store, start, count);
        let stop_position = positions(&store, id).1;
        let before = frames(&storage, &store, id);
        store.check_extension(id, STREAM_ID).unwrap();
        let mut session = store
            .extend_recording(id, &continuation(stop_position))
            .unwrap();
        let recording = store.recording(id).unwrap();
        assert_eq!(positions(&store, id), (start, NULL_VALUE));
        assert_eq!(recording.stop_timestamp_ms, NULL_VALUE);
        assert_eq!(
            (recording.control_session_id, recording.correlation_id),
            (31, 32)
        );
        assert_eq!(recording.start_timestamp_ms, 1_000);
        record(&mut session, 200);
        stop(&mut store, &session);
        let after = frames(&storage, &store, id);
        assert_eq!(after[..before.len()], before);
        assert_eq!(after.iter().filter(|frame| !frame.4).count(), count + 200);
    }
}

/// 07-59, 07-77: frames before and after the extension have different session ids.
#[test]
fn a_recording_of_two_sessions_is_recovered_completely() {
    let (storage, mut store) = empty();
    let id = recorded(&mut store, 0, 10);
    let stop_position = positions(&store, id).1;
    let other = Continuation {
        session_id: SESSION_ID + 1,
        ..continuation(stop_position)
    };
    let mut session = store.extend_recording(id, &other).unwrap();
    assert_eq!(store.recording(id).unwrap().session_id, SESSION_ID + 1);
    let mut publisher = Publisher::new(stop_position).of_session(SESSION_ID + 1);
    session
        .append(&publisher.data(0xC0, b"of the second"), |_| {})
        .unwrap();
    let end = session.publish().unwrap();
    drop((store, session));
    let (store, recovered) = open(&storage);
    assert_eq!(recovered[0].stop_position, end);
    assert_eq!(positions(&store, id), (0, end));
    assert_eq!(frames(&storage, &store, id).len(), 11);
}

/// 07-57, 07-58
#[test]
fn a_recording_is_extended_only_by_an_image_that_continues_it() {
    let (_, mut store) = empty();
    let active = store.start_recording(image(0)).unwrap();
    let id = recorded(&mut store, 0, 10);
    let stop_position = positions(&store, id).1;
    assert_eq!(refusal(store.check_extension(7, STREAM_ID)).0, 5);
    let expected = format!(
        "cannot extend recording 1 with streamId={} for existing streamId=1001",
        STREAM_ID + 1
    );
    assert_eq!(
        refusal(store.check_extension(id, STREAM_ID + 1)),
        (5, expected)
    );
    assert_eq!(
        refusal(store.check_extension(0, STREAM_ID)),
        (2, "cannot extend active recording 0".to_owned())
    );
    assert_eq!(refusal(store.extend_recording(7, &continuation(0))).0, 5);
    assert_eq!(refusal(store.extend_recording(0, &continuation(0))).0, 2);
    let good = continuation(stop_position);
    for image in [
        continuation(0),
        continuation(stop_position + 32),
        Continuation {
            initial_term_id: INITIAL_TERM_ID - 1,
            ..good
        },
        Continuation {
            term_length: 2 * TERM_LENGTH as i32,
            ..good
        },
        Continuation {
            mtu_length: 8192,
            ..good
        },
    ] {
        assert_eq!(
            refusal(store.extend_recording(id, &image)).0,
            9,
            "{image:?}"
        );
        assert_eq!(positions(&store, id).1, stop_position);
    }
    assert_eq!(
        refusal(store.extend_recording(id, &continuation(0))).1,
        format!(
            "cannot extend recording 1 image.joinPosition=0 != rec.stopPosition={stop_position}"
        )
    );
    store.extend_recording(id, &good).unwrap();
    drop(active);
}

#[test]
fn a_recording_is_not_extended_if_the_next_segment_file_exists() {
    let (storage, mut store) = empty();
    let id = recorded(&mut store, 0, 10);
    storage.put(&format!("{id}-{SEGMENT_LENGTH}.rec"), b"old");
    let stop_position = positions(&store, id).1;
    let (code, text) = refusal(store.extend_recording(id, &continuation(stop_position)));
    assert_eq!(code, 0);
    assert!(
        text.starts_with("segment file already exists: 0-131072.rec"),
        "{text}"
    );
    assert_eq!(positions(&store, id).1, stop_position);
}

/// 07-51, 07-63
#[test]
fn frames_and_entries_have_the_checksum_of_the_options() {
    let storage = MemoryStorage::new();
    let options = StoreOptions {
        record_checksum: Some(Checksum::Crc32c),
        ..options()
    };
    let (mut store, _) = ArchiveStore::open(storage.clone(), options, 0).unwrap();
    let id = recorded(&mut store, 0, 10);
    let stop_position = positions(&store, id).1;
    let mut session = store
        .extend_recording(id, &continuation(stop_position))
        .unwrap();
    record(&mut session, 10);
    let end = session.recorded_position() as usize;
    drop((store, session));
    let file = storage.bytes("0-0.rec").unwrap();
    let i32_at =
        |bytes: &[u8], at: usize| i32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    let mut at = 0;
    while at < end {
        let length = (i32_at(&file, at) as usize).next_multiple_of(32);
        let payload = &file[at + 32..at + length];
        assert_eq!(i32_at(&file, at + 12), Checksum::Crc32c.compute(payload));
        at += length;
    }
    let (store, recovered) = ArchiveStore::open(storage.clone(), options, 0).unwrap();
    assert_eq!(recovered[0].stop_position, end as i64);
    let entry = &storage.bytes("archive.catalog").unwrap()[32..];
    let length = store.entry(id).unwrap().body_length();
    assert_eq!(i32_at(entry, 0), length as i32);
    assert_eq!(
        i32_at(entry, 8),
        Checksum::Crc32c.compute(&entry[32..32 + length])
    );
}

/// 07-59: acknowledged frames survive a kill at any step of an extension.
#[test]
fn a_kill_during_an_extension_loses_no_acknowledged_frame() {
    for step in 0..12 {
        for progress in 0..3 {
            let (storage, mut store) = empty();
            let id = recorded(&mut store, 1024, 150);
            let stop_position = positions(&store, id).1;
            let before = frames(&storage, &store, id);
            storage.fail_at(storage.steps() + step, StorageFault::Kill { progress });
            if let Ok(mut session) = store.extend_recording(id, &continuation(stop_position)) {
                let mut publisher = Publisher::new(stop_position);
                let block = publisher.offer(b"one more").concat();
                if session.append(&block, |_| {}).is_ok() {
                    let _ = session.publish();
                }
            }
            storage.restart();
            let (mut store, _) = open(&storage);
            let after = frames(&storage, &store, id);
            assert_eq!(after[..before.len()], before);
            let stop_position = positions(&store, id).1;
            let mut session = store
                .extend_recording(id, &continuation(stop_position))
                .unwrap();
            record(&mut session, 10);
            stop(&mut store, &session);
            let again = frames(&storage, &store, id);
            assert_eq!(again[..after.len()], after);
        }
    }
}
