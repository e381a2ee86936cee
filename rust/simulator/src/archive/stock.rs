//! The stock: many recordings of one channel, with which the disk of an archive begins. One policy limits all of them.

use aeron_archive::catalog::{
    Catalog, CatalogError, NULL_VALUE, RecordingDescriptor, RecordingState,
};
use aeron_archive::extensions::{RetentionPolicy, RetentionScope};
use aeron_archive::memory_storage::MemoryStorage;
use aeron_archive::segments::segment_name;
use aeron_archive::storage::SyncLevel;
use fastrand::Rng;

use super::disk::SimulatedDisk;
use crate::clock::START_MS;
use crate::schedule::rarely;
use crate::truth::Finding;

/// One in this number of schedules with policies has a stock.
const SCHEDULES_PER_STOCK: u32 = 4;
/// Numbers of recordings: more than a step of retention assigns by default.
const COUNTS: std::ops::Range<usize> = 17..40;
/// Length of each recording in bytes.
const LENGTH: i64 = 4_096;
const TERM_LENGTH: i32 = 64 * 1_024;
/// Stream id of the recordings. No operator has this stream.
pub const STOCK_STREAM_ID: i32 = 900;
/// Channel of the recordings.
const STOCK_CHANNEL: &str = "aeron:ipc?alias=stock";

/// A stock, and the policy for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stock {
    /// Number of recordings.
    pub count: usize,
    /// Maximum number of bytes that the policy keeps.
    pub max_bytes: i64,
}

impl Stock {
    /// Draws the stock of a schedule with policies. It was added later, so it has random numbers of its own.
    pub fn draw(seed: u64) -> Option<Self> {
        let mut random = Rng::with_seed(seed ^ 0x57_0C_57_0C);
        rarely(&mut random, SCHEDULES_PER_STOCK).then(|| {
            let count = random.usize(COUNTS);
            Self {
                count,
                max_bytes: random.i64(0..count as i64 * LENGTH),
            }
        })
    }

    /// Returns the policy.
    pub fn policy(max_bytes: i64) -> RetentionPolicy {
        RetentionPolicy {
            scope: RetentionScope::Matching {
                stream_id: Some(STOCK_STREAM_ID),
                channel_fragment: "stock".to_owned(),
            },
            max_bytes: Some(max_bytes),
            max_age_ms: None,
        }
    }

    /// Writes the recordings to an empty disk.
    ///
    /// # Errors
    /// The disk fails.
    pub fn write(self, disk: &MemoryStorage, capacity: u64) -> Result<(), CatalogError> {
        let mut catalog = Catalog::create(disk, capacity)?;
        catalog.set_sync_level(SyncLevel::DataAndMetadata);
        for _ in 0..self.count {
            let id = catalog.add(recording())?;
            disk.put(&segment_name(id, 0), &vec![0; TERM_LENGTH as usize]);
        }
        Ok(())
    }

    /// Checks which recordings the policy has left on a disk: the newest ones, as many as it allows.
    pub fn unretained(self, disk: &SimulatedDisk) -> Option<Finding> {
        let catalog = Catalog::open_read_only(&disk.storage).ok()?;
        let entries = catalog.entries().iter();
        let left: Vec<i64> = entries
            .filter(|entry| entry.state == RecordingState::Valid)
            .filter(|entry| entry.descriptor.stream_id == STOCK_STREAM_ID)
            .map(|entry| entry.descriptor.recording_id)
            .collect();
        // The last bytes of a policy always stay.
        let allowed = (self.max_bytes / LENGTH).max(1);
        let first = self.count as i64 - allowed;
        let expected: Vec<i64> = (first..self.count as i64).collect();
        (left != expected).then(|| {
            format!(
                "retention has left {left:?} of {} recordings of one channel, not {expected:?}",
                self.count
            )
        })
    }
}

/// Returns the descriptor of a stopped recording.
fn recording() -> RecordingDescriptor {
    RecordingDescriptor {
        control_session_id: 0,
        correlation_id: 0,
        recording_id: NULL_VALUE,
        // An older time would make the archive doubt its wall clock at the first start.
        start_timestamp_ms: START_MS - 1,
        stop_timestamp_ms: START_MS,
        start_position: 0,
        stop_position: LENGTH,
        initial_term_id: 0,
        segment_length: TERM_LENGTH,
        term_length: TERM_LENGTH,
        mtu_length: 1_408,
        session_id: 0,
        stream_id: STOCK_STREAM_ID,
        stripped_channel: "aeron:ipc".into(),
        original_channel: STOCK_CHANNEL.into(),
        source_identity: "".into(),
    }
}
