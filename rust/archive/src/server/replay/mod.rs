//! Replay of recordings. For each request, the driver adds a publication. A session then reads the
//! recording and publishes its frames.
//!
//! [`Replays`] is the conductor's part. It checks requests, asks the driver to add publications,
//! and knows which recordings are being read. [`Replayer`] runs the sessions, on the thread of the
//! conductor or on a separate thread. [`Replays`] sends commands to [`Replayer`], and receives
//! events from it.

mod bounds;
mod frame_run;
mod pacing;
mod plan;
mod publication;
mod recorded_pace;
mod replayer;
mod replays;
mod segment_reads;
mod session;
#[cfg(test)]
mod tests;
mod tokens;

pub(super) use pacing::RequestedPace;
pub(super) use plan::ReplayRange;
pub(super) use replayer::Replayer;
pub(super) use replays::{ReplayEvent, ReplayOrder, ReplayRequested, ReplaySettings, Replays};
