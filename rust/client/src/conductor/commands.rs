//! Commands that were sent, until their answers have come and were fetched.

use std::collections::HashMap;
use std::time::Duration;

use crate::error::{DriverTimeout, Error, Result};
use crate::lifetime::ResourceKind;

/// What the answer of a command makes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// A publication on this channel and stream.
    AddPublication { channel: String, stream_id: i32 },
    /// An exclusive publication on this channel and stream.
    AddExclusivePublication { channel: String, stream_id: i32 },
    /// A subscription; its object exists already.
    AddSubscription,
    /// A counter.
    AddCounter,
    /// A counter that outlives the client, with the registration id that the application chose.
    AddStaticCounter { registration_id: i64 },
    /// A session id.
    NextSessionId,
    /// Nothing but success or an error, which the application asks for.
    Operation,
    /// Nothing that anyone asks for.
    Removal,
}

impl Purpose {
    /// The kind of resource that the command adds, if it adds one.
    pub(crate) fn adds(&self) -> Option<ResourceKind> {
        match self {
            Self::AddPublication { .. } => Some(ResourceKind::Publication),
            Self::AddExclusivePublication { .. } => Some(ResourceKind::ExclusivePublication),
            Self::AddSubscription => Some(ResourceKind::Subscription),
            Self::AddCounter | Self::AddStaticCounter { .. } => Some(ResourceKind::Counter),
            Self::NextSessionId | Self::Operation | Self::Removal => None,
        }
    }
}

#[derive(Debug)]
enum State {
    Awaiting { purpose: Purpose, deadline_ns: i64 },
    Succeeded { value: i32 },
    Failed(Error),
}

/// The commands of one client that are not yet done with, by correlation id.
#[derive(Debug, Default)]
pub(crate) struct Commands {
    states: HashMap<i64, State>,
}

/// What became of a command.
#[derive(Debug)]
pub(crate) enum Progress {
    /// No answer yet.
    Awaiting,
    /// Done, with the value of the answer (0 where it has none); said once.
    Succeeded(i32),
    /// Never sent, fetched already, or not of interest.
    Unknown,
}

impl Commands {
    pub(crate) fn await_answer(&mut self, correlation_id: i64, purpose: Purpose, deadline_ns: i64) {
        self.states.insert(
            correlation_id,
            State::Awaiting {
                purpose,
                deadline_ns,
            },
        );
    }

    /// The purpose of a command whose answer has come; the answer of a command that nobody knows has none.
    pub(crate) fn answered(&mut self, correlation_id: i64) -> Option<Purpose> {
        if !self.is_active(correlation_id) {
            return None;
        }
        match self.states.remove(&correlation_id) {
            Some(State::Awaiting { purpose, .. }) => Some(purpose),
            _ => None,
        }
    }

    pub(crate) fn succeed(&mut self, correlation_id: i64, value: i32) {
        self.states
            .insert(correlation_id, State::Succeeded { value });
    }

    pub(crate) fn fail(&mut self, correlation_id: i64, error: Error) {
        self.states.insert(correlation_id, State::Failed(error));
    }

    /// Looks what became of a command.
    ///
    /// # Errors
    /// The refusal of the driver, or [`DriverTimeout::NoResponse`] when `now_ns` is past the deadline; each is said once.
    pub(crate) fn poll(
        &mut self,
        correlation_id: i64,
        now_ns: i64,
        timeout: Duration,
    ) -> Result<Progress> {
        match self.states.get(&correlation_id) {
            None => return Ok(Progress::Unknown),
            Some(State::Awaiting { deadline_ns, .. }) if now_ns - deadline_ns <= 0 => {
                return Ok(Progress::Awaiting);
            }
            Some(_) => {}
        }
        match self.states.remove(&correlation_id) {
            Some(State::Awaiting { .. }) => Err(DriverTimeout::NoResponse(timeout).into()),
            Some(State::Failed(error)) => Err(error),
            Some(State::Succeeded { value }) => Ok(Progress::Succeeded(value)),
            None => Ok(Progress::Unknown),
        }
    }

    /// What a command that was sent and not answered is for.
    pub(crate) fn purpose(&self, correlation_id: i64) -> Option<&Purpose> {
        match self.states.get(&correlation_id) {
            Some(State::Awaiting { purpose, .. }) => Some(purpose),
            _ => None,
        }
    }

    /// Forgets a command, whatever its state.
    pub(crate) fn forget(&mut self, correlation_id: i64) -> bool {
        self.states.remove(&correlation_id).is_some()
    }

    /// Forgets removals whose answers are overdue: nobody asks for them, so nobody else would.
    pub(crate) fn forget_overdue_removals(&mut self, now_ns: i64) {
        self.states.retain(|_, state| {
            !matches!(state, State::Awaiting { purpose: Purpose::Removal, deadline_ns } if now_ns - *deadline_ns > 0)
        });
    }

    /// Whether the command was sent and is not answered.
    pub(crate) fn is_active(&self, correlation_id: i64) -> bool {
        matches!(
            self.states.get(&correlation_id),
            Some(State::Awaiting { .. })
        )
    }

    /// Whether any command was sent and is not answered.
    pub(crate) fn has_active(&self) -> bool {
        self.states
            .values()
            .any(|state| matches!(state, State::Awaiting { .. }))
    }
}
