//! A catalog file of any content. The file is refused, or readers and a writer open it. The writer changes and compacts
//! the catalog, and then a store purges its recordings.
#![no_main]

use aeron_archive::catalog::{Catalog, CatalogEntry, NULL_VALUE, RecordingState};
use aeron_archive::memory_storage::MemoryStorage;
use aeron_archive::store::{ArchiveStore, DetachedSegments, RecordingActivity, StoreOptions};
use libfuzzer_sys::fuzz_target;

const CATALOG: &str = "archive.catalog";

fuzz_target!(|data: &[u8]| {
    let storage = MemoryStorage::new();
    storage.put(CATALOG, data);
    if let Ok(catalog) = Catalog::open_read_only(&storage) {
        use_read_only(&catalog);
    }
    assert_eq!(storage.steps(), 0, "a read-only open changed the storage");

    if let Ok(mut catalog) = Catalog::open(&storage, 0) {
        change(&storage, &mut catalog);
        let again = Catalog::open(&storage, 0).expect("the changed catalog opens again");
        assert_eq!(again.entries(), catalog.entries());
        assert!(again.next_recording_id() >= catalog.entries().len() as i64);
        drop((catalog, again));
        purge(&storage);
    }
});

fn use_read_only(catalog: &Catalog<MemoryStorage>) {
    for recording in catalog.recordings() {
        assert_eq!(recording.check(), Ok(()));
        let first = recording.first_segment_base();
        assert!(first >= 0 && first <= recording.start_position);
        let stop = recording.stop_position.max(recording.start_position);
        let last = recording.segment_base(stop);
        assert!(last <= stop && stop - last < recording.segment_length.into());
    }
}

fn change(storage: &MemoryStorage, catalog: &mut Catalog<MemoryStorage>) {
    let entries: Vec<CatalogEntry> = catalog.entries().to_vec();
    for CatalogEntry {
        state, descriptor, ..
    } in entries
    {
        let id = descriptor.recording_id;
        let end = descriptor.start_position.saturating_add(1 << 20);
        let stopped = catalog.stop(id, end, 1).is_ok();
        assert!(!stopped || state == RecordingState::Valid);
        let next = catalog.next_recording_id();
        if state == RecordingState::Valid && next < i64::MAX {
            assert_eq!(catalog.add(descriptor).expect("it fits once more"), next);
        }
    }
    catalog
        .compact(storage, |entry| entry.descriptor.recording_id % 4 == 0)
        .expect("the disk has room");
}

/// Opens a store with the catalog, and removes a segment of each recording or the whole recording.
fn purge(storage: &MemoryStorage) {
    for detached_segments in [DetachedSegments::Kept, DetachedSegments::Deleted] {
        let options = StoreOptions {
            catalog_capacity: 0,
            detached_segments,
            ..StoreOptions::default()
        };
        let Ok((mut store, _)) = ArchiveStore::open(storage.clone(), options, 1) else {
            return;
        };
        let unused = RecordingActivity::default();
        let recordings: Vec<_> = store.recordings().cloned().collect();
        for recording in recordings {
            let id = recording.recording_id;
            let new_start = recording
                .first_segment_base()
                .saturating_add(recording.segment_length.into());
            let purged = match id % 2 {
                0 => store.purge_recording_at(id, &unused, NULL_VALUE),
                _ => store.purge_segments(id, new_start, &unused),
            };
            if let Ok(mut operation) = purged {
                while operation.step(&mut store).expect("the disk is sound") {}
            }
        }
    }
}
