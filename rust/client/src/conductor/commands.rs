//! Tracks the commands that were sent, until the application has fetched their responses.

use std::collections::HashMap;
use std::time::Duration;

use crate::counter::core::CounterDescription;
use crate::error::{DriverTimeout, Error, Result};
use crate::publication::core::PublishedStream;

/// Kinds of resources that a driver holds for a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ResourceKind {
    Publication,
    ExclusivePublication,
    Subscription,
    Counter,
}

/// Purpose of a command. It decides which object the response creates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// A publication on this stream, with one writer or several.
    AddPublication(PublishedStream),
    /// A subscription. Its object exists already.
    AddSubscription,
    /// A counter with this description.
    AddCounter(CounterDescription),
    /// A session id.
    NextSessionId,
    /// A destination of this publication. The correlation id of the command is the destination's registration id.
    AddDestination {
        publication_id: i64,
        channel: String,
    },
    /// A destination from which this subscription receives.
    AddReceiveDestination {
        subscription_id: i64,
        channel: String,
    },
    /// A command with no result except success or an error, which the application fetches.
    Operation,
    /// A part of the client that the next driver gets.
    Restoration,
    /// The removal of the resource with this registration id.
    Removal { registration_id: i64 },
}

impl Purpose {
    /// Returns the kind of resource that the command adds, if it adds one.
    pub(crate) fn adds(&self) -> Option<ResourceKind> {
        match self {
            Self::AddPublication(stream) if stream.is_exclusive => {
                Some(ResourceKind::ExclusivePublication)
            }
            Self::AddPublication(_) => Some(ResourceKind::Publication),
            Self::AddSubscription => Some(ResourceKind::Subscription),
            Self::AddCounter(_) => Some(ResourceKind::Counter),
            Self::NextSessionId
            | Self::AddDestination { .. }
            | Self::AddReceiveDestination { .. }
            | Self::Operation
            | Self::Restoration
            | Self::Removal { .. } => None,
        }
    }

    /// Whether a successful command adds something that a client can remove.
    fn can_be_undone(&self) -> bool {
        match self {
            Self::AddCounter(counter) => counter.static_registration_id.is_none(),
            Self::AddPublication(_)
            | Self::AddSubscription
            | Self::AddDestination { .. }
            | Self::AddReceiveDestination { .. } => true,
            Self::NextSessionId | Self::Operation | Self::Restoration | Self::Removal { .. } => {
                false
            }
        }
    }
}

#[derive(Debug)]
enum CommandState {
    Awaiting {
        purpose: Purpose,
        deadline_ns: i64,
    },
    /// The application has cancelled the operation. If the driver adds a resource, the client removes it as soon as the
    /// response comes.
    Abandoned {
        purpose: Purpose,
    },
    Succeeded {
        purpose: Purpose,
        value: i32,
    },
    Failed(Error),
}

/// The pending commands of one client, by correlation id.
#[derive(Debug, Default)]
pub(crate) struct Commands {
    states: HashMap<i64, CommandState>,
    /// Results of lost drivers that the application has not fetched, by the number of drivers lost before and the
    /// correlation id. They are about destinations, which the next driver gets, or need no driver any more.
    kept: HashMap<(u64, i64), i32>,
}

/// A command whose response has come.
#[derive(Debug)]
pub(crate) enum Answered {
    /// The application waits for the response.
    Wanted(Purpose),
    /// The application has abandoned the command.
    Abandoned(Purpose),
}

/// A command that the application has abandoned.
#[derive(Debug)]
pub(crate) enum AbandonedCommand {
    /// Abandoned before its response came.
    Unanswered(Purpose),
    /// Abandoned after it succeeded.
    Succeeded(Purpose),
}

/// Outcome of a command so far.
#[derive(Debug)]
pub(crate) enum CommandProgress {
    /// No response yet.
    Awaiting,
    /// Succeeded, with the value of the response (0 if it has none). Returned once.
    Succeeded(i32),
    /// Never sent, already fetched, or not tracked.
    Unknown,
}

impl Commands {
    pub(crate) fn await_answer(&mut self, correlation_id: i64, purpose: Purpose, deadline_ns: i64) {
        self.states.insert(
            correlation_id,
            CommandState::Awaiting {
                purpose,
                deadline_ns,
            },
        );
    }

    /// Removes the command to which a response has arrived. Returns `None` if this client did not send the command, or
    /// if an earlier response has removed it.
    pub(crate) fn answered(&mut self, correlation_id: i64) -> Option<Answered> {
        match self.states.remove(&correlation_id)? {
            CommandState::Awaiting { purpose, .. } => Some(Answered::Wanted(purpose)),
            CommandState::Abandoned { purpose } => Some(Answered::Abandoned(purpose)),
            done => {
                self.states.insert(correlation_id, done);
                None
            }
        }
    }

    pub(crate) fn succeed(&mut self, correlation_id: i64, purpose: Purpose, value: i32) {
        let result = CommandState::Succeeded { purpose, value };
        self.finish(correlation_id, result);
    }

    /// Abandons a command. Returns `None` if nothing is left to undo.
    pub(crate) fn abandon(&mut self, correlation_id: i64) -> Option<AbandonedCommand> {
        match self.states.remove(&correlation_id)? {
            CommandState::Awaiting { purpose, .. } => {
                self.await_abandoned(correlation_id, &purpose);
                Some(AbandonedCommand::Unanswered(purpose))
            }
            abandoned @ CommandState::Abandoned { .. } => {
                self.states.insert(correlation_id, abandoned);
                None
            }
            CommandState::Succeeded { purpose, .. } => Some(AbandonedCommand::Succeeded(purpose)),
            CommandState::Failed(_) => None,
        }
    }

    /// Forgets all commands after the loss of the driver: the ids of the next driver begin again. Returns the resources
    /// that were added and that the application has not fetched.
    pub(crate) fn clear(&mut self, drivers_lost: u64) -> Vec<(ResourceKind, i64)> {
        let mut added = Vec::new();
        for (id, state) in std::mem::take(&mut self.states) {
            let (purpose, value) = match state {
                CommandState::Awaiting { purpose, .. } => (purpose, None),
                CommandState::Succeeded { purpose, value } => (purpose, Some(value)),
                CommandState::Abandoned { .. } | CommandState::Failed(_) => continue,
            };
            match (purpose.adds(), value) {
                (Some(kind), _) => added.push((kind, id)),
                (None, Some(value)) => drop(self.kept.insert((drivers_lost, id), value)),
                (None, None) => {}
            }
        }
        added
    }

    /// Returns the result of a command to a lost driver, once.
    pub(crate) fn take_kept(&mut self, drivers_lost: u64, correlation_id: i64) -> Option<i32> {
        self.kept.remove(&(drivers_lost, correlation_id))
    }

    fn await_abandoned(&mut self, correlation_id: i64, purpose: &Purpose) {
        // The caller has removed the former state. Otherwise a command would be both awaited and abandoned.
        debug_assert!(
            !self.states.contains_key(&correlation_id),
            "command {correlation_id} must have only one state"
        );
        if purpose.can_be_undone() {
            let purpose = purpose.clone();
            self.states
                .insert(correlation_id, CommandState::Abandoned { purpose });
        }
    }

    pub(crate) fn fail(&mut self, correlation_id: i64, error: Error) {
        self.finish(correlation_id, CommandState::Failed(error));
    }

    fn finish(&mut self, correlation_id: i64, result: CommandState) {
        // Each result follows `answered`, which has removed the command.
        let former = self.states.insert(correlation_id, result);
        debug_assert!(
            former.is_none(),
            "command {correlation_id} gets a result, but its state is still {former:?}"
        );
    }

    /// Whether a removal of this resource was sent and has no response yet.
    pub(crate) fn is_removing(&self, registration_id: i64) -> bool {
        let removal = Purpose::Removal { registration_id };
        self.states.values().any(
            |state| matches!(state, CommandState::Awaiting { purpose, .. } if *purpose == removal),
        )
    }

    /// Returns the outcome of a command so far.
    ///
    /// # Errors
    /// The refusal of the driver, or [`DriverTimeout::NoResponse`] if `now_ns` is after the deadline: the command is
    /// abandoned then. Each error is returned once.
    pub(crate) fn poll(
        &mut self,
        correlation_id: i64,
        now_ns: i64,
        timeout: Duration,
    ) -> Result<CommandProgress> {
        match self.states.get(&correlation_id) {
            None => return Ok(CommandProgress::Unknown),
            Some(CommandState::Awaiting { deadline_ns, .. }) if now_ns - deadline_ns <= 0 => {
                return Ok(CommandProgress::Awaiting);
            }
            Some(_) => {}
        }
        match self.states.remove(&correlation_id) {
            Some(CommandState::Awaiting { purpose, .. }) => {
                self.await_abandoned(correlation_id, &purpose);
                Err(DriverTimeout::NoResponse(timeout).into())
            }
            Some(CommandState::Failed(error)) => Err(error),
            Some(CommandState::Succeeded { value, .. }) => Ok(CommandProgress::Succeeded(value)),
            None => Ok(CommandProgress::Unknown),
            Some(abandoned @ CommandState::Abandoned { .. }) => {
                self.states.insert(correlation_id, abandoned);
                Ok(CommandProgress::Unknown)
            }
        }
    }

    /// Returns the purpose of a command without a response.
    pub(crate) fn purpose(&self, correlation_id: i64) -> Option<&Purpose> {
        match self.states.get(&correlation_id) {
            Some(CommandState::Awaiting { purpose, .. }) => Some(purpose),
            _ => None,
        }
    }

    /// Removes a command in any state.
    pub(crate) fn forget(&mut self, correlation_id: i64) -> bool {
        self.states.remove(&correlation_id).is_some()
    }

    /// Forgets the removals with an overdue response. No call of the application would fetch their results.
    pub(crate) fn forget_overdue_removals(&mut self, now_ns: i64) {
        self.states.retain(|_, state| {
            !matches!(state, CommandState::Awaiting { purpose: Purpose::Removal { .. }, deadline_ns } if now_ns - *deadline_ns > 0)
        });
    }

    /// Whether the command was sent and has no response yet.
    pub(crate) fn is_active(&self, correlation_id: i64) -> bool {
        matches!(
            self.states.get(&correlation_id),
            Some(CommandState::Awaiting { .. })
        )
    }

    /// Whether any command was sent and has no response yet.
    pub(crate) fn has_active(&self) -> bool {
        self.states
            .values()
            .any(|state| matches!(state, CommandState::Awaiting { .. }))
    }
}
