//! [`UnnotedStops`]: stop positions that could not be written to the catalog, because the disk was full or failed.
//!
//! The archive writes these stop positions later. Until then, the recordings cannot be replayed,
//! extended or purged.

use std::collections::BTreeMap;

use crate::storage::Storage;
use crate::store::ArchiveStore;

/// Time between two attempts, in milliseconds.
const RETRY_INTERVAL_MS: i64 = 100;

/// Stop positions that must still be written to the catalog.
#[derive(Debug, Default)]
pub(super) struct UnnotedStops {
    stops: BTreeMap<i64, UnnotedStop>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct UnnotedStop {
    position: i64,
    stopped_ms: i64,
    next_attempt_ms: i64,
}

impl UnnotedStops {
    /// Adds the stop position of a recording.
    pub fn add(&mut self, recording_id: i64, position: i64, now_ms: i64) {
        let stop = UnnotedStop {
            position,
            stopped_ms: now_ms,
            next_attempt_ms: now_ms + RETRY_INTERVAL_MS,
        };
        self.stops.insert(recording_id, stop);
    }

    /// Removes the stop position of a recording that was extended and is active again. The extension was possible
    /// because the stop position had been written to the catalog, and only the sync had failed.
    pub fn forget(&mut self, recording_id: i64) {
        self.stops.remove(&recording_id);
    }

    /// Returns whether the stop position of a recording is not in the catalog yet.
    pub fn contains(&self, recording_id: i64) -> bool {
        self.stops.contains_key(&recording_id)
    }

    /// Returns the stop position of a recording, if it is not in the catalog yet.
    pub fn position(&self, recording_id: i64) -> Option<i64> {
        self.stops.get(&recording_id).map(|stop| stop.position)
    }

    /// Tries again to write the stop positions that are due. Returns the number of attempts.
    pub fn note<S: Storage + Clone>(&mut self, store: &mut ArchiveStore<S>, now_ms: i64) -> usize {
        let mut attempts = 0;
        self.stops.retain(|&recording_id, stop| {
            // If the wall clock was set back, the next attempt is due at once.
            let waits_from_ms = stop.next_attempt_ms - RETRY_INTERVAL_MS;
            if (waits_from_ms..stop.next_attempt_ms).contains(&now_ms) {
                return true;
            }
            attempts += 1;
            stop.next_attempt_ms = now_ms + RETRY_INTERVAL_MS;
            // The catalog may already have the stop position, although the sync failed. Then the
            // recording may also have been purged.
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
    use crate::memory_storage::{MemoryStorage, StorageFault};
    use crate::storage::SyncLevel;
    use crate::store::{Continuation, NewRecording, StoreError, StoreOptions};

    fn options() -> StoreOptions {
        StoreOptions {
            segment_length: 64 * 1024,
            low_storage_space_threshold: 0,
            ..StoreOptions::default()
        }
    }

    /// Returns a store with a recording that starts at position 0.
    fn recording(
        storage: &MemoryStorage,
        options: StoreOptions,
    ) -> (ArchiveStore<MemoryStorage>, i64) {
        let (mut store, _) = ArchiveStore::open(storage.clone(), options, 0).unwrap();
        let new = NewRecording::of_ipc(1, 2);
        let session = store.start_recording(new).unwrap();
        let id = session.stream().recording_id();
        (store, id)
    }

    #[test]
    fn a_stop_position_that_could_not_be_written_is_written_when_the_disk_has_space() {
        let storage = MemoryStorage::new();
        let (mut store, id) = recording(&storage, options());
        let fail_next = || {
            let fault = StorageFault::Error(ErrorKind::StorageFull);
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
    fn an_earlier_stop_position_does_not_stop_a_recording_that_was_extended() {
        let storage = MemoryStorage::new();
        let synced = StoreOptions {
            catalog_sync_level: SyncLevel::Data,
            ..options()
        };
        let (mut store, id) = recording(&storage, synced);
        let mut unnoted = UnnotedStops::default();
        storage.fail_at(
            storage.steps() + 1,
            StorageFault::Error(ErrorKind::StorageFull),
        );
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
        let refused = store.extend_recording(id, &continuation);
        assert!(matches!(refused, Err(StoreError::ExtendsActive { .. })));
        assert_eq!(unnoted.note(&mut store, 110), 1);
        let _session = store.extend_recording(id, &continuation).unwrap();
        unnoted.add(id, 0, 10);
        unnoted.forget(id);
        assert_eq!(unnoted.note(&mut store, 210), 0);
        assert!(store.recording(id).unwrap().is_unfinished());
    }
}
