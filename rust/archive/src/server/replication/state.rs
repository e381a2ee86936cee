//! [`ReplicationState`]: the step of a replication, with what the step waits for.

use aeron_client::{Image, PendingOperation, Subscription};

use super::live::{LiveJoin, LiveStep};
use super::permission::ReplayPermission;
use crate::catalog::RecordingDescriptor;
use crate::client::{ConnectingSession, Ticket};

/// The step of a replication. The source position is the last known position of a source with which the replication
/// merges.
pub(super) enum ReplicationState {
    Connecting(Box<ConnectingSession>),
    Describing(Ticket<Option<RecordingDescriptor>>),
    AskingPosition(Ticket<Option<i64>>),
    Extending {
        destination: Option<String>,
        source_position: Option<i64>,
    },
    AddingDestination(Subscription, Option<i64>, PendingOperation<()>),
    ResolvingPort(Subscription, Option<i64>),
    Permitting(Subscription, ReplayPermission),
    Requesting(Subscription, Option<i64>, Ticket<i64>),
    AwaitingImage(Subscription, Option<i64>),
    Copying(Subscription, Image),
    Merging(Box<LiveJoin>),
    Finished,
}

/// The outcome of a step.
pub(super) enum ReplicationStep {
    /// Nothing has happened.
    Wait,
    /// The step has made progress, and continues.
    Advanced,
    /// Enter this state.
    Next(ReplicationState),
    /// The replication ends: the copy is complete or merged, or cannot continue.
    Done,
}

/// The kind of a [`ReplicationState`], in the order of the steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ReplicationStage {
    Connecting,
    Describing,
    AskingPosition,
    Extending,
    AddingDestination,
    ResolvingPort,
    Permitting,
    Requesting,
    AwaitingImage,
    Copying,
    CatchingUp,
    Joining,
    Removing,
    Finished,
}

impl ReplicationStage {
    /// Returns whether a replication may go from this stage to `next`.
    pub fn may_become(self, next: Self) -> bool {
        match (self, next) {
            // A permission is requested in several steps.
            (Self::Permitting, Self::Permitting) => true,
            // While the copy comes closer to the live stream, it asks for the position of the source again and again.
            (Self::Joining, Self::CatchingUp) => true,
            (before, next) => next > before,
        }
    }

    /// Returns what a replication waits for, if it must leave the stage within the message timeout.
    ///
    /// Requests and connections have their own deadlines. A replication that copies or catches up may wait for data
    /// without a limit, until its image ends.
    pub fn awaited_with_deadline(self) -> Option<&'static str> {
        match self {
            Self::Extending => Some("the driver has not added the subscription"),
            Self::AddingDestination => Some("the driver has not added the destination"),
            Self::ResolvingPort => {
                Some("the driver has not resolved the port of the replication channel")
            }
            Self::Permitting => Some(
                "the publication of the replay request is not connected, or the source has sent no token",
            ),
            Self::AwaitingImage => Some("the replay of the source has not arrived"),
            Self::Removing => Some("the driver has not removed the destination"),
            _ => None,
        }
    }
}

impl ReplicationState {
    pub fn stage(&self) -> ReplicationStage {
        match self {
            Self::Connecting(_) => ReplicationStage::Connecting,
            Self::Describing(_) => ReplicationStage::Describing,
            Self::AskingPosition(_) => ReplicationStage::AskingPosition,
            Self::Extending { .. } => ReplicationStage::Extending,
            Self::AddingDestination(..) => ReplicationStage::AddingDestination,
            Self::ResolvingPort(..) => ReplicationStage::ResolvingPort,
            Self::Permitting(..) => ReplicationStage::Permitting,
            Self::Requesting(..) => ReplicationStage::Requesting,
            Self::AwaitingImage(..) => ReplicationStage::AwaitingImage,
            Self::Copying(..) => ReplicationStage::Copying,
            Self::Merging(live) => match live.step() {
                LiveStep::CatchingUp => ReplicationStage::CatchingUp,
                LiveStep::Joining(_) => ReplicationStage::Joining,
                LiveStep::Removing(_) => ReplicationStage::Removing,
            },
            Self::Finished => ReplicationStage::Finished,
        }
    }
}
