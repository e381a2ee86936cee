//! Recording. Each recording request has a subscription. Each image of the subscription has a `RecordingSession`, which
//! writes the image into a recording.

mod blocked;
mod counters;
mod events;
mod memory;
mod overlap;
mod recorder;
mod recordings;
mod refusals;
mod resumption;
mod session;
mod subscriptions;
mod unnoted;
mod unrecorded;

pub(super) use events::RecordingEvents;
pub(super) use recorder::Recorder;
pub(super) use recordings::{RecordingRequest, RecordingSettings, Recordings, SubscriptionReply};
