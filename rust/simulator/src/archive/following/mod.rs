//! Simulates followers of recorded streams, in schedules of their own.
//!
//! Sources publish two streams, which the first archive records and takes up again after each restart. A follower of
//! each stream reads its recordings one after the other, and the live stream, and commits its position as a named
//! reader. Retention deletes what the readers have committed. Archives, drivers, sources and followers die, disks fail,
//! machines lose power. Each message of each recording must arrive once and in order between commits, and no reader may
//! lose a position.

mod follower;
mod observed;
mod plan;
mod source;
mod tape;
mod world;

pub use plan::{FollowingSchedule, NamedKill, StreamForm, Victim};
pub use world::{FollowingOutcome, FollowingWorld};
