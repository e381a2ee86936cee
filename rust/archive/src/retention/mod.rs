//! Deletion of old data. The functions of this module compute deletions from policies, recordings
//! and readers. They read and change no files.
//!
//! 1. [`policy_of`] chooses the policy of a recording.
//! 2. [`removals`] computes the part of each recording that the policy allows to delete. Its input
//!    is the [extents](RecordingExtent) of all recordings of the policy. [`needs_segment_time`]
//!    returns whether an extent needs the time of a further segment.
//! 3. [`outcome`] reduces such a part by the data that its [`Holders`] still need. Holders are readers, replays,
//!    changes in progress, and segments that have no copy in object storage yet.
//!
//! A [`RetentionClock`] measures ages. If the wall clock is not trusted, nothing is deleted because of its age:
//! [`outcome`] then reduces the part to what the policy allows without regard to ages.
//!
//! Only whole segments are deleted, from the start of a recording, and never the segment with the end of the recording.
//! A recording that has stopped can also be deleted as a whole.

mod choice;
mod clock;
mod expiry;
mod extent;
mod holders;
mod removal;

pub use aeron_protocol::archive::RetentionHolder;
pub use choice::policy_of;
pub use clock::{ClockChange, ClockDoubt, EarlierTime, Moment, RetentionClock, Span};
pub use expiry::{ReaderExpiry, expiry_of};
pub use extent::RecordingExtent;
pub use holders::{DoubtedAges, Holders, RetentionOutcome, outcome};
pub use removal::{
    MAX_SEGMENTS, Removal, doubted_removals, excess_bytes, needs_segment_time, removals,
};
