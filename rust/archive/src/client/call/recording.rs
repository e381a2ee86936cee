//! Calls that start, extend and stop recordings.

use aeron_protocol::archive::{ArchiveErrorCode, SourceLocation};

use super::super::answer::Answer;
use super::super::error::{ArchiveClientError, Result};
use super::{calls, nothing, request, value};

calls! {
    /// Starts to record a channel and stream. The result is the id of the archive's subscription.
    start_recording(
        channel: &str, stream_id: i32, source_location: SourceLocation, auto_stop: bool
    ) owns channel -> i64 =
        with_response("start recording"),
        request StartRecording2(StartRecordingRequest2 {
            stream_id, source_location, auto_stop, channel: channel.as_bytes()
        }), value;

    /// Extends a recording by the image of a channel and stream. The result is the id of the archive's subscription.
    extend_recording(
        recording_id: i64, channel: &str, stream_id: i32, source_location: SourceLocation, auto_stop: bool
    ) owns channel -> i64 =
        with_response("extend recording"),
        request ExtendRecording2(ExtendRecordingRequest2 {
            recording_id, stream_id, source_location, auto_stop, channel: channel.as_bytes()
        }), value;

    /// Stops one recording. The result is `false` if the recording is not active.
    try_stop_recording_by_identity(recording_id: i64) -> bool =
        with_response("stop recording by identity"),
        request StopRecordingByIdentity(StopRecordingByIdentityRequest { recording_id }),
        |outcome| Ok(value(outcome)? != 0);

    /// Stops the recordings of a channel and stream.
    stop_recording(channel: &str, stream_id: i32) owns channel -> () =
        with_response("stop recording"),
        request StopRecording(StopRecordingRequest { stream_id, channel: channel.as_bytes() }), nothing;

    /// Does the same as [`stop_recording`](crate::client::ArchiveCall::stop_recording). The result is `false` if
    /// the archive does not record the channel and stream.
    try_stop_recording(channel: &str, stream_id: i32) owns channel -> bool =
        with_response("stop recording"),
        request StopRecording(StopRecordingRequest { stream_id, channel: channel.as_bytes() }),
        unless_unknown_subscription;

    /// Closes a recording subscription of the archive, and stops its recordings.
    stop_recording_subscription(subscription_id: i64) -> () =
        with_response("stop recording subscription"),
        request StopRecordingSubscription(StopRecordingSubscriptionRequest { subscription_id }), nothing;

    /// Does the same as [`stop_recording_subscription`](crate::client::ArchiveCall::stop_recording_subscription).
    /// The result is `false` if the archive has no subscription with this id.
    try_stop_recording_subscription(subscription_id: i64) -> bool =
        with_response("stop recording subscription"),
        request StopRecordingSubscription(StopRecordingSubscriptionRequest { subscription_id }),
        unless_unknown_subscription;
}

fn unless_unknown_subscription(outcome: Result<Answer>) -> Result<bool> {
    succeeded_unless(outcome, ArchiveErrorCode::UnknownSubscription)
}

/// Returns `true` if the request succeeded, `false` for the error with this code. Other errors are
/// returned unchanged.
pub(super) fn succeeded_unless(outcome: Result<Answer>, code: ArchiveErrorCode) -> Result<bool> {
    match outcome {
        Ok(_) => Ok(true),
        Err(error) if is(&error, code) => Ok(false),
        Err(error) => Err(error),
    }
}

fn is(error: &ArchiveClientError, code: ArchiveErrorCode) -> bool {
    error.archive_code() == Some(code)
}
