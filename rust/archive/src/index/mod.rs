//! The index of a recording: one file beside each segment, with message counts and arrival times.
//!
//! The index has no payloads. It has the positions at which a range of whole messages can end, and
//! the arrival times. There are two forms:
//!
//! * [`IndexForm::Dense`]: one entry at the end of each block. The recorder of a query's private
//!   archive writes it. Such a recording ends if an entry cannot be written.
//! * [`IndexForm::Sparse`]: an entry after 64 KiB, or after 1 ms while data arrive. The recorder of an archive server
//!   writes it. After a kill, this index also [proves](IndexProof) whether a last frame that looks torn was
//!   acknowledged.
//!
//! A recorder writes either form through a [`SegmentIndex`].

mod arrivals;
mod entry;
mod file;
mod heads;
mod lookup;
mod moves;
mod proof;
mod recorder;
mod repair;
mod segment;
mod time;
mod written;

pub use entry::{ENTRY_LENGTH, IndexEntry, IndexForm, IndexHeader};
pub use file::{IndexFile, IndexWriter};
pub use heads::{Counts, HeadTracker, Progress};
pub use lookup::{Cut, Index, IndexError};
pub use proof::IndexProof;
pub use recorder::IndexRecorder;
pub use repair::{LostArrivals, Repair, Tail, indexed_end, repair};
pub use segment::{ArrivalClock, BlockFrames, SegmentIndex};
pub use time::{FindPositionError, FoundPosition, TimeSearch, find_position};
pub use written::written_end;

pub(crate) use entry::{ENTRY_INTERVAL_US, MAX_UNINDEXED_BYTES};
pub(crate) use moves::{
    cut_index, hand_over, note_checksum, remove_index, remove_lonely, rename_old,
};
pub(crate) use repair::repair_last;
pub(crate) use time::last_arrival_ms;

/// Extension of an index file, without the dot.
pub const INDEX_EXTENSION: &str = "idx";
/// Extension of a new index file before it replaces the old file.
pub const NEW_INDEX_EXTENSION: &str = "idx.new";
/// Maximum length of a recorder's block, in bytes.
pub const MAX_BLOCK_LENGTH: usize = crate::storage::BLOCK_LENGTH;
