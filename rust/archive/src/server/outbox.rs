//! [`Outbox`]: messages to control sessions, collected while the parts of the archive work.

use aeron_protocol::archive::{NULL_VALUE, RecordingSignal, RecordingSignalEvent, RequestIds};

use super::ArchiveError;
use super::control::Response;

/// Messages to control sessions, in order. Those to sessions that have ended are dropped on delivery.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    notices: Vec<Notice>,
}

/// A message to one control session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Notice {
    /// Responds to a request.
    Response(RequestIds, Response),
    /// Announces what happened to a recording.
    Signal(RecordingSignalEvent),
}

/// The recording and position of a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SignalPlace {
    /// The recording.
    pub recording_id: i64,
    /// Registration id of the subscription.
    pub subscription_id: i64,
    /// Position.
    pub position: i64,
}

impl SignalPlace {
    /// A recording without a subscription and position.
    pub const fn recording(recording_id: i64) -> Self {
        Self {
            recording_id,
            subscription_id: NULL_VALUE,
            position: NULL_VALUE,
        }
    }
}

impl Outbox {
    /// Responds to a request.
    pub fn respond(&mut self, requester: RequestIds, response: Response) {
        self.notices.push(Notice::Response(requester, response));
    }

    /// Responds with an error.
    pub fn refuse(&mut self, requester: RequestIds, error: ArchiveError) {
        self.respond(requester, Response::Error(error));
    }

    /// Announces what happened to a recording, to the session of `requester`.
    pub fn signal(&mut self, requester: RequestIds, signal: RecordingSignal, place: SignalPlace) {
        self.notices.push(Notice::Signal(RecordingSignalEvent {
            control_session_id: requester.control_session_id,
            correlation_id: requester.correlation_id,
            recording_id: place.recording_id,
            subscription_id: place.subscription_id,
            position: place.position,
            signal,
        }));
    }

    /// Takes all messages.
    pub fn take(&mut self) -> Vec<Notice> {
        std::mem::take(&mut self.notices)
    }
}
