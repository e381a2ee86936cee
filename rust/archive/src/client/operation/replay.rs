//! [`ReplaySubscription`]: starts a replay, and adds the subscription that receives it.

use aeron_client::{PendingOperation, Subscription};
use aeron_protocol::archive::NULL_VALUE;

use super::super::aeron_archive::AeronArchive;
use super::super::call::ArchiveCall;
use super::super::channels::{has_wildcard_port, is_response_mode, parse, with_session_id};
use super::super::error::Result;
use super::super::params::ReplayParams;
use super::{CallSteps, ResponseReplay, Steps};

/// Starts a replay and subscribes to it.
///
/// In two cases the subscription is added before the replay is requested. If the channel is a response channel, the
/// request contains the id of the subscription. If the port is 0, the request contains the port that the driver chooses
/// for the subscription. In all other cases the subscription is added after the replay has started, only for the
/// session of the replay.
pub(in super::super) struct ReplaySubscription {
    recording_id: i64,
    replay_channel: String,
    replay_stream_id: i32,
    params: ReplayParams,
    step: ReplayStep,
}

/// A replay that was started, and the subscription that receives it.
#[derive(Clone, Debug)]
pub struct StartedReplay {
    /// Id of the replay, for [`ArchiveCall::stop_replay`](crate::client::ArchiveCall::stop_replay).
    pub replay_session_id: i64,
    /// The subscription, which may not have an image yet.
    pub subscription: Subscription,
    /// Whether the begin or the end of a replay by time is approximate: the index lacks the times,
    /// so the replay begins or ends with a whole segment.
    pub is_approximate: bool,
}

enum ReplayStep {
    SubscribeFirst(PendingOperation<Subscription>),
    ResolvePort(Subscription),
    StartFor(Subscription, Box<dyn Steps<i64>>),
    Start(CallSteps<i64>),
    SubscribeLast(i64, PendingOperation<Subscription>),
}

impl ReplaySubscription {
    pub(in super::super) fn start(
        archive: &AeronArchive,
        recording_id: i64,
        replay_channel: &str,
        replay_stream_id: i32,
        params: &ReplayParams,
    ) -> Result<Self> {
        params.validate()?;
        let channel = parse(replay_channel)?;
        let step = if is_response_mode(&channel) || has_wildcard_port(&channel) {
            let aeron = archive.aeron();
            ReplayStep::SubscribeFirst(
                aeron.async_add_subscription(replay_channel, replay_stream_id)?,
            )
        } else {
            let call =
                ArchiveCall::start_replay(recording_id, replay_channel, replay_stream_id, params);
            ReplayStep::Start(CallSteps::begin(archive, call)?)
        };
        Ok(Self {
            recording_id,
            replay_channel: replay_channel.to_owned(),
            replay_stream_id,
            params: *params,
            step,
        })
    }

    /// Returns the next step, or the started replay. If the current step has to wait, returns
    /// neither.
    fn advance(
        &mut self,
        archive: &AeronArchive,
    ) -> Result<(Option<ReplayStep>, Option<StartedReplay>)> {
        let next = match &mut self.step {
            ReplayStep::SubscribeFirst(adding) => adding.poll()?.map(ReplayStep::ResolvePort),
            ReplayStep::ResolvePort(subscription) => {
                let subscription = subscription.clone();
                match subscription.try_resolve_channel_endpoint_port() {
                    Some(channel) => Some(self.start_for(archive, subscription, &channel)?),
                    None => None,
                }
            }
            ReplayStep::StartFor(subscription, start) => {
                let started = start.poll(archive)?;
                let started = started.map(|replay_session_id| StartedReplay {
                    replay_session_id,
                    subscription: subscription.clone(),
                    is_approximate: false,
                });
                return Ok((None, started));
            }
            ReplayStep::Start(start) => match start.poll(archive)? {
                Some(replay_session_id) => Some(self.subscribe(archive, replay_session_id)?),
                None => None,
            },
            ReplayStep::SubscribeLast(replay_session_id, adding) => {
                let replay_session_id = *replay_session_id;
                let added = adding.poll()?;
                let started = added.map(|subscription| StartedReplay {
                    replay_session_id,
                    subscription,
                    is_approximate: false,
                });
                return Ok((None, started));
            }
        };
        Ok((next, None))
    }

    fn start_for(
        &self,
        archive: &AeronArchive,
        subscription: Subscription,
        channel: &str,
    ) -> Result<ReplayStep> {
        let (recording_id, stream_id) = (self.recording_id, self.replay_stream_id);
        if is_response_mode(&parse(channel)?) {
            let params = ReplayParams {
                subscription_registration_id: subscription.registration_id(),
                ..self.params
            };
            let start = ResponseReplay::start(archive, recording_id, channel, stream_id, &params)?;
            return Ok(ReplayStep::StartFor(subscription, Box::new(start)));
        }
        let call = ArchiveCall::start_replay(recording_id, channel, stream_id, &self.params);
        let start = CallSteps::begin(archive, call)?;
        Ok(ReplayStep::StartFor(subscription, Box::new(start)))
    }

    /// Subscribes to the session of the replay. The session id is in the low 32 bits of the
    /// replay's id.
    fn subscribe(&self, archive: &AeronArchive, replay_session_id: i64) -> Result<ReplayStep> {
        let channel = with_session_id(&self.replay_channel, replay_session_id as i32)?;
        let aeron = archive.aeron();
        let adding = aeron.async_add_subscription(&channel, self.replay_stream_id)?;
        Ok(ReplayStep::SubscribeLast(replay_session_id, adding))
    }
}

impl Steps<StartedReplay> for ReplaySubscription {
    fn correlation_id(&self) -> i64 {
        match &self.step {
            ReplayStep::StartFor(_, start) => start.correlation_id(),
            ReplayStep::Start(start) => start.correlation_id(),
            ReplayStep::SubscribeFirst(_)
            | ReplayStep::ResolvePort(_)
            | ReplayStep::SubscribeLast(..) => NULL_VALUE,
        }
    }

    fn poll(&mut self, archive: &AeronArchive) -> Result<Option<StartedReplay>> {
        loop {
            match self.advance(archive)? {
                (Some(next), _) => self.step = next,
                (None, outcome) => return Ok(outcome),
            }
        }
    }

    fn abandon(&mut self, archive: &AeronArchive) {
        match &mut self.step {
            ReplayStep::StartFor(_, start) => start.abandon(archive),
            ReplayStep::Start(start) => start.abandon(archive),
            ReplayStep::SubscribeFirst(_)
            | ReplayStep::ResolvePort(_)
            | ReplayStep::SubscribeLast(..) => {}
        }
    }
}
