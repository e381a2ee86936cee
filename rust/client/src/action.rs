//! [`Action`]: the decision of a fragment handler, and the types that convert to one.

use crate::error::{Error, Result, TryPollError};

/// The decision of a controlled handler about the fragment and the poll.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// The fragment is not consumed, and the next poll delivers it again. This poll of the image ends.
    Abort = 1,
    /// The fragment is consumed. This poll of the image ends.
    Break = 2,
    /// The fragment is consumed and the position is published at once. The poll continues.
    Commit = 3,
    /// The fragment is consumed. The poll continues.
    Continue = 4,
}

/// A type that a handler may return: `()`, an [`Action`], or a `Result` of either.
///
/// `()` is [`Action::Continue`]. An error ends the poll, which returns it as [`TryPollError::Handler`].
///
/// ```no_run
/// # use aeron_client::{Action, TryPollError};
/// # fn receive(subscription: &aeron_client::Subscription) -> Result<(), Box<dyn std::error::Error>> {
/// subscription.poll(|fragment| println!("{} bytes", fragment.len()), 10)?;
/// subscription.controlled_poll(|_| Action::Break, 10)?;
/// subscription.poll(|fragment| std::str::from_utf8(&fragment.to_vec()).map(drop), 10)?;
/// # Ok(())
/// # }
/// ```
pub trait HandlerOutcome {
    /// Error of a poll with such a handler: [`Error`], or [`TryPollError`] if the handler may fail.
    type PollError: From<Error>;

    /// Returns the action, or the error that ends the poll.
    ///
    /// # Errors
    /// The handler has returned an error.
    fn into_action(self) -> std::result::Result<Action, Self::PollError>;
}

impl HandlerOutcome for () {
    type PollError = Error;

    #[inline(always)]
    fn into_action(self) -> Result<Action> {
        Ok(Action::Continue)
    }
}

impl HandlerOutcome for Action {
    type PollError = Error;

    #[inline(always)]
    fn into_action(self) -> Result<Action> {
        Ok(self)
    }
}

impl<O: HandlerOutcome<PollError = Error>, E> HandlerOutcome for std::result::Result<O, E> {
    type PollError = TryPollError<E>;

    #[inline(always)]
    fn into_action(self) -> std::result::Result<Action, TryPollError<E>> {
        let outcome = self.map_err(TryPollError::Handler)?;
        Ok(outcome.into_action()?)
    }
}
