//! [`PublisherEvent`]: an event of a publisher, for a handler of the program.

use std::sync::Arc;

use aeron_archive::client::{RecordedPublisherError, RecordedPublisherListener};

use super::super::queued_events::QueuedEvents;

/// An event for a handler of the program. The program's next call runs the handler.
pub(super) enum PublisherEvent {
    Reconnect(i64),
    Error(RecordedPublisherError),
    /// An error of one of the publisher's clients. No call can raise this error.
    Client(aeron_client::Error),
}

/// Listener of a native publisher. The listener may run without the GIL, so it queues the events until the next call of
/// the program.
pub(super) struct PublisherEventQueue(pub(super) Arc<QueuedEvents<PublisherEvent>>);

impl RecordedPublisherListener for PublisherEventQueue {
    fn on_reconnect(&mut self, _recording_id: i64, position: i64) {
        self.0.push(PublisherEvent::Reconnect(position));
    }

    fn on_error(&mut self, error: &RecordedPublisherError) {
        self.0.push(PublisherEvent::Error(error.clone()));
    }
}
