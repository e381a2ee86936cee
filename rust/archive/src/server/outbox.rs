//! [`Outbox`]: collects messages to control sessions during a duty cycle.

use aeron_protocol::archive::{NULL_VALUE, RecordingSignal, RecordingSignalEvent, RequestIds};

use super::ArchiveError;
use super::control::Response;

/// Messages to control sessions, in order. Messages to ended sessions are dropped on delivery.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    notices: Vec<SessionNotice>,
}

/// A message to one control session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SessionNotice {
    /// Responds to a request.
    Response(RequestIds, Response),
    /// Sends a signal of a recording.
    Signal(RecordingSignalEvent),
}

/// The recording, the subscription and the position of a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SignalPlace {
    /// Recording id.
    pub recording_id: i64,
    /// Registration id of the subscription.
    pub subscription_id: i64,
    /// Position of the signal in the recording.
    pub position: i64,
}

impl SignalPlace {
    /// Creates the place of a signal that has only a recording, without a subscription and a
    /// position.
    pub const fn recording(recording_id: i64) -> Self {
        Self {
            recording_id,
            subscription_id: NULL_VALUE,
            position: NULL_VALUE,
        }
    }
}

impl Outbox {
    /// Adds a response to a request.
    pub fn respond(&mut self, requester: RequestIds, response: Response) {
        self.notices
            .push(SessionNotice::Response(requester, response));
    }

    /// Adds an error response to a request.
    pub fn refuse(&mut self, requester: RequestIds, error: ArchiveError) {
        self.respond(requester, Response::Error(error));
    }

    /// Adds a signal of a recording. The signal is sent to the control session of `requester`.
    pub fn signal(&mut self, requester: RequestIds, signal: RecordingSignal, place: SignalPlace) {
        self.notices
            .push(SessionNotice::Signal(RecordingSignalEvent {
                control_session_id: requester.control_session_id,
                correlation_id: requester.correlation_id,
                recording_id: place.recording_id,
                subscription_id: place.subscription_id,
                position: place.position,
                signal,
            }));
    }

    /// Removes and returns all messages.
    pub fn take(&mut self) -> Vec<SessionNotice> {
        std::mem::take(&mut self.notices)
    }
}
