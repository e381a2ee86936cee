//! Simulates archives and their clients. Runs with archives have their own types of schedules.
//!
//! Two hosts each have a driver and an archive. Three clients request recordings, replays, listings, extensions,
//! truncations, purges and replications. Archives are killed during any write, disks fail, and machines lose power. All
//! acknowledged data must survive.

mod compacting;
mod cutting;
mod damage;
mod disk;
mod following;
mod ledger;
mod objects;
mod operator;
mod plan;
mod publishing;
mod server;
mod site;
mod stock;
mod world;

pub use disk::{DiskPoint, DiskStep, FileKind, RecordKind};
pub use following::{
    FollowingOutcome, FollowingSchedule, FollowingWorld, NamedKill, StreamForm, Victim,
};
pub use plan::ArchiveSchedule;
pub use publishing::{PublishingOutcome, PublishingSchedule, PublishingWorld};
pub use world::{ArchiveOutcome, ArchiveWorld};
