//! A catalog file of any content: refused, or opened by readers and writers, and then changed, purged and compacted.
#![no_main]

use aeron_archive::catalog::{Catalog, CatalogEntry, NULL_VALUE, RecordingState};
use aeron_archive::memory_storage::MemoryStorage;
use aeron_archive::purge::{purge_recording, purge_segments, remove_orphans};
use libfuzzer_sys::fuzz_target;

const CATALOG: &str = "archive.catalog";

fuzz_target!(|data: &[u8]| {
    let storage = MemoryStorage::new();
    storage.put(CATALOG, data);
    if let Ok(catalog) = Catalog::open_read_only(&storage) {
        use_read_only(&storage, &catalog);
    }
    assert_eq!(storage.steps(), 0, "looking takes no step");

    if let Ok(mut catalog) = Catalog::open(&storage, 0) {
        change(&storage, &mut catalog);
        let again = Catalog::open(&storage, 0).expect("what was opened and changed opens");
        assert_eq!(again.entries(), catalog.entries());
        assert!(again.next_recording_id() >= catalog.entries().len() as i64);
    }
});

fn use_read_only(storage: &MemoryStorage, catalog: &Catalog<MemoryStorage>) {
    for recording in catalog.recordings() {
        assert_eq!(recording.check(), Ok(()));
        let first = recording.first_segment_base();
        assert!(first >= 0 && first <= recording.start_position);
        let stop = recording.stop_position.max(recording.start_position);
        let last = recording.segment_base(stop);
        assert!(last <= stop && stop - last < recording.segment_length.into());
    }
    let _ = remove_orphans(storage, catalog, &["idx"]);
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
        let new_start = descriptor
            .start_position
            .saturating_add(descriptor.segment_length.into());
        let _ = purge_segments(catalog, id, new_start, end);
        if id % 2 == 0 {
            let _ = purge_recording(catalog, id, NULL_VALUE);
        }
        let next = catalog.next_recording_id();
        if state == RecordingState::Valid && next < i64::MAX {
            assert_eq!(catalog.add(descriptor).expect("it fits once more"), next);
        }
    }
    catalog
        .compact(storage, |entry| entry.descriptor.recording_id % 4 == 0)
        .expect("the disk has room");
}
