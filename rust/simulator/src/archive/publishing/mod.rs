//! Simulates recorded publishers, in schedules of their own.
//!
//! Two publishers offer messages to the first archive, one on its host and one on the other host. Archives, drivers and
//! publishers die, disks fail, machines lose power. In the end each recording must have exactly the messages that its
//! publisher has accepted, once and in order.

mod plan;
mod publisher;
mod tape;
mod world;

pub use plan::PublishingSchedule;
pub use world::{PublishingOutcome, PublishingWorld};
