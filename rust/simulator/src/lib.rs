//! The simulator: media drivers with their clients in one thread, on a virtual clock and a faulty virtual network.
//!
//! Everything that happens follows from a seed: who publishes what to whom, the faults, every single datagram's fate. The
//! drivers and clients are those of production, on heap memory. A [`Schedule`] is drawn from the seed, a [`World`] lets it happen
//! and finds what must not be; the same seed finds the same again.

mod archive;
mod checks;
mod clock;
mod host;
mod network;
mod payload;
mod roles;
mod schedule;
mod truth;
mod world;

pub use archive::{ArchiveOutcome, ArchiveSchedule, ArchiveWorld};
pub use schedule::{Edition, Schedule};
pub use truth::Finding;
pub use world::{Failure, Outcome, World};

/// Schedules that once found something.
pub const KEPT_SEEDS: [(u64, Edition); 4] = [
    // After an abandoned claim had become padding, bytes of it were sent in place of the next frame.
    (2_671, Edition::First),
    // A subscriber that had left and come back was not told of the end, as the publisher did not linger for it.
    (5_582, Edition::First), // The subscriber came back because its network had been cut off.
    (6_600, Edition::First),
    // Padding took the sender beyond its limit, and its last frames were lost: the receiver refused its heartbeats.
    (1_712, Edition::Second),
];

/// Runs the schedule of a seed.
///
/// # Errors
/// What went wrong in it.
pub fn run(seed: u64, edition: Edition) -> Result<Outcome, Failure> {
    World::new(Schedule::draw(seed, edition)).run()
}

/// Runs the schedule with archives of a seed.
///
/// # Errors
/// What went wrong in it.
pub fn run_archives(seed: u64) -> Result<ArchiveOutcome, Failure> {
    ArchiveWorld::new(ArchiveSchedule::draw(seed)).run()
}
