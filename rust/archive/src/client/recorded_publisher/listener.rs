//! [`RecordedPublisherListener`]: the events of a recorded publisher.

use super::error::RecordedPublisherError;

/// Receives the events of a recorded publisher. All methods are called during calls of the
/// publisher. By default, each method does nothing.
pub trait RecordedPublisherListener: Send {
    /// Called when the recording is active again after a loss. The publisher now sends the messages after `position`,
    /// the end of the recording.
    fn on_reconnect(&mut self, recording_id: i64, position: i64) {
        let _ = (recording_id, position);
    }

    /// Called with an error. The status shows whether the publisher has failed or continues.
    fn on_error(&mut self, error: &RecordedPublisherError) {
        let _ = error;
    }
}

/// Ignores all events.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct NoPublisherListener;

impl RecordedPublisherListener for NoPublisherListener {}
