//! [`SetUp`]: creates a replay and its subscription (the states from `SendReplayRequest` to `AwaitReplayToken`).

use aeron_client::{ExclusivePublication, PendingOperation, Subscription};
use aeron_protocol::archive::NULL_VALUE;
use aeron_protocol::uri::Media;

use super::super::call::{ArchiveCall, Ticket};
use super::super::channels::{replay_request_channel, with_session_id};
use super::super::error::ArchiveClientError;
use super::super::link::Answered;
use super::super::params::ReplayParams;
use super::context::ReplayKind;
use super::core::{Core, Transition, is_past};
use super::error::{PersistentSubscriptionError, REPLAY_REQUEST};
use super::replay::AwaitedReplay;
use super::state::SubscriptionState;
use super::status::PersistentSubscriptionState as Code;

/// The replay to be created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AwaitedReplayPlan {
    /// Position of the first frame.
    pub(super) position: i64,
    /// The live subscription is added when the replay is at most this far from the end of the recording, in bytes.
    pub(super) join_window: i64,
}

/// The creation of a replay, in steps.
pub(super) struct SetUp {
    plan: AwaitedReplayPlan,
    step: SetUpStep,
}

enum SetUpStep {
    SendRequest(ReplayReceiver),
    AwaitResponse(Option<Subscription>, Ticket<i64>),
    /// Adds the subscription. The value is the id of the replay if the replay was started first.
    /// Then the subscription receives only the session of this replay.
    AddSubscription(Option<i64>),
    AwaitSubscription(AwaitedSubscription),
    AwaitEndpoint(Subscription, Option<Grant>, Deadline),
    AddPublication(Subscription),
    AwaitPublication(
        Subscription,
        PendingOperation<ExclusivePublication>,
        Deadline,
    ),
    AwaitConnection(Subscription, ExclusivePublication, Deadline),
    SendTokenRequest(Subscription, ExclusivePublication),
    AwaitToken(Subscription, ExclusivePublication, Ticket<i64>),
}

/// Time at which a step times out, in nanoseconds.
type Deadline = i64;

struct AwaitedSubscription {
    adding: PendingOperation<Subscription>,
    /// Id of the replay if the replay was started before the subscription.
    replay_session_id: Option<i64>,
    deadline_ns: Deadline,
}

/// The receiver of the replay.
enum ReplayReceiver {
    /// A subscription that is added when the session id of the replay is known.
    Later,
    /// This subscription, with the channel for the replay request. Over UDP, the channel has the
    /// port that the driver has chosen.
    Ready(Subscription, String, Option<Grant>),
}

/// The permission to request a replay over a response channel.
struct Grant {
    publication: ExclusivePublication,
    token: i64,
}

/// The next step, which may be the same step again. The error is the transition that ends the
/// set-up.
type Advance = Result<SetUpStep, Box<Transition>>;

impl SetUp {
    pub(super) fn begin(plan: AwaitedReplayPlan, kind: ReplayKind) -> Self {
        let step = match kind {
            ReplayKind::SessionSpecific => SetUpStep::SendRequest(ReplayReceiver::Later),
            ReplayKind::DynamicPort | ReplayKind::Response(_) => SetUpStep::AddSubscription(None),
        };
        Self { plan, step }
    }

    /// Takes one step. Returns the transition that ends the set-up.
    pub(super) fn step(&mut self, core: &mut Core, now_ns: i64) -> Option<Transition> {
        let step = std::mem::replace(&mut self.step, SetUpStep::AddSubscription(None));
        let mut turn = SetUpTurn {
            plan: self.plan,
            core,
            now_ns,
        };
        match step.advance(&mut turn) {
            Ok(step) => {
                self.step = step;
                None
            }
            Err(transition) => Some(*transition),
        }
    }

    /// Returns the id of the active replay, if there is one.
    pub(super) const fn replay_session_id(&self) -> Option<i64> {
        match &self.step {
            SetUpStep::AddSubscription(replay_session_id) => *replay_session_id,
            SetUpStep::AwaitSubscription(awaited) => awaited.replay_session_id,
            _ => None,
        }
    }

    pub(super) const fn code(&self) -> Code {
        match self.step {
            SetUpStep::SendRequest(_) => Code::SendReplayRequest,
            SetUpStep::AwaitResponse(..) => Code::AwaitReplayResponse,
            SetUpStep::AddSubscription(_) => Code::AddReplaySubscription,
            SetUpStep::AwaitSubscription(_) => Code::AwaitReplaySubscription,
            SetUpStep::AwaitEndpoint(..) => Code::AwaitReplayChannelEndpoint,
            SetUpStep::AddPublication(_) => Code::AddRequestPublication,
            SetUpStep::AwaitPublication(..) | SetUpStep::AwaitConnection(..) => {
                Code::AwaitRequestPublication
            }
            SetUpStep::SendTokenRequest(..) => Code::SendReplayTokenRequest,
            SetUpStep::AwaitToken(..) => Code::AwaitReplayToken,
        }
    }
}

impl SetUpStep {
    fn advance(self, turn: &mut SetUpTurn<'_>) -> Advance {
        match self {
            Self::SendRequest(receiver) => turn.send_request(receiver),
            Self::AwaitResponse(subscription, ticket) => turn.await_response(subscription, ticket),
            Self::AddSubscription(replay_session_id) => turn.add_subscription(replay_session_id),
            Self::AwaitSubscription(awaited) => turn.await_subscription(awaited),
            Self::AwaitEndpoint(subscription, grant, deadline_ns) => {
                turn.await_endpoint(subscription, grant, deadline_ns)
            }
            Self::AddPublication(subscription) => turn.add_publication(subscription),
            Self::AwaitPublication(subscription, adding, deadline_ns) => {
                turn.await_publication(subscription, adding, deadline_ns)
            }
            Self::AwaitConnection(subscription, publication, deadline_ns) => {
                turn.await_connection(subscription, publication, deadline_ns)
            }
            Self::SendTokenRequest(subscription, publication) => {
                turn.send_token_request(subscription, publication)
            }
            Self::AwaitToken(subscription, publication, ticket) => {
                turn.await_token(subscription, publication, ticket)
            }
        }
    }
}

/// One step of a set-up.
struct SetUpTurn<'a> {
    plan: AwaitedReplayPlan,
    core: &'a mut Core,
    now_ns: i64,
}

/// The subscription.
impl SetUpTurn<'_> {
    fn add_subscription(&mut self, replay_session_id: Option<i64>) -> Advance {
        let adding = self.begin_subscription(replay_session_id);
        if adding.is_err() {
            self.stop(replay_session_id);
        }
        Ok(SetUpStep::AwaitSubscription(AwaitedSubscription {
            adding: adding?,
            replay_session_id,
            deadline_ns: self.deadline_ns(),
        }))
    }

    fn begin_subscription(
        &mut self,
        replay_session_id: Option<i64>,
    ) -> Result<PendingOperation<Subscription>, Box<Transition>> {
        let settings = &self.core.settings;
        let channel = match replay_session_id {
            None => Ok(settings.replay_channel.clone()),
            // The session id of a replay is in the low 32 bits of the replay id.
            Some(id) => with_session_id(&settings.replay_channel, id as i32),
        };
        let channel = channel.map_err(unusable)?;
        let adding = self
            .core
            .aeron
            .async_add_subscription(&channel, settings.replay_stream_id);
        adding.map_err(|error| self.resource_failed(REPLAY_SUBSCRIPTION, error))
    }

    fn await_subscription(&mut self, mut awaited: AwaitedSubscription) -> Advance {
        let replay_session_id = awaited.replay_session_id;
        match awaited.adding.poll() {
            Ok(None) if is_past(awaited.deadline_ns, self.now_ns) => {
                self.stop(replay_session_id);
                Err(self.again())
            }
            Ok(None) => Ok(SetUpStep::AwaitSubscription(awaited)),
            Ok(Some(subscription)) => self.subscribed(subscription, replay_session_id),
            Err(error) => {
                self.stop(replay_session_id);
                Err(self.resource_failed(REPLAY_SUBSCRIPTION, error))
            }
        }
    }

    fn subscribed(
        &mut self,
        subscription: Subscription,
        replay_session_id: Option<i64>,
    ) -> Advance {
        self.core.resources.succeeded();
        match (replay_session_id, self.core.settings.kind) {
            (Some(id), _) => Err(self.replay(subscription, id)),
            (None, ReplayKind::Response(_)) => Ok(SetUpStep::AddPublication(subscription)),
            (None, _) => Ok(SetUpStep::AwaitEndpoint(
                subscription,
                None,
                self.deadline_ns(),
            )),
        }
    }

    fn await_endpoint(
        &self,
        subscription: Subscription,
        grant: Option<Grant>,
        deadline_ns: i64,
    ) -> Advance {
        match subscription.try_resolve_channel_endpoint_port() {
            Some(channel) => Ok(SetUpStep::SendRequest(ReplayReceiver::Ready(
                subscription,
                channel,
                grant,
            ))),
            None if is_past(deadline_ns, self.now_ns) => Err(self.again()),
            None => Ok(SetUpStep::AwaitEndpoint(subscription, grant, deadline_ns)),
        }
    }
}

/// The replay.
impl SetUpTurn<'_> {
    fn send_request(&mut self, receiver: ReplayReceiver) -> Advance {
        let settings = &self.core.settings;
        let request = |channel: &str, token| {
            let params = ReplayParams {
                position: self.plan.position,
                replay_token: token,
                ..ReplayParams::default()
            };
            let (recording_id, stream_id) = (settings.recording_id, settings.replay_stream_id);
            ArchiveCall::start_replay(recording_id, channel, stream_id, &params)
        };
        let (subscription, ticket) = match receiver {
            ReplayReceiver::Later => {
                let call = request(&settings.replay_channel, NULL_VALUE);
                (None, self.core.archive.submit(&call, self.now_ns))
            }
            ReplayReceiver::Ready(subscription, channel, None) => {
                let call = request(&channel, NULL_VALUE);
                let ticket = self.core.archive.submit(&call, self.now_ns);
                (Some(subscription), ticket)
            }
            ReplayReceiver::Ready(subscription, channel, Some(grant)) => {
                let call = request(&channel, grant.token);
                let (archive, now_ns) = (&mut self.core.archive, self.now_ns);
                let ticket = archive.submit_on(grant.publication, &call, now_ns);
                (Some(subscription), ticket)
            }
        };
        let ticket = ticket.ok_or_else(await_archive)?;
        Ok(SetUpStep::AwaitResponse(subscription, ticket))
    }

    fn await_response(
        &mut self,
        subscription: Option<Subscription>,
        ticket: Ticket<i64>,
    ) -> Advance {
        match self.core.archive.take_replay(&ticket) {
            Answered::Pending => Ok(SetUpStep::AwaitResponse(subscription, ticket)),
            Answered::Value(replay_session_id) => match subscription {
                None => Ok(SetUpStep::AddSubscription(Some(replay_session_id))),
                Some(subscription) => Err(self.replay(subscription, replay_session_id)),
            },
            Answered::Expired => Err(self.again()),
            Answered::Refused(source) => Err(refused(REPLAY_REQUEST, source)),
        }
    }
}

/// The permission to request a replay over a response channel.
impl SetUpTurn<'_> {
    fn add_publication(&mut self, subscription: Subscription) -> Advance {
        let context = self.core.archive.context();
        let channel = replay_request_channel(context, subscription.registration_id());
        let adding = self.core.aeron.async_add_exclusive_publication(
            &channel.map_err(unusable)?,
            context.control_request_stream_id,
        );
        match adding {
            Ok(adding) => Ok(SetUpStep::AwaitPublication(
                subscription,
                adding,
                self.deadline_ns(),
            )),
            Err(error) => Err(self.resource_failed(REQUEST_PUBLICATION, error)),
        }
    }

    fn await_publication(
        &mut self,
        subscription: Subscription,
        mut adding: PendingOperation<ExclusivePublication>,
        deadline_ns: i64,
    ) -> Advance {
        match adding.poll() {
            Ok(None) if is_past(deadline_ns, self.now_ns) => Err(self.again()),
            Ok(None) => Ok(SetUpStep::AwaitPublication(
                subscription,
                adding,
                deadline_ns,
            )),
            Ok(Some(publication)) => Ok(SetUpStep::AwaitConnection(
                subscription,
                publication,
                self.deadline_ns(),
            )),
            Err(error) => Err(self.resource_failed(REQUEST_PUBLICATION, error)),
        }
    }

    /// Waits until the publication is connected. Only then the token is requested, because a token
    /// is valid for a short time.
    fn await_connection(
        &self,
        subscription: Subscription,
        publication: ExclusivePublication,
        deadline_ns: i64,
    ) -> Advance {
        if publication.is_connected() {
            Ok(SetUpStep::SendTokenRequest(subscription, publication))
        } else if is_past(deadline_ns, self.now_ns) {
            Err(self.again())
        } else {
            Ok(SetUpStep::AwaitConnection(
                subscription,
                publication,
                deadline_ns,
            ))
        }
    }

    fn send_token_request(
        &mut self,
        subscription: Subscription,
        publication: ExclusivePublication,
    ) -> Advance {
        let call = ArchiveCall::replay_token(self.core.settings.recording_id);
        let ticket = self.core.archive.submit(&call, self.now_ns);
        let ticket = ticket.ok_or_else(await_archive)?;
        Ok(SetUpStep::AwaitToken(subscription, publication, ticket))
    }

    fn await_token(
        &mut self,
        subscription: Subscription,
        publication: ExclusivePublication,
        ticket: Ticket<i64>,
    ) -> Advance {
        match self.core.archive.take(&ticket) {
            Answered::Pending => Ok(SetUpStep::AwaitToken(subscription, publication, ticket)),
            Answered::Value(token) => Ok(self.granted(subscription, Grant { publication, token })),
            Answered::Expired => Err(self.again()),
            Answered::Refused(source) => Err(refused(TOKEN_REQUEST, source)),
        }
    }

    fn granted(&self, subscription: Subscription, grant: Grant) -> SetUpStep {
        if self.core.settings.kind == ReplayKind::Response(Media::Udp) {
            return SetUpStep::AwaitEndpoint(subscription, Some(grant), self.deadline_ns());
        }
        let channel = subscription.channel().to_owned();
        SetUpStep::SendRequest(ReplayReceiver::Ready(subscription, channel, Some(grant)))
    }
}

/// The deadlines, and the transitions that end a set-up.
impl SetUpTurn<'_> {
    fn deadline_ns(&self) -> i64 {
        self.core.settings.deadline_ns(self.now_ns)
    }

    fn stop(&mut self, replay_session_id: Option<i64>) {
        if let Some(id) = replay_session_id {
            self.core.archive.stop_replay(id, self.now_ns);
        }
    }

    /// Returns the transition to another attempt with the same plan.
    fn again(&self) -> Box<Transition> {
        Box::new(self.core.set_up_replay(self.plan))
    }

    fn resource_failed(
        &mut self,
        resource: &'static str,
        error: aeron_client::Error,
    ) -> Box<Transition> {
        Box::new(
            self.core
                .resource_failed(self.plan, resource, error, self.now_ns),
        )
    }

    fn replay(&self, subscription: Subscription, replay_session_id: i64) -> Box<Transition> {
        let (plan, deadline_ns) = (self.plan, self.deadline_ns());
        let awaited = AwaitedReplay::new(plan, replay_session_id, subscription, deadline_ns);
        Box::new(Transition::to(SubscriptionState::AwaitReplayImage(
            Box::new(awaited),
        )))
    }
}

fn await_archive() -> Box<Transition> {
    Box::new(Transition::to(SubscriptionState::AwaitArchive))
}

fn refused(request: &'static str, source: ArchiveClientError) -> Box<Transition> {
    let error = PersistentSubscriptionError::Refused { request, source };
    Box::new(Transition::fail(error))
}

/// Returns the failure for an unusable channel. The channels were checked before, so this is not expected.
fn unusable(error: ArchiveClientError) -> Box<Transition> {
    Box::new(Transition::fail(PersistentSubscriptionError::Archive(
        error,
    )))
}

const REPLAY_SUBSCRIPTION: &str = "replay subscription";
const REQUEST_PUBLICATION: &str = "request publication";
const TOKEN_REQUEST: &str = "replay token request";
