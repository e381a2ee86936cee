//! The agent: what a duty cycle calls, and how it may fail.

use std::any::Any;
use std::borrow::Cow;
use std::error::Error;

/// An error of any kind that can cross threads.
pub type BoxError = Box<dyn Error + Send + Sync + 'static>;

/// Work done in a loop by one thread at a time.
///
/// The one who runs the agent calls [`on_start`](Agent::on_start) once, then [`do_work`](Agent::do_work) again and again, then
/// [`on_close`](Agent::on_close) once, each on the thread that runs the loop.
pub trait Agent: Send {
    /// Called once before the first duty cycle. When it fails there is no duty cycle, only `on_close`.
    fn on_start(&mut self) -> Result<(), AgentError> {
        Ok(())
    }

    /// One duty cycle. Answers how much was done; 0 lets the loop idle.
    fn do_work(&mut self) -> Result<usize, AgentError>;

    /// Called once after the last duty cycle.
    fn on_close(&mut self) -> Result<(), AgentError> {
        Ok(())
    }

    /// Names the thread, and says in messages who failed.
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

/// Why an agent's method did not succeed, and so whether its loop goes on.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// The agent asks to end its loop. It is reported, but not counted as an error.
    #[error("agent terminated: {0}")]
    Terminated(BoxError),
    /// Somebody asked the thread to stop waiting. The loop ends and nobody is told.
    #[error("agent interrupted")]
    Interrupted,
    /// A duty cycle failed. It is counted and reported, and the loop goes on.
    #[error(transparent)]
    Failed(BoxError),
}

impl AgentError {
    /// A failed duty cycle, from an error or a message.
    pub fn failed(error: impl Into<BoxError>) -> Self {
        Self::Failed(error.into())
    }

    /// A wish to end the loop, from an error or a message.
    pub fn terminated(reason: impl Into<BoxError>) -> Self {
        Self::Terminated(reason.into())
    }
}

/// The agent panicked: reported before the panic goes on to whoever runs the loop.
#[derive(Debug, thiserror::Error)]
#[error("{role_name} panicked: {message}")]
pub struct Panicked {
    /// Whose duty cycle it was.
    pub role_name: String,
    /// What the panic said.
    pub message: String,
}

impl Panicked {
    /// The agent `role_name` panicked with `panic`.
    pub(crate) fn new(role_name: &str, panic: &(dyn Any + Send)) -> Self {
        let message = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let message = message.or_else(|| panic.downcast_ref::<String>().cloned());
        Self {
            role_name: role_name.to_owned(),
            message: message.unwrap_or_else(|| "no message".to_owned()),
        }
    }
}
