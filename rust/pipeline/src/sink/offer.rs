//! Offering messages until all are accepted, or it takes too long.

use aeron_client::{AppendError, Messages as _, Publication};
use aeron_columns::write::ArrowMessages;

use super::patience::{Patience, Refusal};

/// What was accepted, and why no more.
#[derive(Debug)]
pub(super) struct Offered {
    /// Messages from the first one on.
    pub(super) messages: usize,
    /// Bytes of their payloads.
    pub(super) bytes: u64,
    /// Stream position after the last of them.
    pub(super) position: Option<i64>,
    /// Why the others were not accepted; `None` when there are none.
    pub(super) stopped: Option<Stop>,
}

/// Why messages are left.
#[derive(Debug)]
pub(super) enum Stop {
    /// This was answered for too long.
    Exhausted(Refusal),
    /// There is no use in trying again.
    Failed(AppendError),
    /// The caller wants to end.
    Interrupted,
}

/// Offers the messages run after run.
pub(super) fn offer_all(
    publication: &Publication,
    messages: &ArrowMessages<'_>,
    patience: &mut Patience,
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

/// Waits a little if there is use in trying again.
fn stop(
    error: AppendError,
    patience: &mut Patience,
    is_interrupted: &dyn Fn() -> bool,
) -> Option<Stop> {
    let refusal = match error {
        AppendError::NotConnected => Refusal::NotConnected,
        AppendError::BackPressured | AppendError::AdminAction => Refusal::Pressed,
        _ => return Some(Stop::Failed(error)),
    };
    if is_interrupted() {
        return Some(Stop::Interrupted);
    }
    patience
        .is_exhausted_by(refusal)
        .then_some(Stop::Exhausted(refusal))
}
