//! Commands that were sent, until their answers have come and were fetched.

use std::collections::HashMap;
use std::time::Duration;

use crate::error::{DriverTimeout, Error, Result};

/// Kinds of resources that a driver holds for a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ResourceKind {
    Publication,
    ExclusivePublication,
    Subscription,
    Counter,
}

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
    /// A destination of this publication; the correlation id is its registration id.
    AddDestination { publication_id: i64 },
    /// A destination that this subscription receives from.
    AddReceiveDestination {
        subscription_id: i64,
        channel: String,
    },
    /// Nothing but success or an error, which the application asks for.
    Operation,
    /// The removal of the resource with this registration id.
    Removal { registration_id: i64 },
}

impl Purpose {
    /// The kind of resource that the command adds, if it adds one.
    pub(crate) fn adds(&self) -> Option<ResourceKind> {
        match self {
            Self::AddPublication { .. } => Some(ResourceKind::Publication),
            Self::AddExclusivePublication { .. } => Some(ResourceKind::ExclusivePublication),
            Self::AddSubscription => Some(ResourceKind::Subscription),
            Self::AddCounter | Self::AddStaticCounter { .. } => Some(ResourceKind::Counter),
            Self::NextSessionId
            | Self::AddDestination { .. }
            | Self::AddReceiveDestination { .. }
            | Self::Operation
            | Self::Removal { .. } => None,
        }
    }

    /// Whether the driver's success leaves something that a client can remove.
    fn can_be_undone(&self) -> bool {
        !matches!(
            self,
            Self::AddStaticCounter { .. }
                | Self::NextSessionId
                | Self::Operation
                | Self::Removal { .. }
        )
    }
}

#[derive(Debug)]
enum State {
    Awaiting {
        purpose: Purpose,
        deadline_ns: i64,
    },
    /// The application has cancelled the operation. If the driver adds a resource, the client removes it as soon as the reply comes.
    Abandoned {
        purpose: Purpose,
    },
    Succeeded {
        purpose: Purpose,
        value: i32,
    },
    Failed(Error),
}

/// The commands of one client that are not yet done with, by correlation id.
#[derive(Debug, Default)]
pub(crate) struct Commands {
    states: HashMap<i64, State>,
}

/// A command whose answer has come.
#[derive(Debug)]
pub(crate) enum Answered {
    /// The application waits for it.
    Wanted(Purpose),
    /// The application gave it up.
    Abandoned(Purpose),
}

/// A command that the application gave up.
#[derive(Debug)]
pub(crate) enum GivenUp {
    /// Before its answer came.
    Unanswered(Purpose),
    /// After it succeeded.
    Succeeded(Purpose),
}

/// Outcome of a command so far.
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

    /// Takes out a command whose answer has come; `None` if it was not sent by this client, or was answered before.
    pub(crate) fn answered(&mut self, correlation_id: i64) -> Option<Answered> {
        match self.states.remove(&correlation_id)? {
            State::Awaiting { purpose, .. } => Some(Answered::Wanted(purpose)),
            State::Abandoned { purpose } => Some(Answered::Abandoned(purpose)),
            done => {
                self.states.insert(correlation_id, done);
                None
            }
        }
    }

    pub(crate) fn succeed(&mut self, correlation_id: i64, purpose: Purpose, value: i32) {
        self.states
            .insert(correlation_id, State::Succeeded { purpose, value });
    }

    /// Gives a command up. `None` if there is nothing left to undo.
    pub(crate) fn abandon(&mut self, correlation_id: i64) -> Option<GivenUp> {
        match self.states.remove(&correlation_id)? {
            State::Awaiting { purpose, .. } => {
                self.await_abandoned(correlation_id, &purpose);
                Some(GivenUp::Unanswered(purpose))
            }
            abandoned @ State::Abandoned { .. } => {
                self.states.insert(correlation_id, abandoned);
                None
            }
            State::Succeeded { purpose, .. } => Some(GivenUp::Succeeded(purpose)),
            State::Failed(_) => None,
        }
    }

    fn await_abandoned(&mut self, correlation_id: i64, purpose: &Purpose) {
        if purpose.can_be_undone() {
            let purpose = purpose.clone();
            self.states
                .insert(correlation_id, State::Abandoned { purpose });
        }
    }

    pub(crate) fn fail(&mut self, correlation_id: i64, error: Error) {
        self.states.insert(correlation_id, State::Failed(error));
    }

    /// Whether a removal of this resource was sent and is not answered.
    pub(crate) fn is_removing(&self, registration_id: i64) -> bool {
        let removal = Purpose::Removal { registration_id };
        self.states
            .values()
            .any(|state| matches!(state, State::Awaiting { purpose, .. } if *purpose == removal))
    }

    /// Returns the outcome of a command so far.
    ///
    /// # Errors
    /// The refusal of the driver, or [`DriverTimeout::NoResponse`] if `now_ns` is after the deadline: the command is
    /// abandoned then. Each is returned once.
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
            Some(State::Awaiting { purpose, .. }) => {
                self.await_abandoned(correlation_id, &purpose);
                Err(DriverTimeout::NoResponse(timeout).into())
            }
            Some(State::Failed(error)) => Err(error),
            Some(State::Succeeded { value, .. }) => Ok(Progress::Succeeded(value)),
            None => Ok(Progress::Unknown),
            Some(abandoned @ State::Abandoned { .. }) => {
                self.states.insert(correlation_id, abandoned);
                Ok(Progress::Unknown)
            }
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
            !matches!(state, State::Awaiting { purpose: Purpose::Removal { .. }, deadline_ns } if now_ns - *deadline_ns > 0)
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
