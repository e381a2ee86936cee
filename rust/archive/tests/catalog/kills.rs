//! Kills at every step of any run of changes, against a model: what was answered for is there, the change in which the process died is
//! there or not, and the catalog goes on.

use aeron_archive::catalog::{
    Catalog, CatalogEntry, CatalogError, NULL_VALUE, RecordingDescriptor, RecordingState,
};
use aeron_archive::memory_storage::{Fault, MemoryStorage};
use aeron_archive::storage::Storage;
use proptest::prelude::*;

use crate::common::{CAPACITY, CATALOG, empty, open, recording};

#[derive(Clone, Debug)]
pub enum Change {
    Add { text_length: usize },
    Stop { which: usize, blocks: i64 },
    Start { which: usize, blocks: i64 },
    Delete { which: usize, has_stop: bool },
    Compact,
}

/// What the catalog must hold: state and descriptor by id.
pub type Model = Vec<(RecordingState, RecordingDescriptor)>;

pub fn changes() -> impl Strategy<Value = Vec<Change>> {
    let which = 0..8usize;
    let change = prop_oneof![
        4 => (0..3000usize).prop_map(|text_length| Change::Add { text_length }),
        2 => (which.clone(), 8..16i64).prop_map(|(which, blocks)| Change::Stop { which, blocks }),
        1 => (which.clone(), 0..8i64).prop_map(|(which, blocks)| Change::Start { which, blocks }),
        2 => (which, any::<bool>()).prop_map(|(which, has_stop)| Change::Delete { which, has_stop }),
        1 => Just(Change::Compact),
    ];
    prop::collection::vec(change, 1..12)
}

/// Makes a change, and answers with what it should have made of `model`.
pub fn apply(
    storage: &MemoryStorage,
    catalog: &mut Catalog<MemoryStorage>,
    model: &Model,
    change: &Change,
) -> (Model, Result<(), CatalogError>) {
    let mut after = model.clone();
    let valid: Vec<usize> = (0..model.len())
        .filter(|&place| model[place].0 == RecordingState::Valid)
        .collect();
    let chosen = |which: usize| valid.get(which % valid.len().max(1)).copied();
    let id_of = |place: usize| model[place].1.recording_id;
    let result = match *change {
        Change::Add { text_length } => {
            let new = RecordingDescriptor {
                recording_id: catalog.next_recording_id(),
                original_channel: "c".repeat(text_length),
                ..recording(text_length as i32)
            };
            after.push((RecordingState::Valid, new.clone()));
            catalog.add(new).map(drop)
        }
        Change::Stop { which, blocks } => {
            let Some(place) = chosen(which) else {
                return (after, Ok(()));
            };
            after[place].1.stop_position = blocks * 32;
            after[place].1.stop_timestamp_ms = blocks;
            catalog.stop(id_of(place), blocks * 32, blocks)
        }
        Change::Start { which, blocks } => {
            let Some(place) = chosen(which) else {
                return (after, Ok(()));
            };
            after[place].1.start_position = blocks * 32;
            catalog.set_start_position(id_of(place), blocks * 32)
        }
        Change::Delete { which, has_stop } => {
            let Some(place) = chosen(which) else {
                return (after, Ok(()));
            };
            let stop_position = if has_stop { 256 } else { NULL_VALUE };
            after[place].0 = RecordingState::Deleted;
            after[place].1.stop_position = stop_position;
            catalog.delete(id_of(place), stop_position)
        }
        Change::Compact => {
            let keep = |id: i64| id % 2 == 0;
            after.retain(|(state, descriptor)| {
                *state != RecordingState::Deleted || keep(descriptor.recording_id)
            });
            catalog.compact(storage, |entry| keep(entry.descriptor.recording_id))
        }
    };
    (after, result)
}

pub fn held(catalog: &Catalog<MemoryStorage>) -> Model {
    let pair = |entry: &CatalogEntry| (entry.state, entry.descriptor.clone());
    catalog.entries().iter().map(pair).collect()
}

/// A deletion over a page's end may have got as far as its stop position.
fn is_half_deleted(held: &Model, before: &Model, after: &Model) -> bool {
    let mut expected = before.clone();
    for (was, becomes) in expected.iter_mut().zip(after) {
        if was.0 != becomes.0 {
            was.1.stop_position = becomes.1.stop_position;
        }
    }
    *held == expected
}

/// Runs all changes, the process dying at `step`. Answers whether it got there.
fn survives_a_kill(changes: &[Change], step: u64, progress: usize) -> Result<bool, TestCaseError> {
    let (storage, mut catalog) = empty();
    storage.fail_at(storage.steps() + step, Fault::Kill { progress });
    let mut model = Model::new();
    for change in changes {
        let (after, result) = apply(&storage, &mut catalog, &model, change);
        if result.is_ok() {
            model = after;
            prop_assert_eq!(&held(&catalog), &model);
            continue;
        }
        prop_assert!(storage.is_killed());
        let next_id = catalog.next_recording_id();
        storage.restart();
        let mut reopened = open(&storage);
        prop_assert_eq!(storage.names().unwrap(), [CATALOG]);
        let found = held(&reopened);
        let deletes = matches!(change, Change::Delete { .. });
        prop_assert!(
            found == model || found == after || deletes && is_half_deleted(&found, &model, &after),
            "{change:?} left {found:?}"
        );
        prop_assert!(reopened.next_recording_id() >= next_id);

        let id = reopened.add(recording(99)).expect("the next one fits");
        prop_assert!(id >= next_id);
        let again = open(&storage);
        prop_assert_eq!(held(&again), held(&reopened));
        return Ok(true);
    }
    prop_assert_eq!(held(&open(&storage)), model);
    Ok(false)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// 08-17, 08-30
    #[test]
    fn a_kill_at_any_step_of_any_changes_loses_nothing_and_halves_nothing(changes in changes()) {
        for progress in 0..3 {
            let mut step = 0;
            while survives_a_kill(&changes, step, progress)? {
                step += 1;
            }
        }
    }

    /// Twice: what the first kill left is in the way of what the second process writes.
    #[test]
    fn a_second_kill_amid_an_addition_over_the_remains_of_the_first_is_survived(
        first in 0..3000usize, second in 0..3000usize, progress in 0..3usize,
    ) {
        for (first_step, second_step) in [(1, 0), (1, 1), (1, 2), (2, 1), (2, 2)] {
            let (storage, mut catalog) = empty();
            catalog.add(recording(0)).unwrap();
            for (step, text_length) in [(first_step, first), (second_step, second)] {
                let mut catalog = open(&storage);
                storage.fail_at(storage.steps() + step, Fault::Kill { progress });
                let text = "\u{7F}".repeat(text_length);
                let long = RecordingDescriptor { original_channel: text, ..recording(1) };
                prop_assert!(catalog.add(long).is_err());
                storage.restart();
            }
            let mut catalog = open(&storage);
            for session_id in 10..40 {
                catalog.add(recording(session_id)).unwrap();
            }
            prop_assert_eq!(held(&open(&storage)), held(&catalog));
        }
    }
}

/// 08-17
#[test]
fn a_kill_amid_the_creation_leaves_none_or_a_whole_catalog() {
    for step in 0..4 {
        for progress in 0..3 {
            let storage = MemoryStorage::new();
            storage.fail_at(step, Fault::Kill { progress });
            let created = Catalog::create(&storage, CAPACITY).is_ok();
            storage.restart();
            let catalog = match Catalog::open(&storage, 0) {
                Ok(catalog) => catalog,
                Err(_) => {
                    assert!(!created);
                    Catalog::create(&storage, CAPACITY).expect("nothing is in the way")
                }
            };
            assert_eq!((catalog.capacity(), catalog.entries().len()), (CAPACITY, 0));
        }
    }
}

/// 08-30: the one entry in 64 whose state and stop position are on different pages.
#[test]
fn a_deletion_over_a_page_end_is_never_seen_without_its_stop_position() {
    for progress in 0..3 {
        for step in 0..2 {
            let (storage, mut catalog) = empty();
            // Entries of 192 bytes from 32 on: the 22nd begins at 4064.
            for session_id in 0..22 {
                catalog.add(recording(session_id)).unwrap();
            }
            catalog.stop(21, 1024, 5).unwrap();
            storage.fail_at(storage.steps() + step, Fault::Kill { progress });
            let _ = catalog.delete(21, 960);
            storage.restart();
            let catalog = open(&storage);
            let entry = catalog.entry(21).unwrap();
            if entry.state == RecordingState::Deleted {
                assert_eq!(entry.descriptor.stop_position, 960);
            }
        }
    }
}
