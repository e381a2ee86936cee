//! [`PersistentSubscriptionStatus`]: the state of a persistent subscription. Any thread can read
//! it.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use super::counters::NO_JOIN_DIFFERENCE;
use super::error::PersistentSubscriptionError;

/// State of a [`PersistentSubscription`](super::PersistentSubscription). Its number is also the
/// value of the state counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PersistentSubscriptionState {
    /// Waits for the archive.
    AwaitArchiveConnection = 0,
    /// Sends the request for the recording's descriptor.
    SendListRecordingRequest = 1,
    /// Waits for the descriptor of the recording.
    AwaitListRecordingResponse = 2,
    /// Sends the request for a replay.
    SendReplayRequest = 3,
    /// Waits for the archive to start the replay.
    AwaitReplayResponse = 4,
    /// Adds the subscription to the replay.
    AddReplaySubscription = 5,
    /// Waits for the subscription to the replay.
    AwaitReplaySubscription = 6,
    /// Waits for the port that the driver chooses for the replay.
    AwaitReplayChannelEndpoint = 7,
    /// Adds the publication that sends the replay request for a response channel.
    AddRequestPublication = 8,
    /// Waits until that publication is added and the archive receives it.
    AwaitRequestPublication = 9,
    /// Sends the request for a replay token.
    SendReplayTokenRequest = 10,
    /// Waits for the replay token.
    AwaitReplayToken = 11,
    /// Delivers the replay.
    Replay = 12,
    /// Delivers the replay up to the position of the live image.
    AttemptSwitch = 13,
    /// Adds the subscription to the live stream.
    AddLiveSubscription = 14,
    /// Waits for the live image; no replay is active.
    AwaitLive = 15,
    /// Delivers the live stream.
    Live = 16,
    /// The subscription has ended with an error.
    Failed = 17,
}

impl PersistentSubscriptionState {
    /// Every state, in the order of the codes.
    pub const ALL: [Self; 18] = [
        Self::AwaitArchiveConnection,
        Self::SendListRecordingRequest,
        Self::AwaitListRecordingResponse,
        Self::SendReplayRequest,
        Self::AwaitReplayResponse,
        Self::AddReplaySubscription,
        Self::AwaitReplaySubscription,
        Self::AwaitReplayChannelEndpoint,
        Self::AddRequestPublication,
        Self::AwaitRequestPublication,
        Self::SendReplayTokenRequest,
        Self::AwaitReplayToken,
        Self::Replay,
        Self::AttemptSwitch,
        Self::AddLiveSubscription,
        Self::AwaitLive,
        Self::Live,
        Self::Failed,
    ];

    /// Returns the value of the state counter.
    #[must_use]
    pub const fn code(self) -> i64 {
        self as i64
    }

    /// Returns Aeron's name of the state.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::AwaitArchiveConnection => "AWAIT_ARCHIVE_CONNECTION",
            Self::SendListRecordingRequest => "SEND_LIST_RECORDING_REQUEST",
            Self::AwaitListRecordingResponse => "AWAIT_LIST_RECORDING_RESPONSE",
            Self::SendReplayRequest => "SEND_REPLAY_REQUEST",
            Self::AwaitReplayResponse => "AWAIT_REPLAY_RESPONSE",
            Self::AddReplaySubscription => "ADD_REPLAY_SUBSCRIPTION",
            Self::AwaitReplaySubscription => "AWAIT_REPLAY_SUBSCRIPTION",
            Self::AwaitReplayChannelEndpoint => "AWAIT_REPLAY_CHANNEL_ENDPOINT",
            Self::AddRequestPublication => "ADD_REQUEST_PUBLICATION",
            Self::AwaitRequestPublication => "AWAIT_REQUEST_PUBLICATION",
            Self::SendReplayTokenRequest => "SEND_REPLAY_TOKEN_REQUEST",
            Self::AwaitReplayToken => "AWAIT_REPLAY_TOKEN",
            Self::Replay => "REPLAY",
            Self::AttemptSwitch => "ATTEMPT_SWITCH",
            Self::AddLiveSubscription => "ADD_LIVE_SUBSCRIPTION",
            Self::AwaitLive => "AWAIT_LIVE",
            Self::Live => "LIVE",
            Self::Failed => "FAILED",
        }
    }
}

/// The state of a persistent subscription as of its last poll. Clones share one status. Any thread
/// and the listener may use it.
#[derive(Clone, Debug)]
pub struct PersistentSubscriptionStatus {
    shared: Arc<SharedStatus>,
}

#[derive(Debug)]
struct SharedStatus {
    state: AtomicUsize,
    join_difference: AtomicI64,
    failure: OnceLock<PersistentSubscriptionError>,
    is_closed: AtomicBool,
}

impl PersistentSubscriptionStatus {
    pub(super) fn new() -> Self {
        let shared = SharedStatus {
            state: AtomicUsize::new(0),
            join_difference: AtomicI64::new(NO_JOIN_DIFFERENCE),
            failure: OnceLock::new(),
            is_closed: AtomicBool::new(false),
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// Returns the state. A closed subscription keeps its last state.
    #[must_use]
    pub fn state(&self) -> PersistentSubscriptionState {
        PersistentSubscriptionState::ALL[self.shared.state.load(Ordering::Acquire)]
    }

    /// Returns whether the messages come from the live stream.
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.state() == PersistentSubscriptionState::Live
    }

    /// Returns whether the messages come from a replay.
    #[must_use]
    pub fn is_replaying(&self) -> bool {
        use PersistentSubscriptionState::{AttemptSwitch, Replay};
        matches!(self.state(), Replay | AttemptSwitch)
    }

    /// Returns whether the subscription has ended with an error.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.state() == PersistentSubscriptionState::Failed
    }

    /// Returns the error with which the subscription has ended. Returns `None` if it has not failed.
    #[must_use]
    pub fn failure_reason(&self) -> Option<&PersistentSubscriptionError> {
        self.shared.failure.get()
    }

    /// Returns the join difference in bytes: the distance of the live stream from the replay at the
    /// time when the live image was found.
    ///
    /// Returns [`NO_JOIN_DIFFERENCE`] before the first live image. Returns it again after an attempt to join has failed
    /// or the live stream was lost, until the next live image.
    #[must_use]
    pub fn join_difference(&self) -> i64 {
        self.shared.join_difference.load(Ordering::Acquire)
    }

    /// Returns whether the subscription is closed.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.shared.is_closed.load(Ordering::Acquire)
    }

    pub(super) fn set_state(&self, state: PersistentSubscriptionState) {
        self.shared.state.store(state as usize, Ordering::Release);
    }

    pub(super) fn set_join_difference(&self, difference: i64) {
        self.shared
            .join_difference
            .store(difference, Ordering::Release);
    }

    /// Stores the error if it is the first error.
    pub(super) fn set_failure(&self, error: PersistentSubscriptionError) {
        let _ = self.shared.failure.set(error);
    }

    pub(super) fn set_closed(&self) {
        self.shared.is_closed.store(true, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_listed_in_the_order_of_their_codes() {
        for (code, state) in (0..).zip(PersistentSubscriptionState::ALL) {
            assert_eq!(state.code(), code);
        }
    }
}
