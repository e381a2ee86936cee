//! Replay: from requests, each of which needs a publication, to the sessions that read recordings and publish them.
//!
//! [`Replays`] is the conductor's part: it checks requests, asks the driver for publications and knows which recordings are read.
//! [`Replayer`] runs the sessions, on the conductor's thread or its own. The two exchange commands and events.

mod bounds;
mod frame_run;
mod plan;
mod publication;
mod replayer;
mod replays;
mod segment_reads;
mod session;
#[cfg(test)]
pub(crate) mod tests;
mod tokens;

pub(super) use plan::ReplayRange;
pub(super) use replayer::Replayer;
pub(super) use replays::{ReplayEvent, ReplayRequested, ReplaySettings, Replays};
