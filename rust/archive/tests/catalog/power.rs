//! Loses power at every step of random changes, and compares the catalog with a model. At
//! [`SyncLevel::Data`], each change whose call returned survives. The change in progress is present
//! or absent.

use aeron_archive::catalog::{Catalog, RecordingState};
use aeron_archive::memory_storage::{MemoryStorage, StorageFault};
use aeron_archive::storage::SyncLevel;
use proptest::prelude::*;

use crate::catalog::common::{CAPACITY, empty, open, recording};
use crate::catalog::kills::{Change, Model, apply, changes, held};

/// Generates a list that says for each unsynced write whether the write survives.
fn coins() -> impl Strategy<Value = Vec<bool>> {
    prop::collection::vec(any::<bool>(), 1..40)
}

fn lose_power(storage: &MemoryStorage, coins: &[bool]) {
    let mut coins = coins.iter().cycle();
    storage.lose_power(|| coins.next() == Some(&true));
}

/// Returns whether `found` is a permitted partial result of a deletion or an extension. The fields
/// of an entry can be on two pages, and only one of the two pages may survive.
fn is_part_of_change(found: &Model, before: &Model, after: &Model) -> bool {
    found.len() == before.len()
        && found
            .iter()
            .zip(before.iter().zip(after))
            .all(|(found, (before, after))| {
                let mut with_stop = before.1.clone();
                with_stop.stop_position = after.1.stop_position;
                let mut with_session = before.1.clone();
                with_session.session_id = after.1.session_id;
                [before.0, after.0].contains(&found.0)
                    && [&before.1, &with_stop, &with_session].contains(&&found.1)
            })
}

/// Makes all changes, and loses power at `step`. Returns `false` if the changes have fewer steps.
fn survives(changes: &[Change], step: u64, coins: &[bool]) -> Result<bool, TestCaseError> {
    let (storage, mut catalog) = empty();
    catalog.set_sync_level(SyncLevel::Data);
    storage.fail_at(storage.steps() + step, StorageFault::Kill { progress: 9 });
    let mut model = Model::new();
    for change in changes {
        let (after, result) = apply(&storage, &mut catalog, &model, change);
        if result.is_ok() {
            model = after;
            continue;
        }
        lose_power(&storage, coins);
        let found = held(&open(&storage));
        let may_be_partial = matches!(change, Change::Delete { .. } | Change::Extend { .. });
        prop_assert!(
            found == model
                || found == after
                || may_be_partial && is_part_of_change(&found, &model, &after),
            "{change:?} left {found:?}"
        );
        let id = open(&storage)
            .add(recording(99))
            .expect("the next entry fits");
        prop_assert!(
            model
                .iter()
                .all(|(_, descriptor)| descriptor.recording_id < id)
        );
        return Ok(true);
    }
    lose_power(&storage, coins);
    prop_assert_eq!(held(&open(&storage)), model);
    Ok(false)
}

/// Makes all changes, of which step `step` fails: a write that changes nothing, or a sync that drops what was written.
/// Returns `false` if the changes have fewer steps.
fn agrees(changes: &[Change], step: u64) -> Result<bool, TestCaseError> {
    let (storage, mut catalog) = empty();
    catalog.set_sync_level(SyncLevel::Data);
    storage.fail_at(
        storage.steps() + step,
        StorageFault::Error(std::io::ErrorKind::Other),
    );
    let mut model = Model::new();
    for change in changes {
        let (after, result) = apply(&storage, &mut catalog, &model, change);
        if result.is_err() {
            prop_assert_eq!(held(&open(&storage)), held(&catalog), "{:?}", change);
            return Ok(true);
        }
        model = after;
    }
    Ok(false)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn after_an_error_at_any_step_the_catalog_in_memory_is_that_on_the_disk(changes in changes()) {
        let mut step = 0;
        while agrees(&changes, step)? {
            step += 1;
        }
    }

    #[test]
    fn a_loss_of_power_at_any_step_keeps_all_completed_changes_07_53(
        changes in changes(), coins in coins()
    ) {
        let mut step = 0;
        while survives(&changes, step, &coins)? {
            step += 1;
        }
    }
}

#[test]
fn a_new_catalog_survives_a_loss_of_power_without_a_sync_level() {
    let (storage, _) = empty();
    storage.lose_power(|| false);
    assert_eq!(open(&storage).capacity(), CAPACITY);
}

#[test]
fn without_a_sync_level_a_loss_of_power_undoes_an_addition() {
    let (storage, mut catalog) = empty();
    catalog.add(recording(1)).unwrap();
    storage.lose_power(|| false);
    assert_eq!(open(&storage).entries(), []);
}

#[test]
fn a_compacted_catalog_survives_a_loss_of_power_without_a_sync_level() {
    let (storage, mut catalog) = empty();
    for session_id in 0..3 {
        catalog.add(recording(session_id)).unwrap();
    }
    catalog.delete(1, 0).unwrap();
    catalog.compact(&storage, |_| false).unwrap();
    storage.lose_power(|| false);
    let states: Vec<_> = held(&open(&storage))
        .into_iter()
        .map(|(state, _)| state)
        .collect();
    assert_eq!(states, [RecordingState::Valid; 2]);
}

#[test]
fn a_recording_does_not_exist_if_the_sync_of_its_addition_fails() {
    for failing in [2, 4] {
        let (storage, mut catalog) = empty();
        catalog.set_sync_level(SyncLevel::Data);
        storage.fail_at(
            storage.steps() + failing,
            StorageFault::Error(std::io::ErrorKind::Other),
        );
        let refusal = catalog.add(recording(1)).unwrap_err();
        assert!(refusal.to_string().contains("sync it"), "{refusal}");
        assert_eq!(catalog.entries(), []);
        assert_eq!(Catalog::open(&storage, 0).unwrap().entries(), []);
    }
}

#[test]
fn after_an_error_the_catalog_in_memory_is_that_on_the_disk_if_an_entry_is_on_two_pages() {
    // With some of these lengths, the fields of an extension or a deletion are on two pages.
    for text_length in (0..4_096).step_by(32) {
        for change in [
            Change::Extend {
                which: 1,
                session_id: 9,
            },
            Change::Delete {
                which: 1,
                has_stop: true,
            },
        ] {
            let mut changes: Vec<Change> = [text_length, 0]
                .map(|text_length| Change::Add { text_length })
                .into();
            changes.push(change);
            let mut step = 0;
            while agrees(&changes, step).expect("equal catalogs") {
                step += 1;
            }
        }
    }
}
