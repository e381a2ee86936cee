//! Opens a copy of an archive's directory with a damaged catalog. The archive itself is not affected.

use std::panic::{AssertUnwindSafe, catch_unwind};

use aeron_archive::checksum::Checksum;
use aeron_archive::index::IndexForm;
use aeron_archive::memory_storage::MemoryStorage;
use aeron_archive::segments::SegmentFileName;
use aeron_archive::storage::Storage;
use aeron_archive::store::{ArchiveStore, StoreOptions};
use aeron_layout::catalog::{CatalogHeaderLayout, EntryHeaderLayout};
use aeron_layout::{I32, Layout, offset};
use fastrand::Rng;

use super::server::ArchiveServer;
use crate::truth::Finding;

/// Offset of the state in the header of an entry.
const STATE_OFFSET: usize = offset!(EntryHeaderLayout, state: I32);
/// Values that are no states of recordings.
const UNKNOWN_STATES: std::ops::Range<i32> = 3..1_000;
/// Name of the catalog.
const CATALOG: &str = "archive.catalog";

/// Damages the catalog in a copy of the archive's directory, and opens the copy.
///
/// # Errors
/// The opening panics, or it deletes a segment although the archive could see that the catalog is damaged.
pub fn check_damaged_catalog(
    archive: &ArchiveServer,
    random: &mut Rng,
    now_ms: i64,
) -> Result<(), Finding> {
    let disk = &archive.disk().storage;
    let Some(mut catalog) = disk.bytes(CATALOG).filter(|bytes| !bytes.is_empty()) else {
        return Ok(());
    };
    let context = &archive.plan().context;
    let record_checksum = context.record_checksum.parse::<Checksum>().ok();
    let damage = match random.u8(..4) {
        0 => CatalogDamage::State,
        1 => CatalogDamage::Missing,
        _ => CatalogDamage::Flips,
    };
    damage.apply(&mut catalog, random);
    let options = StoreOptions {
        catalog_capacity: context.catalog_capacity,
        segment_length: context.segment_file_length as i32,
        file_sync_level: context.file_sync_level,
        catalog_sync_level: context.catalog_file_sync_level,
        record_checksum,
        on_torn_fragment: context.on_torn_fragment,
        index: context.index.then_some(IndexForm::Sparse),
        ..StoreOptions::default()
    };
    let copy = copy_of(disk);
    copy.put(CATALOG, &catalog);
    let opening = || ArchiveStore::open(copy.clone(), options, now_ms).map(drop);
    let opened = catch_unwind(AssertUnwindSafe(opening));
    let host = archive.plan().host;
    let Ok(opened) = opened else {
        return Err(format!(
            "the archive of host {host} panics with a damaged catalog"
        ));
    };
    // Without checksums, a flipped bit may change the state of a recording to another valid state.
    let is_visible = damage != CatalogDamage::Flips || record_checksum.is_some();
    let after = segments(&copy);
    let deleted = |storage: &MemoryStorage| {
        let mut names = segments(storage).into_iter();
        names.find(|name| !after.contains(name))
    };
    if !is_visible || deleted(disk).is_none() {
        return Ok(());
    }
    // Each start deletes the segments that an interrupted deletion has left.
    let sound = copy_of(disk);
    let _ = ArchiveStore::open(sound.clone(), options, now_ms);
    match deleted(&sound) {
        None => Ok(()),
        Some(name) => Err(format!(
            "the archive of host {host} deletes {name} because of a damaged catalog, and opens with {opened:?}"
        )),
    }
}

fn copy_of(storage: &MemoryStorage) -> MemoryStorage {
    let copy = MemoryStorage::new();
    for name in storage.names().unwrap_or_default() {
        copy.put(&name, &storage.bytes(&name).unwrap_or_default());
    }
    copy
}

/// A kind of damage to a catalog.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CatalogDamage {
    /// Some bits are flipped.
    Flips,
    /// A range is filled with zeros, or the end is missing.
    Missing,
    /// A recording has an unknown state.
    State,
}

impl CatalogDamage {
    fn apply(self, bytes: &mut Vec<u8>, random: &mut Rng) {
        // A new catalog ends with many zeros.
        let used = bytes.iter().rposition(|byte| *byte != 0);
        let length = used.map_or(bytes.len(), |last| last + 1);
        match self {
            Self::Flips => {
                for _ in 0..random.usize(1..8) {
                    bytes[random.usize(..length)] ^= 1 << random.u32(..8);
                }
            }
            Self::Missing => {
                let begin = random.usize(..length);
                match random.bool() {
                    true => bytes[begin..(begin + 700).min(length)].fill(0),
                    false => bytes.truncate(begin),
                }
            }
            Self::State => {
                let fields = state_fields(bytes);
                if !fields.is_empty() {
                    let at = fields[random.usize(..fields.len())];
                    bytes[at..at + 4].copy_from_slice(&random.i32(UNKNOWN_STATES).to_le_bytes());
                }
            }
        }
    }
}

/// Returns the offset of the state of each entry.
fn state_fields(bytes: &[u8]) -> Vec<usize> {
    let mut fields = Vec::new();
    let mut at = CatalogHeaderLayout::LENGTH;
    while let Some(header) = bytes.get(at..).and_then(EntryHeaderLayout::first_in) {
        let Some(length) = usize::try_from(header.length.get())
            .ok()
            .filter(|length| *length > 0)
        else {
            break;
        };
        fields.push(at + STATE_OFFSET);
        at += EntryHeaderLayout::LENGTH + length;
    }
    fields
}

fn segments(storage: &MemoryStorage) -> Vec<String> {
    let mut names = storage.names().unwrap_or_default();
    let is_segment =
        |name: &str| SegmentFileName::parse(name).is_some_and(|file| file.extension == "rec");
    names.retain(|name| is_segment(name));
    names
}
