//! [`SinkPublication`]: a publication of the sink. Several tasks share it, or one task at a time uses it.

use aeron_client::{
    Aeron, AppendError, Appended, CloseCause, Error, ExclusivePublication, MessageBatch,
    OfferError, Publication,
};

/// How tasks publish on a channel and stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sharing {
    /// All tasks of the machine share one session.
    Shared,
    /// The task has a session of its own.
    Exclusive,
}

/// A publication. One task at a time uses an exclusive one.
pub(super) enum SinkPublication {
    Shared(Publication),
    Exclusive(ExclusivePublication),
}

impl SinkPublication {
    pub(super) fn add(
        aeron: &Aeron,
        channel: &str,
        stream_id: i32,
        sharing: Sharing,
    ) -> Result<Self, Error> {
        match sharing {
            Sharing::Shared => aeron.add_publication(channel, stream_id).map(Self::Shared),
            Sharing::Exclusive => aeron
                .add_exclusive_publication(channel, stream_id)
                .map(Self::Exclusive),
        }
    }

    pub(super) fn offer_batch<M: MessageBatch + ?Sized>(
        &self,
        messages: &M,
        first: usize,
    ) -> Result<Appended, AppendError> {
        match self {
            Self::Shared(publication) => publication.offer_batch(messages, first),
            Self::Exclusive(publication) => {
                publication
                    .offer_batch(messages, first)
                    .map_err(|error| match error {
                        OfferError::Append(error) => error,
                        // Another call is appending: try again.
                        OfferError::InUse => AppendError::AdminAction,
                    })
            }
        }
    }

    pub(super) fn stream_id(&self) -> i32 {
        match self {
            Self::Shared(publication) => publication.stream_id(),
            Self::Exclusive(publication) => publication.stream_id(),
        }
    }

    pub(super) fn session_id(&self) -> i32 {
        match self {
            Self::Shared(publication) => publication.session_id(),
            Self::Exclusive(publication) => publication.session_id(),
        }
    }

    pub(super) fn max_message_length(&self) -> usize {
        match self {
            Self::Shared(publication) => publication.max_message_length(),
            Self::Exclusive(publication) => publication.max_message_length(),
        }
    }

    pub(super) fn position(&self) -> Result<i64, AppendError> {
        match self {
            Self::Shared(publication) => publication.position(),
            Self::Exclusive(publication) => publication.position(),
        }
    }

    pub(super) fn position_limit(&self) -> Result<i64, AppendError> {
        match self {
            Self::Shared(publication) => publication.position_limit(),
            Self::Exclusive(publication) => publication.position_limit(),
        }
    }

    pub(super) fn is_closed(&self) -> bool {
        match self {
            Self::Shared(publication) => publication.is_closed(),
            Self::Exclusive(publication) => publication.is_closed(),
        }
    }

    pub(super) fn close_cause(&self) -> CloseCause {
        match self {
            Self::Shared(publication) => publication.close_cause(),
            Self::Exclusive(publication) => publication.close_cause(),
        }
    }
}
