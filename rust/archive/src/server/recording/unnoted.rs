//! [`UnnotedStops`]: ends of recordings that the catalog did not take, because the disk was full or failed.
//!
//! Without another attempt such a recording could not be replayed, extended or purged before the archive is started again.

use std::collections::BTreeMap;

use crate::storage::Storage;
use crate::store::ArchiveStore;

/// Time between two attempts, in milliseconds.
const RETRY_INTERVAL_MS: i64 = 100;

/// Stop positions that the catalog is to take later.
#[derive(Debug, Default)]
pub(super) struct UnnotedStops {
    stops: BTreeMap<i64, Stop>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stop {
    position: i64,
    stopped_ms: i64,
    next_attempt_ms: i64,
}

impl UnnotedStops {
    /// Adds the end of a recording.
    pub fn add(&mut self, recording_id: i64, position: i64, now_ms: i64) {
        let stop = Stop {
            position,
            stopped_ms: now_ms,
            next_attempt_ms: now_ms + RETRY_INTERVAL_MS,
        };
        self.stops.insert(recording_id, stop);
    }

    /// Forgets the end of a recording that goes on: the catalog had it although the sync failed.
    pub fn forget(&mut self, recording_id: i64) {
        self.stops.remove(&recording_id);
    }

    /// Tries again to note the ends whose time has come. Returns the number of attempts.
    pub fn note<S: Storage + Clone>(&mut self, store: &mut ArchiveStore<S>, now_ms: i64) -> usize {
        let mut attempts = 0;
        self.stops.retain(|&recording_id, stop| {
            if now_ms < stop.next_attempt_ms {
                return true;
            }
            attempts += 1;
            stop.next_attempt_ms = now_ms + RETRY_INTERVAL_MS;
            // If the recording has ended after all, it may have been purged since.
            let is_unfinished = store
                .recording(recording_id)
                .is_ok_and(|recording| recording.is_unfinished());
            is_unfinished
                && store
                    .stop_recording(recording_id, stop.position, stop.stopped_ms)
                    .is_err()
        });
        attempts
    }
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;

    use super::*;
    use crate::memory_storage::{Fault, MemoryStorage};
    use crate::storage::SyncLevel;
    use crate::store::{Continuation, NewRecording, StoreOptions};

    fn options() -> StoreOptions {
        StoreOptions {
            segment_length: 64 * 1024,
            low_storage_space_threshold: 0,
            ..StoreOptions::default()
        }
    }

    /// A store with a recording that has begun at position 0.
    fn recording(
        storage: &MemoryStorage,
        options: StoreOptions,
    ) -> (ArchiveStore<MemoryStorage>, i64) {
        let (mut store, _) = ArchiveStore::open(storage.clone(), options, 0).unwrap();
        let new = NewRecording {
            start_timestamp_ms: 0,
            join_position: 0,
            initial_term_id: 0,
            term_length: 64 * 1024,
            mtu_length: 1408,
            session_id: 1,
            stream_id: 2,
            stripped_channel: "aeron:ipc".into(),
            original_channel: "aeron:ipc".into(),
            source_identity: "aeron:ipc".into(),
        };
        let session = store.start_recording(new).unwrap();
        let id = session.stream().recording_id();
        (store, id)
    }

    #[test]
    fn the_end_of_a_recording_is_noted_once_the_disk_takes_it() {
        let storage = MemoryStorage::new();
        let (mut store, id) = recording(&storage, options());
        let fail_next = || {
            let fault = Fault::Error(ErrorKind::StorageFull);
            storage.fail_at(storage.steps(), fault);
        };
        let mut unnoted = UnnotedStops::default();
        fail_next();
        store.stop_recording(id, 0, 10).unwrap_err();
        unnoted.add(id, 0, 10);
        assert_eq!(unnoted.note(&mut store, 109), 0, "too early");
        fail_next();
        assert_eq!(unnoted.note(&mut store, 110), 1);
        assert!(store.recording(id).unwrap().is_unfinished());
        assert_eq!(unnoted.note(&mut store, 210), 1);
        let recording = store.recording(id).unwrap();
        assert_eq!(
            (recording.stop_position, recording.stop_timestamp_ms),
            (0, 10)
        );
        assert_eq!(unnoted.note(&mut store, 310), 0);
    }

    #[test]
    fn a_recording_that_goes_on_is_not_ended_by_an_end_that_was_noted_but_not_synced() {
        let storage = MemoryStorage::new();
        let synced = StoreOptions {
            catalog_sync_level: SyncLevel::Data,
            ..options()
        };
        let (mut store, id) = recording(&storage, synced);
        let mut unnoted = UnnotedStops::default();
        storage.fail_at(storage.steps() + 1, Fault::Error(ErrorKind::StorageFull));
        store.stop_recording(id, 0, 10).unwrap_err();
        unnoted.add(id, 0, 10);
        let continuation = Continuation {
            join_position: 0,
            initial_term_id: 0,
            term_length: 64 * 1024,
            mtu_length: 1408,
            session_id: 3,
            control_session_id: 4,
            correlation_id: 5,
        };
        let _session = store.extend_recording(id, &continuation).unwrap();
        unnoted.forget(id);
        assert_eq!(unnoted.note(&mut store, 110), 0);
        assert!(store.recording(id).unwrap().is_unfinished());
    }
}
