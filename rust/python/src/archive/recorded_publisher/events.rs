//! [`PublisherEvents`]: events of a publisher that wait for the next call of the program.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aeron_archive::client::{RecordedPublisherError, RecordedPublisherListener};

/// Maximum number of queued events for the program. If it is exceeded, the oldest event is lost.
const MAX_EVENTS: usize = 1024;

/// An event for a handler of the program. The program's next call runs the handler.
pub(super) enum PublisherEvent {
    Reconnect(i64),
    Error(RecordedPublisherError),
    /// An error of one of the publisher's clients. No call can raise this error.
    Client(aeron_client::Error),
}

#[derive(Default)]
pub(super) struct PublisherEvents {
    queue: Mutex<VecDeque<PublisherEvent>>,
    has_any: AtomicBool,
}

/// Listener of a native publisher. The listener may run without the GIL, so it queues the events until the next call of
/// the program.
pub(super) struct PublisherEventQueue(pub(super) Arc<PublisherEvents>);

impl PublisherEvents {
    fn lock(&self) -> MutexGuard<'_, VecDeque<PublisherEvent>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn push(&self, event: PublisherEvent) {
        let mut events = self.lock();
        if events.len() == MAX_EVENTS {
            events.pop_front();
        }
        events.push_back(event);
        self.has_any.store(true, Ordering::Release);
    }

    pub(super) fn pop(&self) -> Option<PublisherEvent> {
        let mut events = self.lock();
        let event = events.pop_front();
        self.has_any.store(!events.is_empty(), Ordering::Release);
        event
    }

    pub(super) fn has_any(&self) -> bool {
        self.has_any.load(Ordering::Acquire)
    }
}

impl RecordedPublisherListener for PublisherEventQueue {
    fn on_reconnect(&mut self, _recording_id: i64, position: i64) {
        self.0.push(PublisherEvent::Reconnect(position));
    }

    fn on_error(&mut self, error: &RecordedPublisherError) {
        self.0.push(PublisherEvent::Error(error.clone()));
    }
}
