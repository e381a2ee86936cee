//! Names of index files: the names that this release gives, and those of earlier releases (rule 07-195).

use aeron_archive::index::{IndexEntry, IndexFile, IndexForm};
use aeron_archive::memory_storage::{MemoryStorage, StorageFault};
use aeron_archive::segments::SegmentFileName;
use aeron_archive::storage::{Access, Storage};
use aeron_archive::store::{ArchiveStore, StoreOptions};
use aeron_archive::tool::{ArchiveFiles, TornDecision, VerifyOptions};

use crate::recordings::stream::SEGMENT_LENGTH;
use crate::store::common::*;

fn indexed() -> StoreOptions {
    StoreOptions {
        index: Some(IndexForm::Sparse),
        ..options()
    }
}

fn open_indexed(storage: &MemoryStorage) -> Store {
    let opened = ArchiveStore::open(storage.clone(), indexed(), OPENED_MS);
    opened.unwrap().0
}

/// A recording over two segments.
const LONG: usize = 200;

/// Returns an archive with recordings of these numbers of messages. All indexes have names of an earlier release.
fn of_earlier_release(counts: &[usize]) -> MemoryStorage {
    let storage = MemoryStorage::new();
    let mut store = open_indexed(&storage);
    for &count in counts {
        recorded(&mut store, 0, count);
    }
    drop(store);
    for name in names(&storage, false) {
        let old = name.trim_start_matches("index-");
        storage.rename(&name, old).unwrap();
    }
    storage
}

/// Returns the sorted names of the indexes, of this release or of an earlier one.
fn names(storage: &MemoryStorage, is_old: bool) -> Vec<String> {
    let mut names = storage.names().unwrap();
    names.retain(|name| {
        let file = SegmentFileName::parse(name);
        file.is_some_and(|file| file.extension == "idx" && file.is_old_index == is_old)
    });
    names.sort();
    names
}

fn entries(storage: &MemoryStorage, id: i64, base: i64) -> Vec<IndexEntry> {
    let file = IndexFile::open(storage, id, base, Access::Read).unwrap();
    let file = file.expect("an index");
    (0..file.entry_count())
        .map(|number| file.entry(number).unwrap().expect("a sound entry"))
        .collect()
}

#[test]
fn an_index_has_a_name_that_does_not_begin_with_the_recording_id_07_195() {
    let storage = MemoryStorage::new();
    recorded(&mut open_indexed(&storage), 0, LONG);
    assert_eq!(names(&storage, true), [""; 0]);
    assert_eq!(
        names(&storage, false),
        ["index-0-0.idx", &format!("index-0-{SEGMENT_LENGTH}.idx")]
    );
    let parsed = SegmentFileName::parse("index-7-131072.idx").unwrap();
    assert_eq!((parsed.recording_id, parsed.base), (7, 131_072));
    assert_eq!(parsed.name(), "index-7-131072.idx");
    assert_eq!(SegmentFileName::parse("7-0.idx").unwrap().name(), "7-0.idx");
    assert_eq!(SegmentFileName::parse("index-7-0.rec"), None);
}

/// Returns an archive with 1,003 indexes. A start renames all except the last three in the order of the directory.
fn of_many_recordings() -> MemoryStorage {
    let mut counts = vec![1; 1002];
    counts[999] = LONG;
    of_earlier_release(&counts)
}

#[test]
fn a_start_renames_at_most_1000_indexes_and_readers_accept_both_names_07_195() {
    let storage = of_many_recordings();
    let before = entries(&storage, 999, 0);
    assert_eq!(names(&storage, true).len(), 1003);
    let mut store = open_indexed(&storage);
    let left = format!("999-{SEGMENT_LENGTH}.idx");
    assert_eq!(names(&storage, true), ["998-0.idx", "999-0.idx", &left]);
    assert_eq!(entries(&storage, 999, 0), before);
    // A purge renames the indexes of its recording.
    let deletion = store.purge_segments(999, SEGMENT_LENGTH, &IDLE);
    delete_all(&mut store, deletion).unwrap();
    assert_eq!(names(&storage, true), ["998-0.idx"]);
    assert!(names(&storage, false).contains(&format!("index-{left}")));
    drop(store);
    open_indexed(&storage);
    assert_eq!(names(&storage, true), [""; 0]);
}

#[test]
fn an_extension_renames_the_indexes_of_its_recording_07_195() {
    let storage = of_many_recordings();
    let mut store = open_indexed(&storage);
    let stop = store.recording(999).unwrap().stop_position;
    drop(store.extend_recording(999, &continuation(stop)).unwrap());
    assert_eq!(names(&storage, true), ["998-0.idx"]);
}

#[test]
fn a_repair_renames_the_indexes_of_its_recording_07_195() {
    let storage = of_earlier_release(&[LONG]);
    let mut files = ArchiveFiles::open(storage.clone(), Access::Write).unwrap();
    let verification = files.verify(0, &VerifyOptions::default(), &mut |_| {
        std::ops::ControlFlow::Continue(())
    });
    files
        .repair(&verification.unwrap(), TornDecision::Keep, None, STOPPED_MS)
        .unwrap();
    assert_eq!(names(&storage, true), [""; 0]);
    assert_eq!(names(&storage, false).len(), 2);
}

#[test]
fn a_start_that_is_killed_at_any_step_keeps_each_index_07_195() {
    for progress in 0..3 {
        for step in 0.. {
            let storage = of_earlier_release(&[LONG; 2]);
            let expected = entries(&storage, 0, 0);
            storage.fail_at(storage.steps() + step, StorageFault::Kill { progress });
            let _ = ArchiveStore::open(storage.clone(), indexed(), OPENED_MS);
            let is_killed = storage.is_killed();
            storage.restart();
            for (id, base) in [(0, 0), (1, 0), (0, SEGMENT_LENGTH)] {
                assert!(!entries(&storage, id, base).is_empty());
            }
            assert_eq!(entries(&storage, 0, 0), expected);
            open_indexed(&storage);
            assert_eq!(names(&storage, true), [""; 0]);
            assert_eq!(entries(&storage, 0, 0), expected);
            if !is_killed {
                break;
            }
        }
    }
}

/// Both releases use a directory in turns: the earlier one does not see the new names, and makes another index.
#[test]
fn of_two_indexes_the_one_that_covers_more_counts_and_stays_07_195() {
    let short = |bytes: &[u8]| bytes[..bytes.len() - 64].to_vec();
    let old_name = format!("0-{SEGMENT_LENGTH}.idx");
    let new_name = format!("index-{old_name}");
    for is_old_longer in [false, true] {
        let storage = MemoryStorage::new();
        recorded(&mut open_indexed(&storage), 0, 250);
        let whole = storage.bytes(&new_name).unwrap();
        let expected = entries(&storage, 0, SEGMENT_LENGTH);
        assert!(expected.len() > 1);
        storage.put(&old_name, &whole);
        match is_old_longer {
            true => storage.put(&new_name, &short(&whole)),
            false => storage.put(&old_name, &short(&whole)),
        }
        assert_eq!(entries(&storage, 0, SEGMENT_LENGTH), expected);
        open_indexed(&storage);
        assert_eq!(entries(&storage, 0, SEGMENT_LENGTH), expected);
        assert_eq!(names(&storage, true), [""; 0]);
    }
}
