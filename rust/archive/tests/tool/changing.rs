//! Tests of the tools' operations that delete files or change the catalog, and of kills during these operations.

use std::ops::ControlFlow;

use aeron_archive::catalog::{CATALOG_FILE, CatalogError, RecordingState};
use aeron_archive::memory_storage::{MemoryStorage, StorageFault};
use aeron_archive::storage::{Access, Storage};
use aeron_archive::store::ArchiveStore;
use aeron_archive::tool::{ArchiveFiles, ToolError, TornDecision, VerifyOptions};

use crate::recordings::stream::SEGMENT_LENGTH;
use crate::store::common::{
    IDLE, bases, delete_all, empty, frames, image, open, options, record, recorded,
};

fn change(storage: &MemoryStorage) -> ArchiveFiles<MemoryStorage> {
    ArchiveFiles::open(storage.clone(), Access::Write).unwrap()
}

/// Returns an archive with recordings 0 to 3. Recordings 0 and 3 are valid. Recording 2 is invalid.
/// Recording 1 is deleted, but its entry and its files still exist.
fn mixed() -> MemoryStorage {
    let (storage, mut store) = empty();
    for _ in 0..4 {
        recorded(&mut store, 0, 200);
    }
    let deletion = store.purge_recording(1, &IDLE).unwrap();
    drop(deletion);
    drop(store);
    change(&storage).mark(2, false).unwrap();
    storage
}

/// 07-64, 07-66, 07-132
#[test]
fn a_compaction_keeps_only_valid_recordings() {
    let storage = mixed();
    let done = change(&storage).compact().unwrap();
    assert_eq!(done.entries, 2);
    assert!(done.files >= 2);
    let files = change(&storage);
    let ids = |files: &ArchiveFiles<MemoryStorage>| -> Vec<i64> {
        let entries = files.catalog().entries().iter();
        entries.map(|entry| entry.descriptor.recording_id).collect()
    };
    assert_eq!(ids(&files), [0, 3]);
    assert_eq!(
        files.catalog().capacity(),
        storage.bytes(CATALOG_FILE).unwrap().len() as u64
    );
    assert_eq!(files.catalog().next_recording_id(), 4);
    assert!(bases(&storage, 1).is_empty() && bases(&storage, 2).is_empty());
    let (mut store, _) = open(&storage);
    assert!(!frames(&storage, &store, 3).is_empty());
    assert_eq!(recorded(&mut store, 0, 1), 4);
}

/// 07-64
#[test]
fn a_kill_at_any_step_of_a_compaction_leaves_an_archive_that_opens() {
    let mut step = 0;
    loop {
        let storage = mixed();
        let mut files = change(&storage);
        storage.fail_at(storage.steps() + step, StorageFault::Kill { progress: 1 });
        let done = files.compact();
        let is_killed = storage.is_killed();
        assert!(done.is_ok() || is_killed);
        storage.restart();
        let (store, _) = ArchiveStore::open(storage.clone(), options(), 0).unwrap();
        for id in [0, 3] {
            assert!(!frames(&storage, &store, id).is_empty());
        }
        change(&storage).compact().unwrap();
        if !is_killed {
            break;
        }
        step += 1;
    }
    assert!(step > 3);
}

/// 07-133
#[test]
fn a_kill_at_any_step_of_a_repair_leaves_files_that_the_next_repair_accepts() {
    let mut step = 0;
    loop {
        let (storage, mut store) = empty();
        let mut session = store.start_recording(image(0)).unwrap();
        record(&mut session, 20);
        let end = session.recorded_position();
        drop((session, store));
        let mut files = change(&storage);
        files.mark(0, false).unwrap();
        let repair = |files: &mut ArchiveFiles<MemoryStorage>| {
            let found = files.verify(0, &VerifyOptions::default(), &mut |_| {
                ControlFlow::Continue(())
            })?;
            files.repair(&found, TornDecision::Truncate, None, 0)
        };
        storage.fail_at(storage.steps() + step, StorageFault::Kill { progress: 1 });
        let done = repair(&mut files);
        let is_killed = storage.is_killed();
        assert!(done.is_ok() || is_killed);
        storage.restart();
        let repaired = repair(&mut change(&storage)).unwrap();
        assert_eq!(
            (repaired.state, repaired.stop_position),
            (RecordingState::Valid, end)
        );
        if !is_killed {
            break;
        }
        step += 1;
    }
    assert!(step >= 2);
}

/// 07-111, 07-132
#[test]
fn tools_refuse_to_change_the_segments_of_an_unfinished_migration() {
    let (storage, mut store) = empty();
    recorded(&mut store, 0, 300);
    let end = store.truncate(0, SEGMENT_LENGTH);
    delete_all(&mut store, end).unwrap();
    recorded(&mut store, SEGMENT_LENGTH, 20);
    let before = [0, 1].map(|id| frames(&storage, &store, id).len());
    storage.fail_at(storage.steps() + 2, StorageFault::Kill { progress: 1 });
    assert!(store.migrate_segments(0, 1).is_err());
    drop(store);
    storage.restart();
    assert!(
        bases(&storage, 0).is_empty(),
        "the process must be killed after all files were renamed"
    );
    let mut files = change(&storage);
    let found = files
        .verify(0, &VerifyOptions::default(), &mut |_| {
            ControlFlow::Continue(())
        })
        .unwrap();
    let note = "see archive-migrate-0-1.note: start the archive once";
    let refusals = [
        files.orphans(None).unwrap_err(),
        files.orphans(Some(1)).unwrap_err(),
        files.delete_orphan("1-0.rec").unwrap_err(),
        files
            .repair(&found, TornDecision::Truncate, None, 0)
            .unwrap_err(),
    ];
    for refusal in refusals {
        assert!(refusal.to_string().contains(note), "{refusal}");
    }
    files.mark(0, false).unwrap();
    assert!(matches!(
        files.compact(),
        Err(ToolError::HalfMigrated {
            recording_id: 0,
            ..
        })
    ));
    files.mark(0, true).unwrap();
    let (store, _) = open(&storage);
    assert_eq!(frames(&storage, &store, 1).len(), before.iter().sum());
    assert!(change(&storage).orphans(None).unwrap().is_empty());
}

/// 07-110, 07-132
#[test]
fn orphans_are_segment_files_outside_of_their_recording() {
    let (storage, mut store) = empty();
    recorded(&mut store, SEGMENT_LENGTH, 200);
    recorded(&mut store, 0, 1);
    drop(store);
    let last = *bases(&storage, 0).last().unwrap();
    let beyond = format!("0-{}.rec", last + SEGMENT_LENGTH);
    for name in [
        "0-0.rec",
        &beyond,
        "1-131072.rec",
        "7-0.rec",
        "0-0.txt",
        "x.rec",
    ] {
        storage.put(name, b"x");
    }
    let files = change(&storage);
    assert_eq!(files.orphans(Some(0)).unwrap(), ["0-0.rec", &beyond]);
    let orphans = files.orphans(None).unwrap();
    assert_eq!(orphans, ["0-0.rec", &beyond, "1-131072.rec"]);
    for name in &orphans {
        files.delete_orphan(name).unwrap();
    }
    files.delete_orphan("7-0.rec").unwrap();
    assert!(files.orphans(None).unwrap().is_empty());
    assert!(storage.names().unwrap().contains(&"7-0.rec".to_owned()));
    assert!(matches!(
        files.orphans(Some(9)),
        Err(ToolError::UnknownRecording { recording_id: 9 })
    ));
}

/// 07-66, 07-132
#[test]
fn a_deleted_recording_cannot_be_marked() {
    let storage = mixed();
    let mut files = change(&storage);
    assert!(!files.mark(0, true).unwrap());
    assert!(files.mark(0, false).unwrap());
    assert_eq!(files.entry(0).unwrap().state, RecordingState::Invalid);
    assert_eq!(
        files.mark(1, true).unwrap_err().to_string(),
        "(recordingId=1) state transition DELETED -> VALID is not allowed"
    );
}

/// 07-67
#[test]
fn a_catalog_of_an_old_version_is_refused_with_a_reference_to_the_tool_of_aeron() {
    let storage = mixed();
    let mut catalog = storage.bytes(CATALOG_FILE).unwrap();
    catalog[2] = 2;
    storage.put(CATALOG_FILE, &catalog);
    let error = ArchiveFiles::open(storage.clone(), Access::Read).unwrap_err();
    assert!(matches!(error, ToolError::OldCatalog { .. }));
    assert!(
        error
            .to_string()
            .contains("ArchiveTool <archive-dir> migrate")
    );
    catalog[2] = 4;
    storage.put(CATALOG_FILE, &catalog);
    let error = ArchiveFiles::open(storage, Access::Read).unwrap_err();
    assert!(matches!(
        error,
        ToolError::Catalog(CatalogError::IncompatibleVersion { .. })
    ));
}

/// 07-68
#[test]
fn grow_extends_a_catalog_and_never_shortens_it() {
    let storage = mixed();
    let mut files = change(&storage);
    let before = files.catalog().capacity();
    files.grow(before / 2).unwrap();
    assert_eq!(files.catalog().capacity(), before);
    files.grow(before * 2).unwrap();
    assert_eq!(files.catalog().capacity(), before * 2);
    assert!(files.grow(1 << 31).is_err());
    assert!(files.grow(31).is_err());
}
