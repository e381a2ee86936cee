//! [`ReplayPermission`]: the publication and the token with which a replication requests a replay over a response
//! channel.

use aeron_client::{Aeron, ExclusivePublication, PendingOperation, Subscription};

use crate::client::{
    ArchiveCall, ArchiveClientContext, ArchiveSession, Ticket, replay_request_channel,
};
use crate::server::ArchiveError;

/// The permission to request a replay. The token is requested last, because it is valid for a short time.
pub(super) enum ReplayPermission {
    /// The driver is adding the publication. Its channel names the subscription that will receive the replay.
    Adding(PendingOperation<ExclusivePublication>),
    /// The publication has no subscriber yet.
    Connecting(ExclusivePublication),
    /// The source has not sent the token yet.
    AwaitingToken(ExclusivePublication, Ticket<i64>),
    /// The replay can be requested with this token.
    Granted(ExclusivePublication, i64),
}

impl ReplayPermission {
    /// Asks the driver to add the publication to the source's control channel. `context` has the settings of the
    /// session with the source.
    ///
    /// # Errors
    /// The channel is not valid, or the command cannot be sent.
    pub fn request(
        aeron: &Aeron,
        context: &ArchiveClientContext,
        subscription: &Subscription,
    ) -> Result<Self, ArchiveError> {
        let channel = replay_request_channel(context, subscription.registration_id())
            .map_err(ArchiveError::generic)?;
        let stream_id = context.control_request_stream_id;
        Ok(Self::Adding(
            aeron.async_add_exclusive_publication(&channel, stream_id)?,
        ))
    }

    /// Takes the next step, if the driver or the source has replied. Returns whether a step was taken.
    ///
    /// # Errors
    /// The driver refuses the publication, or the source refuses the token.
    pub fn advance(
        &mut self,
        source: &mut ArchiveSession,
        recording_id: i64,
        now_ns: i64,
    ) -> Result<bool, ArchiveError> {
        let next = match self {
            Self::Adding(operation) => operation.poll()?.map(Self::Connecting),
            Self::Connecting(publication) if publication.is_connected() => {
                let call = ArchiveCall::replay_token(recording_id);
                let ticket = source
                    .submit(&call, now_ns)
                    .map_err(ArchiveError::generic)?;
                Some(Self::AwaitingToken(publication.clone(), ticket))
            }
            Self::AwaitingToken(publication, ticket) => {
                let token = source.take(ticket).transpose();
                let token = token.map_err(ArchiveError::generic)?;
                token.map(|token| Self::Granted(publication.clone(), token))
            }
            Self::Connecting(_) | Self::Granted(..) => None,
        };
        let has_advanced = next.is_some();
        if let Some(next) = next {
            *self = next;
        }
        Ok(has_advanced)
    }
}
