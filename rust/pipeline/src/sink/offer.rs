//! Offers messages until all are accepted or a time-out ends the attempts.

use aeron_client::{AppendError, MessageBatch as _};
use aeron_columns::write::ArrowMessages;

use super::patience::{Refusal, RetryLimits};
use super::publication::SinkPublication;

/// Result of an offer.
#[derive(Debug)]
pub(super) struct Offered {
    /// Number of messages that were accepted. They are the first ones.
    pub(super) messages: usize,
    /// Number of payload bytes of the accepted messages.
    pub(super) bytes: u64,
    /// Stream position after the last accepted message.
    pub(super) position: Option<i64>,
    /// Reason why the other messages were not accepted; `None` if all messages were accepted.
    pub(super) stopped: Option<OfferStop>,
}

/// Reason why messages were not accepted.
#[derive(Debug)]
pub(super) enum OfferStop {
    /// The publication refused the messages for this reason until the time-out.
    Exhausted(Refusal),
    /// Another attempt cannot succeed.
    Failed(AppendError),
    /// The caller interrupted the offer.
    Interrupted,
}

/// Offers the messages in runs until all are accepted or a further attempt is not allowed.
pub(super) fn offer_all(
    publication: &SinkPublication,
    messages: &ArrowMessages<'_>,
    patience: &mut RetryLimits,
    is_interrupted: &dyn Fn() -> bool,
) -> Offered {
    let mut offered = Offered {
        messages: 0,
        bytes: 0,
        position: None,
        stopped: None,
    };
    while offered.messages < messages.count() {
        match publication.offer_batch(messages, offered.messages) {
            Ok(appended) => {
                patience.progress();
                let end = offered.messages + appended.messages;
                let lengths =
                    (offered.messages..end).map(|index| messages.message(index).len() as u64);
                offered.bytes += lengths.sum::<u64>();
                offered.messages = end;
                offered.position = Some(appended.position);
            }
            Err(error) => {
                offered.stopped = stop(error, patience, is_interrupted);
                if offered.stopped.is_some() {
                    break;
                }
            }
        }
    }
    offered
}

/// Returns the reason to stop after a failed attempt. Returns `None` after a short wait if the offer may be tried
/// again.
fn stop(
    error: AppendError,
    patience: &mut RetryLimits,
    is_interrupted: &dyn Fn() -> bool,
) -> Option<OfferStop> {
    let refusal = match error {
        AppendError::NotConnected => Refusal::NotConnected,
        AppendError::BackPressured | AppendError::AdminAction => Refusal::Pressed,
        _ => return Some(OfferStop::Failed(error)),
    };
    if is_interrupted() {
        return Some(OfferStop::Interrupted);
    }
    patience
        .is_exhausted_by(refusal)
        .then_some(OfferStop::Exhausted(refusal))
}
