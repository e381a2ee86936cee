//! Replay without a real driver: recordings in memory, publications in heap memory, counters of no driver.

mod bounds;
pub(crate) mod driver;
mod frame_run;
mod kit;
mod plan;
mod replays;
mod session;
