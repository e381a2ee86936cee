//! Kills the process at every step of random changes, and compares the catalog with a model.
//!
//! After the kill, each change whose call returned is present. The change during which the process was killed is
//! present or absent. A deletion or an extension may also be partly present, see `is_partial`. The catalog can still be
//! changed.

use aeron_archive::catalog::{
    Catalog, CatalogEntry, CatalogError, Extension, NULL_VALUE, RecordingDescriptor, RecordingState,
};
use aeron_archive::checksum::Checksum;
use aeron_archive::memory_storage::{MemoryStorage, StorageFault};
use aeron_archive::storage::Storage;
use proptest::prelude::*;

use crate::catalog::common::{CAPACITY, CATALOG, empty, open, recording};

#[derive(Clone, Debug)]
pub enum Change {
    Add { text_length: usize },
    Stop { which: usize, blocks: i64 },
    Start { which: usize, blocks: i64 },
    Truncate { which: usize, blocks: i64 },
    Extend { which: usize, session_id: i32 },
    UpdateChannel { which: usize, text_length: usize },
    Invalidate { which: usize },
    Revalidate { which: usize },
    Delete { which: usize, has_stop: bool },
    Compact,
}

/// The expected content of the catalog: states and descriptors, in the order of the ids.
pub type Model = Vec<(RecordingState, RecordingDescriptor)>;

pub fn changes() -> impl Strategy<Value = Vec<Change>> {
    let which = 0..8usize;
    let change = prop_oneof![
        4 => (0..3000usize).prop_map(|text_length| Change::Add { text_length }),
        2 => (which.clone(), 8..16i64).prop_map(|(which, blocks)| Change::Stop { which, blocks }),
        1 => (which.clone(), 0..8i64).prop_map(|(which, blocks)| Change::Start { which, blocks }),
        1 => (which.clone(), 8..16i64).prop_map(|(which, blocks)| Change::Truncate { which, blocks }),
        2 => (which.clone(), any::<i32>()).prop_map(|(which, session_id)| Change::Extend { which, session_id }),
        1 => (which.clone(), 0..3000usize)
            .prop_map(|(which, text_length)| Change::UpdateChannel { which, text_length }),
        1 => which.clone().prop_map(|which| Change::Invalidate { which }),
        1 => which.clone().prop_map(|which| Change::Revalidate { which }),
        2 => (which, any::<bool>()).prop_map(|(which, has_stop)| Change::Delete { which, has_stop }),
        1 => Just(Change::Compact),
    ];
    prop::collection::vec(change, 1..12)
}

/// Makes a change. Returns the expected model after the change, and the result of the call.
pub fn apply(
    storage: &MemoryStorage,
    catalog: &mut Catalog<MemoryStorage>,
    model: &Model,
    change: &Change,
) -> (Model, Result<(), CatalogError>) {
    let mut after = model.clone();
    let chosen_of = |state: RecordingState, which: usize| {
        let places: Vec<usize> = (0..model.len())
            .filter(|&place| model[place].0 == state)
            .collect();
        places.get(which % places.len().max(1)).copied()
    };
    let chosen = |which| chosen_of(RecordingState::Valid, which);
    let id_of = |place: usize| model[place].1.recording_id;
    let result = match *change {
        Change::Add { text_length } => {
            let new = RecordingDescriptor {
                recording_id: catalog.next_recording_id(),
                original_channel: "c".repeat(text_length).into(),
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
            after[place].1.stop_timestamp_ms =
                (990 + blocks).max(after[place].1.start_timestamp_ms);
            catalog.stop(id_of(place), blocks * 32, 990 + blocks)
        }
        Change::Start { which, blocks } => {
            let Some(place) = chosen(which) else {
                return (after, Ok(()));
            };
            after[place].1.start_position = blocks * 32;
            catalog.set_start_position(id_of(place), blocks * 32)
        }
        Change::Truncate { which, blocks } => {
            let Some(place) = chosen(which) else {
                return (after, Ok(()));
            };
            after[place].1.stop_position = blocks * 32;
            catalog.truncate(id_of(place), blocks * 32)
        }
        Change::Extend { which, session_id } => {
            let Some(place) = chosen(which) else {
                return (after, Ok(()));
            };
            let extension = Extension {
                session_id,
                control_session_id: 77,
                correlation_id: 78,
            };
            let descriptor = &mut after[place].1;
            descriptor.session_id = session_id;
            descriptor.control_session_id = 77;
            descriptor.correlation_id = 78;
            descriptor.stop_timestamp_ms = NULL_VALUE;
            descriptor.stop_position = NULL_VALUE;
            catalog.extend(id_of(place), &extension)
        }
        Change::UpdateChannel { which, text_length } => {
            let Some(place) = chosen(which) else {
                return (after, Ok(()));
            };
            let text = "u".repeat(text_length);
            after[place].1.original_channel = text.as_str().into();
            after[place].1.stripped_channel = "stripped".into();
            catalog.update_channel(storage, id_of(place), &text, "stripped")
        }
        Change::Invalidate { which } => {
            let Some(place) = chosen(which) else {
                return (after, Ok(()));
            };
            after[place].0 = RecordingState::Invalid;
            catalog.invalidate(id_of(place))
        }
        Change::Revalidate { which } => {
            let Some(place) = chosen_of(RecordingState::Invalid, which) else {
                return (after, Ok(()));
            };
            after[place].0 = RecordingState::Valid;
            catalog.revalidate(id_of(place))
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

/// Returns whether `held`, the content of the file, is a permitted partial result of a change.
///
/// If the fields of the entry are on two pages, a killed deletion may have changed only the stop position. A killed
/// extension may have changed only the session id.
fn is_partial(change: &Change, held: &Model, before: &Model, after: &Model) -> bool {
    let mut expected = before.clone();
    for (was, becomes) in expected.iter_mut().zip(after) {
        match change {
            Change::Delete { .. } if was.0 != becomes.0 => {
                was.1.stop_position = becomes.1.stop_position;
            }
            Change::Extend { .. } => was.1.session_id = becomes.1.session_id,
            _ => {}
        }
    }
    *held == expected
}

/// Returns the checksum fields that do not match the bytes of their entries.
pub fn wrong_checksums(storage: &MemoryStorage) -> Vec<i32> {
    let bytes = storage.bytes(CATALOG).unwrap();
    let mut wrong = Vec::new();
    let mut rest = &bytes[32..];
    while let Some((header, behind)) = rest.split_first_chunk::<32>() {
        let value = |at: usize| i32::from_le_bytes(header[at..at + 4].try_into().unwrap());
        let length = value(0);
        if length <= 0 {
            break;
        }
        let (body, next) = behind.split_at(length as usize);
        if Checksum::Crc32c.compute(body) != value(8) {
            wrong.push(value(8));
        }
        rest = next;
    }
    wrong
}

/// Makes all changes, and kills the process at `step`. Returns `false` if the changes have fewer
/// steps.
fn survives_a_kill(
    changes: &[Change],
    step: u64,
    progress: usize,
    checksum: Option<Checksum>,
) -> Result<bool, TestCaseError> {
    let (storage, mut catalog) = empty();
    catalog.set_checksum(checksum);
    storage.fail_at(storage.steps() + step, StorageFault::Kill { progress });
    let mut model = Model::new();
    for change in changes {
        let (after, result) = apply(&storage, &mut catalog, &model, change);
        if result.is_ok() {
            model = after;
            prop_assert_eq!(&held(&catalog), &model);
            if checksum.is_some() {
                prop_assert_eq!(wrong_checksums(&storage), []);
            }
            continue;
        }
        prop_assert!(storage.is_killed());
        let next_id = catalog.next_recording_id();
        storage.restart();
        let mut reopened = open(&storage);
        prop_assert_eq!(storage.names().unwrap(), [CATALOG]);
        let found = held(&reopened);
        prop_assert!(
            found == model || found == after || is_partial(change, &found, &model, &after),
            "{change:?} left {found:?}"
        );
        if checksum.is_some() {
            prop_assert!(wrong_checksums(&storage).iter().all(|&wrong| wrong == 0));
            reopened.set_checksum(checksum);
            reopened.add_missing_checksums().unwrap();
            prop_assert_eq!(wrong_checksums(&storage), []);
        }
        prop_assert!(reopened.next_recording_id() >= next_id);

        let id = reopened.add(recording(99)).expect("the next entry fits");
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

    /// 08-17, 08-30, 07-59, 07-63, 07-69
    #[test]
    fn after_a_kill_at_any_step_each_change_is_complete_or_absent_or_a_permitted_partial_result(
        changes in changes(), has_checksum: bool
    ) {
        let checksum = has_checksum.then_some(Checksum::Crc32c);
        for progress in 0..3 {
            let mut step = 0;
            while survives_a_kill(&changes, step, progress, checksum)? {
                step += 1;
            }
        }
    }

    /// A process is killed while it adds a recording, and so is the next process. The leftover
    /// bytes of both additions must not damage the next addition.
    #[test]
    fn additions_succeed_after_two_kills_during_additions_at_the_same_offset(
        first in 0..3000usize, second in 0..3000usize, progress in 0..3usize,
    ) {
        for (first_step, second_step) in [(1, 0), (1, 1), (1, 2), (2, 1), (2, 2)] {
            let (storage, mut catalog) = empty();
            catalog.add(recording(0)).unwrap();
            for (step, text_length) in [(first_step, first), (second_step, second)] {
                let mut catalog = open(&storage);
                storage.fail_at(storage.steps() + step, StorageFault::Kill { progress });
                let text = "\u{7F}".repeat(text_length);
                let long = RecordingDescriptor { original_channel: text.into(), ..recording(1) };
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
fn a_kill_during_the_creation_leaves_no_catalog_or_a_complete_catalog() {
    for step in 0..4 {
        for progress in 0..3 {
            let storage = MemoryStorage::new();
            storage.fail_at(step, StorageFault::Kill { progress });
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

/// 08-30: the state and the stop position of the deleted entry are on different pages. If all
/// entries have 192 bytes, this is the case for one of 64 entries.
#[test]
fn after_a_killed_deletion_over_a_page_end_a_deleted_entry_has_its_stop_position() {
    for progress in 0..3 {
        for step in 0..2 {
            let (storage, mut catalog) = empty();
            // Entries of 192 bytes begin at 32, so the 22nd entry begins at 4064, just before the
            // end of the first page.
            for session_id in 0..22 {
                catalog.add(recording(session_id)).unwrap();
            }
            catalog.stop(21, 1024, 5).unwrap();
            storage.fail_at(storage.steps() + step, StorageFault::Kill { progress });
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

/// 07-59, 07-63: entries before, across and after the end of a page.
#[test]
fn a_kill_during_an_extension_leaves_a_stopped_or_an_extended_recording() {
    let extension = Extension {
        session_id: 99,
        control_session_id: 3,
        correlation_id: 4,
    };
    for checksum in [None, Some(Checksum::Crc32c)] {
        for before in 19..23 {
            for (step, progress) in (0..6).flat_map(|step| [(step, 0), (step, 1), (step, 2)]) {
                let (storage, mut catalog) = empty();
                catalog.set_checksum(checksum);
                // Entries of 192 bytes begin at 32.
                for session_id in 0..=before {
                    catalog.add(recording(session_id)).unwrap();
                }
                catalog.stop(i64::from(before), 1024, 5).unwrap();
                storage.fail_at(storage.steps() + step, StorageFault::Kill { progress });
                let done = catalog.extend(i64::from(before), &extension).is_ok();
                storage.restart();
                let found = open(&storage);
                let found = found.recording(i64::from(before)).unwrap();
                let is_extended = found.is_unfinished();
                assert!(is_extended || !done);
                assert_eq!(found.control_session_id == 3, is_extended);
                assert_eq!(found.stop_timestamp_ms == NULL_VALUE, is_extended);
                assert!(!is_extended || found.session_id == 99);
                assert!(checksum.is_none() || wrong_checksums(&storage).iter().all(|&it| it == 0));
            }
        }
    }
}
