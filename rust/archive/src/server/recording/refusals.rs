//! Tells requesters and the operator that a stream is not recorded.

use aeron_protocol::archive::{ArchiveErrorCode, NULL_VALUE, RequestIds};

use super::subscriptions::ServedSubscription;
use crate::server::ArchiveError;
use crate::server::outlets::ArchiveOutlets;

/// The requester of a resumed subscription: no client.
pub(super) const NOBODY: RequestIds = RequestIds {
    control_session_id: NULL_VALUE,
    correlation_id: NULL_VALUE,
};

/// Refuses the request for a subscription, and tells the operator.
pub(super) fn refuse_subscription(
    outlets: &mut ArchiveOutlets,
    entry: &ServedSubscription,
    error: ArchiveError,
) {
    match entry.requester == NOBODY {
        true => outlets.report(&not_recorded_again(
            entry.stream_id,
            &entry.original_channel,
            &error,
        )),
        false => {
            // The text is constant, because a client chooses the channel. The client itself gets the reason.
            outlets.report_client("the driver refused the subscription of a recording request");
            outlets.refuse(entry.requester, error);
        }
    }
}

pub(super) fn not_recorded_again(stream_id: i32, channel: &str, error: &ArchiveError) -> String {
    format!(
        "stream {stream_id} of {channel} is not recorded again: {}",
        error.message
    )
}

/// Reports that the stop position of a recording could not be stored, to the operator and to the session of the
/// request. A resumed recording has no session.
pub(super) fn report_unnoted(
    outlets: &mut ArchiveOutlets,
    recording_id: i64,
    requester: RequestIds,
    error: ArchiveError,
) {
    outlets.report(&format!(
        "recording {recording_id}: its stop position is not stored yet: {}",
        error.message
    ));
    if requester != NOBODY {
        outlets.refuse(requester, error);
    }
}

/// Returns whether an image was refused because it does not continue the recording. Other errors, such as errors of the
/// storage, say nothing about the image.
pub(super) fn can_never_extend(error: &ArchiveError) -> bool {
    matches!(
        error.code,
        ArchiveErrorCode::InvalidExtension
            | ArchiveErrorCode::ActiveRecording
            | ArchiveErrorCode::UnknownRecording
    )
}
