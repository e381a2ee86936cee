//! [`Core`]: the data that a persistent subscription has in every state, and the transitions that several states use.

use aeron_client::{Aeron, ErrorCode};

use super::super::backoff::Attempts;
use super::super::link::ArchiveLink;
use super::context::{Settings, StartPosition};
use super::counters::{Counters, NO_JOIN_DIFFERENCE};
use super::error::PersistentSubscriptionError;
use super::listener::PersistentSubscriptionListener;
use super::set_up::{AwaitedReplayPlan, SetUp};
use super::state::SubscriptionState;
use super::status::PersistentSubscriptionStatus;

/// The data that a persistent subscription has in every state.
pub(super) struct Core {
    pub(super) aeron: Aeron,
    pub(super) settings: Settings,
    pub(super) archive: ArchiveLink,
    pub(super) counters: Counters,
    pub(super) status: PersistentSubscriptionStatus,
    pub(super) listener: Box<dyn PersistentSubscriptionListener>,
    /// Position up to which messages were delivered. Before the first message: the start position
    /// of the settings.
    pub(super) position: StartPosition,
    /// Highest position of a live image so far.
    pub(super) highest_live_position: Option<i64>,
    /// Attempts to add subscriptions and publications. If the driver has no room for one, the next attempt follows
    /// after a pause.
    pub(super) resources: Attempts,
    /// Id of the last replay that has ended, and its position.
    pub(super) ended_replay: Option<(i64, i64)>,
}

/// A transition to another state. The resources of the old state are closed before the listener is called.
pub(super) struct Transition {
    pub(super) to: SubscriptionState,
    pub(super) notice: Option<TransitionNotice>,
}

/// The event that a transition reports to the listener.
pub(super) enum TransitionNotice {
    LiveJoined,
    LiveLeft,
    Error(PersistentSubscriptionError),
    /// The error that ends the subscription.
    Failure(PersistentSubscriptionError),
}

impl Transition {
    pub(super) const fn to(to: SubscriptionState) -> Self {
        Self { to, notice: None }
    }

    pub(super) const fn noticed(to: SubscriptionState, notice: TransitionNotice) -> Self {
        Self {
            to,
            notice: Some(notice),
        }
    }

    pub(super) const fn fail(error: PersistentSubscriptionError) -> Self {
        Self::noticed(SubscriptionState::Failed, TransitionNotice::Failure(error))
    }
}

impl Core {
    /// Reports an error that does not end the subscription.
    pub(super) fn report(&mut self, error: &PersistentSubscriptionError) {
        self.listener.on_error(error);
    }

    pub(super) fn set_join_difference(&self, difference: i64) {
        self.status.set_join_difference(difference);
        self.counters.show_join_difference(difference);
    }

    pub(super) fn forget_join_difference(&self) {
        self.set_join_difference(NO_JOIN_DIFFERENCE);
    }

    pub(super) fn saw_live_position(&mut self, position: i64) {
        self.highest_live_position = self.highest_live_position.max(Some(position));
    }

    /// Looks up the recording again. The descriptor of the recording determines the next state.
    pub(super) fn refresh(&self) -> Transition {
        self.forget_join_difference();
        Transition::to(SubscriptionState::SendListRequest)
    }

    /// Starts another replay.
    pub(super) fn set_up_replay(&self, plan: AwaitedReplayPlan) -> Transition {
        self.forget_join_difference();
        let set_up = SetUp::begin(plan, self.settings.kind);
        Transition::to(SubscriptionState::SetUp(Box::new(set_up)))
    }

    /// Starts another replay if the driver had no room for a resource, or fails if the driver refused the resource.
    pub(super) fn resource_failed(
        &mut self,
        plan: AwaitedReplayPlan,
        resource: &'static str,
        source: aeron_client::Error,
        now_ns: i64,
    ) -> Transition {
        let is_temporary = is_temporary(&source);
        let error = PersistentSubscriptionError::Resource { resource, source };
        if !is_temporary {
            return Transition::fail(error);
        }
        self.resources.failed(now_ns);
        Transition {
            notice: Some(TransitionNotice::Error(error)),
            ..self.set_up_replay(plan)
        }
    }
}

/// Returns whether the same command may succeed later.
pub(super) const fn is_temporary(error: &aeron_client::Error) -> bool {
    matches!(
        error,
        aeron_client::Error::Registration {
            code: ErrorCode::ResourceTemporarilyUnavailable,
            ..
        } | aeron_client::Error::DriverTimeout(_)
            | aeron_client::Error::CommandBufferFull { .. }
    )
}

/// Returns whether a deadline has passed.
pub(super) const fn is_past(deadline_ns: i64, now_ns: i64) -> bool {
    now_ns > deadline_ns
}
