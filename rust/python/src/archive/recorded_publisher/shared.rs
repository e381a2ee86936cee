//! [`SharedPublisher`]: a publisher that the Python object shares with native threads.

use std::sync::Arc;

use aeron_archive::client::{RecordedPublisher, RecordedPublisherStatus};

use super::super::credentials::Credentials;
use super::super::queued_events::QueuedEvents;
use super::super::recorded_publisher_options::PublisherClientSettings;
use super::super::single_caller::{CallInProgress, Called, SingleCaller};
use super::events::PublisherEvent;
use crate::exit::Closable;

/// The state that the Python object shares with native threads. Such a thread checks whether an offer would succeed.
pub(super) struct SharedPublisher {
    pub(super) publisher: SingleCaller<RecordedPublisher>,
    pub(super) status: RecordedPublisherStatus,
    pub(super) events: Arc<QueuedEvents<PublisherEvent>>,
    pub(super) credentials: Arc<Credentials>,
    pub(super) client_settings: Arc<PublisherClientSettings>,
}

impl Called for RecordedPublisher {
    type Status = RecordedPublisherStatus;

    fn status(&self) -> Self::Status {
        self.status()
    }

    fn is_closed(status: &Self::Status) -> bool {
        status.is_closed()
    }

    fn close(&mut self) {
        self.close();
    }
}

/// Reason for the end of a wait.
pub(super) enum WaitEnd<T> {
    Done(T),
    /// There are events for the handlers of the program. The wait continues after the handlers have run.
    Events,
    InUse,
}

impl SharedPublisher {
    /// Takes one step of the publisher, and calls `f`. Returns `None` if the wait must continue.
    pub(super) fn step<T>(
        &self,
        mut f: impl FnMut(&mut RecordedPublisher) -> Option<T>,
    ) -> Option<WaitEnd<T>> {
        self.client_settings.run_driver();
        let outcome = self.publisher.call(|publisher| {
            publisher.poll();
            f(publisher)
        });
        match outcome {
            Ok(Some(Some(value))) => Some(WaitEnd::Done(value)),
            Ok(_) => self.events.has_any().then_some(WaitEnd::Events),
            Err(CallInProgress) => Some(WaitEnd::InUse),
        }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.publisher.is_closed()
    }

    pub(super) fn is_over(&self) -> bool {
        self.is_closed() || self.status.failure().is_some()
    }

    /// Takes one step of the publisher. Returns whether `is_ready` returns `true`, or a call would raise or run a
    /// handler.
    pub(super) fn look(&self, is_ready: impl FnOnce(&RecordedPublisher) -> bool) -> bool {
        self.client_settings.run_driver();
        let look = |publisher: &mut RecordedPublisher| {
            publisher.poll();
            is_ready(publisher)
        };
        let has_news = || self.is_over() || self.events.has_any();
        has_news() || matches!(self.publisher.with(look), Ok(Some(true))) || has_news()
    }

    pub(super) fn is_recorded(&self) -> bool {
        self.status.unrecorded().messages == 0
    }
}

impl Closable for SharedPublisher {
    fn close_at_exit(&self) {
        self.publisher.close();
    }
}
