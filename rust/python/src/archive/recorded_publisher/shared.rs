//! [`SharedPublisher`]: a publisher that the Python object shares with native threads.

use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::sync::{Arc, Mutex, TryLockError};

use aeron_archive::client::{RecordedPublisher, RecordedPublisherStatus};

use super::super::credentials::Credentials;
use super::super::recorded_publisher_options::PublisherClientSettings;
use super::events::PublisherEvents;
use crate::exit::Closable;

/// The state that the Python object shares with native threads. Such a thread checks whether an offer would succeed.
pub(super) struct SharedPublisher {
    pub(super) publisher: Mutex<RecordedPublisher>,
    pub(super) status: RecordedPublisherStatus,
    pub(super) events: Arc<PublisherEvents>,
    pub(super) credentials: Arc<Credentials>,
    pub(super) client_settings: Arc<PublisherClientSettings>,
    pub(super) is_closing: AtomicBool,
    /// Whether a call of the program runs.
    pub(super) is_called: AtomicBool,
}

/// Error: another thread is calling the publisher.
pub(super) struct CallInProgress;

/// Reason for the end of a wait.
pub(super) enum WaitEnd<T> {
    Done(T),
    /// There are events for the handlers of the program. The wait continues after the handlers have run.
    Events,
    InUse,
}

impl SharedPublisher {
    /// Calls `f` with the publisher. If a close was requested during the call, closes the publisher. Returns `None` if
    /// another thread briefly has the lock, to close or check the publisher.
    pub(super) fn with<R>(
        &self,
        f: impl FnOnce(&mut RecordedPublisher) -> R,
    ) -> Result<Option<R>, CallInProgress> {
        let result = match self.publisher.try_lock() {
            Ok(mut publisher) => f(&mut publisher),
            Err(TryLockError::Poisoned(poisoned)) => f(&mut poisoned.into_inner()),
            Err(TryLockError::WouldBlock) if self.is_called.load(Ordering::SeqCst) => {
                return Err(CallInProgress);
            }
            Err(TryLockError::WouldBlock) => return Ok(None),
        };
        self.close_if_asked();
        Ok(Some(result))
    }

    /// Like [`with`](Self::with), for a call of the program: during the call, a second call is refused.
    pub(super) fn call<R>(
        &self,
        f: impl FnOnce(&mut RecordedPublisher) -> R,
    ) -> Result<Option<R>, CallInProgress> {
        self.with(|publisher| {
            self.is_called.store(true, Ordering::SeqCst);
            let result = f(publisher);
            self.is_called.store(false, Ordering::SeqCst);
            result
        })
    }

    /// Takes one step of the publisher, and calls `f`. Returns `None` if the wait must continue.
    pub(super) fn step<T>(
        &self,
        mut f: impl FnMut(&mut RecordedPublisher) -> Option<T>,
    ) -> Option<WaitEnd<T>> {
        self.client_settings.run_driver();
        let outcome = self.call(|publisher| {
            publisher.poll();
            f(publisher)
        });
        match outcome {
            Ok(Some(Some(value))) => Some(WaitEnd::Done(value)),
            Ok(_) => self.events.has_any().then_some(WaitEnd::Events),
            Err(CallInProgress) => Some(WaitEnd::InUse),
        }
    }

    /// Closes the publisher at once, or after the current call if a call runs.
    pub(super) fn close(&self) {
        self.is_closing.store(true, Ordering::SeqCst);
        self.close_if_asked();
    }

    pub(super) fn close_if_asked(&self) {
        // A close stores the flag and then tries the lock; a call releases the lock and then loads the flag. The fence
        // ensures that one of the two sees the other.
        fence(Ordering::SeqCst);
        if !self.is_closing.load(Ordering::SeqCst) || self.status.is_closed() {
            return;
        }
        match self.publisher.try_lock() {
            Ok(mut publisher) => drop(publisher.close()),
            Err(TryLockError::Poisoned(poisoned)) => drop(poisoned.into_inner().close()),
            Err(TryLockError::WouldBlock) => {}
        }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.is_closing.load(Ordering::SeqCst) || self.status.is_closed()
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
        has_news() || matches!(self.with(look), Ok(Some(true))) || has_news()
    }

    pub(super) fn is_recorded(&self) -> bool {
        self.status.unrecorded().messages == 0
    }
}

impl Closable for SharedPublisher {
    fn close_at_exit(&self) {
        self.close();
    }
}
