//! Tests replays without a real driver: with recordings in memory, publications in heap memory, and counters without a
//! driver.

mod bounds;
pub(crate) mod driver;
mod frame_run;
mod kit;
mod plan;
mod replays;
mod session;
