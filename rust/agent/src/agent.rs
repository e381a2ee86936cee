//! [`Agent`]: the methods that a loop calls, and the errors of these methods.

use std::any::Any;
use std::borrow::Cow;
use std::error::Error;

use crate::crash;

/// An error of any type that can cross threads.
pub type BoxError = Box<dyn Error + Send + Sync + 'static>;

/// Work that one thread at a time does in a loop.
///
/// The loop calls [`on_start`](Agent::on_start) once, then [`do_work`](Agent::do_work) repeatedly, then
/// [`on_close`](Agent::on_close) once, all on the same thread. If an agent is closed before its start, only `on_close`
/// is called.
pub trait Agent: Send {
    /// Called once before the first duty cycle. If this call fails, only `on_close` follows, without a duty cycle.
    fn on_start(&mut self) -> Result<(), AgentError> {
        Ok(())
    }

    /// Runs one duty cycle. Returns a work count. If the work count is 0, the loop idles.
    fn do_work(&mut self) -> Result<usize, AgentError>;

    /// Called once after the last duty cycle.
    fn on_close(&mut self) -> Result<(), AgentError> {
        Ok(())
    }

    /// Returns the name of the thread, which also identifies the agent in messages.
    fn role_name(&self) -> Cow<'_, str>;
}

impl<A: Agent + ?Sized> Agent for Box<A> {
    fn on_start(&mut self) -> Result<(), AgentError> {
        (**self).on_start()
    }

    fn do_work(&mut self) -> Result<usize, AgentError> {
        (**self).do_work()
    }

    fn on_close(&mut self) -> Result<(), AgentError> {
        (**self).on_close()
    }

    fn role_name(&self) -> Cow<'_, str> {
        (**self).role_name()
    }
}

/// Reason why an agent's method failed. The variant decides whether the loop continues.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// The agent ends its loop. The end is reported, but not counted as an error.
    #[error("agent terminated: {0}")]
    Terminated(BoxError),
    /// The thread was interrupted. The loop ends without a report.
    #[error("agent interrupted")]
    Interrupted,
    /// A duty cycle failed. The error is counted and reported, and the loop continues.
    #[error(transparent)]
    Failed(BoxError),
}

impl AgentError {
    /// Creates a [`Failed`](Self::Failed) from an error or a message.
    pub fn failed(error: impl Into<BoxError>) -> Self {
        Self::Failed(error.into())
    }

    /// Returns the panic of the agent, if it is the error.
    pub fn panicked(&self) -> Option<&Panicked> {
        match self {
            Self::Failed(error) => error.downcast_ref(),
            Self::Terminated(_) | Self::Interrupted => None,
        }
    }

    /// Creates a [`Terminated`](Self::Terminated) from an error or a message.
    pub fn terminated(reason: impl Into<BoxError>) -> Self {
        Self::Terminated(reason.into())
    }
}

/// The agent panicked. A runner or an invoker reports this error. Then the panic continues in the caller of the loop.
#[derive(Debug, thiserror::Error)]
#[error("{role_name} panicked: {message}")]
pub struct Panicked {
    /// Role name of the agent.
    pub role_name: String,
    /// Message of the panic.
    pub message: String,
    /// Backtrace of the panic, if the program has [installed](crate::crash::install) the panic hook.
    pub backtrace: Option<String>,
}

impl Panicked {
    /// Returns the text for an error log: the message, and the backtrace if there is one.
    pub fn evidence(&self) -> String {
        match &self.backtrace {
            Some(backtrace) => crash::with_backtrace(&self.to_string(), backtrace),
            None => self.to_string(),
        }
    }

    /// Describes a panic of the agent `role_name`. Called on the thread that has panicked.
    pub(crate) fn new(role_name: &str, panic: &(dyn Any + Send)) -> Self {
        let message = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let message = message.or_else(|| panic.downcast_ref::<String>().cloned());
        Self {
            role_name: role_name.to_owned(),
            message: message.unwrap_or_else(|| "no message".to_owned()),
            backtrace: crash::take_backtrace(),
        }
    }
}
