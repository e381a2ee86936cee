//! Recording: from subscriptions, whose images are recorded, to the sessions that write them.

mod counters;
mod events;
mod recorder;
mod recordings;
mod session;
mod subscriptions;
mod unnoted;

pub(super) use counters::truncated;
pub(super) use events::RecordingEvents;
pub(super) use recorder::Recorder;
pub(super) use recordings::{RecordingRequest, RecordingSettings, Recordings, SubscriptionReply};
