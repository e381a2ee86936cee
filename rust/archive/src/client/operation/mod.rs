//! [`ArchiveOperation`]: one request to the archive, or a sequence of requests to the archive and commands to the
//! driver. The last of them has the result of the operation.

mod call;
mod earliest_replay;
mod recorded;
mod replay;
mod response_replay;
mod timed_replay;

use super::aeron_archive::{AeronArchive, wait_for};
use super::call::Ticket;
use super::error::{ArchiveClientError, Result};

pub(super) use call::{CallSteps, ListingSteps};
pub(super) use earliest_replay::EarliestReplay;
pub(super) use recorded::{RecordedExclusivePublication, RecordedPublication};
pub(super) use replay::ReplaySubscription;
pub use replay::StartedReplay;
pub(super) use response_replay::ResponseReplay;
pub(super) use timed_replay::TimedReplay;

/// An operation that waits for the archive. Some operations send their first request when they are created, others
/// during a poll.
///
/// The result can be read any number of times. An operation is not thread-safe: share it through a
/// mutex.
///
/// Dropping an unfinished operation cancels it: no further request is sent, and later responses are
/// ignored. The archive still executes a request that was sent.
#[must_use = "an operation that is dropped is cancelled"]
pub struct ArchiveOperation<T> {
    archive: AeronArchive,
    state: OperationState<T>,
    correlation_id: i64,
}

enum OperationState<T> {
    Pending(Box<dyn Steps<T>>),
    Finished(Result<T>),
}

/// The steps of an operation.
pub(super) trait Steps<T>: Send {
    /// Returns the correlation id of the request of the current step; -1 if this step has not sent a request.
    fn correlation_id(&self) -> i64;
    /// Makes progress without waiting. Returns `None` until the result is available.
    fn poll(&mut self, archive: &AeronArchive) -> Result<Option<T>>;
    /// Abandons the operation.
    fn abandon(&mut self, archive: &AeronArchive);
}

impl<T: Clone + 'static> ArchiveOperation<T> {
    pub(super) fn new(archive: &AeronArchive, steps: impl Steps<T> + 'static) -> Self {
        Self {
            archive: archive.clone(),
            correlation_id: steps.correlation_id(),
            state: OperationState::Pending(Box::new(steps)),
        }
    }

    /// Returns the correlation id of the request of the operation's current or last step; -1 if this step has not sent
    /// a request to the archive, for example because it waits for the driver.
    pub fn correlation_id(&self) -> i64 {
        self.correlation_id
    }

    /// Returns whether an earlier [`poll`](Self::poll) has found the result or an error, or the operation was
    /// cancelled.
    pub fn is_finished(&self) -> bool {
        matches!(self.state, OperationState::Finished(_))
    }

    /// Polls the client once. Returns `None` until the result is available. Never blocks.
    ///
    /// # Errors
    /// See [`AeronArchive`]. [`ArchiveClientError::OperationCancelled`] after a cancellation. After an error, each
    /// later call returns the same error. The exception is [`ArchiveClientError::ReentrantCall`]: then the operation
    /// continues.
    pub fn poll(&mut self) -> Result<Option<T>> {
        if let OperationState::Pending(steps) = &mut self.state {
            let outcome = steps.poll(&self.archive);
            self.correlation_id = steps.correlation_id();
            match outcome {
                Ok(None) => return Ok(None),
                // The operation continues after the handler has returned.
                Err(ArchiveClientError::ReentrantCall) => {
                    return Err(ArchiveClientError::ReentrantCall);
                }
                Ok(Some(value)) => self.state = OperationState::Finished(Ok(value)),
                Err(error) => self.state = OperationState::Finished(Err(error)),
            }
        }
        match &self.state {
            OperationState::Pending(_) => Ok(None),
            OperationState::Finished(outcome) => outcome.clone().map(Some),
        }
    }

    /// Waits for the result.
    ///
    /// # Errors
    /// The same errors as [`poll`](Self::poll). [`aeron_client::Error::ReentrantCall`] in a handler
    /// of the Aeron client. [`aeron_client::Error::Interrupted`] if the interrupt check of the
    /// Aeron client ends the wait. Then the operation is cancelled.
    pub fn wait(&mut self) -> Result<T> {
        let archive = self.archive.clone();
        let outcome = wait_for(archive.aeron(), archive.context(), || self.poll());
        if let Err(ArchiveClientError::Client(aeron_client::Error::Interrupted)) = &outcome {
            self.cancel();
        }
        outcome
    }

    /// Cancels the operation. Returns `false` if the operation was finished already.
    pub fn cancel(&mut self) -> bool {
        let OperationState::Pending(steps) = &mut self.state else {
            return false;
        };
        steps.abandon(&self.archive);
        self.state = OperationState::Finished(Err(ArchiveClientError::OperationCancelled));
        true
    }
}

impl<T> Drop for ArchiveOperation<T> {
    fn drop(&mut self) {
        if let OperationState::Pending(steps) = &mut self.state {
            steps.abandon(&self.archive);
        }
    }
}

impl<T> std::fmt::Debug for ArchiveOperation<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ArchiveOperation")
            .field("correlation_id", &self.correlation_id)
            .field(
                "is_pending",
                &matches!(self.state, OperationState::Pending(_)),
            )
            .finish_non_exhaustive()
    }
}

/// Abandons a request.
fn abandon<T>(archive: &AeronArchive, ticket: &Ticket<T>) {
    archive.abandon(ticket.correlation_id());
}
