//! Deletion of old data: pure functions from policies, recordings and their readers to the deletions. No file is read
//! or changed here.
//!
//! 1. [`policy_of`] chooses the policy of a recording.
//! 2. [`removals`] computes what the policy alone allows to delete, from the [extents](RecordingExtent) of all
//!    recordings of the policy. [`needs_segment_time`] says which times of segments it needs.
//! 3. [`outcome`] leaves out of it what readers, replays and changes in progress still need ([`Holders`]).
//!
//! Only whole segments are deleted, from the start of a recording, and never the segment with the end of the recording.
//! A recording that has stopped can also be deleted as a whole.

mod choice;
mod expiry;
mod extent;
mod holders;
mod removal;

pub use aeron_protocol::archive::RetentionHolder;
pub use choice::policy_of;
pub use expiry::{ReaderExpiry, expiry_of};
pub use extent::RecordingExtent;
pub use holders::{Holders, RetentionOutcome, outcome};
pub use removal::{MAX_SEGMENTS, Removal, excess_bytes, needs_segment_time, removals};
