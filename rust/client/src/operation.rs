//! [`Operation`]: an unfinished request. The application polls the operation or waits for it. [`PendingOperation`] is a
//! request to the driver.

use crate::error::Error;

/// An operation that waits for the driver. The command was sent when the operation was created.
///
/// The result can be taken any number of times. If the driver refuses because the previous endpoint on the same address
/// is still closing (`RESOURCE_TEMPORARILY_UNAVAILABLE`), the command is sent again after 10 ms, then after twice the
/// time up to 320 ms, for up to the driver timeout.
///
/// Dropping an unfinished operation cancels it. Not thread-safe: use a lock to share it.
pub type PendingOperation<T> = Operation<T, Error>;

/// A request, or several in sequence, whose result the application polls or waits for. A failed request has an error
/// of the type `E`.
///
/// The result can be read any number of times. Dropping an unfinished operation cancels it. Not thread-safe: use a lock
/// to share it.
#[must_use = "an operation that is dropped is cancelled"]
pub struct Operation<T, E> {
    state: OperationState<T, E>,
    correlation_id: i64,
}

enum OperationState<T, E> {
    Pending(Box<dyn OperationSteps<T, E>>),
    Finished(Result<T, E>),
}

/// The steps of an operation.
pub trait OperationSteps<T, E>: Send {
    /// Returns the correlation id of the request of the current step; −1 if this step has not sent a request.
    fn correlation_id(&self) -> i64;
    /// Continues without waiting. Returns the result; `None` if it is not available yet.
    ///
    /// # Errors
    /// The operation fails with this error, unless the error [is passing](OperationError::is_passing).
    fn poll(&mut self) -> Result<Option<T>, E>;
    /// Whether the operation can be cancelled.
    fn is_revocable(&self) -> bool {
        true
    }
    /// Undoes as much of the unfinished operation as possible. The steps are dropped next.
    fn abandon(&mut self) {}
    /// Returns the client that waits for the operation.
    fn waiter(&self) -> &dyn Waiter;
}

/// A client that can wait for an operation.
pub trait Waiter {
    /// Refuses to wait inside a handler of the client, where the wait would never end.
    ///
    /// # Errors
    /// [`Error::ReentrantCall`] inside a handler of the client.
    fn check_may_wait(&self) -> Result<(), Error>;
    /// Runs the embedded driver that must read the command. Returns `false` if there is none, or if polls run it.
    fn run_driver(&self) -> bool {
        false
    }
    /// Waits a moment; `waits` is the number of earlier waits.
    ///
    /// # Errors
    /// [`Error::ReentrantCall`] inside a handler of the client; [`Error::Interrupted`] if the context's interrupt check
    /// ends the wait.
    fn idle_while_waiting(&self, waits: u32) -> Result<(), Error>;
}

/// An error of an operation.
pub trait OperationError: Clone + From<Error> {
    /// The error of a cancelled operation.
    const CANCELLED: Self;

    /// Whether an operation continues after a poll has failed with this error.
    fn is_passing(&self) -> bool {
        false
    }
}

impl OperationError for Error {
    const CANCELLED: Self = Self::OperationCancelled;
}

impl<T: Clone, E: OperationError> Operation<T, E> {
    /// Creates an operation of these steps.
    pub fn new(steps: impl OperationSteps<T, E> + 'static) -> Self {
        Self {
            correlation_id: steps.correlation_id(),
            state: OperationState::Pending(Box::new(steps)),
        }
    }

    /// Creates an operation that is already finished and needs no response.
    pub(crate) fn finished(value: T) -> Self {
        Self {
            correlation_id: NO_COMMAND,
            state: OperationState::Finished(Ok(value)),
        }
    }

    /// Returns the correlation id of the operation's current or last request; −1 if this step has not sent a request,
    /// or needs none. A command that is sent again has a new id.
    pub fn correlation_id(&self) -> i64 {
        self.correlation_id
    }

    /// Whether the operation succeeded, failed or was cancelled, as of the last [`poll`](Self::poll).
    pub fn is_finished(&self) -> bool {
        matches!(self.state, OperationState::Finished(_))
    }

    /// Runs the client once and returns the result; `None` if it is not available yet. Never blocks.
    ///
    /// # Errors
    /// For an operation of the driver: its refusal, [`Error::DriverTimeout`] if the driver did not respond within the
    /// driver timeout, [`Error::OperationCancelled`], [`Error::ClientClosed`]. Each later call returns the same error.
    /// A [passing](OperationError::is_passing) error is the exception: then the operation continues.
    pub fn poll(&mut self) -> Result<Option<T>, E> {
        if let OperationState::Pending(steps) = &mut self.state {
            let outcome = steps.poll();
            self.correlation_id = steps.correlation_id();
            match outcome {
                Ok(None) => return Ok(None),
                Err(error) if error.is_passing() => return Err(error),
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
    /// The same errors as [`poll`](Self::poll); [`Error::ReentrantCall`] inside a handler of the client, where the
    /// wait would never end; [`Error::Interrupted`] if the context's interrupt check ends the wait. An interrupt
    /// cancels the operation if it can be undone.
    pub fn wait(&mut self) -> Result<T, E> {
        let mut waits = 0;
        loop {
            if let Some(value) = self.poll()? {
                return Ok(value);
            }
            let OperationState::Pending(steps) = &self.state else {
                continue;
            };
            if let Err(error) = steps.waiter().idle_while_waiting(waits) {
                if matches!(error, Error::Interrupted) {
                    self.cancel();
                }
                return Err(error.into());
            }
            waits += 1;
        }
    }

    /// Refuses to wait for an unfinished operation inside a handler of the client.
    ///
    /// # Errors
    /// [`Error::ReentrantCall`] inside a handler of the client, if the operation is not finished.
    pub fn check_may_wait(&self) -> Result<(), Error> {
        match &self.state {
            OperationState::Pending(steps) => steps.waiter().check_may_wait(),
            OperationState::Finished(_) => Ok(()),
        }
    }

    /// Runs the embedded driver that must read the command. Returns whether there is such a driver.
    pub fn run_driver(&self) -> bool {
        match &self.state {
            OperationState::Pending(steps) => steps.waiter().run_driver(),
            OperationState::Finished(_) => false,
        }
    }

    /// Cancels the operation. Returns whether the operation was cancelled. A finished operation is not cancelled. An
    /// operation that cannot be undone (removal, rejection, static counter) is not cancelled either, and continues.
    ///
    /// If the driver has already added the resource, the client removes it as soon as the response comes. An archive
    /// still executes a request that was sent.
    pub fn cancel(&mut self) -> bool {
        let OperationState::Pending(steps) = &mut self.state else {
            return false;
        };
        if !steps.is_revocable() {
            return false;
        }
        steps.abandon();
        self.state = OperationState::Finished(Err(E::CANCELLED));
        true
    }
}

impl<T, E> Drop for Operation<T, E> {
    fn drop(&mut self) {
        if let OperationState::Pending(steps) = &mut self.state {
            steps.abandon();
        }
    }
}

impl<T, E> std::fmt::Debug for Operation<T, E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Operation")
            .field("correlation_id", &self.correlation_id)
            .field(
                "is_pending",
                &matches!(self.state, OperationState::Pending(_)),
            )
            .finish_non_exhaustive()
    }
}

/// The correlation id of an operation without a command.
pub(crate) const NO_COMMAND: i64 = -1;
