//! Archives and their clients in the simulated world: schedules of their own.
//!
//! Two hosts have a driver and an archive each, three clients have streams recorded, replayed, listed, extended, truncated, purged and
//! replicated. Archives are killed at any write, disks fail, machines lose power; what was acknowledged must still be there.

mod disk;
mod ledger;
mod operator;
mod plan;
mod server;
mod world;

pub use plan::ArchiveSchedule;
pub use world::{ArchiveOutcome, ArchiveWorld};
