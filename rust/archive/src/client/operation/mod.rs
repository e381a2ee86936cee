//! [`ArchiveOperation`]: one request to the archive, or a sequence of requests to the archive and commands to the
//! driver. The last of them has the result of the operation.

mod call;
mod earliest_replay;
mod recorded;
mod replay;
mod response_replay;
mod timed_replay;

use aeron_client::{Operation, OperationSteps, Waiter};

use super::aeron_archive::AeronArchive;
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
/// during a poll. [`ArchiveClientError::ReentrantCall`] does not end an operation.
///
/// Dropping an unfinished operation cancels it: no further request is sent, and later responses are ignored. The
/// archive still executes a request that was sent.
pub type ArchiveOperation<T> = Operation<T, ArchiveClientError>;

/// The steps of an operation, which poll a client of the archive.
pub(super) trait Steps<T>: Send {
    /// Returns the correlation id of the request of the current step; -1 if this step has not sent a request.
    fn correlation_id(&self) -> i64;
    /// Makes progress without waiting. Returns `None` until the result is available.
    fn poll(&mut self, archive: &AeronArchive) -> Result<Option<T>>;
    /// Abandons the operation.
    fn abandon(&mut self, archive: &AeronArchive);
}

/// The steps, with the client that they poll.
struct StepsOfClient<S> {
    archive: AeronArchive,
    steps: S,
}

impl<T, S: Steps<T>> OperationSteps<T, ArchiveClientError> for StepsOfClient<S> {
    fn correlation_id(&self) -> i64 {
        self.steps.correlation_id()
    }

    fn poll(&mut self) -> Result<Option<T>> {
        self.steps.poll(&self.archive)
    }

    fn abandon(&mut self) {
        self.steps.abandon(&self.archive);
    }

    fn waiter(&self) -> &dyn Waiter {
        &self.archive
    }
}

impl AeronArchive {
    /// Creates an operation of these steps.
    pub(super) fn operation<T: Clone>(
        &self,
        steps: Result<impl Steps<T> + 'static>,
    ) -> Result<ArchiveOperation<T>> {
        let (archive, steps) = (self.clone(), steps?);
        Ok(Operation::new(StepsOfClient { archive, steps }))
    }
}

/// Abandons a request.
fn abandon<T>(archive: &AeronArchive, ticket: &Ticket<T>) {
    archive.abandon(ticket.correlation_id());
}
