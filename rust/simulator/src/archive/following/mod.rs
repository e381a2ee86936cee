//! Simulates followers of recorded streams, in schedules of their own.
//!
//! Sources publish two streams, which the first archive records. After each restart, the archive resumes the recording.
//! Each stream has a follower, which reads the recordings of the stream one after the other and then the live stream.
//! The follower commits its position as a named reader. Retention deletes what the readers have committed. Archives,
//! drivers, sources and followers die, disks fail, machines lose power. Between two deaths, a follower must receive
//! each message of each recording once and in order. After a death, the next follower continues at a committed
//! position, which the archive must not lose.

mod follower;
mod observed;
mod plan;
mod source;
mod tape;
mod world;

pub use plan::{FollowingSchedule, NamedKill, StreamForm, Victim};
pub use world::{FollowingOutcome, FollowingWorld};
