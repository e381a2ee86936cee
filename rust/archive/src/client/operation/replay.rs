//! [`ReplaySubscription`]: a replay and the subscription that receives it.

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
/// The subscription comes first if the replay cannot be asked for without it: over a response channel, which needs the id of the
/// subscription, and on port 0, which the subscription's driver chooses. Otherwise it comes second, for the session of the replay alone.
pub(in super::super) struct ReplaySubscription {
    recording_id: i64,
    replay_channel: String,
    replay_stream_id: i32,
    params: ReplayParams,
    step: Step,
}

enum Step {
    SubscribeFirst(PendingOperation<Subscription>),
    ResolvePort(Subscription),
    StartFor(Subscription, Box<dyn Steps<i64>>),
    Start(Box<dyn Steps<i64>>),
    SubscribeLast(PendingOperation<Subscription>),
}

impl ReplaySubscription {
    pub(in super::super) fn start(
        archive: &AeronArchive,
        recording_id: i64,
        replay_channel: &str,
        replay_stream_id: i32,
        params: &ReplayParams,
    ) -> Result<Self> {
        let channel = parse(replay_channel)?;
        let step = if is_response_mode(&channel) || has_wildcard_port(&channel) {
            let aeron = archive.aeron();
            Step::SubscribeFirst(aeron.async_add_subscription(replay_channel, replay_stream_id)?)
        } else {
            let call =
                ArchiveCall::start_replay(recording_id, replay_channel, replay_stream_id, params);
            Step::Start(Box::new(CallSteps(archive.submit(&call)?)))
        };
        Ok(Self {
            recording_id,
            replay_channel: replay_channel.to_owned(),
            replay_stream_id,
            params: *params,
            step,
        })
    }

    /// The next step and `None`, or the subscription; `None` twice if the step has to wait.
    fn advance(&mut self, archive: &AeronArchive) -> Result<(Option<Step>, Option<Subscription>)> {
        let next = match &mut self.step {
            Step::SubscribeFirst(adding) => adding.poll()?.map(Step::ResolvePort),
            Step::ResolvePort(subscription) => {
                let subscription = subscription.clone();
                match subscription.try_resolve_channel_endpoint_port() {
                    Some(channel) => Some(self.start_for(archive, subscription, &channel)?),
                    None => None,
                }
            }
            Step::StartFor(subscription, start) => {
                let started = start.poll(archive)?;
                return Ok((None, started.map(|_| subscription.clone())));
            }
            Step::Start(start) => match start.poll(archive)? {
                Some(replay_session_id) => Some(self.subscribe(archive, replay_session_id)?),
                None => None,
            },
            Step::SubscribeLast(adding) => return Ok((None, adding.poll()?)),
        };
        Ok((next, None))
    }

    fn start_for(
        &self,
        archive: &AeronArchive,
        subscription: Subscription,
        channel: &str,
    ) -> Result<Step> {
        let (recording_id, stream_id) = (self.recording_id, self.replay_stream_id);
        if is_response_mode(&parse(channel)?) {
            let params = ReplayParams {
                subscription_registration_id: subscription.registration_id(),
                ..self.params
            };
            let start = ResponseReplay::start(archive, recording_id, channel, stream_id, &params)?;
            return Ok(Step::StartFor(subscription, Box::new(start)));
        }
        let call = ArchiveCall::start_replay(recording_id, channel, stream_id, &self.params);
        let start = CallSteps(archive.submit(&call)?);
        Ok(Step::StartFor(subscription, Box::new(start)))
    }

    /// Subscribes to the session of the replay, whose id is in the low 32 bits of the replay's id.
    fn subscribe(&self, archive: &AeronArchive, replay_session_id: i64) -> Result<Step> {
        let channel = with_session_id(&self.replay_channel, replay_session_id as i32)?;
        let aeron = archive.aeron();
        let adding = aeron.async_add_subscription(&channel, self.replay_stream_id)?;
        Ok(Step::SubscribeLast(adding))
    }
}

impl Steps<Subscription> for ReplaySubscription {
    fn correlation_id(&self) -> i64 {
        match &self.step {
            Step::StartFor(_, start) | Step::Start(start) => start.correlation_id(),
            Step::SubscribeFirst(_) | Step::ResolvePort(_) | Step::SubscribeLast(_) => NULL_VALUE,
        }
    }

    fn poll(&mut self, archive: &AeronArchive) -> Result<Option<Subscription>> {
        loop {
            match self.advance(archive)? {
                (Some(next), _) => self.step = next,
                (None, outcome) => return Ok(outcome),
            }
        }
    }

    fn abandon(&mut self, archive: &AeronArchive) {
        if let Step::StartFor(_, start) | Step::Start(start) = &mut self.step {
            start.abandon(archive);
        }
    }
}
