//! Stores with the options and the policy of a private archive. In a private archive, nothing is
//! ever detached.

use aeron_archive::catalog::{Catalog, RecordingState};
use aeron_archive::index::{IndexFile, IndexForm};
use aeron_archive::memory_storage::{MemoryStorage, StorageFault};
use aeron_archive::recorder::RecorderError;
use aeron_archive::storage::{Access, Storage};
use aeron_archive::store::{
    ArchiveStore, DetachedSegments, OpenPolicy, RecoveredRecording, StoreError, StoreOptions,
};
use aeron_archive::stream::RecordedStream;

use crate::recordings::stream::{Publisher, SEGMENT_LENGTH};
use crate::store::common::*;

fn private_options() -> StoreOptions {
    StoreOptions {
        index: Some(IndexForm::Dense),
        detached_segments: DetachedSegments::Deleted,
        ..options()
    }
}

fn open_private(storage: &MemoryStorage) -> Store {
    let opened = ArchiveStore::open(storage.clone(), private_options(), OPENED_MS);
    opened.expect("a store that opens").0
}

/// Returns a store with recording 0 of three segments, recording 1 of one segment, and files that
/// belong to neither recording.
fn prepared() -> (MemoryStorage, Store) {
    let storage = MemoryStorage::new();
    let mut store = open_private(&storage);
    recorded(&mut store, 1024, 300);
    recorded(&mut store, 0, 10);
    for other in OTHERS {
        storage.put(other, b"a file of another program");
    }
    (storage, store)
}

/// Files that belong to no recording of [`prepared`].
const OTHERS: [&str; 4] = ["0-0.txt", "0-00.rec", "9-0.rec", "notes"];

/// Returns the bases of the segment files of recording 0. Checks that each segment file has an
/// index, and that all files of [`OTHERS`] still exist.
fn whole_bases(storage: &MemoryStorage) -> Vec<i64> {
    for other in OTHERS {
        assert!(storage.bytes(other).is_some(), "{other}");
    }
    let of = |extension: &str| -> Vec<i64> {
        let prefix = if extension == "idx" { "index-" } else { "" };
        let name = |base: i64| format!("{prefix}0-{base}.{extension}");
        let bases = (0..4).map(|number| number * SEGMENT_LENGTH);
        bases
            .filter(|&base| storage.bytes(&name(base)).is_some())
            .collect()
    };
    assert_eq!(of("rec"), of("idx"));
    of("rec")
}

/// 08-30
#[test]
fn after_a_killed_purge_the_next_opening_deletes_the_remaining_files() {
    let activity = IDLE;
    for is_whole in [false, true] {
        for progress in 0..2 {
            for step in 0.. {
                let (storage, mut store) = prepared();
                storage.fail_at(storage.steps() + step, StorageFault::Kill { progress });
                let operation = match is_whole {
                    true => store.purge_recording_at(0, &activity, 2048),
                    false => store.purge_segments(0, 2 * SEGMENT_LENGTH, &activity),
                };
                let is_done = delete_all(&mut store, operation).is_ok();
                assert_eq!(is_done, !storage.is_killed());
                storage.restart();
                let store = open_private(&storage);
                let left = whole_bases(&storage);
                match store.entries()[0].state {
                    RecordingState::Deleted => {
                        assert!(left.is_empty());
                        assert_eq!(store.entries()[0].descriptor.stop_position, 2048);
                    }
                    _ if positions(&store, 0).0 == 1024 => assert_eq!(left.len(), 3),
                    _ => assert_eq!(left, [2 * SEGMENT_LENGTH]),
                }
                if is_done {
                    assert!(step > 2);
                    break;
                }
            }
        }
    }
}

#[test]
fn a_recording_can_be_purged_while_its_first_segments_are_being_deleted() {
    let (storage, mut store) = prepared();
    let mut first = store.purge_segments(0, SEGMENT_LENGTH, &IDLE).unwrap();
    let mut second = store.purge_segments(0, 2 * SEGMENT_LENGTH, &IDLE).unwrap();
    let mut whole = store.purge_recording(0, &IDLE).unwrap();
    while whole.step(&mut store).unwrap() || second.step(&mut store).unwrap() {}
    assert_eq!(whole_bases(&storage), [0]);
    while first.step(&mut store).unwrap() {}
    assert_eq!(whole_bases(&storage), []);
}

#[test]
fn try_step_tries_again_to_delete_the_same_file() {
    let (storage, mut store) = prepared();
    let mut operation = store.purge_segments(0, 2 * SEGMENT_LENGTH, &IDLE).unwrap();
    let busy = StorageFault::Error(std::io::ErrorKind::ResourceBusy);
    storage.fail_at(storage.steps(), busy);
    let failure = operation.try_step(&mut store).unwrap_err().to_string();
    assert_eq!(
        failure,
        "unable to delete segment file: 0-0.rec: resource busy"
    );
    while operation.try_step(&mut store).unwrap() {}
    assert_eq!(whole_bases(&storage), [2 * SEGMENT_LENGTH]);
}

#[test]
fn opening_does_not_delete_files_of_an_invalid_recording() {
    let (storage, store) = prepared();
    drop(store);
    Catalog::open(&storage, 0).unwrap().invalidate(0).unwrap();
    open_private(&storage);
    assert_eq!(whole_bases(&storage).len(), 3);
}

#[test]
fn a_purge_of_an_impossible_number_of_segments_does_not_compute_all_their_names() {
    let storage = MemoryStorage::new();
    let mut store = open_private(&storage);
    let id = recorded(&mut store, 0, 1);
    let far = SEGMENT_LENGTH << 20;
    drop(store);
    Catalog::open(&storage, 0)
        .unwrap()
        .stop(id, far, 9)
        .unwrap();
    let mut store = open_private(&storage);
    let operation = store.purge_recording(id, &IDLE).unwrap();
    assert_eq!(operation.count(), 1);
    assert_eq!(delete_all(&mut store, Ok(operation)).unwrap(), 1);
}

#[test]
fn each_block_has_an_index_entry_and_is_undone_if_its_entry_cannot_be_written() {
    let storage = MemoryStorage::new();
    let mut store = open_private(&storage);
    let mut session = store.start_recording(image(0)).unwrap();
    record(&mut session, 7);
    let file = IndexFile::open(&storage, 0, 0, Access::Read)
        .unwrap()
        .unwrap();
    assert_eq!(file.header().form, IndexForm::Dense);
    assert_eq!(file.entry_count(), 7);
    assert_eq!(session.tracker().unwrap().progress().counts.messages, 7);

    let position = session.recorded_position();
    let block = Publisher::new(position).data(0xC0, b"lost");
    session.append(&block, |_| {}).unwrap();
    storage.fail_at(
        storage.steps(),
        StorageFault::Error(std::io::ErrorKind::StorageFull),
    );
    let error = session.publish().unwrap_err();
    assert!(matches!(error, RecorderError::Full { .. }), "{error}");
    assert_eq!(session.recorded_position(), position);
    assert_eq!(session.tracker().unwrap().progress().counts.messages, 7);
}

/// An owner that knows a recorded position, which may be wrong.
struct Owner {
    known: i64,
    recovered: Vec<(i64, i64)>,
}

impl<S: Storage> OpenPolicy<S> for Owner {
    fn known_position(&mut self, _: &S, _: &RecordedStream) -> Result<i64, StoreError> {
        Ok(self.known)
    }

    fn recovered(
        &mut self,
        storage: &S,
        _: &RecordedStream,
        recovered: &RecoveredRecording,
    ) -> Result<(), StoreError> {
        let catalog = Catalog::open_read_only(storage)?;
        let entry = catalog.entry(recovered.recording_id);
        let stop = entry.map_or(0, |entry| entry.descriptor.stop_position);
        self.recovered.push((recovered.stop_position, stop));
        Ok(())
    }

    fn keep_alive(&mut self) {}
}

#[test]
fn recovered_is_called_before_the_catalog_changes_and_a_wrong_known_position_is_ignored() {
    for ahead in [-32, 0, SEGMENT_LENGTH] {
        let storage = MemoryStorage::new();
        let mut store = open_private(&storage);
        let mut session = store.start_recording(image(0)).unwrap();
        record(&mut session, 7);
        let end = session.recorded_position();
        drop((store, session));
        let mut owner = Owner {
            known: match ahead {
                -32 => 0,
                ahead => end + ahead,
            },
            recovered: Vec::new(),
        };
        let opened =
            ArchiveStore::open_with(storage.clone(), private_options(), OPENED_MS, &mut owner);
        let (store, recovered) = opened.unwrap();
        assert_eq!(recovered.len(), 1);
        assert_eq!(positions(&store, 0), (0, end));
        assert_eq!(owner.recovered, [(end, -1)]);
    }
}
