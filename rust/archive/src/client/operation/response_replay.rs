//! [`ResponseReplay`]: the start of a replay that comes back on a response subscription.

use aeron_client::{ExclusivePublication, PendingOperation};
use aeron_protocol::archive::NULL_VALUE;

use super::super::aeron_archive::AeronArchive;
use super::super::call::{ArchiveCall, Ticket};
use super::super::channels::replay_request_channel;
use super::super::error::{ArchiveClientError, Result};
use super::super::params::ReplayParams;
use super::{Steps, abandon};

/// Asks for a token, adds a publication that names the response subscription, and sends the replay request on it.
pub(in super::super) struct ResponseReplay {
    recording_id: i64,
    replay_channel: String,
    replay_stream_id: i32,
    params: ReplayParams,
    step: Step,
}

enum Step {
    Token(Ticket<i64>),
    Publication(PendingOperation<ExclusivePublication>),
    Replay(Ticket<i64>),
}

impl ResponseReplay {
    /// Asks for the token, unless the parameters have one.
    ///
    /// # Errors
    /// [`ArchiveClientError::InvalidArgument`] if the parameters do not name a subscription.
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
        let step = if params.replay_token == NULL_VALUE {
            Step::Token(archive.submit(&ArchiveCall::replay_token(recording_id))?)
        } else {
            add_publication(archive, params)?
        };
        Ok(Self {
            recording_id,
            replay_channel: replay_channel.to_owned(),
            replay_stream_id,
            params: *params,
            step,
        })
    }

    fn replay(&self, archive: &AeronArchive, publication: ExclusivePublication) -> Result<Step> {
        let call = ArchiveCall::start_replay(
            self.recording_id,
            &self.replay_channel,
            self.replay_stream_id,
            &self.params,
        );
        let now_ns = archive.context().now_ns();
        let ticket = archive.session()?.submit_on(publication, &call, now_ns)?;
        Ok(Step::Replay(ticket))
    }
}

impl Steps<i64> for ResponseReplay {
    fn correlation_id(&self) -> i64 {
        match &self.step {
            Step::Token(ticket) | Step::Replay(ticket) => ticket.correlation_id(),
            Step::Publication(_) => NULL_VALUE,
        }
    }

    fn poll(&mut self, archive: &AeronArchive) -> Result<Option<i64>> {
        if let Step::Token(ticket) = &self.step {
            let Some(token) = archive.poll_session(|session| session.take(ticket))? else {
                return Ok(None);
            };
            self.params.replay_token = token;
            self.step = add_publication(archive, &self.params)?;
        }
        if let Step::Publication(adding) = &mut self.step {
            let Some(publication) = adding.poll()? else {
                return Ok(None);
            };
            self.step = self.replay(archive, publication)?;
        }
        match &self.step {
            Step::Replay(ticket) => archive.poll_session(|session| session.take(ticket)),
            Step::Token(_) | Step::Publication(_) => Ok(None),
        }
    }

    fn abandon(&mut self, archive: &AeronArchive) {
        if let Step::Token(ticket) | Step::Replay(ticket) = &self.step {
            abandon(archive, ticket);
        }
    }
}

fn add_publication(archive: &AeronArchive, params: &ReplayParams) -> Result<Step> {
    let context = archive.context();
    let channel = replay_request_channel(context, params.subscription_registration_id)?;
    let stream_id = context.control_request_stream_id;
    let adding = archive
        .aeron()
        .async_add_exclusive_publication(&channel, stream_id)?;
    Ok(Step::Publication(adding))
}
