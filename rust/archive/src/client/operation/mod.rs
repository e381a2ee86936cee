//! [`ArchiveOperation`]: a request, or several in a row, that the archive has not answered.

mod recorded;
mod replay;
mod response_replay;

use super::aeron_archive::{AeronArchive, wait_for};
use super::call::Ticket;
use super::error::{ArchiveClientError, Result};

pub(super) use recorded::{RecordedExclusivePublication, RecordedPublication};
pub use replay::StartedReplay;
pub(super) use replay::{ReplaySubscription, SubscriptionOfReplay};
pub(super) use response_replay::ResponseReplay;

/// An operation that waits for the archive. Its first request was sent when the operation was made.
///
/// The result can be taken any number of times. Not thread-safe: put it behind a lock to share it.
///
/// Dropping an unfinished operation cancels it: no further request is sent, and the answer is dropped. The archive still executes a
/// request that was sent.
#[must_use = "an operation that is dropped is cancelled"]
pub struct ArchiveOperation<T> {
    archive: AeronArchive,
    state: State<T>,
    correlation_id: i64,
}

enum State<T> {
    Pending(Box<dyn Steps<T>>),
    Finished(Result<T>),
}

/// How an operation goes on.
pub(super) trait Steps<T>: Send {
    /// Correlation id of the request that was sent last, -1 before the first.
    fn correlation_id(&self) -> i64;
    /// Makes progress without waiting. Returns the result, `None` while there is none.
    fn poll(&mut self, archive: &AeronArchive) -> Result<Option<T>>;
    /// Abandons the operation.
    fn abandon(&mut self, archive: &AeronArchive);
}

impl<T: Clone + 'static> ArchiveOperation<T> {
    pub(super) fn new(archive: &AeronArchive, steps: impl Steps<T> + 'static) -> Self {
        Self {
            archive: archive.clone(),
            correlation_id: steps.correlation_id(),
            state: State::Pending(Box::new(steps)),
        }
    }

    /// An operation that is one request.
    pub(super) fn call(archive: &AeronArchive, ticket: Ticket<T>) -> Self {
        Self::new(archive, CallSteps(ticket))
    }

    /// Correlation id of the operation's last request, -1 before the first.
    pub fn correlation_id(&self) -> i64 {
        self.correlation_id
    }

    /// Whether the operation succeeded, failed or was cancelled, as of the last [`poll`](Self::poll).
    pub fn is_finished(&self) -> bool {
        matches!(self.state, State::Finished(_))
    }

    /// Polls the client once and returns the result, `None` while there is none. Never blocks.
    ///
    /// # Errors
    /// See [`AeronArchive`]; [`ArchiveClientError::OperationCancelled`]; the same at each call.
    pub fn poll(&mut self) -> Result<Option<T>> {
        if let State::Pending(steps) = &mut self.state {
            let outcome = steps.poll(&self.archive);
            self.correlation_id = steps.correlation_id();
            match outcome {
                Ok(None) => return Ok(None),
                // The operation goes on when the handler has returned.
                Err(ArchiveClientError::ReentrantCall) => {
                    return Err(ArchiveClientError::ReentrantCall);
                }
                Ok(Some(value)) => self.state = State::Finished(Ok(value)),
                Err(error) => self.state = State::Finished(Err(error)),
            }
        }
        match &self.state {
            State::Pending(_) => Ok(None),
            State::Finished(outcome) => outcome.clone().map(Some),
        }
    }

    /// Waits for the result.
    ///
    /// # Errors
    /// As [`poll`](Self::poll); [`aeron_client::Error::ReentrantCall`] in a handler of the Aeron client;
    /// [`aeron_client::Error::Interrupted`] if its interrupt check says so, which cancels the operation.
    pub fn wait(&mut self) -> Result<T> {
        let archive = self.archive.clone();
        let outcome = wait_for(archive.aeron(), archive.context(), || self.poll());
        if let Err(ArchiveClientError::Client(aeron_client::Error::Interrupted)) = &outcome {
            self.cancel();
        }
        outcome
    }

    /// Cancels the operation. Returns whether that took effect: not if the operation is finished.
    pub fn cancel(&mut self) -> bool {
        let State::Pending(steps) = &mut self.state else {
            return false;
        };
        steps.abandon(&self.archive);
        self.state = State::Finished(Err(ArchiveClientError::OperationCancelled));
        true
    }
}

impl<T> Drop for ArchiveOperation<T> {
    fn drop(&mut self) {
        if let State::Pending(steps) = &mut self.state {
            steps.abandon(&self.archive);
        }
    }
}

impl<T> std::fmt::Debug for ArchiveOperation<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ArchiveOperation")
            .field("correlation_id", &self.correlation_id)
            .field("is_pending", &matches!(self.state, State::Pending(_)))
            .finish_non_exhaustive()
    }
}

/// One request, until its result is taken.
struct CallSteps<T>(Ticket<T>);

impl<T> Steps<T> for CallSteps<T> {
    fn correlation_id(&self) -> i64 {
        self.0.correlation_id()
    }

    fn poll(&mut self, archive: &AeronArchive) -> Result<Option<T>> {
        archive.poll_session(|session| session.take(&self.0))
    }

    fn abandon(&mut self, archive: &AeronArchive) {
        abandon(archive, &self.0);
    }
}

/// Abandons a request.
fn abandon<T>(archive: &AeronArchive, ticket: &Ticket<T>) {
    archive.abandon(ticket.correlation_id());
}
