//! Recording. For each recording request there is a subscription, and for each of its images a
//! session that writes the image.

mod counters;
mod events;
mod memory;
mod overlap;
mod recorder;
mod recordings;
mod resume;
mod resumption;
mod session;
mod subscriptions;
mod unnoted;
mod unrecorded;

pub(super) use counters::truncated;
pub(super) use events::RecordingEvents;
pub(super) use recorder::Recorder;
pub(super) use recordings::{RecordingRequest, RecordingSettings, Recordings, SubscriptionReply};
