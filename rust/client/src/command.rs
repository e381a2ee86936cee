//! [`CommandSteps`] and [`RemovalSteps`]: the steps of an operation that waits for the driver.

use std::sync::Arc;
use std::time::Duration;

use aeron_protocol::ErrorCode;

use crate::client::Client;
use crate::conductor::{CommandProgress, Conductor};
use crate::error::{CloseCause, DriverTimeout, Error, Result};
use crate::operation::{NO_COMMAND, OperationSteps, PendingOperation, Waiter};

/// Time between the first refusal with `RESOURCE_TEMPORARILY_UNAVAILABLE` and the next attempt. Each further refusal
/// doubles the time.
const RETRY_INTERVAL: Duration = Duration::from_millis(10);
/// Maximum time between two attempts. The lack may last: if the driver has no file descriptors left, hundreds of
/// operations that retry every 10 ms would delay the commands of all other clients by many seconds.
const MAX_RETRY_INTERVAL: Duration = Duration::from_millis(320);

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

    fn advance(&mut self) -> Result<Option<T>> {
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
}

impl<T: Clone + 'static> OperationSteps<T, Error> for CommandSteps<T> {
    fn correlation_id(&self) -> i64 {
        self.correlation_id
    }

    fn poll(&mut self) -> Result<Option<T>> {
        self.advance().map_err(reason_of)
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

    fn waiter(&self) -> &dyn Waiter {
        &*self.client
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

impl OperationSteps<bool, Error> for RemovalSteps {
    fn correlation_id(&self) -> i64 {
        NO_COMMAND
    }

    fn poll(&mut self) -> Result<Option<bool>> {
        self.client.service();
        let conductor = self.client.open_conductor().map_err(reason_of)?;
        if !conductor.is_removing(self.registration_id) {
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

    fn waiter(&self) -> &dyn Waiter {
        &*self.client
    }
}

/// Returns the error for a resource that another thread removed while it was being added.
fn removed_meanwhile(id: i64) -> Error {
    Error::InvalidArgument(format!(
        "registration {id} was removed while it was being added"
    ))
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
