//! [`PendingOperation`]: an unfinished request to the driver. The application polls the operation or waits for it.

use std::sync::Arc;
use std::time::Duration;

use aeron_protocol::ErrorCode;

use crate::client::Client;
use crate::conductor::{CommandProgress, Conductor};
use crate::error::{CloseCause, DriverTimeout, Error, Result};

/// Time between the first refusal with `RESOURCE_TEMPORARILY_UNAVAILABLE` and the next attempt. Each further refusal
/// doubles the time.
const RETRY_INTERVAL: Duration = Duration::from_millis(10);
/// Maximum time between two attempts. The lack may last: if the driver has no file descriptors left, hundreds of
/// operations that retry every 10 ms would delay the commands of all other clients by many seconds.
const MAX_RETRY_INTERVAL: Duration = Duration::from_millis(320);

/// An operation that waits for the driver. The command was sent when the operation was created.
///
/// The result can be taken any number of times. If the driver refuses because the previous endpoint on the same address
/// is still closing (`RESOURCE_TEMPORARILY_UNAVAILABLE`), the command is sent again after 10 ms, then after twice the
/// time up to 320 ms, for up to the driver timeout.
///
/// Dropping an unfinished operation cancels it. Not thread-safe: use a lock to share it.
#[must_use = "an operation that is dropped is cancelled"]
pub struct PendingOperation<T> {
    state: OperationState<T>,
    correlation_id: i64,
}

enum OperationState<T> {
    Pending(Box<dyn Steps<T>>),
    Finished(Result<T>),
}

/// The steps of an operation.
pub(crate) trait Steps<T>: Send {
    /// Returns the id of the last command that was sent; −1 if no command was sent.
    fn correlation_id(&self) -> i64;
    /// Continues without waiting. Returns the result; `None` if it is not available yet.
    fn poll(&mut self) -> Result<Option<T>>;
    /// Whether the operation can be undone.
    fn is_revocable(&self) -> bool;
    /// Abandons the operation and undoes it if possible.
    fn abandon(&mut self);
    /// Refuses to wait inside a handler of the client, where the wait would never end.
    fn check_may_wait(&self) -> Result<()>;
    /// Calls the application's interrupt check. Returns whether waits must end.
    fn is_interrupted(&self) -> bool;
    /// Runs the client's embedded driver. Returns whether the client has an embedded driver.
    fn run_driver(&self) -> bool;
    /// Waits a moment; `waits` is the number of earlier waits.
    fn idle(&self, waits: u32);
}

impl<T: Clone> PendingOperation<T> {
    pub(crate) fn new(steps: impl Steps<T> + 'static) -> Self {
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

    /// Returns the correlation id of the command; −1 if the operation needs no command. A command that is sent again
    /// has a new id.
    pub fn correlation_id(&self) -> i64 {
        self.correlation_id
    }

    /// Whether the operation succeeded, failed or was cancelled, as of the last [`poll`](Self::poll).
    pub fn is_finished(&self) -> bool {
        matches!(self.state, OperationState::Finished(_))
    }

    /// Runs the client's conductor once and returns the result; `None` if it is not available yet. Never blocks.
    ///
    /// # Errors
    /// The driver's refusal, [`Error::DriverTimeout`] if the driver did not respond within the driver timeout,
    /// [`Error::OperationCancelled`], [`Error::ClientClosed`]. Each later call returns the same error.
    pub fn poll(&mut self) -> Result<Option<T>> {
        if let OperationState::Pending(steps) = &mut self.state {
            let outcome = steps.poll();
            self.correlation_id = steps.correlation_id();
            match outcome {
                Ok(None) => return Ok(None),
                Ok(Some(value)) => self.state = OperationState::Finished(Ok(value)),
                Err(error) => self.state = OperationState::Finished(Err(reason_of(error))),
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
    pub fn wait(&mut self) -> Result<T> {
        let mut waits = 0;
        loop {
            if let Some(value) = self.poll()? {
                return Ok(value);
            }
            let OperationState::Pending(steps) = &self.state else {
                continue;
            };
            steps.check_may_wait()?;
            if steps.is_interrupted() {
                self.cancel();
                return Err(Error::Interrupted);
            }
            steps.idle(waits);
            waits += 1;
        }
    }

    /// Refuses to wait for an unfinished operation inside a handler of the client.
    ///
    /// # Errors
    /// [`Error::ReentrantCall`] inside a handler of the client, if the operation is not finished.
    pub fn check_may_wait(&self) -> Result<()> {
        match &self.state {
            OperationState::Pending(steps) => steps.check_may_wait(),
            OperationState::Finished(_) => Ok(()),
        }
    }

    /// Runs the client's embedded driver. Returns whether the client has an embedded driver.
    pub fn run_driver(&self) -> bool {
        match &self.state {
            OperationState::Pending(steps) => steps.run_driver(),
            OperationState::Finished(_) => false,
        }
    }

    /// Cancels the operation. Returns whether the operation was cancelled. A finished operation is not cancelled. An
    /// operation that cannot be undone (removal, rejection, static counter) is not cancelled either, and continues.
    ///
    /// If the driver has already added the resource, the client removes it as soon as the response comes.
    pub fn cancel(&mut self) -> bool {
        let OperationState::Pending(steps) = &mut self.state else {
            return false;
        };
        if !steps.is_revocable() {
            return false;
        }
        steps.abandon();
        self.state = OperationState::Finished(Err(Error::OperationCancelled));
        true
    }
}

/// Returns why a request failed that waited while the client was closed. A driver that does not respond has no new
/// heartbeats either. The client often notices these first, and is closed.
fn reason_of(error: Error) -> Error {
    match &error {
        Error::ClientClosed(CloseCause(Some(cause)))
            if matches!(**cause, Error::DriverTimeout(_)) =>
        {
            (**cause).clone()
        }
        _ => error,
    }
}

impl<T> Drop for PendingOperation<T> {
    fn drop(&mut self) {
        if let OperationState::Pending(steps) = &mut self.state {
            steps.abandon();
        }
    }
}

impl<T> std::fmt::Debug for PendingOperation<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PendingOperation")
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

/// Sends a command. Returns its correlation id; `None` if the resource that it is about is not in the next driver yet.
type Request = Box<dyn FnMut(&mut Conductor, &Arc<Client>) -> Result<Option<i64>> + Send>;

/// Takes the result of a command out of the conductor, given its correlation id and the value of the response.
pub(crate) type Take<T> = fn(&mut Conductor, &Arc<Client>, i64, i32) -> Option<T>;

/// Steps of a command to the driver, until its result is taken.
pub(crate) struct CommandSteps<T> {
    client: Arc<Client>,
    /// Sends the command again.
    request: Request,
    take: Take<T>,
    correlation_id: i64,
    is_revocable: bool,
    /// Number of drivers that the client had lost when the command was sent.
    drivers_lost: u64,
    /// Time at which to send the command again after a temporary refusal, or to the next driver.
    resend_at_ns: Option<i64>,
    /// Time from the next refusal to the next attempt.
    retry_interval: Duration,
    retry_until_ns: i64,
}

impl<T: Clone + 'static> CommandSteps<T> {
    /// Sends the command through `request`.
    pub(crate) fn send(
        client: &Arc<Client>,
        mut request: impl FnMut(&mut Conductor, &Arc<Client>) -> Result<Option<i64>> + Send + 'static,
        take: Take<T>,
    ) -> Result<Self> {
        let now_ns = client.now_ns();
        let (sent, drivers_lost) = {
            let mut conductor = client.open_conductor()?;
            let sent = match conductor.is_down() {
                false => request(&mut conductor, client)?,
                true => None,
            };
            (sent, conductor.drivers_lost())
        };
        // Without a driver, the next driver gets the command.
        let resend_at_ns = sent.is_none().then_some(now_ns);
        let correlation_id = sent.unwrap_or(NO_COMMAND);
        let timeout_ns = client.settings.driver_timeout().as_nanos() as i64;
        Ok(Self {
            client: Arc::clone(client),
            request: Box::new(request),
            take,
            correlation_id,
            is_revocable: true,
            drivers_lost,
            resend_at_ns,
            retry_interval: RETRY_INTERVAL,
            retry_until_ns: now_ns + timeout_ns,
        })
    }

    /// Declares that the command cannot be undone.
    pub(crate) fn irrevocable(mut self) -> Self {
        self.is_revocable = false;
        self
    }

    pub(crate) fn into_operation(self) -> PendingOperation<T> {
        PendingOperation::new(self)
    }

    /// Whether the command must be sent again after this refusal.
    fn is_temporary(&self, error: &Error) -> bool {
        matches!(
            error,
            Error::Registration {
                code: ErrorCode::ResourceTemporarilyUnavailable,
                ..
            }
        ) && self.client.now_ns() - self.retry_until_ns < 0
    }

    /// Sends the command again if the retry interval is over, and there is a driver.
    fn resend(&mut self, at_ns: i64) -> Result<()> {
        let now_ns = self.client.now_ns();
        if now_ns - at_ns < 0 {
            return Ok(());
        }
        let mut conductor = self.client.open_conductor()?;
        let sent = match conductor.is_down() {
            false => (self.request)(&mut conductor, &self.client)?,
            true => None,
        };
        match sent {
            Some(correlation_id) => {
                (self.correlation_id, self.resend_at_ns) = (correlation_id, None);
                self.drivers_lost = conductor.drivers_lost();
                Ok(())
            }
            None if now_ns - self.retry_until_ns < 0 => Ok(()),
            None => {
                let timeout = self.client.settings.driver_timeout();
                Err(DriverTimeout::NoResponse(timeout).into())
            }
        }
    }
}

impl<T: Clone + 'static> Steps<T> for CommandSteps<T> {
    fn correlation_id(&self) -> i64 {
        self.correlation_id
    }

    fn poll(&mut self) -> Result<Option<T>> {
        self.client.service();
        if let Some(at_ns) = self.resend_at_ns {
            return self.resend(at_ns).map(|()| None);
        }
        let id = self.correlation_id;
        let mut conductor = self.client.open_conductor()?;
        if conductor.drivers_lost() != self.drivers_lost {
            let result = conductor.commands.take_kept(self.drivers_lost, id);
            if let Some(value) = result {
                return Ok((self.take)(&mut conductor, &self.client, id, value));
            }
            // The next driver gets the command. Its id belongs to another command now.
            let now_ns = self.client.now_ns();
            self.resend_at_ns = Some(now_ns);
            self.retry_until_ns = now_ns + self.client.settings.driver_timeout().as_nanos() as i64;
            self.correlation_id = NO_COMMAND;
            return Ok(None);
        }
        match conductor.poll_command(&self.client, id) {
            Ok(CommandProgress::Awaiting) => Ok(None),
            Ok(CommandProgress::Succeeded(value)) => {
                (self.take)(&mut conductor, &self.client, id, value)
                    .map(Some)
                    .ok_or_else(|| removed_meanwhile(id))
            }
            Ok(CommandProgress::Unknown) => Err(removed_meanwhile(id)),
            Err(error) => {
                drop(conductor);
                if !self.is_temporary(&error) {
                    return Err(error);
                }
                let retry_ns = self.retry_interval.as_nanos() as i64;
                // The last attempt is at the end of the driver timeout.
                let resend_ns = (self.client.now_ns() + retry_ns).min(self.retry_until_ns);
                debug_assert!(
                    self.resend_at_ns.is_none(),
                    "command {id} must not be sent again before the first repetition"
                );
                self.resend_at_ns = Some(resend_ns);
                self.retry_interval = (2 * self.retry_interval).min(MAX_RETRY_INTERVAL);
                Ok(None)
            }
        }
    }

    fn is_revocable(&self) -> bool {
        self.is_revocable
    }

    fn abandon(&mut self) {
        // A closed client has nothing left to undo: the driver removes all its resources.
        if let Ok(mut conductor) = self.client.open_conductor() {
            match conductor.drivers_lost() == self.drivers_lost {
                true => conductor.abandon(&self.client, self.correlation_id),
                false => drop(
                    conductor
                        .commands
                        .take_kept(self.drivers_lost, self.correlation_id),
                ),
            }
        }
        self.client.dispatcher.run_inline();
    }

    fn check_may_wait(&self) -> Result<()> {
        self.client.check_may_wait()
    }

    fn is_interrupted(&self) -> bool {
        self.client.is_interrupted()
    }

    fn run_driver(&self) -> bool {
        self.client.run_driver()
    }

    fn idle(&self, waits: u32) {
        self.client.idle_while_waiting(waits);
    }
}

/// Steps of the removal of a resource, until the driver has confirmed the removal.
pub(crate) struct RemovalSteps {
    client: Arc<Client>,
    registration_id: i64,
    deadline_ns: i64,
}

impl RemovalSteps {
    /// Creates the steps of a removal that was requested from the conductor.
    pub(crate) fn new(client: &Arc<Client>, registration_id: i64) -> Self {
        let timeout_ns = client.settings.driver_timeout().as_nanos() as i64;
        Self {
            client: Arc::clone(client),
            registration_id,
            deadline_ns: client.now_ns() + timeout_ns,
        }
    }
}

impl Steps<bool> for RemovalSteps {
    fn correlation_id(&self) -> i64 {
        NO_COMMAND
    }

    fn poll(&mut self) -> Result<Option<bool>> {
        self.client.service();
        if !self
            .client
            .open_conductor()?
            .is_removing(self.registration_id)
        {
            return Ok(Some(true));
        }
        if self.client.now_ns() - self.deadline_ns > 0 {
            let timeout = self.client.settings.driver_timeout();
            return Err(DriverTimeout::NoResponse(timeout).into());
        }
        Ok(None)
    }

    fn is_revocable(&self) -> bool {
        false
    }

    fn abandon(&mut self) {}

    fn check_may_wait(&self) -> Result<()> {
        self.client.check_may_wait()
    }

    fn is_interrupted(&self) -> bool {
        self.client.is_interrupted()
    }

    fn run_driver(&self) -> bool {
        self.client.run_driver()
    }

    fn idle(&self, waits: u32) {
        self.client.idle_while_waiting(waits);
    }
}

/// Returns the error for a resource that another thread removed while it was being added.
fn removed_meanwhile(id: i64) -> Error {
    Error::InvalidArgument(format!(
        "registration {id} was removed while it was being added"
    ))
}
