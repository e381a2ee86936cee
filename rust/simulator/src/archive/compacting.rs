//! Fills a catalog with the entries of deleted recordings, so that the archive soon compacts it. Faults come at the
//! steps of the compaction.

use aeron_archive::catalog::{
    Catalog, CatalogEntry, CatalogError, NULL_VALUE, RecordingDescriptor, RecordingState,
};
use aeron_archive::memory_storage::{MemoryStorage, StorageFault};

/// Number of deleted entries with which an archive compacts its catalog.
pub const ENTRIES_OF_A_COMPACTION: usize = 256;

/// A fault at a step of the next compaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompactionFault {
    /// The disk fails, or the process dies.
    Disk(StorageFault),
    /// The next deletion of a segment fails. A later compaction must keep the entry of the recording.
    Removal,
    /// The machine loses power.
    PowerLoss(PowerLoss),
}

/// A loss of power. Times are in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PowerLoss {
    /// Time between the first change of an entry of the compact catalog and the loss. If it is 0, the loss comes
    /// during the compaction.
    pub after_ns: i64,
    /// Time until the machine starts again.
    pub away_ns: i64,
}

/// Adds deleted recordings to the catalog until it has `count` of them. Creates the catalog if it is missing. A catalog
/// with many deleted recordings stays as it is: a compaction may have been killed, and the archive must complete it.
///
/// # Errors
/// The disk fails.
pub fn add_deleted_entries(
    disk: &MemoryStorage,
    capacity: u64,
    count: usize,
) -> Result<(), CatalogError> {
    let found = Catalog::open_read_only(disk).map_or(0, |catalog| {
        let deleted = |entry: &&CatalogEntry| entry.state == RecordingState::Deleted;
        catalog.entries().iter().filter(deleted).count()
    });
    if found > count / 2 {
        return Ok(());
    }
    let mut catalog = match Catalog::open(disk, capacity) {
        Ok(catalog) => catalog,
        Err(_) => Catalog::create(disk, capacity)?,
    };
    for _ in found..count {
        let id = catalog.add(recording())?;
        catalog.delete(id, 0)?;
    }
    Ok(())
}

/// Returns the descriptor of a recording without data.
fn recording() -> RecordingDescriptor {
    RecordingDescriptor {
        control_session_id: 0,
        correlation_id: 0,
        recording_id: NULL_VALUE,
        start_timestamp_ms: 0,
        stop_timestamp_ms: 0,
        start_position: 0,
        stop_position: 0,
        initial_term_id: 0,
        segment_length: 64 * 1_024,
        term_length: 64 * 1_024,
        mtu_length: 1_408,
        session_id: 0,
        stream_id: 0,
        stripped_channel: "aeron:ipc".into(),
        original_channel: "aeron:ipc".into(),
        source_identity: "".into(),
    }
}
