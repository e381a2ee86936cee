//! Simulates recorded publishers. These schedules are separate from the others.
//!
//! Two publishers offer messages to the first archive: one on the host of the archive and one on the other host.
//! Archives, drivers and publishers die, disks fail, and machines lose power. At the end, each recording must have
//! exactly the messages that its publisher has accepted, once and in order.

mod plan;
mod publisher;
mod tape;
mod world;

pub use plan::PublishingSchedule;
pub use world::{PublishingOutcome, PublishingWorld};
