//! [`ResponseReplay`]: the start of a replay that is received on a response subscription.

use aeron_client::{ExclusivePublication, PendingOperation};
use aeron_protocol::archive::NULL_VALUE;

use super::super::aeron_archive::AeronArchive;
use super::super::call::{ArchiveCall, Ticket};
use super::super::channels::replay_request_channel;
use super::super::error::{ArchiveClientError, Result};
use super::super::params::ReplayParams;
use super::call::CapabilityCheck;
use super::{Steps, abandon};

/// Requests a token. Then adds a publication, with the id of the response subscription in its
/// channel, and sends the replay request on this publication.
pub(in super::super) struct ResponseReplay {
    recording_id: i64,
    replay_channel: String,
    replay_stream_id: i32,
    params: ReplayParams,
    step: ResponseReplayStep,
}

enum ResponseReplayStep {
    Check(CapabilityCheck),
    Token(Ticket<i64>),
    Publication(PendingOperation<ExclusivePublication>),
    Replay(Ticket<i64>),
}

impl ResponseReplay {
    /// Requests the token, unless the parameters have a token. If the parameters have a rate or a
    /// speed, first checks that the archive supports it.
    ///
    /// # Errors
    /// [`ArchiveClientError::InvalidArgument`] if the parameters do not have the registration id of
    /// a subscription.
    pub(in super::super) fn start(
        archive: &AeronArchive,
        recording_id: i64,
        replay_channel: &str,
        replay_stream_id: i32,
        params: &ReplayParams,
    ) -> Result<Self> {
        if params.subscription_registration_id == NULL_VALUE {
            return Err(ArchiveClientError::InvalidArgument(
                "a replay over a response channel needs the registration id of its subscription"
                    .to_owned(),
            ));
        }
        let call =
            ArchiveCall::start_replay(recording_id, replay_channel, replay_stream_id, params);
        let step = match CapabilityCheck::of(&call) {
            Some(check) => ResponseReplayStep::Check(check),
            None => first_step(archive, recording_id, params)?,
        };
        Ok(Self {
            recording_id,
            replay_channel: replay_channel.to_owned(),
            replay_stream_id,
            params: *params,
            step,
        })
    }

    fn replay(
        &self,
        archive: &AeronArchive,
        publication: ExclusivePublication,
    ) -> Result<ResponseReplayStep> {
        let call = ArchiveCall::start_replay(
            self.recording_id,
            &self.replay_channel,
            self.replay_stream_id,
            &self.params,
        );
        let now_ns = archive.context().now_ns();
        let ticket = archive.session()?.submit_on(publication, &call, now_ns)?;
        Ok(ResponseReplayStep::Replay(ticket))
    }
}

impl Steps<i64> for ResponseReplay {
    fn correlation_id(&self) -> i64 {
        match &self.step {
            ResponseReplayStep::Token(ticket) | ResponseReplayStep::Replay(ticket) => {
                ticket.correlation_id()
            }
            ResponseReplayStep::Check(check) => check.correlation_id(),
            ResponseReplayStep::Publication(_) => NULL_VALUE,
        }
    }

    fn poll(&mut self, archive: &AeronArchive) -> Result<Option<i64>> {
        if let ResponseReplayStep::Check(check) = &mut self.step {
            if !check.poll(archive)? {
                return Ok(None);
            }
            self.step = first_step(archive, self.recording_id, &self.params)?;
        }
        if let ResponseReplayStep::Token(ticket) = &self.step {
            let Some(token) = archive.poll_session(|session| session.take(ticket))? else {
                return Ok(None);
            };
            self.params.replay_token = token;
            self.step = add_publication(archive, &self.params)?;
        }
        if let ResponseReplayStep::Publication(adding) = &mut self.step {
            let Some(publication) = adding.poll()? else {
                return Ok(None);
            };
            self.step = self.replay(archive, publication)?;
        }
        match &self.step {
            ResponseReplayStep::Replay(ticket) => {
                archive.poll_session(|session| session.take(ticket))
            }
            ResponseReplayStep::Check(_)
            | ResponseReplayStep::Token(_)
            | ResponseReplayStep::Publication(_) => Ok(None),
        }
    }

    fn abandon(&mut self, archive: &AeronArchive) {
        match &mut self.step {
            ResponseReplayStep::Check(check) => check.abandon(archive),
            ResponseReplayStep::Token(ticket) | ResponseReplayStep::Replay(ticket) => {
                abandon(archive, ticket);
            }
            ResponseReplayStep::Publication(_) => {}
        }
    }
}

/// Requests the token, unless the parameters have a token.
fn first_step(
    archive: &AeronArchive,
    recording_id: i64,
    params: &ReplayParams,
) -> Result<ResponseReplayStep> {
    if params.replay_token != NULL_VALUE {
        return add_publication(archive, params);
    }
    let token = archive.submit(&ArchiveCall::replay_token(recording_id))?;
    Ok(ResponseReplayStep::Token(token))
}

fn add_publication(archive: &AeronArchive, params: &ReplayParams) -> Result<ResponseReplayStep> {
    let context = archive.context();
    let channel = replay_request_channel(context, params.subscription_registration_id)?;
    let stream_id = context.control_request_stream_id;
    let adding = archive
        .aeron()
        .async_add_exclusive_publication(&channel, stream_id)?;
    Ok(ResponseReplayStep::Publication(adding))
}
