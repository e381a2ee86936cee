//! [`ActiveStream`]: the publication that the archive records now.

use aeron_client::{AppendError, ExclusivePublication, MessageBatch, OfferError};

use super::error::RecordedPublisherError;
use super::geometry::{FrameIds, StreamGeometry};
use super::kept::{KeptMessages, TornMessage};
use super::recorded_position::RecordedPosition;
use super::status::RecordedPublisherStatus;

/// After this number of payload bytes, a step sends no further message. So each step is short.
const MAX_STEP_LENGTH: i64 = 1024 * 1024;

/// A publication and its recording. Dropping this value closes the publication.
pub(super) struct ActiveStream {
    publication: ExclusivePublication,
    pub(super) recorded: RecordedPosition,
    /// Correlation id of the request that started or extended the recording.
    pub(super) request_id: i64,
    /// Frames that complete a partly recorded message.
    completion: Option<Vec<u8>>,
}

/// Outcome of an attempt to send.
enum AppendOutcome {
    /// The message was sent, up to this position.
    UpTo(i64),
    /// The log has rotated to its next term: try again at once.
    AfterRotation,
    /// The publication is back-pressured, has no subscriber, or is closed.
    NotNow,
}

impl ActiveStream {
    pub(super) const fn new(
        publication: ExclusivePublication,
        recorded: RecordedPosition,
        request_id: i64,
    ) -> Self {
        Self {
            publication,
            recorded,
            request_id,
            completion: None,
        }
    }

    /// Returns the session id of the publication.
    pub(super) fn session_id(&self) -> i32 {
        self.publication.session_id()
    }

    /// Returns whether the publication is closed.
    pub(super) fn is_closed(&self) -> bool {
        self.publication.is_closed()
    }

    /// Stores the missing frames of a partly recorded message. [`send_kept`](Self::send_kept) sends them before all
    /// other messages.
    pub(super) fn complete(&mut self, torn: &TornMessage, position: i64, geometry: StreamGeometry) {
        debug_assert!(
            self.completion.is_none(),
            "a stream must not begin with the rests of two messages"
        );
        let ids = FrameIds {
            session_id: self.publication.session_id(),
            stream_id: self.publication.stream_id(),
        };
        self.completion = Some(geometry.fragments_from(torn.place, position, &torn.bytes, ids));
    }

    /// Sends a message at once. The caller has checked that all earlier messages were sent. Returns whether the message
    /// was sent.
    ///
    /// # Errors
    /// [`RecordedPublisherError::UnexpectedPosition`] if the message does not end at `end`.
    /// [`RecordedPublisherError::Offer`] if the publication refuses the message.
    #[inline]
    pub(super) fn send(&self, message: &[u8], end: i64) -> Result<bool, RecordedPublisherError> {
        match sent(self.publication.offer(message))? {
            AppendOutcome::UpTo(position) => check(position, end).map(|()| true),
            AppendOutcome::AfterRotation | AppendOutcome::NotNow => Ok(false),
        }
    }

    /// Sends as many messages as possible at once. Returns the number of sent messages, and the
    /// position after them; `None` if the publication did not accept any message.
    pub(super) fn send_batch<M: MessageBatch + ?Sized>(
        &self,
        messages: &M,
        first: usize,
    ) -> Option<(usize, i64)> {
        let appended = self.publication.offer_batch(messages, first).ok()?;
        Some((appended.messages, appended.position))
    }

    /// Sends kept messages that were not sent. Returns the number of messages.
    ///
    /// # Errors
    /// The same errors as [`send`](Self::send).
    pub(super) fn send_kept(
        &mut self,
        kept: &mut KeptMessages,
        status: &RecordedPublisherStatus,
    ) -> Result<usize, RecordedPublisherError> {
        let mut count = 0;
        let mut again = 0;
        let mut budget = MAX_STEP_LENGTH;
        while let Some(message) = kept.next_unsent()
            && budget > 0
        {
            let outcome = match &self.completion {
                Some(frames) => sent(self.publication.offer_block(frames))?,
                None => sent(self.publication.offer_parts(&message.parts))?,
            };
            match outcome {
                AppendOutcome::NotNow => break,
                AppendOutcome::AfterRotation => {}
                AppendOutcome::UpTo(position) => {
                    check(position, message.end)?;
                    budget -= message.length() as i64;
                    again += u64::from(message.is_again);
                    count += 1;
                    self.completion = None;
                    kept.mark_sent();
                }
            }
        }
        if again > 0 {
            status.count_offered_again(again);
        }
        Ok(count)
    }
}

fn sent(outcome: Result<i64, OfferError>) -> Result<AppendOutcome, RecordedPublisherError> {
    match outcome {
        Ok(position) => Ok(AppendOutcome::UpTo(position)),
        Err(OfferError::Append(AppendError::AdminAction)) => Ok(AppendOutcome::AfterRotation),
        // `poll` of the publisher notices the loss of the recording or of the client.
        Err(OfferError::Append(
            AppendError::NotConnected | AppendError::BackPressured | AppendError::Closed,
        )) => Ok(AppendOutcome::NotNow),
        Err(source) => Err(RecordedPublisherError::Offer { source }),
    }
}

const fn check(position: i64, expected: i64) -> Result<(), RecordedPublisherError> {
    if position == expected {
        return Ok(());
    }
    Err(RecordedPublisherError::UnexpectedPosition { position, expected })
}
