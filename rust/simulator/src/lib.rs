//! The simulator: media drivers with their clients in one thread, on a virtual clock and a faulty virtual network.
//!
//! Everything that happens follows from a seed: who publishes what to whom, the faults, every single datagram's fate. The
//! drivers and clients are those of production, on heap memory. A [`Schedule`] is drawn from the seed, a [`World`] lets it happen
//! and finds what must not be; the same seed finds the same again.

mod checks;
mod clock;
mod host;
mod network;
mod payload;
mod roles;
mod schedule;
mod truth;
mod world;

pub use schedule::Schedule;
pub use truth::Finding;
pub use world::{Failure, Outcome, World};

/// Runs the schedule of a seed.
///
/// # Errors
/// What went wrong in it.
pub fn run(seed: u64) -> Result<Outcome, Failure> {
    World::new(Schedule::draw(seed)).run()
}
