//! [`Core`]: what a persistent subscription has in every state, and the ways from one state to another that several states take.

use aeron_client::{Aeron, ErrorCode};

use super::context::{Settings, StartPosition};
use super::counters::{Counters, NO_JOIN_DIFFERENCE};
use super::error::PersistentSubscriptionError;
use super::link::ArchiveLink;
use super::listener::PersistentSubscriptionListener;
use super::set_up::{ReplayPlan, SetUp};
use super::state::State;
use super::status::PersistentSubscriptionStatus;

/// What a persistent subscription has in every state.
pub(super) struct Core {
    pub(super) aeron: Aeron,
    pub(super) settings: Settings,
    pub(super) archive: ArchiveLink,
    pub(super) counters: Counters,
    pub(super) status: PersistentSubscriptionStatus,
    pub(super) listener: Box<dyn PersistentSubscriptionListener>,
    /// Position up to which messages were delivered.
    pub(super) position: StartPosition,
    /// Highest position at which a live image was seen.
    pub(super) highest_live_position: Option<i64>,
}

/// The way to another state. What the old state holds is closed before the listener is called.
pub(super) struct Transition {
    pub(super) to: State,
    pub(super) notice: Option<Notice>,
}

/// What the listener learns of a transition.
pub(super) enum Notice {
    LiveJoined,
    LiveLeft,
    Error(PersistentSubscriptionError),
    /// The error that ends the subscription.
    Failure(PersistentSubscriptionError),
}

impl Transition {
    pub(super) const fn to(to: State) -> Self {
        Self { to, notice: None }
    }

    pub(super) const fn noticed(to: State, notice: Notice) -> Self {
        Self {
            to,
            notice: Some(notice),
        }
    }

    pub(super) const fn fail(error: PersistentSubscriptionError) -> Self {
        Self::noticed(State::Failed, Notice::Failure(error))
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

    /// Looks up the recording again, and decides by its descriptor what comes next.
    pub(super) fn refresh(&self) -> Transition {
        self.forget_join_difference();
        Transition::to(State::SendListRequest)
    }

    /// Starts another replay.
    pub(super) fn set_up_replay(&self, plan: ReplayPlan) -> Transition {
        self.forget_join_difference();
        let set_up = SetUp::begin(plan, self.settings.kind);
        Transition::to(State::SetUp(Box::new(set_up)))
    }

    /// Starts another replay because the driver had no room for a resource, or fails if the driver refused the resource.
    pub(super) fn resource_failed(
        &self,
        plan: ReplayPlan,
        resource: &'static str,
        source: aeron_client::Error,
    ) -> Transition {
        let is_temporary = is_temporary(&source);
        let error = PersistentSubscriptionError::Resource { resource, source };
        match is_temporary {
            true => Transition {
                notice: Some(Notice::Error(error)),
                ..self.set_up_replay(plan)
            },
            false => Transition::fail(error),
        }
    }
}

/// Whether the same command may succeed later.
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

/// Whether a deadline has passed.
pub(super) const fn is_past(deadline_ns: i64, now_ns: i64) -> bool {
    now_ns > deadline_ns
}
