//! [`PendingOperation`]: what was asked of the driver and is not finished.

use std::sync::Arc;
use std::time::Duration;

use aeron_protocol::ErrorCode;

use crate::client::Client;
use crate::conductor::{Conductor, Progress};
use crate::error::{DriverTimeout, Error, Result};

/// Time between a refusal with `RESOURCE_TEMPORARILY_UNAVAILABLE` and the next attempt.
const RETRY_INTERVAL: Duration = Duration::from_millis(10);

/// An operation that waits for the driver. The command was sent when the operation was made.
///
/// The result can be taken any number of times. A refusal because the predecessor of an endpoint is still closing
/// (`RESOURCE_TEMPORARILY_UNAVAILABLE`) is not reported: the command is sent again, for up to the driver timeout.
///
/// Dropping an unfinished operation cancels it. Not thread-safe: put it behind a lock to share it.
#[must_use = "an operation that is dropped is cancelled"]
pub struct PendingOperation<T> {
    state: State<T>,
    correlation_id: i64,
}

enum State<T> {
    Pending(Box<dyn Steps<T>>),
    Finished(Result<T>),
}

/// How an operation goes on.
pub(crate) trait Steps<T>: Send {
    /// Id of the command that was sent last, −1 for none.
    fn correlation_id(&self) -> i64;
    /// Goes on without waiting. Returns the result, `None` while there is none.
    fn poll(&mut self) -> Result<Option<T>>;
    /// Whether the operation can be undone.
    fn is_revocable(&self) -> bool;
    /// Gives the operation up, and undoes what can be undone.
    fn abandon(&mut self);
    /// Refuses to wait where that would wait for itself.
    fn check_may_wait(&self) -> Result<()>;
    /// Whether the application wants waits to end.
    fn is_interrupted(&self) -> bool;
    /// Runs a driver that has no threads. Returns whether there is one.
    fn run_driver(&self) -> bool;
    /// Waits a moment, after `waits` such waits.
    fn idle(&self, waits: u32);
}

impl<T: Clone> PendingOperation<T> {
    pub(crate) fn new(steps: impl Steps<T> + 'static) -> Self {
        Self {
            correlation_id: steps.correlation_id(),
            state: State::Pending(Box::new(steps)),
        }
    }

    /// An operation that needs nothing of the driver.
    pub(crate) fn finished(value: T) -> Self {
        Self {
            correlation_id: NO_COMMAND,
            state: State::Finished(Ok(value)),
        }
    }

    /// Correlation id of the command, −1 if the operation needs none. A command that is sent again has another id.
    pub fn correlation_id(&self) -> i64 {
        self.correlation_id
    }

    /// Whether the operation succeeded, failed or was cancelled, as of the last [`poll`](Self::poll).
    pub fn is_finished(&self) -> bool {
        matches!(self.state, State::Finished(_))
    }

    /// Runs the client's conductor once and returns the result, `None` while there is none. Never blocks.
    ///
    /// # Errors
    /// The driver's refusal, [`Error::DriverTimeout`] if the driver did not answer within the driver timeout,
    /// [`Error::OperationCancelled`], [`Error::ClientClosed`]; the same at each call.
    pub fn poll(&mut self) -> Result<Option<T>> {
        if let State::Pending(steps) = &mut self.state {
            let outcome = steps.poll();
            self.correlation_id = steps.correlation_id();
            match outcome {
                Ok(None) => return Ok(None),
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
    /// As [`poll`](Self::poll); [`Error::ReentrantCall`] in a handler of the client, which would wait for itself;
    /// [`Error::Interrupted`] if the context's interrupt check says so, which cancels the operation.
    pub fn wait(&mut self) -> Result<T> {
        let mut waits = 0;
        loop {
            if let Some(value) = self.poll()? {
                return Ok(value);
            }
            let State::Pending(steps) = &self.state else {
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

    /// Refuses to wait in a handler of the client.
    ///
    /// # Errors
    /// [`Error::ReentrantCall`].
    pub fn check_may_wait(&self) -> Result<()> {
        match &self.state {
            State::Pending(steps) => steps.check_may_wait(),
            State::Finished(_) => Ok(()),
        }
    }

    /// Runs the driver that the client runs while it waits. Returns whether there is one.
    pub fn run_driver(&self) -> bool {
        match &self.state {
            State::Pending(steps) => steps.run_driver(),
            State::Finished(_) => false,
        }
    }

    /// Cancels the operation. Returns whether that took effect: not if the operation is finished, and not for what cannot
    /// be undone (removals, rejections, static counters), which goes on.
    ///
    /// If the driver has already added the resource, the client removes it as soon as the reply comes.
    pub fn cancel(&mut self) -> bool {
        let State::Pending(steps) = &mut self.state else {
            return false;
        };
        if !steps.is_revocable() {
            return false;
        }
        steps.abandon();
        self.state = State::Finished(Err(Error::OperationCancelled));
        true
    }
}

impl<T> Drop for PendingOperation<T> {
    fn drop(&mut self) {
        if let State::Pending(steps) = &mut self.state {
            steps.abandon();
        }
    }
}

impl<T> std::fmt::Debug for PendingOperation<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PendingOperation")
            .field("correlation_id", &self.correlation_id)
            .field("is_pending", &matches!(self.state, State::Pending(_)))
            .finish_non_exhaustive()
    }
}

/// The correlation id of an operation without a command.
pub(crate) const NO_COMMAND: i64 = -1;

/// Sends a command. Returns its correlation id.
type Request = Box<dyn FnMut(&mut Conductor, &Arc<Client>) -> Result<i64> + Send>;

/// Takes the result of a command out of the conductor, given its correlation id and the value of the answer.
pub(crate) type Take<T> = fn(&mut Conductor, &Arc<Client>, i64, i32) -> Option<T>;

/// A command to the driver, until its result is taken.
pub(crate) struct CommandSteps<T> {
    client: Arc<Client>,
    /// Sends the command again; `None` for commands that are never refused temporarily.
    request: Option<Request>,
    take: Take<T>,
    correlation_id: i64,
    is_revocable: bool,
    /// When to send the command again, after a temporary refusal.
    resend_at_ns: Option<i64>,
    retry_until_ns: i64,
}

impl<T: Clone + 'static> CommandSteps<T> {
    /// Sends the command by `request`.
    pub(crate) fn send(
        client: &Arc<Client>,
        mut request: impl FnMut(&mut Conductor, &Arc<Client>) -> Result<i64> + Send + 'static,
        take: Take<T>,
    ) -> Result<Self> {
        let correlation_id = request(&mut *client.open_conductor()?, client)?;
        let mut steps = Self::sent(client, correlation_id, take);
        steps.request = Some(Box::new(request));
        Ok(steps)
    }

    /// A command that was sent.
    fn sent(client: &Arc<Client>, correlation_id: i64, take: Take<T>) -> Self {
        let timeout_ns = client.settings.driver_timeout().as_nanos() as i64;
        Self {
            client: Arc::clone(client),
            request: None,
            take,
            correlation_id,
            is_revocable: true,
            resend_at_ns: None,
            retry_until_ns: client.now_ns() + timeout_ns,
        }
    }

    /// Marks the command as one that cannot be undone.
    pub(crate) fn irrevocable(mut self) -> Self {
        self.is_revocable = false;
        self
    }

    pub(crate) fn into_operation(self) -> PendingOperation<T> {
        PendingOperation::new(self)
    }

    /// Whether the command is to be sent again after this refusal.
    fn is_temporary(&self, error: &Error) -> bool {
        matches!(
            error,
            Error::Registration {
                code: ErrorCode::ResourceTemporarilyUnavailable,
                ..
            }
        ) && self.request.is_some()
            && self.client.now_ns() - self.retry_until_ns < 0
    }

    /// Sends the command again once that is due.
    fn resend(&mut self, at_ns: i64) -> Result<()> {
        if self.client.now_ns() - at_ns < 0 {
            return Ok(());
        }
        self.resend_at_ns = None;
        if let Some(request) = &mut self.request {
            self.correlation_id = request(&mut *self.client.open_conductor()?, &self.client)?;
        }
        Ok(())
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
        match conductor.poll_command(&self.client, id) {
            Ok(Progress::Awaiting) => Ok(None),
            Ok(Progress::Succeeded(value)) => (self.take)(&mut conductor, &self.client, id, value)
                .map(Some)
                .ok_or_else(|| removed_meanwhile(id)),
            Ok(Progress::Unknown) => Err(removed_meanwhile(id)),
            Err(error) => {
                drop(conductor);
                if !self.is_temporary(&error) {
                    return Err(error);
                }
                let retry_ns = RETRY_INTERVAL.as_nanos() as i64;
                self.resend_at_ns = Some(self.client.now_ns() + retry_ns);
                Ok(None)
            }
        }
    }

    fn is_revocable(&self) -> bool {
        self.is_revocable
    }

    fn abandon(&mut self) {
        // A client that is closed has nothing left to undo: the driver removes all that belongs to it.
        if let Ok(mut conductor) = self.client.open_conductor() {
            conductor.abandon(&self.client, self.correlation_id);
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

/// The removal of a resource, until the driver has confirmed it.
pub(crate) struct RemovalSteps {
    client: Arc<Client>,
    registration_id: i64,
    deadline_ns: i64,
}

impl RemovalSteps {
    /// A removal that the conductor was asked for.
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

/// Another thread removed the resource while it was being added.
fn removed_meanwhile(id: i64) -> Error {
    Error::InvalidArgument(format!(
        "registration {id} was removed while it was being added"
    ))
}
